/**
 * The stage of an operator that waits: one batch at a time, markers in their place between batches.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { Batch } from "../record.ts";
import type { OperatorCounters, StageTimes } from "./counters.ts";
import type { Edge } from "./edge.ts";
import type { AsyncOperator, Receiver } from "./operator.ts";
import type { StageOutputs } from "./outputs.ts";
import type { SnapshotCollector } from "./snapshots.ts";
import type { Task } from "./stage.ts";

/** Runs one waiting operator. */
export class AsyncStage implements Task {
  constructor(
    readonly name: string,
    private readonly edge: Edge,
    private readonly operator: AsyncOperator,
    private readonly main: Receiver,
    private readonly outputs: StageOutputs,
    private readonly counters: OperatorCounters,
    private readonly times: StageTimes,
    private readonly clock: Clock,
    private readonly snapshots: SnapshotCollector | undefined,
  ) {}

  get isWaiting(): boolean {
    return this.edge.isAwaited;
  }

  async run(): Promise<void> {
    const { edge, operator, main, outputs, counters, times, clock } = this;
    const emit = async (batch: Batch): Promise<void> => {
      main.batch(batch);
      await outputs.write();
    };
    try {
      for (;;) {
        const waiting = clock.monotonic();
        const item = await edge.read();
        const started = clock.monotonic();
        times.idle += started - waiting;
        if (item instanceof Batch) {
          counters.recordsIn += item.length;
          const blocked = times.blocked;
          await operator.batch(item, emit);
          times.busy += clock.monotonic() - started - (times.blocked - blocked);
          await outputs.write(); // dead letters of a batch that gave no records
          continue;
        }
        if (item.kind === "barrier") this.snapshots?.passed(this.name, item.checkpoint, {});
        outputs.marker(item);
        await outputs.write();
        if (item.kind !== "end") continue;
        this.snapshots?.finished(this.name, {});
        return;
      }
    } finally {
      operator.close?.();
    }
  }
}
