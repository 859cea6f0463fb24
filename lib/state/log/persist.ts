/**
 * Writing what was frozen as a run.
 *
 * It goes on in short steps between which other work has its turn; what is changed meanwhile has been captured before.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../../scheduling.ts";
import { ByteWriter, copyShort } from "./bytes.ts";
import type { Captured, Cell } from "./cell.ts";
import { encodeValue, valueBytes } from "./codec.ts";
import { DELTA_SHIFT, EXPIRES, OWN_KEY, TOMBSTONE, VERSIONED } from "./entry.ts";
import type { Frozen } from "./partition.ts";
import type { Places } from "./place.ts";
import { entryIdentity, type FrozenQueue, type HeldEntry } from "./queue.ts";
import { RunWriter, type RunWriterOptions } from "./run_writer.ts";
import { orderOf } from "./sort.ts";
import type { Space } from "./space.ts";
import { type FrozenTable, unwritable } from "./table.ts";

/** Entries of a step: about a millisecond. */
const STEP_ENTRIES = 4096;
const STEP_BYTES = 262_144;
/** What is larger is encoded where it is to lie, not moved there. */
const LARGEST_STAGED = 4096;

/** Keys of a table, or entries of a queue, that lie under one instance; to be written in their order. */
interface Stretch {
  readonly instance: number;
  /** The first key group; two stretches of one instance have different ones. */
  readonly from: number;
  write(pace: Pace): Promise<void>;
}

/**
 * Writes a run of everything that changed.
 *
 * Cells are encoded in the order in which they were changed, which is how they lie in memory; the bytes are then moved into the
 * order of places.
 *
 * @returns Everything but waiting for the last writes, which is left to `finish`; undefined where nothing changed.
 */
export async function writeFrozen(
  parts: readonly Frozen[],
  places: Places,
  options: Omit<RunWriterOptions, "expected">,
): Promise<RunWriter | undefined> {
  let expected = 0;
  for (const { tables, queues } of parts) {
    for (const { cells } of tables.values()) expected += cells.length;
    for (const { entries } of queues) expected += entries.length;
  }
  if (expected === 0) return undefined;
  const writer = new RunWriter({ ...options, expected });
  try {
    await writeParts(parts, places, new Pace(writer));
  } catch (error) {
    await writer.abandon();
    throw error;
  }
  return writer;
}

async function writeParts(parts: readonly Frozen[], places: Places, pace: Pace): Promise<void> {
  const stretches: Stretch[] = [], queued = new Map<number, QueueItem[]>();
  for (const { tables, queues } of parts) {
    for (const frozen of tables.values()) {
      const staged = new StagedTable(frozen, places);
      await staged.encode(pace);
      stretches.push(...staged.stretches());
    }
    for (const frozen of queues) sortIntoInstances(frozen, places, queued);
  }
  for (const [instance, items] of queued) stretches.push(queueStretch(instance, items));
  stretches.sort((a, b) => a.instance - b.instance || a.from - b.from);
  for (const stretch of stretches) await stretch.write(pace);
}

/** Gives way after every step. */
class Pace {
  #entries = 0;
  #bytes = 0;

  constructor(readonly writer: RunWriter) {}

  /** To be asked after every entry, with its size: what to wait for. */
  step(bytes: number): Promise<void> | undefined {
    this.#bytes += bytes;
    if (++this.#entries < STEP_ENTRIES && this.#bytes < STEP_BYTES) return undefined;
    this.#entries = this.#bytes = 0;
    return this.writer.flow() ?? yieldToEventLoop();
  }
}

/** The changes of a table, encoded. */
class StagedTable {
  readonly #frozen: FrozenTable;
  readonly #places: Places;
  readonly #stage: ByteWriter;
  readonly #placesOf: Uint32Array;
  /** Where the entry of a cell, and its payload, begin on the stage; the next one begins where it ends. */
  readonly #starts: Uint32Array;
  readonly #payloads: Uint32Array;

  constructor(frozen: FrozenTable, places: Places) {
    const { length } = frozen.cells;
    this.#frozen = frozen;
    this.#places = places;
    this.#stage = new ByteWriter(length * 48 + 64);
    this.#placesOf = new Uint32Array(length);
    this.#starts = new Uint32Array(length + 1);
    this.#payloads = new Uint32Array(length);
  }

  async encode(pace: Pace): Promise<void> {
    const frozen = this.#frozen, { cells } = frozen, stage = this.#stage;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i]!, start = stage.at;
      this.#placesOf[i] = this.#places.of(cell.identity);
      this.#starts[i] = start;
      if (!cell.gone || cell.stored) this.#payloads[i] = this.#encodeCell(stage, cell);
      const bytes = stage.at - start;
      if (bytes > LARGEST_STAGED) {
        stage.at = start;
        frozen.leaveForLater(cell);
      }
      const wait = pace.step(bytes);
      if (wait !== undefined) await wait;
    }
    this.#starts[cells.length] = stage.at;
    frozen.isStaged = true;
  }

