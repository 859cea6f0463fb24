/**
 * The feed: decisions of a partition in the order they were committed. One entry for each commit, however many decisions it has.
 *
 * F1 Positions grow by one, without gaps: an entry has the position of its first decision in its key, and only the owner of the
 *    partition, one commit at a time, adds one.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import { removeAll } from "./ahead.ts";
import { type Cells, cellsIn } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import type { Feed, FeedItem } from "./port.ts";
import type { Lane } from "./writer.ts";

type StoredItem = readonly [execId: string, seq: number, note?: string];

/** What the feed is told of a decision. */
export function feedItem(execId: string, seq: number, note?: string): string {
  return JSON.stringify(note === undefined ? [execId, seq] : [execId, seq, note]);
}

/** The end of a partition's feed, in the hand of its owner. */
export class FeedLane implements Lane {
  readonly #core: Core;
  readonly #partition: number;
  #next: number | undefined;

  constructor(core: Core, partition: number) {
    this.#core = core;
    this.#partition = partition;
  }

  async entry(items: readonly string[]): ReturnType<Lane["entry"]> {
    const next = this.#next ??= await endOf(this.#core, this.#partition);
    const bytes = await this.#core.bodies.packSmall(`[${items.join()}]`, "an entry of the feed");
    return {
      write: { key: keys.feed(this.#partition, next), bytes },
      committed: () => {
        this.#next = next + items.length;
        this.#core.wakeups.notify(`feed:${this.#partition}`);
      },
    };
  }

  lost(): void {
    this.#next = undefined;
  }
}

async function endOf({ cells, bodies }: Core, partition: number): Promise<number> {
  const [last] = await cells.list(keys.feedOf(partition), 1, true);
  if (last === undefined) return 0;
  const items = parseJson(await bodies.unpack(last.bytes)) as StoredItem[];
  return keys.numberOf(keys.lastPart(last.key)) + items.length;
}

/** See {@link Feed}. */
export class KeptFeed implements Feed {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  async read(partition: number, from: number, limit = 256): Promise<readonly FeedItem[]> {
    const { cells, bodies } = this.#core, { to } = keys.feedOf(partition);
    const items: FeedItem[] = [];
    // The position may lie within an entry, which has its first position in the key.
    const before = { from: keys.feedOf(partition).from, to: keys.feed(partition, from + 1) };
    const [holding] = await cells.list(before, 1, true);
    const start = holding === undefined ? keys.feed(partition, from) : holding.key;
    if (holding === undefined && from < await this.begin(partition)) {
      throw new MailerError(
        "feed_trimmed",
        `flows: partition ${partition} knows nothing any more of position ${from}`,
        {
          hint:
            "the reader was too far behind: keep more decisions in the feed, or begin at its first position",
        },
      );
    }
    for await (const page of cellsIn(cells, { from: start, to }, Math.min(limit, 100))) {
      for (const cell of page) {
        const stored = parseJson(await bodies.unpack(cell.bytes)) as StoredItem[];
        let position = keys.numberOf(keys.lastPart(cell.key));
        for (const [execId, seq, note] of stored) {
          if (position >= from) {
            items.push({ position, execId, seq, ...(note === undefined ? {} : { note }) });
          }
          if (items.length === limit) return items;
          position++;
        }
      }
    }
    return items;
  }

  async begin(partition: number): Promise<number> {
    const [first] = await this.#core.cells.list(keys.feedOf(partition), 1);
    return first === undefined ? 0 : keys.numberOf(keys.lastPart(first.key));
  }

  end(partition: number): Promise<number> {
    return endOf(this.#core, partition);
  }

  /** Forgets what is older than the newest decisions that are to be known. Answers how many entries. */
  async sweep(): Promise<number> {
    const { partitions, feedDecisions } = this.#core.settings;
    let removed = 0;
    for (let partition = 0; partition < partitions; partition++) {
      const before = await this.end(partition) - feedDecisions;
      if (before > 0) removed += await this.trim(partition, before);
    }
    return removed;
  }

  async trim(partition: number, before: number): Promise<number> {
    const { cells } = this.#core;
    // The last entry stays: it says where the next one goes.
    const last = await lastKey(cells, partition);
    const holding = await cells.list(
      { from: keys.feedOf(partition).from, to: keys.feed(partition, before + 1) },
      1,
      true,
    );
    const end = holding[0]?.key ?? keys.feed(partition, before);
    const to = last !== undefined && last < end ? last : end;
    return await removeAll(this.#core, { from: keys.feedOf(partition).from, to });
  }
}

async function lastKey(cells: Cells, partition: number): Promise<string | undefined> {
  return (await cells.list(keys.feedOf(partition), 1, true))[0]?.key;
}
