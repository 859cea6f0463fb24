/**
 * The bounded Web Stream between two stages.
 *
 * E1 At most `maxRecords` records and `maxBytes` bytes wait in it, and one chunk more.
 * E2 A writer waits while it is full; nothing is dropped, nothing overtakes.
 * E3 After `abort` every pending and later call rejects with the reason.
 *
 * @module
 */
import { Batch, type Marker } from "../record.ts";
import type { Barrier } from "./snapshots.ts";

/** One chunk of an edge. */
export type EdgeItem = Batch | Marker | Barrier;

/** How much may wait in an edge. */
export interface EdgeLimits {
  /** Records. */
  readonly maxRecords: number;
  /** Bytes, as far as sources know them. */
  readonly maxBytes: number;
}

/** A one-writer, one-reader queue with a limit. */
export class Edge {
  /** `from->to`, the ids of the stages. */
  readonly name: string;
  readonly limits: EdgeLimits;
  /** Records that wait. */
  queued = 0;
  /** Whether its reader waits for a chunk. */
  isAwaited = false;
  readonly #reader: ReadableStreamDefaultReader<EdgeItem>;
  #controller!: ReadableStreamDefaultController<EdgeItem>;
  #room: PromiseWithResolvers<void> | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor(name: string, limits: EdgeLimits) {
    this.name = name;
    this.limits = limits;
    const recordsPerByte = limits.maxRecords / limits.maxBytes;
    const stream = new ReadableStream<EdgeItem>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => {
        const room = this.#room;
        this.#room = undefined;
        room?.resolve();
      },
    }, {
      highWaterMark: limits.maxRecords,
      // One measure for both limits: records, or the records that many bytes stand for.
      size: (item) => item instanceof Batch ? Math.max(item.length, item.bytes * recordsPerByte) : 1,
    });
    this.#reader = stream.getReader();
  }

  /** Hands a chunk on. Returns a promise when the edge is full now: write no more before it resolves. */
  write(item: EdgeItem): Promise<void> | undefined {
    if (this.#aborted) throw this.#aborted.reason;
    if (item instanceof Batch) this.queued += item.length;
    this.#controller.enqueue(item);
    if (this.#controller.desiredSize! > 0) return undefined;
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** The next chunk; waits while there is none. */
  async read(): Promise<EdgeItem> {
    this.isAwaited = true;
    const { value } = await this.#reader.read();
    this.isAwaited = false;
    if (this.#aborted) throw this.#aborted.reason;
    if (value instanceof Batch) this.queued -= value.length;
    return value!; // the last chunk is an end marker: no one reads on
  }

  /** Gives up: whoever waits at either end gets `reason`. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.queued = 0;
    this.#controller.error(reason);
    this.#room?.reject(reason);
    this.#room = undefined;
  }
}
