/**
 * Another try where a store is busy with someone else's write.
 *
 * @module
 */
import { type Clock, delay } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";

const FIRST_WAIT = 2;
const LONGEST_WAIT = 200;
/** With the waits in between: about ten seconds. */
const TRIES = 60;

/** What an attempt that found the store busy answers. */
export const BUSY: unique symbol = Symbol("busy");

/**
 * Repeats `attempt` while it answers {@link BUSY} or finds the database locked, with growing waits.
 *
 * @param what Names the work, for the error.
 * @throws {MailerError} `store_busy` when all tries are used up; `store_failed` for any other failure, such as a full disk.
 */
export async function whileBusy<T>(
  what: string,
  clock: Clock,
  attempt: () => Promise<T | typeof BUSY>,
): Promise<T> {
  let wait = FIRST_WAIT, cause: Error | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const result = await attempt();
      if (result !== BUSY) return result as T;
    } catch (thrown) {
      cause = asError(thrown);
      if (!/database (is|table is) locked|SQLITE_BUSY/i.test(cause.message)) throw storeFailed(what, thrown);
    }
    await delay(clock, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
  throw new MailerError(
    "store_busy",
    `state: ${what} did not get through in ${TRIES} tries: the store is busy`,
    {
      hint: "another process writes to the same store without pause; give this one a store of its own",
      ...(cause === undefined ? {} : { cause }),
    },
  );
}

function storeFailed(what: string, thrown: unknown): MailerError {
  if (thrown instanceof MailerError) return thrown;
  const { message } = asError(thrown);
  const isFull = /disk is full|no space|ENOSPC|SQLITE_FULL/i.test(message);
  return new MailerError("store_failed", `state: ${what} failed: ${message}`, {
    cause: thrown,
    ...(isFull
      ? { hint: "make room on the disk and start again: state is as it was at the last checkpoint" }
      : {}),
  });
}
