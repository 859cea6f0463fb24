/**
 * Starts what schedules say, by the clock it is handed.
 *
 * S1 Each occurrence is started once, however many schedulers work on one store: what is sent is written together with the note that
 *    it was, on the version of the schedule that was read. Whoever comes second begins anew from what is written.
 * S2 Where a write's outcome is not known the schedule is read again: it says whether it was written.
 * S3 One schedule that cannot be read, or done, keeps none of the others waiting.
 * S4 The time of day decides, in short waits: a clock that is set, or a machine that slept, is noticed.
 *
 * @module
 */
import { type Clock, delay } from "../../clock.ts";
import { asError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { newCommand } from "../engine/commit_of.ts";
import type { Flows } from "../engine/flows.ts";
import { decide } from "../fold/mod.ts";
import type { FlowStore, StoredSchedule, Watch } from "../store/port.ts";
import type { Rule } from "./expression.ts";
import { instantText, occurrenceId, startCommand } from "./occurrence.ts";
import { decodeRecord, encodeRecord, type OpenRun, type Outcome, type ScheduleRecord } from "./record.ts";
import { ruleFor } from "./spec.ts";
import { backfillIds, type Step, stepOf } from "./step.ts";

/** What a scheduler works with. */
export interface SchedulerOptions {
  /** Where schedules lie, and what they start. */
  readonly store: FlowStore;
  /** Says what is due. */
  readonly clock: Clock;
  /** Is told what was not started. */
  readonly logger: Logger;
  /** Finds the flows they start. */
  readonly flows: Flows;
  /** Whether it is this one's turn; asked before every look. Default: always. */
  readonly isActive?: () => boolean;
  /**
   * How often changes that other processes made are looked for, and the clock is looked at, ms; a tenth as often where there are no
   * schedules. Default 1,000.
   */
  readonly pollMs?: number;
}

/** What a scheduler has done. */
export interface SchedulerCounters {
  /** Executions it started. */
  started: number;
  /** Occurrences that were left out, for whatever reason. */
  leftOut: number;
  /** Writes that came second. */
  conflicts: number;
  /** How late the last execution was started, ms, its jitter not counted. */
  lastLatenessMs: number;
}

const POLL_MS = 1000;
/** So much longer are waits where there are no schedules. */
const IDLE = 10;
/** For how long what was sent and is not there yet counts as running, ms. */
const UNSEEN_MS = 600_000;

/** What was found of a schedule: as long as it is not changed it need not be looked at before. */
interface Known {
  readonly version: string;
  readonly record: ScheduleRecord;
  readonly rule: Rule;
  readonly next: number | undefined;
  readonly awaited: readonly string[];
}

/** Runs the schedules of a store. */
export class Scheduler {
  /** Counted since it was made. */
  readonly counters: SchedulerCounters = { started: 0, leftOut: 0, conflicts: 0, lastLatenessMs: 0 };
  readonly #options: SchedulerOptions;
  readonly #stop = new AbortController();
  readonly #known = new Map<string, Known>();
  /** Versions of schedules that cannot be read, told once. */
  readonly #damaged = new Map<string, string>();
  #running: Promise<void> | undefined;
  /** Hears of the executions in `#watched`. */
  #watch: Watch | undefined;
  #watched = "";
  #nudge: (() => void) | undefined;
  #nudged = false;

  /** Begins nothing. */
  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Begins. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends; what is being written is written. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#watch?.close();
  }

  /** A schedule was changed in this process. */
  wake(): void {
    this.#nudged = true;
    this.#nudge?.();
  }

  async #run(): Promise<void> {
    const { logger, isActive = () => true } = this.#options, { signal } = this.#stop;
    while (!signal.aborted) {
      this.#nudged = false;
      let isDone = true;
      try {
        if (isActive()) isDone = await this.pass();
        else this.#known.clear();
      } catch (error) {
        logger.log("warn", "schedules could not be read, trying again", { error: asError(error).message });
      }
      if (isDone) await this.#rest();
    }
  }

  /**
   * Does what is due, once.
   *
   * @returns Whether that was all.
   */
  async pass(): Promise<boolean> {
    const { store, logger } = this.#options, schedules = await store.schedules.list();
    const names = new Set(schedules.map(({ name }) => name));
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    let isDone = true;
    for (const stored of schedules) {
      if (this.#stop.signal.aborted) return true;
      try {
        if (this.#isDue(stored) && !await this.#advance(stored)) isDone = false;
      } catch (error) {
        this.#known.delete(stored.name);
        if (this.#damaged.get(stored.name) === stored.version) continue;
        this.#damaged.set(stored.name, stored.version);
        logger.log("error", "a schedule cannot be followed, trying again", {
          schedule: stored.name,
          error: asError(error).message,
        });
      }
    }
    return isDone;
  }

  #isDue({ name, version }: StoredSchedule): boolean {
    const known = this.#known.get(name);
    if (known?.version !== version || known.awaited.length > 0) return true;
    return known.next !== undefined && known.next <= this.#options.clock.now();
  }

  /** @returns Whether nothing more is due of it. */
  async #advance(stored: StoredSchedule): Promise<boolean> {
    const { store, clock } = this.#options, { name } = stored, known = this.#known.get(name);
    const record = known?.version === stored.version ? known.record : decodeRecord(stored);
    const rule = known?.version === stored.version ? known.rule : ruleFor(record.spec);
    const now = Math.floor(clock.now());
    const runs = [...record.open, ...record.backfills.slice(0, 1).flatMap(({ open }) => open ?? [])];
    const [open, existing, refusal] = await Promise.all([
      this.#openOf(runs, now),
      this.#existing(backfillIds(record, rule)),
      this.#refusal(record, now),
    ]);
    const step = stepOf(record, { rule, now, open, existing, refusal });
    if (step.record === record) {
      const { next, awaited } = step;
      this.#known.set(name, { version: stored.version, record, rule, next, awaited });
      return !step.again;
    }
    const isWritten = await store.schedules.write(
      name,
      encodeRecord(step.record),
      stored.version,
      step.send.map(newCommand),
    );
    if (isWritten) this.#written(record, step, refusal);
    else this.counters.conflicts++;
    return false; // looked at again, in the version that is stored now
  }

  /** Which executions still run. */
  async #openOf(runs: readonly OpenRun[], now: number): Promise<Set<string>> {
    const heads = await this.#options.store.executions.heads(runs.map(({ id }) => id));
    return new Set(
      runs.filter(({ sentAt }, i) => {
        const head = heads[i];
        return head === undefined ? now - sentAt < UNSEEN_MS : head.summary.endedAt === undefined;
      }).map(({ id }) => id),
    );
  }

  async #existing(ids: readonly string[]): Promise<Set<string>> {
    if (ids.length === 0) return new Set();
    const heads = await this.#options.store.executions.heads(ids);
    return new Set(ids.filter((_, i) => heads[i] !== undefined));
  }

  /** Why a start would be refused now; undefined where it would not. */
  async #refusal({ spec }: ScheduleRecord, now: number): Promise<string | undefined> {
    const flow = await this.#options.flows.find(spec.flow, spec.version);
    if (flow === undefined) return `there is no flow "${spec.flow}"`;
    const verdict = decide(flow, undefined, startCommand(spec, now), now);
    return verdict.ok ? undefined : verdict.message;
  }

  #written(
    { spec: { name } }: ScheduleRecord,
    { outcomes, record }: Step,
    refusal: string | undefined,
  ): void {
    const { logger, clock } = this.#options;
    for (const { occurrence, kind } of outcomes) {
      if (kind === "started") {
        this.counters.started++;
        this.counters.lastLatenessMs = clock.now() - occurrence;
      } else this.counters.leftOut++;
    }
    this.#log(name, outcomes, "skipped", "info", "an execution was not started: the one before still runs");
    this.#log(name, outcomes, "missed", "warn", "executions were not started: no engine ran at their time");
    this.#log(name, outcomes, "existing", "info", "executions were not started: they are there already");
    if (refusal !== undefined) {
      this.#log(name, outcomes, "refused", "error", "an execution cannot be started", { why: refusal });
    }
    if (record.waiting !== undefined) {
      logger.log("debug", "an execution waits for the one before", { schedule: name });
    }
  }

  #log(
    schedule: string,
    outcomes: readonly Outcome[],
    kind: Outcome["kind"],
    level: "info" | "warn" | "error",
    message: string,
    more: Readonly<Record<string, unknown>> = {},
  ): void {
    const those = outcomes.filter((outcome) => outcome.kind === kind), first = those[0], last = those.at(-1);
    if (first === undefined) return;
    this.#options.logger.log(level, message, {
      schedule,
      count: those.length,
      from: instantText(first.occurrence),
      to: instantText(last!.occurrence),
      first: occurrenceId(schedule, first.occurrence),
      ...more,
    });
  }

  /** Waits until something is due, has ended or was changed; not long, as others may have changed something. */
  async #rest(): Promise<void> {
    const { clock, pollMs = POLL_MS } = this.#options, known = [...this.#known.values()];
    const next = Math.min(...known.flatMap(({ next }) => next ?? []));
    const poll = known.length === 0 ? IDLE * pollMs : pollMs;
    const wait = Math.min(poll, next - clock.now());
    if (wait <= 0) return;
    const wake = new AbortController(), end = AbortSignal.any([this.#stop.signal, wake.signal]);
    this.#nudge = () => wake.abort();
    if (this.#nudged || this.#watchOthers(known.flatMap(({ awaited }) => awaited))) return;
    const watch = this.#watch;
    try {
      await Promise.race([delay(clock, wait, end), ...watch === undefined ? [] : [watch.next(end)]]);
    } catch (reason) {
      if (!end.aborted) throw reason;
    } finally {
      wake.abort();
    }
  }

  /**
   * Watches executions whose end something waits for.
   *
   * @returns Whether these are others than before: one may have ended before it was watched, so they are looked at again.
   */
  #watchOthers(awaited: readonly string[]): boolean {
    const ids = awaited.join();
    if (ids === this.#watched) return false;
    this.#watch?.close();
    this.#watched = ids;
    this.#watch = awaited.length === 0
      ? undefined
      : this.#options.store.watch(awaited.map((id) => `exec:${id}` as const));
    return this.#watch !== undefined;
  }
}
