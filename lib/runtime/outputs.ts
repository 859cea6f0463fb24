/**
 * The edges a stage feeds.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Marker } from "../record.ts";
import type { EdgeCounters, StageTimes } from "./counters.ts";
import type { Edge } from "./edge.ts";
import type { Outbox } from "./ports.ts";
import type { Barrier } from "./snapshots.ts";

/** One edge a stage writes to, and what waits to be written to it. */
export interface StageOutput {
  readonly outbox: Outbox;
  readonly edge: Edge;
  readonly counters: EdgeCounters;
}

/** Writes the outboxes of a stage to their edges, in order, waiting while an edge is full. */
export class StageOutputs {
  readonly #outputs: readonly StageOutput[];
  readonly #times: StageTimes;
  readonly #clock: Clock;

  constructor(outputs: readonly StageOutput[], times: StageTimes, clock: Clock) {
    this.#outputs = outputs;
    this.#times = times;
    this.#clock = clock;
  }

  /** Puts a marker or barrier into every outbox. */
  marker(marker: Marker | Barrier): void {
    for (const { outbox } of this.#outputs) outbox.marker(marker);
  }

  /** Writes all there is. Returns a promise only where an edge is full: write no more before it resolves. */
  write(): Promise<void> | undefined {
    for (const output of this.#outputs) {
      const { items } = output.outbox;
      for (let at = 0; at < items.length; at++) {
        const full = output.edge.write(items[at]!);
        if (full !== undefined) {
          items.splice(0, at + 1);
          return this.#wait(output, full);
        }
      }
      items.length = 0;
    }
    return undefined;
  }

  async #wait(output: StageOutput, full: Promise<void>): Promise<void> {
    const since = this.#clock.monotonic();
    await full;
    const blocked = this.#clock.monotonic() - since;
    output.counters.sendBlockedMs += blocked;
    this.#times.blocked += blocked;
    await this.write();
  }
}