  /** @returns Where the payload begins. */
  #encodeCell(body: ByteWriter, cell: Cell): number {
    const { captured, table: { space } } = this.#frozen;
    const before = captured.size === 0 ? undefined : captured.get(cell);
    try {
      return encodeCell(body, space, cell, before);
    } catch (error) {
      throw unwritable(space, cell.key, error);
    }
  }

  *stretches(): Generator<Stretch> {
    const { cells, pieces } = this.#frozen, placesOf = this.#placesOf, places = this.#places;
    for (const { instance, from, to } of pieces) {
      const low = places.first(from), high = places.first(to);
      let some: Uint32Array | undefined; // all of them, mostly
      if (pieces.length > 1) {
        some = Uint32Array.from(cells.keys()).filter((i) => placesOf[i]! >= low && placesOf[i]! < high);
        if (some.length === 0) continue;
      }
      yield { instance, from, write: (pace) => this.#write(pace, instance, some) };
    }
  }

  async #write(pace: Pace, instance: number, some: Uint32Array | undefined): Promise<void> {
    const { cells } = this.#frozen,
      starts = this.#starts,
      placesOf = this.#placesOf,
      stage = this.#stage,
      { writer } = pace;
    const order = orderOf(some === undefined ? placesOf : some.map((i) => placesOf[i]!));
    if (some !== undefined) { for (let i = 0; i < order.length; i++) order[i] = some[order[i]!]!; }
    sortTies(order, placesOf, (i) => valueBytes(cells[i]!.identity));
    for (let i = 0; i < order.length; i++) {
      const item = order[i]!,
        cell = cells[item]!,
        body = writer.entry,
        start = starts[item]!,
        end = starts[item + 1]!,
        at = body.at;
      if (end > start) {
        copyShort(stage.bytes, stage.view, start, end, body);
        const flags = body.bytes[at]!;
        const expires = (flags & EXPIRES) === 0
          ? Infinity
          : stage.view.getFloat64(start + ((flags & VERSIONED) === 0 ? 1 : 2), true);
        writer.close(
          at,
          at + this.#payloads[item]! - start,
          instance,
          0,
          placesOf[item]!,
          (flags & TOMBSTONE) !== 0,
          expires,
        );
      } else if (this.#frozen.isLeft(cell)) {
        const payload = this.#encodeCell(body, cell), { expires } = this.#frozen.captured.get(cell) ?? cell;
        writer.close(at, payload, instance, 0, placesOf[item]!, false, expires ?? Infinity);
      }
      const wait = pace.step(body.at - at);
      if (wait !== undefined) await wait;
    }
  }
}

/** @returns Where the payload begins. */
function encodeCell(body: ByteWriter, space: Space, cell: Cell, before: Captured | undefined): number {
  const { key, expires, delta, gone } = before ?? cell,
    { identity } = cell,
    hasKey = !gone && key !== identity;
  entryHead(body, space, gone, expires, hasKey, delta);
  encodeValue(body, identity);
  const payload = body.at;
  if (hasKey) encodeValue(body, key);
  if (gone) return payload;
  if (before === undefined) encodeValue(body, cell.value);
  else if (before.error !== undefined) throw before.error;
  else if (before.bytes !== undefined) body.copy(before.bytes);
  else encodeValue(body, before.value);
  return payload;
}

function entryHead(
  body: ByteWriter,
  space: Space,
  gone: boolean,
  expires: number | undefined,
  hasKey: boolean,
  delta: number,
): void {
  const isVersioned = space.version > 0 && !gone, doesExpire = expires !== undefined && !gone;
  body.reserve(10);
  body.byte(
    (gone ? TOMBSTONE : 0) | (doesExpire ? EXPIRES : 0) | (hasKey ? OWN_KEY : 0) |
      (isVersioned ? VERSIONED : 0) | ((delta + 1) << DELTA_SHIFT),
  );
  if (isVersioned) body.byte(space.version);
  if (doesExpire) body.double(expires);
}

/** Puts entries of equal place into the order of their identities. */
function sortTies(order: Uint32Array, placesOf: Uint32Array, bytesOf: (item: number) => Uint8Array): void {
  for (let from = 0; from < order.length;) {
    const place = placesOf[order[from]!]!;
    let to = from + 1;
    while (to < order.length && placesOf[order[to]!]! === place) to++;
    if (to - from > 1) order.subarray(from, to).sort((a, b) => Buffer.compare(bytesOf(a), bytesOf(b)));
    from = to;
  }
}

/** An entry of a queue with what it is sorted by. */
interface QueueItem {
  readonly space: Space;
  readonly entry: HeldEntry;
  readonly place: number;
  readonly bytes: Uint8Array;
}

function sortIntoInstances(
  { queue, entries, pieces }: FrozenQueue,
  places: Places,
  queued: Map<number, QueueItem[]>,
): void {
  for (const entry of entries) {
    const place = places.of(entry.identity), group = places.group(place);
    const { instance } = pieces.find(({ from, to }) => group >= from && group < to)!;
    let items = queued.get(instance);
    if (items === undefined) queued.set(instance, items = []);
    items.push({ space: queue.space, entry, place, bytes: valueBytes(entryIdentity(entry)) });
  }
}

function queueStretch(instance: number, items: QueueItem[]): Stretch {
  return {
    instance,
    from: 0,
    async write(pace) {
      items.sort((a, b) =>
        a.entry.order - b.entry.order || a.place - b.place || Buffer.compare(a.bytes, b.bytes)
      );
      for (let i = 0; i < items.length; i++) {
        const item = items[i]!, before = items[i - 1];
        const isRepeated = before !== undefined && before.entry.order === item.entry.order &&
          before.place === item.place &&
          Buffer.compare(before.bytes, item.bytes) === 0;
        if (isRepeated) continue;
        try {
          writeItem(pace.writer, instance, item);
        } catch (error) {
          throw unwritable(item.space, item.entry.key, error);
        }
        const wait = pace.step(64);
        if (wait !== undefined) await wait;
      }
    },
  };
}

function writeItem(writer: RunWriter, instance: number, { space, entry, place, bytes }: QueueItem): void {
  const { time, order, identity, key, tag } = entry;
  const head = writer.entry.at;
  entryHead(writer.entry, space, false, undefined, true, 1);
  writer.entry.copy(bytes);
  const payload = writer.entry.at;
  encodeValue(writer.entry, key);
  encodeValue(writer.entry, [time, identity, tag]);
  writer.close(head, payload, instance, order, place, false, Infinity);
}
