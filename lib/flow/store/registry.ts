/**
 * Definitions of flows, which never change, and schedules, which do.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { submit } from "./ahead.ts";
import { removing } from "./bodies.ts";
import { type Cell, cellsIn, type Check } from "./cells.ts";
import type { Core } from "./core.ts";
import { packCommand, type PackedCommand } from "./inbox.ts";
import * as keys from "./keys.ts";
import type { Definitions, NewCommand, StoredDefinition, StoredSchedule, StoredSchedules } from "./port.ts";

const TRIES = 20;

/** See {@link Definitions}. */
export class KeptDefinitions implements Definitions {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  async put({ name, hash, text }: StoredDefinition): Promise<void> {
    const core = this.#core, key = keys.definition(name, hash);
    for (let tries = 0; tries < TRIES; tries++) {
      const [found, latest] = await core.cells.get([key, keys.latest(name)]);
      if (found !== undefined && await core.bodies.unpack(found.bytes) !== text) {
        throw new MailerError(
          "definition_collision",
          `flows: another definition is stored as ${name}@${hash}`,
          {
            hint: "two texts have one hash: change a description or a node's meta in this one",
          },
        );
      }
      const packed = await core.bodies.pack(text, key);
      const done = await submit(core, {
        checks: [
          { key, version: found?.version ?? null },
          { key: keys.latest(name), version: latest?.version ?? null },
        ],
        writes: [
          { key: keys.latest(name), bytes: await core.bodies.packSmall(hash, "a hash") },
          ...found === undefined ? [{ key, bytes: packed.bytes }] : [],
        ],
        packed: found === undefined ? [packed] : [],
      });
      if (done !== undefined) return;
    }
    throw new MailerError(
      "store_busy",
      `flows: the definition ${name}@${hash} could not be stored: others write it`,
    );
  }

  async get(name: string, hash?: string): Promise<StoredDefinition | undefined> {
    const { bodies } = this.#core;
    let wanted = hash;
    if (wanted === undefined) {
      const latest = await this.#core.one(keys.latest(name));
      if (latest === undefined) return undefined;
      wanted = await bodies.unpack(latest.bytes);
    }
    const cell = await this.#core.one(keys.definition(name, wanted));
    return cell && { name, hash: wanted, text: await bodies.unpack(cell.bytes) };
  }

  async list(): Promise<
    readonly { readonly name: string; readonly hash: string; readonly latest: boolean }[]
  > {
    const { cells, bodies } = this.#core, newest = new Map<string, string>();
    for await (const page of cellsIn(cells, keys.LATEST)) {
      for (const { key, bytes } of page) newest.set(keys.lastPart(key), await bodies.unpack(bytes));
    }
    const found: { name: string; hash: string; latest: boolean }[] = [];
    for await (const page of cellsIn(cells, keys.DEFINITIONS, 64)) {
      for (const { key } of page) {
        const [, name, hash] = key.split("/") as [string, string, string];
        found.push({ name, hash, latest: newest.get(name) === hash });
      }
    }
    return found;
  }

  async delete(name: string, hash: string): Promise<boolean> {
    const core = this.#core, key = keys.definition(name, hash);
    const [found, latest] = await core.cells.get([key, keys.latest(name)]);
    if (found === undefined) return false;
    const isLatest = latest !== undefined && await core.bodies.unpack(latest.bytes) === hash;
    const done = await core.writer.submit({
      checks: [
        { key, version: found.version },
        { key: keys.latest(name), version: latest?.version ?? null },
      ],
      writes: [
        { key, bytes: null },
        ...isLatest ? [{ key: keys.latest(name), bytes: null }] : [],
        ...removing(core.bodies.blobOf(found.bytes)),
      ],
    });
    return done !== undefined;
  }
}

/** See {@link StoredSchedules}. */
export class KeptSchedules implements StoredSchedules {
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

  async get(name: string): Promise<StoredSchedule | undefined> {
    const cell = await this.#core.one(keys.schedule(name));
    return cell && await this.#read(cell);
  }

  async list(): Promise<readonly StoredSchedule[]> {
    const found: StoredSchedule[] = [];
    for await (const page of cellsIn(this.#core.cells, keys.SCHEDULES)) {
      for (const cell of page) found.push(await this.#read(cell));
    }
    return found;
  }

  async #read(cell: Cell): Promise<StoredSchedule> {
    const stored = await this.#core.bodies.unpack(cell.bytes), end = stored.indexOf("\n");
    return { name: JSON.parse(stored.slice(0, end)), text: stored.slice(end + 1), version: cell.version };
  }

  async write(
    name: string,
    text: string | null,
    expected?: string | null,
    send: readonly NewCommand[] = [],
  ): Promise<boolean> {
    const core = this.#core, key = keys.schedule(name), checks: Check[] = [];
    if (expected !== undefined) checks.push({ key, version: expected });
    const bytes = text === null
      ? null
      : await core.bodies.packSmall(`${JSON.stringify(name)}\n${text}`, `schedule ${name}`);
    const sent = await Promise.all(
      send.map((command) => packCommand(core, this.#partitionOf(command.execId), command)),
    );
    const version = await submit(core, {
      checks,
      writes: [{ key, bytes }, ...sent.map(({ write }) => write)],
      packed: sent.map(({ packed }) => packed),
    });
    if (version === undefined) return false;
    this.#stored(sent, version);
    return true;
  }
}
