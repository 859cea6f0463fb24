/**
 * What the parts of a run give for a checkpoint, brought together.
 *
 * A barrier starts at the sources and travels with the records. A task that it reaches gives what it holds, which is what came of the
 * records in front of the barrier, and lets the barrier pass.
 *
 * B1 A task with several inputs reads no more of one that the barrier has come by, until it has come by all that have not ended.
 * B2 What a task holds when it has come to its end stands for it in every later checkpoint.
 *
 * @module
 */
import type { Committable, Position } from "../connector.ts";
import type { Frozen } from "../state/log/mod.ts";
import type { EventTimeSnapshot } from "./watermarks.ts";

/** Travels on every edge behind the records of one checkpoint, and in front of those of the next. */
export interface Barrier {
  readonly kind: "barrier";
  /** Number of the checkpoint. */
  readonly checkpoint: number;
}

/** How far a split has been read. */
export interface SplitSnapshot {
  /** Undefined where nothing has been read. */
  readonly position: Position | undefined;
  readonly ended: boolean;
  readonly eventTime: EventTimeSnapshot;
}

/** How far a source has been read. */
export interface SourceSnapshot {
  readonly splits: Readonly<Record<string, SplitSnapshot>>;
  /** Whether all of the input has been read. */
  readonly complete: boolean;
}

/** What one instance of an operator holds. */
export interface OperatorSnapshot {
  readonly id: string;
  readonly partition: number;
  /** What it gave besides its keyed state. */
  readonly own: unknown;
  /** Its keyed state, if it has any. */
  readonly frozen: Frozen | undefined;
}

/** What one task holds. */
export interface TaskSnapshot {
  readonly source?: SourceSnapshot;
  readonly operators?: readonly OperatorSnapshot[];
  /** How long it took, while nothing else happened in the task, ms. */
  readonly blockedMs?: number;
  /** What a sink has prepared. */
  readonly committable?: Committable;
}

/** What all tasks hold, by name of the task. */
export type RunSnapshot = ReadonlyMap<string, TaskSnapshot>;

/** What a run goes on from. */
export interface Restored {
  readonly sources: ReadonlyMap<string, SourceSnapshot>;
  /** What the instances of an operator gave, by id of the operator. */
  readonly operators: ReadonlyMap<string, readonly unknown[]>;
  /** By id of the sink. */
  readonly committables: ReadonlyMap<string, Committable>;
}

interface Pending {
  readonly parts: Map<string, TaskSnapshot>;
  readonly whole: PromiseWithResolvers<RunSnapshot>;
}

/** Takes what tasks give. */
export class SnapshotCollector {
  /** The highest number there is. */
  highest: number;
  readonly #tasks: ReadonlySet<string>;
  readonly #pending = new Map<number, Pending>();
  readonly #finals = new Map<string, TaskSnapshot>();

  /** @param highest The highest number an earlier run has used. */
  constructor(tasks: readonly string[], highest: number) {
    this.#tasks = new Set(tasks);
    this.highest = highest;
  }

  /** A number for a checkpoint, or for what a sink prepares at its end. */
  nextNumber(): number {
    return ++this.highest;
  }

  /** Expects what all tasks hold at a checkpoint. */
  begin(checkpoint: number): Promise<RunSnapshot> {
    const pending: Pending = { parts: new Map(), whole: Promise.withResolvers<RunSnapshot>() };
    this.#pending.set(checkpoint, pending);
    this.#look(checkpoint, pending);
    return pending.whole.promise;
  }

  /** The barrier of a checkpoint has passed a task. */
  passed(task: string, checkpoint: number, snapshot: TaskSnapshot): void {
    const pending = this.#pending.get(checkpoint);
    pending?.parts.set(task, snapshot);
    if (pending !== undefined) this.#look(checkpoint, pending);
  }

  /** A task has come to its regular end. */
  finished(task: string, snapshot: TaskSnapshot): void {
    this.#finals.set(task, snapshot);
    for (const [checkpoint, pending] of this.#pending) this.#look(checkpoint, pending);
  }

  /** Whether it is what a task held at its end. */
  isFinal(task: string, snapshot: TaskSnapshot): boolean {
    return this.#finals.get(task) === snapshot;
  }

  #look(checkpoint: number, { parts, whole }: Pending): void {
    const all = new Map<string, TaskSnapshot>();
    for (const task of this.#tasks) {
      const part = parts.get(task) ?? this.#finals.get(task);
      if (part === undefined) return;
      all.set(task, part);
    }
    this.#pending.delete(checkpoint);
    whole.resolve(all);
  }
}
