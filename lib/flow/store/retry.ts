/**
 * Another try where a store is busy with another process's write.
 *
 * @module
 */
import { delay, systemClock } from "../../clock.ts";
import { MailerError } from "../../errors.ts";

const FIRST_WAIT = 2;
/** A file is free again after a commit, so whoever waited long is not to wait longer. */
const LONGEST_WAIT = 20;
/** With the waits in between: about ten seconds. */
const TRIES = 500;

/**
 * Repeats `attempt` while it rejects with `store_busy`, with growing waits. These are waits for another process, so they
 * go by the machine's clock, whatever the time of the engine is.
 *
 * @param onBusy Called before every wait.
 */
export async function whileBusy<T>(attempt: () => Promise<T>, onBusy: () => void = () => {}): Promise<T> {
  let wait = FIRST_WAIT;
  for (let tries = 1;; tries++) {
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof MailerError && thrown.code === "store_busy")) throw thrown;
      if (tries === TRIES) {
        throw new MailerError("store_busy", `${thrown.message}, ${TRIES} times in a row`, {
          cause: thrown,
          hint: "another process writes to the same store without pause",
        });
      }
    }
    onBusy();
    await delay(systemClock, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}
