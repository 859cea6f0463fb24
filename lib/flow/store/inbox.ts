/**
 * Inboxes: commands that wait for their decision, one inbox for each partition.
 *
 * I1 A command is gone with the commit that answers it, and not before.
 * I2 Commands of one sender are handed out in the order they were stored.
 * I3 What this process stored is handed out without being read again; what is found in the store, left by others or by a
 *    process that died, has its deliveries counted before it is handed out. So a command that kills whoever takes it is known
 *    by its count.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { TimeHeap } from "../../heap.ts";
import { submit, submitOnce } from "./ahead.ts";
import { type Packed, removing } from "./bodies.ts";
import { behind, type Cell, cellsIn, type Write } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import { fenced, ownedOf } from "./owned.ts";
import type { Delivery, Inbox, NewCommand, NewDeadLetter, Ownership } from "./port.ts";

/** Commands that are kept in memory. */
const WINDOW = 1000;
const PAGE = 256;
const MOST_PUSHED = 64;

/** A command in an inbox. */
export interface Letter {
  readonly key: string;
  readonly execId: string;
  readonly id: string;
  readonly text: string;
  readonly parts: number;
  /** How often it was handed out. */
  readonly deliveries: number;
  /** Whether that is written down. */
  readonly counted: boolean;
  readonly version: string;
}

/** A command on its way into an inbox. */
export interface PackedCommand {
  readonly partition: number;
  readonly letter: Omit<Letter, "version">;
  readonly write: Write;
  readonly packed: Packed;
}

/** Packs a command. */
export async function packCommand(
  core: Core,
  partition: number,
  command: NewCommand,
): Promise<PackedCommand> {
  const { execId, id, text } = command, key = keys.command(partition, core.newOrder());
  const packed = await core.bodies.pack(`${JSON.stringify([execId, id])}\n${text}`, key);
  return {
    partition,
    letter: { key, execId, id, text, parts: packed.blob?.parts ?? 0, deliveries: 0, counted: false },
    write: { key, bytes: packed.bytes },
    packed,
  };
}

/** Writes that remove a command, with its parts. */
export async function removingCommand(core: Core, delivery: Delivery): Promise<Write[]> {
  const { key, parts, counted } = delivery;
  const writes: Write[] = [{ key, bytes: null }];
  if (counted) writes.push({ key: keys.deliveries(key), bytes: null });
  if (parts > 0) {
    const cell = await core.one(key);
    if (cell !== undefined) writes.push(...removing(core.bodies.blobOf(cell.bytes)));
  }
  return writes;
}

/** An inbox in the hand of its owner. */
export class Mailbox {
  readonly #core: Core;
  readonly #partition: number;
  /** Ready to be handed out, in the order of their keys. */
  #ready: Letter[] = [];
  /** Handed out, or put off. */
  readonly #handed = new Set<string>();
  readonly #delayed = new TimeHeap<Letter>();
  /** From this key on nothing is known but what is handed out. */
  #end: string | undefined = "";
  #scannedAt = -Infinity;
  #scanning: Promise<void> | undefined;
  /** Whether something was stored, and not noted, while a scan was under way: it may have missed it. */
  #missed = false;

  constructor(core: Core, partition: number) {
    this.#core = core;
    this.#partition = partition;
  }

