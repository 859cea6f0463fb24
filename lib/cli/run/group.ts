/**
 * Pipelines that run side by side in one process.
 *
 * G1 The first failure stops the others gracefully, and is the result of the group.
 * G2 One interrupt stops all of them gracefully, a second one at once; a third ends the process.
 * G3 The group is over when every pipeline is.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { codeOf, MailerError } from "../../errors.ts";
import type { Env } from "../../stream/env.ts";
import type { StartOptions } from "../../stream/env.ts";
import type { RunHandle } from "../../stream/handle.ts";
import type { Closing, Outcome } from "./closing.ts";

/** What a member of the group is. */
export interface Member {
  readonly env: Env;
}

/** A member that was started. */
export interface Started<M extends Member> {
  readonly member: M;
  readonly handle: RunHandle;
}

/** What the group tells its owner. */
export interface GroupEvents<M extends Member> {
  running(member: M): void;
  over(member: M, closing: Closing): void;
}

/** How the group ended. */
export type GroupEnd =
  | { readonly kind: "done" | "aborted" }
  /** Of the first failure. */
  | { readonly kind: "failed"; readonly error: unknown };

/** How pipelines start and stop. */
export interface GroupOptions {
  readonly start?: StartOptions;
  /** Savepoint to take when an interrupted pipeline has drained. */
  readonly stopSavepoint?: string;
}

/** Runs pipelines together. */
export class RunGroup<M extends Member> {
  readonly started: readonly Started<M>[];
  readonly #clock: Clock;
  readonly #events: GroupEvents<M>;
  readonly #options: GroupOptions;
  #failure: { readonly error: unknown } | undefined;
  #interrupts = 0;

  /** Starts them all, or, where one cannot be started, none. */
  constructor(members: readonly M[], clock: Clock, events: GroupEvents<M>, options: GroupOptions = {}) {
    this.#clock = clock;
    this.#options = options;
    this.#events = events;
    const started: Started<M>[] = [];
    try {
      for (const member of members) started.push({ member, handle: member.env.start(options.start) });
    } catch (error) {
      for (const { handle } of started) handle.abort();
      throw error;
    }
    this.started = started;
  }

  /** Waits until all are over. */
  async end(): Promise<GroupEnd> {
    const startedAt = this.#clock.monotonic();
    await Promise.all(this.started.map((one) => this.#watch(one, startedAt)));
    if (this.#interrupts > 1) return { kind: "aborted" };
    return this.#failure === undefined ? { kind: "done" } : { kind: "failed", error: this.#failure.error };
  }

  /** Counts one interrupt, and says what it led to. */
  interrupt(): "draining" | "aborting" | "exit" {
    this.#interrupts++;
    if (this.#interrupts === 1) {
      this.#stopAll(this.#options.stopSavepoint);
      return "draining";
    }
    for (const { handle } of this.started) {
      handle.abort(new MailerError("interrupted", "interrupted twice: stopped at once"));
    }
    return this.#interrupts === 2 ? "aborting" : "exit";
  }

  async #watch({ member, handle }: Started<M>, startedAt: number): Promise<void> {
    handle.running.then(() => this.#events.running(member), () => {}); // `done` rejects with the same
    let error: unknown;
    try {
      await handle.done;
    } catch (thrown) {
      error = thrown;
      this.#failure ??= { error };
      this.#stopAll();
    }
    this.#events.over(member, {
      status: handle.status(),
      outcome: this.#outcome(handle, error),
      elapsedMs: this.#clock.monotonic() - startedAt,
      error,
    });
  }

  #outcome(handle: RunHandle, error: unknown): Outcome {
    if (error !== undefined) return codeOf(error) === "interrupted" ? "aborted" : "failed";
    return handle.status().phase === "stopped" ? "stopped" : "finished";
  }

  #stopAll(savepoint?: string): void {
    const options = savepoint === undefined ? {} : { savepoint };
    for (const { handle } of this.started) handle.stop(options).catch(() => {}); // awaited by `end`
  }
}
