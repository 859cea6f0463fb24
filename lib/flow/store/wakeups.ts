/**
 * Who waits for changes is woken: at once by this process, and every poll interval for what others have done.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import type { Topic, Watch } from "./port.ts";

/** Passes on that something may have changed. */
export class Wakeups {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #watches = new Map<Topic, Set<TopicWatch>>();

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  /** Something of a topic may have changed. */
  notify(topic: Topic): void {
    const watches = this.#watches.get(topic);
    if (watches !== undefined) { for (const watch of watches) watch.wake(); }
  }

  /** See {@link FlowStore.watch}. */
  watch(topics: readonly Topic[]): Watch {
    const watch: TopicWatch = new TopicWatch(this.#clock, this.#pollMs, () => {
      for (const topic of topics) {
        const watches = this.#watches.get(topic);
        if (watches?.delete(watch) && watches.size === 0) this.#watches.delete(topic);
      }
    });
    for (const topic of topics) {
      const watches = this.#watches.get(topic);
      if (watches === undefined) this.#watches.set(topic, new Set([watch]));
      else watches.add(watch);
    }
    return watch;
  }
}

class TopicWatch implements Watch {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #onClose: () => void;
  #changed = false;
  #closed = false;
  #resolve: (() => void) | undefined;

  constructor(clock: Clock, pollMs: number, onClose: () => void) {
    this.#clock = clock;
    this.#pollMs = pollMs;
    this.#onClose = onClose;
  }

  /** What comes between two calls of `next` is not lost. */
  wake(): void {
    this.#changed = true;
    this.#resolve?.();
  }

  next(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#changed || this.#closed) {
      this.#changed = false;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        alarm.cancel();
        signal?.removeEventListener("abort", onAbort);
        this.#resolve = undefined;
        this.#changed = false;
      };
      const done = (): void => {
        settle();
        resolve();
      };
      const onAbort = (): void => {
        settle();
        reject(signal!.reason);
      };
      const alarm = this.#clock.schedule(this.#pollMs, done);
      this.#resolve = done;
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClose();
    this.#resolve?.();
  }
}
