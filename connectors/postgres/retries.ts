/**
 * Tries again what may go well in a moment.
 *
 * @module
 */
import { type Clock, delay } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { isTransient } from "./database_error.ts";

/** How often and with whom. */
export interface RetryOptions {
  readonly sink: string;
  /** Further attempts. */
  readonly maxRetries: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 30_000;

/** What `work` gives; while it fails for a reason that passes it is called again, with waits that double from half a second. */
export async function withRetries<T>(options: RetryOptions, work: () => Promise<T>): Promise<T> {
  const { sink, maxRetries, clock, logger, signal } = options;
  for (let attempt = 0;; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error) || attempt >= maxRetries) throw error;
      const wait = Math.min(FIRST_WAIT * 2 ** attempt, LONGEST_WAIT);
      logger.log("warn", "postgres failed, trying again", {
        sink,
        error: error.message,
        attempt: attempt + 1,
        waitMs: wait,
      });
      await delay(clock, wait, signal);
    }
  }
}
