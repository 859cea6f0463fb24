/**
 * Records on their way to the server: made rows, collected, and, where the server refuses one, handed to the failure policy.
 *
 * N1 Rows are collected in pieces, each of which is one statement at first. A piece that is being sent takes no more rows.
 * N2 What the server refuses is found in the background; it is reported from within a call of the writer, to which the policy may
 *    then throw.
 *
 * @module
 */
import type { SinkContext } from "../../lib/connector.ts";
import { asError } from "../../lib/errors.ts";
import { Batch } from "../../lib/record.ts";
import type { RetryOptions } from "./retries.ts";
import { Rows } from "./rows.ts";
import type { Session } from "./session.ts";
import type { Table } from "./table.ts";

/** What writers are made with. */
export interface WriterOptions {
  readonly table: Table;
  /** Rows that are waited for. */
  readonly batchSize: number;
  /** ms. */
  readonly flushInterval: number;
  readonly retries: RetryOptions;
  /** Opens another session. */
  readonly connect: () => Promise<Session>;
  /** Gives up whatever is under way. */
  readonly halt: () => void;
  readonly limits: Limits;
}

/** How much is held and sent. */
export interface Limits {
  /** Most rows of a statement, unless `batchSize` is more. */
  readonly rows: number;
  /** Characters beyond which a statement takes no more rows. */
  readonly size: number;
  /** Characters that a writer with checkpoints keeps so as to send them again. */
  readonly kept: number;
}

/** What is usual. */
export const LIMITS: Limits = { rows: 5000, size: 4 << 20, kept: 16 << 20 };

/** A row that the server does not take. */
export interface Refusal {
  readonly rows: Rows;
  readonly row: number;
  readonly error: Error;
}

/** Pieces beside the one that is being sent and the one that is filled. */
const MOST_WAITING = 1;

/** See the head of this file. */
export class Intake {
  /** Rows that have not been taken away. */
  rows = 0;
  readonly #options: WriterOptions;
  readonly #context: SinkContext;
  readonly #enough: number;
  readonly #pieces: Rows[] = [];
  #isSending = false;
  #shifted: PromiseWithResolvers<void> | undefined;
  #refusals: { readonly batch: Batch; readonly index: number; readonly error: Error }[] = [];

  /** @param enough Rows from which on they should be sent; a full piece always should. */
  constructor(options: WriterOptions, context: SinkContext, enough: number) {
    this.#options = options;
    this.#context = context;
    this.#enough = enough;
  }

  /** Whether there is enough to be sent. */
  get isDue(): boolean {
    return this.rows >= this.#enough || this.#pieces.length > (this.#isSending ? 2 : 1);
  }

  /** Whether no more should come before some have been sent. */
  get isFull(): boolean {
    return this.#pieces.length > 2 + MOST_WAITING;
  }

  /** Makes rows of the records of a batch. Those that cannot be one are rejected. */
  add(batch: Batch): void {
    const { table } = this.#options;
    for (let i = 0; i < batch.length; i++) {
      const piece = this.#open();
      try {
        table.add(piece, batch, i);
      } catch (error) {
        this.#context.reject(batch, i, asError(error));
        continue;
      }
      this.rows++;
    }
  }

  /**
   * The piece that is to be sent next; stays until {@link shift}.
   *
   * @param all Whether one that may take more rows counts as well.
   */
  first(all: boolean): Rows | undefined {
    const piece = this.#pieces[0];
    if (piece === undefined || piece.length === 0) return undefined;
    if (!all && this.#pieces.length === 1 && this.#hasRoom(piece)) return undefined;
    this.#isSending = true;
    return piece;
  }

  /** Takes the first piece away. */
  shift(): void {
    this.#isSending = false;
    this.rows -= this.#pieces.shift()!.length;
    this.#shifted?.resolve();
    this.#shifted = undefined;
  }

  /** Resolves when the next piece is taken away. */
  shifted(): Promise<void> {
    this.#shifted ??= Promise.withResolvers();
    return this.#shifted.promise;
  }

  /** What has been sent of the first piece is to be sent again. */
  rewind(): void {
    const piece = this.#pieces[0];
    if (piece !== undefined) piece.done = 0;
  }

  /** The server refuses rows. @throws The error of one whose record is not known any more. */
  refuse(refusals: readonly Refusal[]): void {
    for (const { rows, row, error } of refusals) {
      const record = rows.record(row);
      if (record === undefined) throw error;
      this.#refusals.push({ ...record, error });
    }
  }

  /** Hands what was refused to the failure policy, which may throw. */
  report(): void {
    while (this.#refusals.length > 0) {
      const { batch, index, error } = this.#refusals.shift()!;
      // The call under way may be about another batch, or about none: this record stands for itself.
      this.#context.reject(alone(batch, index), 0, error);
    }
  }

  #hasRoom(piece: Rows): boolean {
    const { limits, batchSize } = this.#options;
    return piece.length < Math.max(batchSize, limits.rows) && piece.size < limits.size;
  }

  #open(): Rows {
    const last = this.#pieces.at(-1);
    const isTaken = this.#isSending && this.#pieces.length === 1;
    if (last !== undefined && !isTaken && this.#hasRoom(last)) return last;
    const rows = Rows.empty(this.#options.table.width);
    this.#pieces.push(rows);
    return rows;
  }
}

/** One record of a batch. */
function alone(batch: Batch, index: number): Batch {
  const { values, origin, keys, oneToOne } = batch;
  const key = keys === undefined ? undefined : [keys[index]];
  return new Batch([values[index]], origin, Int32Array.of(batch.row(index)), key, oneToOne);
}
