/**
 * Whether and when a run that has failed is started again.
 *
 * P1 Waits double from `delay` up to `maxDelay`, each shortened by up to a quarter, so that several do not come back at once.
 * P2 A run that has been healthy for longer than `maxDelay` begins counting anew.
 * P3 What starting again cannot change is not tried again; nor is a record that has ended three runs in a row.
 *
 * @module
 */
import { codeOf, isFenced, MailerError, RecordError } from "../errors.ts";

/** How a failed run is started again. */
export interface RestartSettings {
  /** Restarts in a row; Infinity: without end. */
  readonly attempts: number;
  /** Wait before the first, ms. */
  readonly delay: number;
  /** The longest wait, ms. */
  readonly maxDelay: number;
}

/** Errors of the engine that another start would meet again; those of connectors say so themselves. */
const LASTING: ReadonlySet<string> = new Set([
  "aborted",
  "half_committed",
  "invalid_pipeline",
  "invalid_sink",
  "key_groups_changed",
  "kv_unavailable",
  "no_good_checkpoint",
  "no_savepoint",
  "output_changed",
  "output_locked",
  "pending_lost",
  "shutdown_timeout",
  "state_kind",
  "state_locked",
  "state_version",
  "unmatched_state",
]);
const SAME_RECORD = 3;

function isLasting(error: unknown): boolean {
  return LASTING.has(codeOf(error)) || isFenced(error) || (error instanceof MailerError && error.lasting);
}

/** Decides after each failure. */
export class RestartPolicy {
  readonly #settings: RestartSettings;
  #failures = 0;
  #record: string | undefined;
  #ofRecord = 0;

  constructor(settings: RestartSettings) {
    this.#settings = settings;
  }

  /**
   * A run has failed.
   *
   * @param healthyMs How long it had been running.
   * @param random 0 ≤ random < 1.
   * @returns How long to wait before the next start, ms; undefined: not again.
   */
  next(error: unknown, healthyMs: number, random: number): number | undefined {
    const { attempts, delay, maxDelay } = this.#settings;
    if (isLasting(error) || this.#isSameRecord(error)) return undefined;
    if (healthyMs > maxDelay) this.#failures = 0;
    if (++this.#failures > attempts) return undefined;
    const wait = Math.min(maxDelay, delay * 2 ** (this.#failures - 1));
    return wait * (1 - random / 4);
  }

  /** Restarts in a row so far. */
  get failures(): number {
    return this.#failures;
  }

  #isSameRecord(error: unknown): boolean {
    const record = error instanceof RecordError && error.position.offset !== undefined
      ? JSON.stringify([error.operator, error.position])
      : undefined;
    this.#ofRecord = record !== undefined && record === this.#record ? this.#ofRecord + 1 : 1;
    this.#record = record;
    return record !== undefined && this.#ofRecord >= SAME_RECORD;
  }
}

/** @throws {MailerError} `invalid_option` */
export function checkRestart({ attempts, delay, maxDelay }: RestartSettings): RestartSettings {
  if (!(attempts >= 1) || !(delay > 0) || !(maxDelay >= delay)) {
    throw new MailerError(
      "invalid_option",
      `restart: attempts ≥ 1 and 0 < delay ≤ maxDelay, not ${attempts}, ${delay} ms and ${maxDelay} ms`,
    );
  }
  return { attempts, delay, maxDelay };
}
