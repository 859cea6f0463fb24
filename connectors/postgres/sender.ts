/**
 * Sends in the background what has been collected, one thing at a time.
 *
 * S1 What goes wrong there is thrown by the next call, once.
 * S2 A batch whose write has failed and that is written again is collected once.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Batch } from "../../lib/record.ts";
import type { Intake } from "./intake.ts";

/** See the head of this file. */
export class Sender {
  readonly #intake: Intake;
  readonly #work: (all: boolean) => Promise<void>;
  #sending: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  /** S2. */
  #collected: Batch | undefined;

  /**
   * @param intake Where the rows come from.
   * @param work Sends what is due, or all there is.
   */
  constructor(intake: Intake, work: (all: boolean) => Promise<void>) {
    this.#intake = intake;
    this.#work = work;
  }

  /** Whether something is being sent. */
  get isBusy(): boolean {
    return this.#sending !== undefined;
  }

  /** Begins to send, unless that is under way. */
  start(all: boolean): void {
    if (this.#sending !== undefined) return;
    this.#sending = this.#work(all).catch((error) => {
      this.#failure = { error };
    }).finally(() => {
      this.#sending = undefined;
      if (this.#failure === undefined && this.#intake.isDue) this.start(false); // rows that came in that moment
    });
  }

  /** Resolves when nothing is being sent. */
  async idle(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  /**
   * Takes a batch; waits only where much is collected already.
   *
   * @param all Whether everything is sent when something is.
   */
  write(batch: Batch, all: boolean, signal: AbortSignal): void | Promise<void> {
    this.throwFailure();
    if (batch !== this.#collected) this.#intake.add(batch);
    this.#collected = undefined;
    if (this.#intake.isDue) this.start(all);
    if (!this.#intake.isFull) return;
    return abortable(this.#untilRoom(all), signal).catch((error) => {
      this.#collected = batch;
      throw error;
    });
  }

  /** Sends all there is, and waits for it. Throws what goes wrong, and what the failure policy throws. */
  async flush(): Promise<void> {
    for (;;) {
      await this.idle();
      this.throwFailure();
      if (this.#intake.rows === 0) return;
      this.start(true);
    }
  }

  async #untilRoom(all: boolean): Promise<void> {
    while (this.#intake.isFull) {
      this.start(all);
      await Promise.race([this.#sending, this.#intake.shifted()]);
      this.throwFailure();
    }
  }

  /** Throws what has gone wrong since the last call, and reports what the server has refused. */
  throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    this.#intake.report();
    if (failure !== undefined) throw failure.error;
  }
}
