/**
 * Compaction: neighbouring runs become one, without what nobody needs any more.
 *
 * M1 Of each key the newest entry stays. A deleted or expired key, or one of a dropped table, leaves nothing behind where no older
 *    run is left; else a tombstone.
 * M2 Runs that went in are not touched: whoever still needs them deletes them later.
 *
 * @module
 */
import { yieldToEventLoop } from "../../scheduling.ts";
import { ByteReader, copyShort } from "./bytes.ts";
import { CHUNKED, DELTA_SHIFT, EntryHead, TOMBSTONE } from "./entry.ts";
import type { LiveInstance, LiveRules } from "./live_rules.ts";
import { EVERYTHING, Merge } from "./merge.ts";
import type { Run } from "./run.ts";
import { RunWriter, type RunWriterOptions, type WrittenRun } from "./run_writer.ts";

/** Entries between two looks at what else is to be done: about half a millisecond. */
const STEP_ENTRIES = 2048;
/** Few, so that a checkpoint does not wait long behind them. */
const WRITES_IN_FLIGHT = 2;

/** How a compaction goes. */
export interface CompactOptions extends Omit<RunWriterOptions, "expected"> {
  /** Neighbours, the newest first. */
  readonly runs: readonly Run[];
  /** Whether the oldest of them is the oldest of all. */
  readonly isBottom: boolean;
  readonly rules: LiveRules;
  /** Asked every now and then: what to wait for before it goes on. Throws to end it. */
  readonly gate: () => Promise<void> | undefined;
}

/** @returns The run; undefined where nothing was left. */
export async function compact(options: CompactOptions): Promise<WrittenRun | undefined> {
  const { runs, isBottom, rules, gate } = options;
  const expected = runs.reduce((sum, { ref }) => sum + ref.entries, 0);
  const writer = new RunWriter({ ...options, expected });
  for (const run of runs) run.readers++;
  try {
    await mergeInto(writer, runs, isBottom, rules, gate);
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  } finally {
    for (const run of runs) run.readers--;
  }
}

async function mergeInto(
  writer: RunWriter,
  runs: readonly Run[],
  isBottom: boolean,
  rules: LiveRules,
  gate: CompactOptions["gate"],
): Promise<void> {
  const merge = new Merge(runs, EVERYTHING), mover = new Mover(writer, isBottom, merge);
  let instance = -1, live: LiveInstance | undefined, left = STEP_ENTRIES;
  for (let step = merge.next(); step !== "end"; step = merge.next()) {
    if (step === "wait") {
      await merge.wait();
      continue;
    }
    const { top } = merge;
    if (top.instance !== instance) {
      instance = top.instance;
      live = rules.get(instance);
    }
    const range = live?.rangeOf(top.place, top.order);
    if (range !== undefined) {
      const wait = mover.move(live!, range.now);
      if (wait !== undefined) await wait;
    }
    if (--left > 0) continue;
    left = STEP_ENTRIES;
    await (gate() ?? writer.flow(WRITES_IN_FLIGHT) ?? yieldToEventLoop());
  }
}

/** Moves the current entry of a merge. */
class Mover {
  readonly #head = new EntryHead();
  readonly #older = new EntryHead();

  constructor(readonly writer: RunWriter, readonly isBottom: boolean, readonly merge: Merge) {}

  /** @returns What to wait for, where a large value has to be read. */
  move(live: LiveInstance, now: number): Promise<void> | undefined {
    const { writer, merge } = this, { page, index, instance, order, place, run } = merge.top;
    const start = page.start(index), head = this.#head.read(page.bytes, page.view, start);
    const isThere = !head.isTombstone && !(head.expires <= now);
    const sum = this.#deltas(head.delta);
    const delta = isThere && this.isBottom ? 1 : sum.oldest + (isThere ? 1 : 0) - sum.oldestThere;
    if (!isThere && this.isBottom) {
      if (live.table !== undefined) live.table.keys -= sum.all;
      return undefined;
    }
    if (live.table !== undefined && delta !== sum.all) live.table.keys += delta - sum.all;
    const body = writer.entry,
      at = body.at,
      flags = head.flags & ((1 << DELTA_SHIFT) - 1) | ((delta + 1) << DELTA_SHIFT);
    if (isThere && (flags & CHUNKED) === 0) {
      copyShort(page.bytes, page.view, start, page.end(index), body);
      body.bytes[at] = flags;
      writer.close(at, at + head.identityTo - start, instance, order, place, false, head.expires);
      return undefined;
    }
    if (isThere) {
      const reader = new ByteReader(page.bytes, head.identityTo),
        first = reader.varint(),
        length = reader.varint();
      const { expires, identityTo } = head;
      return run.chunk(first, length).then((payload) => {
        body.copy(page.bytes.subarray(start, identityTo));
        body.bytes[at] = flags & ~CHUNKED;
        body.copy(payload);
        writer.close(at, at + identityTo - start, instance, order, place, false, expires);
      });
    }
    body.reserve(1);
    body.byte(TOMBSTONE | ((delta + 1) << DELTA_SHIFT));
    body.copy(page.bytes.subarray(head.identityFrom, head.identityTo));
    writer.close(at, body.at, instance, order, place, true, Infinity);
    return undefined;
  }

  /** What the entries of the current key say of the number of keys. */
  #deltas(newest: number): { readonly all: number; readonly oldest: number; readonly oldestThere: number } {
    const { chain, cursors } = this.merge;
    if (chain.length === 1) {
      const isThere = this.#head.isTombstone ? 0 : 1;
      return { all: newest, oldest: newest, oldestThere: isThere };
    }
    let all = newest, oldest = newest, oldestThere = 0;
    for (let i = 1; i < chain.length; i++) {
      const { page, index } = cursors[chain[i]!]!;
      const head = this.#older.read(page.bytes, page.view, page.start(index));
      oldest = head.delta;
      oldestThere = head.isTombstone ? 0 : 1;
      all += oldest;
    }
    return { all, oldest, oldestThere };
  }
}
