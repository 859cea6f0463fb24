/**
 * What is kept on the side: results that may be used again, dead letters, the list of parked executions.
 *
 * @module
 */
import { submit } from "./ahead.ts";
import { removing } from "./bodies.ts";
import { type Cell, cellsIn, type Write } from "./cells.ts";
import type { Core } from "./core.ts";
import { packCommand, type PackedCommand } from "./inbox.ts";
import * as keys from "./keys.ts";
import type {
  DeadLetter,
  DeadLetters,
  NewCommand,
  NewDeadLetter,
  Page,
  Quarantine,
  Quarantines,
  ResultCache,
} from "./port.ts";

/** See {@link ResultCache}. */
export class KeptResults implements ResultCache {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  async get(key: string): Promise<string | undefined> {
    const cell = await this.#core.one(keys.cached(key));
    if (cell === undefined) return undefined;
    const stored = await this.#core.bodies.unpack(cell.bytes), end = stored.indexOf("\n");
    return Number(stored.slice(0, end)) > this.#core.clock.now() ? stored.slice(end + 1) : undefined;
  }
}

/** See {@link DeadLetters}. */
export class KeptDeadLetters implements DeadLetters {
  readonly #core: Core;
  readonly #partitionOf: (execId: string) => number;
  readonly #stored: (commands: readonly PackedCommand[], version: string) => void;

  /** @param stored Is told of the commands that were sent. */
  constructor(
    core: Core,
    partitionOf: (execId: string) => number,
    stored: (commands: readonly PackedCommand[], version: string) => void,
  ) {
    this.#core = core;
    this.#partitionOf = partitionOf;
    this.#stored = stored;
  }

  async add(letter: NewDeadLetter): Promise<string> {
    const { id, write, packed } = await this.#core.letter(letter);
    await submit(this.#core, { checks: [], writes: [write], packed: [packed] });
    return id;
  }

  async get(id: string): Promise<DeadLetter | undefined> {
    const cell = await this.#core.one(keys.letter(id));
    return cell && await this.#read(cell);
  }

  async list(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<Page<DeadLetter>> {
    const { limit = 50, cursor } = options, { from, to } = keys.LETTERS;
    const range = { from, to: cursor === undefined ? to : keys.letter(cursor) };
    const cells = await this.#core.cells.list(range, limit + 1, true);
    const items = await Promise.all(cells.slice(0, limit).map((cell) => this.#read(cell)));
    return cells.length > limit ? { items, cursor: items.at(-1)!.id } : { items };
  }

  async #read(cell: Cell): Promise<DeadLetter> {
    const stored = await this.#core.bodies.unpack(cell.bytes), end = stored.indexOf("\n");
    const [kind, key, time] = JSON.parse(stored.slice(0, end)) as [string, string, number];
    return { id: keys.lastPart(cell.key), kind, key, time, text: stored.slice(end + 1) };
  }

  async remove(id: string, send: readonly NewCommand[] = []): Promise<boolean> {
    const core = this.#core, cell = await core.one(keys.letter(id));
    if (cell === undefined) return false;
    const sent = await Promise.all(
      send.map((command) => packCommand(core, this.#partitionOf(command.execId), command)),
    );
    const version = await submit(core, {
      checks: [{ key: cell.key, version: cell.version }],
      writes: [
        { key: cell.key, bytes: null },
        ...removing(core.bodies.blobOf(cell.bytes)),
        ...sent.map(({ write }) => write),
      ],
      packed: sent.map(({ packed }) => packed),
    });
    if (version === undefined) return false;
    this.#stored(sent, version);
    return true;
  }
}

/** See {@link Quarantines}. */
export class KeptQuarantines implements Quarantines {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  async get(execId: string): Promise<Quarantine | undefined> {
    const cell = await this.#core.one(keys.quarantine(execId));
    return cell && await this.#core.json(cell) as Quarantine;
  }

  async list(): Promise<readonly (Quarantine & { readonly execId: string })[]> {
    const found: (Quarantine & { execId: string })[] = [];
    for await (const page of cellsIn(this.#core.cells, keys.QUARANTINES)) {
      for (const cell of page) {
        found.push({ execId: keys.lastPart(cell.key), ...await this.#core.json(cell) as Quarantine });
      }
    }
    return found;
  }
}

/** Removes remembered ids whose window is over, a slice of them. */
export async function sweepRemembered({ cells, clock, writer }: Core, limit: number): Promise<number> {
  const due = await cells.list(keys.until(keys.REMEMBERED_BY_TIME, clock.now()), limit);
  const swept = await Promise.all(due.map(({ key, version }) => {
    // Remembering anew removes this entry: then the check fails, and the new one stays.
    return writer.submit({
      checks: [{ key, version }],
      writes: [{ key, bytes: null }, { key: restOf(key), bytes: null }],
    });
  }));
  return swept.filter((version) => version !== undefined).length;
}

/** Removes results that have expired, a slice of them. */
export async function sweepResults(core: Core, limit: number): Promise<number> {
  const { cells, clock, writer, bodies } = core, now = clock.now();
  const due = await cells.list(keys.until(keys.CACHED_BY_TIME, now), limit);
  const results = await cells.get(due.map(({ key }) => restOf(key)));
  const swept = await Promise.all(due.map(async ({ key }, i) => {
    const result = results[i], writes: Write[] = [{ key, bytes: null }];
    const stored = result === undefined ? undefined : await bodies.unpack(result.bytes);
    // Stored anew, with a later end: only this entry is out of date.
    const isOver = stored !== undefined && Number(stored.slice(0, stored.indexOf("\n"))) <= now;
    if (isOver) writes.push({ key: result!.key, bytes: null }, ...removing(bodies.blobOf(result!.bytes)));
    const checks = isOver ? [{ key: result!.key, version: result!.version }] : [];
    return await writer.submit({ checks, writes }) !== undefined && isOver;
  }));
  return swept.filter((isSwept) => isSwept).length;
}

/** Removes dead letters of a certain age, a slice of them. */
export async function sweepLetters(core: Core, limit: number): Promise<number> {
  const before = core.clock.now() - core.settings.deadLetterMs;
  const range = { from: keys.LETTERS.from, to: keys.letter(keys.timePart(before)) };
  const due = await core.cells.list(range, limit);
  await Promise.all(due.map(({ key, bytes }) => {
    const writes = [{ key, bytes: null }, ...removing(core.bodies.blobOf(bytes))];
    return core.writer.submit({ checks: [], writes });
  }));
  return due.length;
}

/** The key behind the time in a key. */
function restOf(key: string): string {
  return key.slice(key.indexOf("/", key.indexOf("/") + 1) + 1);
}
