/**
 * A stage: fused operators that run as plain calls, fed by edges, feeding edges.
 *
 * S1 One chunk at a time: reading, timer ticks and writing never overlap within a stage.
 * S2 What a chunk gave is written, in order, before the next chunk is taken; a full edge makes the stage wait, and the edges
 *    in front of it fill.
 *
 * @module
 */
import type { Alarm, Clock } from "../clock.ts";
import { Batch } from "../record.ts";
import type { StageTimes } from "./counters.ts";
import type { Edge } from "./edge.ts";
import type { Operator, StageEntry } from "./operator.ts";
import type { StageOutputs } from "./outputs.ts";
import type { Partition } from "../state/log/mod.ts";
import type { Barrier, SnapshotCollector, TaskSnapshot } from "./snapshots.ts";

/** Where a stage reads. */
export interface StageInput {
  readonly edge: Edge;
  readonly receiver: StageEntry;
}

/** A part of the run that comes to an end by itself, by its input's end, or by an abort of its edges. */
export interface Task {
  readonly name: string;
  /** Whether it waits for its input: then it is not what holds a run up. */
  readonly isWaiting: boolean;
  /** Runs to the end. Rejects with the error that stopped it. */
  run(): Promise<void>;
}

/** One lock for everything that happens in a stage; free nearly always. */
class Turn {
  #tail: Promise<void> | undefined;

  get isTaken(): boolean {
    return this.#tail !== undefined;
  }

  /** Waits for the turn, if it is taken. */
  async take(): Promise<() => void> {
    while (this.#tail !== undefined) await this.#tail;
    let free!: () => void;
    this.#tail = new Promise((resolve) => {
      free = () => {
        this.#tail = undefined;
        resolve();
      };
    });
    return free;
  }
}

/** An instance of an operator, with what a checkpoint is to know of it. */
export interface StageOperator {
  readonly id: string;
  readonly partition: number;
  readonly operator: Operator;
  /** Its keyed state, if it has any. */
  readonly state: Partition | undefined;
}

/** What a stage is made of. */
export interface FusedStageOptions {
  readonly name: string;
  readonly inputs: readonly StageInput[];
  readonly outputs: StageOutputs;
  readonly operators: readonly StageOperator[];
  readonly times: StageTimes;
  readonly clock: Clock;
  /** Missing where no checkpoints are taken. */
  readonly snapshots: SnapshotCollector | undefined;
}

/** Runs fused, synchronous operators. */
export class FusedStage implements Task {
  readonly name: string;
  readonly #inputs: readonly StageInput[];
  readonly #outputs: StageOutputs;
  readonly #times: StageTimes;
  readonly #clock: Clock;
  readonly #operators: readonly StageOperator[];
  readonly #state: readonly Partition[];
  readonly #snapshots: SnapshotCollector | undefined;
  readonly #turn = new Turn();
  /** Inputs that have not ended. */
  #open: number;
  /** A barrier that has come by some inputs, and not by all. */
  #aligning:
    | { readonly barrier: Barrier; inputs: number; readonly done: PromiseWithResolvers<void> }
    | undefined;
  #alarm: { at: number; alarm: Alarm } | undefined;
  #ticking: Promise<void> | undefined;
  #tickFailed: ((error: unknown) => void) | undefined;
  #done = false;

  constructor(options: FusedStageOptions) {
    this.name = options.name;
    this.#inputs = options.inputs;
    this.#outputs = options.outputs;
    this.#operators = options.operators;
    this.#state = options.operators.flatMap(({ state }) => state ?? []);
    this.#times = options.times;
    this.#clock = options.clock;
    this.#snapshots = options.snapshots;
    this.#open = options.inputs.length;
  }

  async run(): Promise<void> {
    const tickFailure = new Promise<never>((_, reject) => this.#tickFailed = reject);
    tickFailure.catch(() => {}); // observed through the race below, or by nobody because no tick failed
    try {
      await Promise.race([Promise.all(this.#inputs.map((input) => this.#pump(input))), tickFailure]);
      this.#snapshots?.finished(this.name, this.#snapshot());
    } finally {
      this.#done = true;
      this.#alarm?.alarm.cancel();
      for (const { operator } of this.#operators) operator.close?.();
    }
  }

  get isWaiting(): boolean {
    return !this.#turn.isTaken && this.#inputs.some(({ edge }) => edge.isAwaited);
  }

  /** Asks for a tick of all operators at `time` of the clock. */
  wakeAt(time: number): void {
    if (this.#done || (this.#alarm !== undefined && this.#alarm.at <= time)) return;
    this.#alarm?.alarm.cancel();
    const alarm = this.#clock.schedule(time - this.#clock.now(), () => {
      this.#alarm = undefined;
      this.#ticking = (this.#ticking ?? Promise.resolve()).then(() => this.#tick());
      this.#ticking.catch((error) => this.#tickFailed?.(error));
    });
    this.#alarm = { at: time, alarm };
  }

  async #pump({ edge, receiver }: StageInput): Promise<void> {
    const clock = this.#clock, times = this.#times;
    const alone = this.#inputs.length === 1;
    for (;;) {
      const waiting = clock.monotonic();
      const item = await edge.read();
      if (!(item instanceof Batch) && item.kind === "barrier") {
        await this.#align(item);
        continue;
      }
      const free = await this.#turn.take();
      const started = clock.monotonic();
      if (alone) times.idle += started - waiting;
      for (const partition of this.#state) {
        const waiting = partition.settle();
        if (waiting !== undefined) await waiting;
      }
      if (item instanceof Batch) {
        const fetching = receiver.batch(item);
        if (fetching !== undefined) await fetching;
      } else receiver.marker(item);
      times.busy += clock.monotonic() - started;
      const full = this.#outputs.write();
      if (full !== undefined) await full;
      free();
      if (item instanceof Batch || item.kind !== "end") continue;
      this.#open--;
      await this.#passIfAligned(); // others may wait for this input
      return;
    }
  }

  /** B1 of snapshots.ts: the input is read on when the barrier has come by all. */
  #align(barrier: Barrier): Promise<void> {
    this.#aligning ??= { barrier, inputs: 0, done: Promise.withResolvers<void>() };
    this.#aligning.inputs++;
    const { promise } = this.#aligning.done;
    return this.#passIfAligned().then(() => promise);
  }

  async #passIfAligned(): Promise<void> {
    const aligning = this.#aligning;
    if (aligning === undefined || aligning.inputs < this.#open) return;
    this.#aligning = undefined;
    const free = await this.#turn.take();
    this.#snapshots?.passed(this.name, aligning.barrier.checkpoint, this.#snapshot());
    this.#outputs.marker(aligning.barrier);
    await this.#outputs.write();
    free();
    aligning.done.resolve();
  }

  /** Nothing is under way between two chunks: what the operators hold is what came of all before. */
  #snapshot(): TaskSnapshot {
    const started = this.#clock.monotonic();
    return {
      operators: this.#operators.map(({ id, partition, operator, state }) => ({
        id,
        partition,
        own: operator.snapshot?.(),
        frozen: state?.tracked ? state.freeze() : undefined,
      })),
      blockedMs: this.#clock.monotonic() - started,
    };
  }

  async #tick(): Promise<void> {
    const free = await this.#turn.take();
    try {
      if (this.#done) return;
      const started = this.#clock.monotonic();
      const now = this.#clock.now();
      for (const { operator } of this.#operators) operator.tick?.(now);
      this.#times.busy += this.#clock.monotonic() - started;
      await this.#outputs.write();
    } finally {
      free();
    }
  }
}
