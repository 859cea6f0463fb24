/**
 * Without a group: this process reads all partitions.
 *
 * A1 New partitions are looked for now and then, and read from their first record. A look that fails is logged; the next one comes.
 * A2 What a checkpoint knows is read, whether the brokers list it at the moment or not.
 *
 * @module
 */
import type { Alarm } from "../../../lib/clock.ts";
import { asError } from "../../../lib/errors.ts";
import { listPartitions } from "./listing.ts";
import type { Ownership, OwnershipContext } from "./ownership.ts";
import { splitName } from "./split.ts";

/** All there are. */
export class AllPartitions implements Ownership {
  readonly #context: OwnershipContext;
  readonly #closing = new AbortController();
  #alarm: Alarm | undefined;
  #looking: Promise<void> | undefined;

  constructor(context: OwnershipContext) {
    this.#context = context;
  }

  async open(): Promise<void> {
    const { start, host, known, context: { signal } } = this.#context;
    host.track(known, await start.positions(known, host.handed, { signal }));
    host.go();
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm?.cancel();
    await this.#looking;
  }

  #schedule(): void {
    const { options: { discovery }, context: { clock } } = this.#context;
    if (discovery === undefined || this.#closing.signal.aborted) return;
    this.#alarm = clock.schedule(discovery, () => {
      this.#looking = this.#look();
    });
  }

  async #look(): Promise<void> {
    const { client, options, host, start, logger, context } = this.#context;
    const { signal } = this.#closing;
    try {
      const { partitions } = await listPartitions(client, options, { signal });
      const added = partitions.filter((each) => !host.tracked.has(splitName(each)));
      if (added.length > 0) {
        const positions = await start.positions(added, host.handed, { signal });
        signal.throwIfAborted();
        logger.log("info", "new partitions", { source: context.id, splits: added.map(splitName) });
        host.track(added, positions);
        host.go();
      }
    } catch (error) {
      if (signal.aborted) return;
      const fields = { source: context.id, error: asError(error).message };
      logger.log("warn", "looking for new partitions failed", fields);
    }
    this.#schedule();
  }
}