  async pull(limit: number, scan: () => Promise<void>): Promise<Delivery[]> {
    const { clock, settings } = this.#core;
    let taken = this.#take(limit, clock.now());
    const isOutdated = this.#end !== undefined || clock.now() - this.#scannedAt > settings.pollMs;
    if (taken.length < limit && isOutdated) {
      await (this.#scanning ??= scan().finally(() => this.#scanning = undefined));
      taken = [...taken, ...this.#take(limit - taken.length, clock.now())];
    }
    return taken.map((letter) => ({ ...letter, deliveries: letter.deliveries + 1 }));
  }

  #take(limit: number, now: number): Letter[] {
    while (this.#delayed.isDue(now)) {
      const letter = this.#delayed.pop();
      if (this.#handed.delete(letter.key)) this.#insert(letter); // else it is gone meanwhile
    }
    const taken = this.#ready.splice(0, limit);
    for (const { key } of taken) this.#handed.add(key);
    return taken;
  }

  /**
   * Looks for commands that others have stored; `count` writes down which are handed out, and says which are
   * still there.
   */
  async scan(count: (found: readonly Letter[]) => Promise<readonly Letter[]>): Promise<void> {
    const { cells, clock } = this.#core, startedAt = clock.now();
    const known = new Set(this.#ready.map(({ key }) => key));
    const found: Cell[] = [];
    let end: string | undefined;
    for await (const page of cellsIn(cells, keys.commandsOf(this.#partition), PAGE)) {
      for (const cell of page) {
        if (!known.has(cell.key) && !this.#handed.has(cell.key)) found.push(cell);
      }
      if (found.length >= PAGE) {
        end = behind(page.at(-1)!.key);
        break;
      }
    }
    const letters = await count(await this.#read(found));
    this.#end = this.#missed ? "" : end;
    this.#missed = false;
    this.#scannedAt = startedAt;
    for (const letter of letters) if (!this.#handed.has(letter.key)) this.#insert(letter);
  }

  async #read(found: readonly Cell[]): Promise<Letter[]> {
    if (found.length === 0) return [];
    const { cells, bodies } = this.#core, counts = new Map<string, number>();
    for await (const page of cellsIn(cells, keys.deliveriesOf(this.#partition))) {
      for (const { key, bytes } of page) counts.set(key, countOf(bytes));
    }
    return await Promise.all(found.map(async ({ key, bytes, version }) => {
      const stored = await bodies.unpack(bytes), end = stored.indexOf("\n");
      const [execId, id] = JSON.parse(stored.slice(0, end)) as [string, string];
      const parts = bodies.blobOf(bytes)?.parts ?? 0, deliveries = counts.get(keys.deliveries(key)) ?? 0;
      return { key, execId, id, text: stored.slice(end + 1), parts, deliveries, counted: true, version };
    }));
  }

  /** A commit of this process has stored a command. */
  stored(letter: Letter): void {
    if (this.#end !== undefined && letter.key >= this.#end) this.#missed = this.#scanning !== undefined; // else one will find it
    else if (this.#ready.length >= WINDOW) this.#end = letter.key;
    else this.#insert(letter);
  }

  /** The command is gone. */
  removed(key: string): void {
    this.#handed.delete(key);
  }

  /** The command is to be handed out again. */
  returned(letter: Letter, at: number): void {
    if (this.#handed.has(letter.key)) this.#delayed.push(at, letter);
  }

  /** What is there is not known any more. */
  forget(): void {
    this.#end = "";
    this.#missed = this.#scanning !== undefined;
  }

  #insert(letter: Letter): void {
    const ready = this.#ready;
    let at = ready.length;
    while (at > 0 && ready[at - 1]!.key > letter.key) at--;
    if (at === 0 || ready[at - 1]!.key !== letter.key) ready.splice(at, 0, letter);
  }
}

/** Bytes of a count. */
export function countBytes(count: number): Uint8Array {
  return new TextEncoder().encode(String(count));
}

function countOf(bytes: Uint8Array): number {
  return Number(new TextDecoder().decode(bytes));
}

/** See {@link Inbox}. */
export class Inboxes implements Inbox {
  readonly #core: Core;
  readonly #partitionOf: (execId: string) => number;
  readonly #stored: (commands: readonly PackedCommand[], version: string) => void;

  /** @param stored Is told of what was stored. */
  constructor(
    core: Core,
    partitionOf: (execId: string) => number,
    stored: (commands: readonly PackedCommand[], version: string) => void,
  ) {
    this.#core = core;
    this.#partitionOf = partitionOf;
    this.#stored = stored;
  }

  async push(commands: readonly NewCommand[]): Promise<readonly boolean[]> {
    if (commands.length > MOST_PUSHED) {
      throw new MailerError("too_many_commands", `flows: ${commands.length} commands are pushed in one go`, {
        hint: `push at most ${MOST_PUSHED}; several calls at a time share commits`,
      });
    }
    const core = this.#core, left = new Set(withoutRepetitions(commands));
    const packed = new Map<NewCommand, PackedCommand>();
    for (const command of left) {
      packed.set(command, await packCommand(core, this.#partitionOf(command.execId), command));
    }
    for (;;) {
      const wanted = [...left].map((command) => packed.get(command)!);
      const once = [...left].filter((command) => command.once === true);
      if (wanted.length === 0) return commands.map(() => false);
      const outcome = await submitOnce(core, once.map(({ execId, id }) => [execId, id]), {
        checks: [],
        writes: wanted.map(({ write }) => write),
        packed: wanted.map(({ packed }) => packed),
      });
      if (outcome.kind === "committed") {
        this.#stored(wanted, outcome.version);
        return commands.map((command) => left.has(command));
      }
      if (outcome.kind === "duplicate") left.delete(once[outcome.index]!);
    }
  }

  async pull(ownership: Ownership, limit: number): Promise<readonly Delivery[]> {
    const owned = ownedOf(ownership), { writer } = this.#core;
    return await owned.mailbox.pull(limit, () => {
      return owned.mailbox.scan(async (found) => {
        const counted = await Promise.all(found.map(({ key, version, deliveries }) => {
          return writer.submit({
            checks: [owned.fence, { key, version }], // not of one that is gone meanwhile
            writes: [{ key: keys.deliveries(key), bytes: countBytes(deliveries + 1) }],
          });
        }));
        if (counted.includes(undefined) && await owned.isLost(this.#core)) throw fenced(owned);
        return found.filter((_, i) => counted[i] !== undefined);
      });
    });
  }

  async release(ownership: Ownership, delivery: Delivery, delayMs = 0): Promise<void> {
    const owned = ownedOf(ownership), { key, version, deliveries } = delivery;
    const done = await this.#core.writer.submit({
      checks: [owned.fence, { key, version }],
      writes: [{ key: keys.deliveries(key), bytes: countBytes(deliveries) }],
    });
    if (done === undefined) {
      if (await owned.isLost(this.#core)) throw fenced(owned);
      return owned.mailbox.removed(key);
    }
    owned.mailbox.returned({ ...delivery, counted: true }, this.#core.clock.now() + delayMs);
    if (delayMs <= 0) this.#core.wakeups.notify(`inbox:${owned.partition}`);
  }

  async remove(ownership: Ownership, delivery: Delivery, deadLetter?: NewDeadLetter): Promise<boolean> {
    const core = this.#core, owned = ownedOf(ownership), { key, version } = delivery;
    const letter = deadLetter === undefined ? undefined : await core.letter(deadLetter);
    const done = await submit(core, {
      checks: [owned.fence, { key, version }],
      writes: [...await removingCommand(core, delivery), ...letter === undefined ? [] : [letter.write]],
      packed: letter === undefined ? [] : [letter.packed],
    });
    if (done === undefined && await owned.isLost(core)) throw fenced(owned);
    owned.mailbox.removed(key);
    return done !== undefined;
  }
}

/** Of commands that are stored once and come twice in one go, the first. */
function withoutRepetitions(commands: readonly NewCommand[]): NewCommand[] {
  const seen = new Set<string>();
  return commands.filter(({ execId, id, once }) => {
    if (once !== true) return true;
    const isNew = !seen.has(`${execId}/${id}`);
    seen.add(`${execId}/${id}`);
    return isNew;
  });
}
