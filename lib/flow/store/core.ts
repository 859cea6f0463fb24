/**
 * What the parts of a store share.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import { Bodies, type Packed } from "./bodies.ts";
import type { Cell, Cells, Write } from "./cells.ts";
import * as keys from "./keys.ts";
import type { FlowStoreOptions, NewDeadLetter } from "./port.ts";
import { Wakeups } from "./wakeups.ts";
import { Writer } from "./writer.ts";

const MINUTE = 60_000;
const DEFAULT_PARTITIONS = 16;
/** Most partitions of a store. */
export const MOST_PARTITIONS = 1024;
const COUNTER_DIGITS = 5;
const OPENING_TRIES = 1000;

/** Options with their defaults. */
export interface Settings {
  readonly partitions: number;
  readonly dedupWindowMs: number;
  readonly deadLetterMs: number;
  readonly pollMs: number;
  readonly feedDecisions: number;
}

/** The ground everything stands on. */
export class Core {
  readonly cells: Cells;
  readonly clock: Clock;
  readonly writer: Writer;
  readonly bodies: Bodies;
  readonly wakeups: Wakeups;
  readonly settings: Settings;
  /** Whether a codec hides what is stored: then nothing of it but ids is in keys. */
  readonly sealed: boolean;
  readonly #opening: string;
  #ids = 0;
  #lastTime = 0;
  #counter = 0;

  /** @param opening Number of this opening among all there ever were, so that no two give the same ids. */
  constructor(cells: Cells, clock: Clock, options: FlowStoreOptions, partitions: number, opening: number) {
    this.cells = cells;
    this.clock = clock;
    this.writer = new Writer(cells);
    this.sealed = options.codec !== undefined;
    this.#opening = opening.toString(36);
    this.bodies = new Bodies(cells, options.codec, () => this.newId());
    const pollMs = options.pollMs ?? 200;
    this.wakeups = new Wakeups(clock, pollMs);
    this.settings = {
      partitions,
      pollMs,
      feedDecisions: options.feedDecisions ?? 100_000,
      dedupWindowMs: options.dedupWindowMs ?? 10 * MINUTE,
      deadLetterMs: options.deadLetterMs ?? 30 * 24 * 60 * MINUTE,
    };
  }

  /** An id no other opening of the store gives. */
  newId(): string {
    return `${this.#opening}-${(this.#ids++).toString(36)}`;
  }

  /**
   * A place in the order of what was stored: later ones of this opening are greater, those of others by
   * their clocks.
   */
  newOrder(): string {
    const now = Math.floor(this.clock.now());
    if (now > this.#lastTime) {
      this.#lastTime = now;
      this.#counter = 0;
    }
    const counter = (this.#counter++).toString(36).padStart(COUNTER_DIGITS, "0");
    return `${keys.timePart(this.#lastTime)}${counter}-${this.#opening}`;
  }

  /** The JSON value of a cell. */
  async json(cell: Cell): Promise<unknown> {
    return parseJson(await this.bodies.unpack(cell.bytes));
  }

  /** A cell that a key leads to. */
  async one(key: string): Promise<Cell | undefined> {
    return (await this.cells.get([key]))[0];
  }

  /** Bytes of a small JSON value. */
  packJson(value: unknown, what: string): Promise<Uint8Array> {
    return this.bodies.packSmall(stringifyJson(value), what);
  }

  /** A dead letter on its way. */
  async letter({ kind, key, text }: NewDeadLetter): Promise<PackedLetter> {
    const id = this.newOrder(), cell = keys.letter(id);
    const packed = await this.bodies.pack(`${JSON.stringify([kind, key, this.clock.now()])}\n${text}`, cell);
    return { id, write: { key: cell, bytes: packed.bytes }, packed };
  }
}

/** A dead letter on its way. */
export interface PackedLetter {
  readonly id: string;
  readonly write: Write;
  readonly packed: Packed;
}

/** Finds or makes the store in some cells. */
export async function openCore(cells: Cells, clock: Clock, options: FlowStoreOptions): Promise<Core> {
  const { partitions } = options;
  if (
    partitions !== undefined &&
    !(Number.isInteger(partitions) && partitions >= 1 && partitions <= MOST_PARTITIONS)
  ) {
    throw new MailerError(
      "invalid_option",
      `flows: partitions is a whole number from 1 to ${MOST_PARTITIONS}`,
    );
  }
  // A writer of its own: the one of the store needs the number of the opening first.
  const writer = new Writer(cells);
  for (let tries = 0; tries < OPENING_TRIES; tries++) {
    const [cell] = await cells.get([keys.META]);
    const meta = cell === undefined ? undefined : metaOf(cell, cells.where);
    const count = meta?.partitions ?? partitions ?? DEFAULT_PARTITIONS;
    if (partitions !== undefined && partitions !== count) {
      throw new MailerError(
        "partitions_fixed",
        `flows: the store in ${cells.where} has ${count} partitions, ${partitions} were asked for`,
        { hint: "their number is fixed when a store is made; leave it out, or use another store" },
      );
    }
    const opening = (meta?.opening ?? 0) + 1;
    const text = JSON.stringify({ v: 1, partitions: count, opening });
    const version = await writer.submit({
      checks: [{ key: keys.META, version: cell?.version ?? null }],
      writes: [{ key: keys.META, bytes: new TextEncoder().encode(text) }],
    });
    if (version !== undefined) return new Core(cells, clock, options, count, opening);
  }
  throw new MailerError(
    "store_busy",
    `flows: ${cells.where} could not be opened: others open it without pause`,
  );
}

function metaOf(cell: Cell, where: string): { readonly partitions: number; readonly opening: number } {
  const meta = JSON.parse(new TextDecoder().decode(cell.bytes)) as {
    v: unknown;
    partitions: number;
    opening: number;
  };
  if (meta.v === 1) return meta;
  throw new MailerError(
    "unknown_store",
    `flows: the store in ${where} has the unknown version ${JSON.stringify(meta.v)}`,
    {
      hint: "it was made by a newer version of this program",
    },
  );
}
