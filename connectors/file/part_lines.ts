/**
 * Batches as lines, cut where the parts of a file sink end.
 *
 * L1 Lines are never split between parts. A part ends before the record that would make it longer than `rollSize`, and at the
 *    first record later than `rollEvery` after its own first one.
 * L2 What the format puts in front of the first record stands at the beginning of every part.
 *
 * @module
 */
import type { SinkContext } from "../../lib/connector.ts";
import {
  encodeBatch,
  type Encoder,
  type Format,
  lineLength,
  linesOf,
  type Payload,
} from "../../lib/format/mod.ts";
import type { Batch } from "../../lib/record.ts";

/** How parts are written. */
export interface PartOptions {
  /** Path of the first part. */
  readonly path: string;
  /** Bytes; `Infinity` = never. */
  readonly rollSize: number;
  /** Milliseconds; `Infinity` = never. */
  readonly rollEvery: number;
  readonly format: Format;
}

/** Lines to be written to one part. */
export interface Portion {
  readonly bytes: Uint8Array;
  readonly in: "this part" | "the next part";
}

/** See the head of this file. */
export class PartLines {
  readonly #options: PartOptions;
  readonly #context: Pick<SinkContext, "clock" | "reject">;
  readonly #encoder: Encoder;
  #since: number | undefined;

  /** @param since When the part got its first record, where that was in an earlier run. */
  constructor(options: PartOptions, context: Pick<SinkContext, "clock" | "reject">, since?: number) {
    this.#options = options;
    this.#context = context;
    this.#encoder = options.format.encoder();
    this.#since = since;
  }

  /** When the part that the last lines went to got its first record, ms since the epoch. */
  get since(): number | undefined {
    return this.#since;
  }

  /** The lines of a batch. @param partLength Bytes in the part so far. */
  portions(batch: Batch, partLength: number): Portion[] {
    const { rollSize, rollEvery } = this.#options, now = this.#context.clock.now();
    const payloads = encodeBatch(this.#encoder, batch, this.#context.reject);
    if (payloads.length === 0) return [];
    const head = this.#encoder.head?.(), groups: { in: Portion["in"]; lines: Payload[] }[] = [];
    let length = partLength;
    const begin = (where: Portion["in"]): Payload[] => {
      const lines: Payload[] = [];
      groups.push({ in: where, lines });
      if (where === "the next part") [length, this.#since] = [0, now];
      if (length === 0 && head !== undefined) {
        lines.push(head);
        length = lineLength(head);
      }
      return lines;
    };
    const isAged = this.#since !== undefined && now - this.#since >= rollEvery;
    let lines = begin(isAged ? "the next part" : "this part"), isFresh = isAged || partLength === 0;
    this.#since ??= now;
    for (const payload of payloads) {
      if (rollSize < Infinity) {
        const added = lineLength(payload);
        if (!isFresh && length + added > rollSize) lines = begin("the next part");
        length += added;
        isFresh = false;
      }
      lines.push(payload);
    }
    return groups.filter((group) => group.lines.length > 0).map((group) => ({
      bytes: linesOf(group.lines),
      in: group.in,
    }));
  }
}
