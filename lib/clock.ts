// deno-lint-ignore-file mailer/injected-time -- this is where the real time comes in
/**
 * Wall-clock time as something that is handed in, so that every behaviour can be tested without sleeping.
 *
 * Event time never comes from here: it comes from records.
 *
 * @module
 */

/** A pending call; `cancel` before it ran means it never runs. */
export interface Alarm {
  /** The call will not be made; nothing happens when it was. */
  cancel(): void;
}

/** Where the runtime takes the time of day and its waits from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for measuring; no fixed origin. */
  monotonic(): number;
  /** Calls `callback` once, `delayMs` from now (at the next turn if ≤ 0). Never calls it synchronously. */
  schedule(delayMs: number, callback: () => void): Alarm;
}

const LONGEST_TIMEOUT = 2 ** 31 - 1;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delayMs, callback) {
    let handle: ReturnType<typeof setTimeout>;
    const wait = (left: number) => {
      const step = Math.min(Math.max(left, 0), LONGEST_TIMEOUT); // a longer timeout would fire at once
      handle = setTimeout(() => left > step ? wait(left - step) : callback(), step);
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs` by `clock`; rejects with the signal's reason when that comes first. */
export function delay(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      alarm.cancel();
      reject(signal!.reason);
    };
    const alarm = clock.schedule(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
