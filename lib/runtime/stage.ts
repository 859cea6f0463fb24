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
import type { Operator, Receiver } from "./operator.ts";
import type { StageOutputs } from "./outputs.ts";
import type { Partition } from "../state/log/mod.ts";

/** Where a stage reads. */
export interface StageInput {
  readonly edge: Edge;
  readonly receiver: Receiver;
}

/** A part of the run that comes to an end by itself, by its input's end, or by an abort of its edges. */
export interface Task {
  readonly name: string;
  /** Runs to the end. Rejects with the error that stopped it. */
  run(): Promise<void>;
}

/** One lock for everything that happens in a stage; free nearly always. */
class Turn {
  #tail: Promise<void> | undefined;

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

/** Runs fused, synchronous operators. */
export class FusedStage implements Task {
  readonly name: string;
  readonly #inputs: readonly StageInput[];
  readonly #outputs: StageOutputs;
  readonly #times: StageTimes;
  readonly #clock: Clock;
  readonly #operators: readonly Operator[];
  readonly #state: readonly Partition[];
  readonly #turn = new Turn();
  #alarm: { at: number; alarm: Alarm } | undefined;
  #ticking: Promise<void> | undefined;
  #tickFailed: ((error: unknown) => void) | undefined;
  #done = false;

  constructor(
    name: string,
    inputs: readonly StageInput[],
    outputs: StageOutputs,
    operators: readonly Operator[],
    state: readonly Partition[],
    times: StageTimes,
    clock: Clock,
  ) {
    this.name = name;
    this.#inputs = inputs;
    this.#outputs = outputs;
    this.#operators = operators;
    this.#state = state;
    this.#times = times;
    this.#clock = clock;
  }

  async run(): Promise<void> {
    const tickFailure = new Promise<never>((_, reject) => this.#tickFailed = reject);
    tickFailure.catch(() => {}); // observed through the race below, or by nobody because no tick failed
    try {
      await Promise.race([Promise.all(this.#inputs.map((input) => this.#pump(input))), tickFailure]);
    } finally {
      this.#done = true;
      this.#alarm?.alarm.cancel();
      for (const operator of this.#operators) operator.close?.();
    }
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
      const free = await this.#turn.take();
      const started = clock.monotonic();
      if (alone) times.idle += started - waiting;
      for (const partition of this.#state) {
        const waiting = partition.settle();
        if (waiting !== undefined) await waiting;
      }
      if (item instanceof Batch) receiver.batch(item);
      else receiver.marker(item);
      times.busy += clock.monotonic() - started;
      const full = this.#outputs.write();
      if (full !== undefined) await full;
      free();
      if (!(item instanceof Batch) && item.kind === "end") return;
    }
  }

  async #tick(): Promise<void> {
    const free = await this.#turn.take();
    try {
      if (this.#done) return;
      const started = this.#clock.monotonic();
      const now = this.#clock.now();
      for (const operator of this.#operators) operator.tick?.(now);
      this.#times.busy += this.#clock.monotonic() - started;
      await this.#outputs.write();
    } finally {
      free();
    }
  }
}
