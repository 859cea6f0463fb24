/**
 * What programs ask of schedules: make, look at, pause, fill in, remove.
 *
 * A1 What is changed is changed on what was read: of two who change one schedule at a time none undoes the other's doing.
 * A2 Storing a schedule that is there already changes nothing: neither a pause, nor how far it has come.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { MailerError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { FlowStore } from "../store/port.ts";
import { dueAt, occurrenceId } from "./occurrence.ts";
import {
  decodeRecord,
  encodeRecord,
  newRecord,
  type Outcome,
  type OutcomeCounts,
  type ScheduleRecord,
} from "./record.ts";
import { type CheckedSpec, checkSchedule, ruleFor, type ScheduleSpec } from "./spec.ts";
import { passOver } from "./step.ts";

/** Settings of {@link Schedules}. */
export interface SchedulesOptions {
  /** Where they lie. */
  readonly store: FlowStore;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Is told that one was changed. */
  readonly onChange?: () => void;
}

/** An occurrence to come. */
export interface NextOccurrence {
  /** When it is, ms since the epoch. */
  readonly occurrence: number;
  /** When it is started: later by its jitter, ms since the epoch. */
  readonly due: number;
  /** Id its execution will have. */
  readonly execution: string;
}

/** A schedule, shown. */
export interface ScheduleView {
  /** As it was made. */
  readonly spec: CheckedSpec;
  /** Whether it is paused, since when and why. */
  readonly paused?: { readonly since: number; readonly reason?: string };
  /** The next occurrence; none where it is paused, or there is none. */
  readonly next?: NextOccurrence;
  /** Executions that were running when it was last looked at; of those that may overlap it is not known. */
  readonly running: readonly string[];
  /** Occurrence that waits for their end, ms since the epoch. */
  readonly waiting?: number;
  /** Spans that are being filled in. */
  readonly backfills: number;
  /** What has become of its occurrences. */
  readonly counts: OutcomeCounts;
  /** The last ones, the newest last; at most 20. */
  readonly recent: readonly Outcome[];
}

/** A span of the past to be filled in. */
export interface BackfillOptions {
  /** First instant, ms since the epoch or a date. */
  readonly from: number | Date;
  /** First instant behind it; not in the future. */
  readonly to: number | Date;
  /** Each execution waits for the end of the one before. Default: they run side by side. */
  readonly sequential?: boolean;
}

const TRIES = 20;
const MOST_NEXT = 1000;
const MOST_BACKFILLS = 20;

/** Schedules of a store. */
export class Schedules {
  readonly #store: FlowStore;
  readonly #clock: Clock;
  readonly #onChange: () => void;

  /** Opens nothing. */
  constructor({ store, clock = systemClock, onChange = () => {} }: SchedulesOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /**
   * Makes a schedule, or changes it. Where the times change it begins from now on; else it goes on from where it is.
   *
   * @throws {MailerError} `invalid_schedule`
   */
  async put(given: ScheduleSpec): Promise<ScheduleView> {
    const spec = checkSchedule(given);
    return await this.#change(spec.name, (record, now) => {
      if (record === undefined) return newRecord(spec, now);
      if (stringifyJson(record.spec) === stringifyJson(spec)) return record;
      const { cron, timezone } = record.spec, isSame = cron === spec.cron && timezone === spec.timezone;
      return { ...record, spec, handled: isSame ? record.handled : Math.max(now, record.handled) };
    });
  }

  /**
   * One of them.
   *
   * @throws {MailerError} `schedule_not_found`
   */
  async get(name: string): Promise<ScheduleView> {
    const stored = await this.#store.schedules.get(name);
    if (stored === undefined) throw notFound(name);
    return viewOf(decodeRecord(stored));
  }

  /** All of them, by name. */
  async list(): Promise<readonly ScheduleView[]> {
    const stored = await this.#store.schedules.list();
    return stored.map((each) => viewOf(decodeRecord(each))).sort((a, b) =>
      a.spec.name < b.spec.name ? -1 : 1
    );
  }

  /**
   * Removes it; what it has started goes on.
   *
   * @returns Whether there was one.
   */
  async delete(name: string): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await this.#store.schedules.get(name);
      if (stored === undefined) return false;
      if (await this.#store.schedules.write(name, null, stored.version)) {
        this.#onChange();
        return true;
      }
    }
    throw busy(name);
  }

  /** Starts nothing more until it is resumed. One that is paused stays as it is. */
  async pause(name: string, reason?: string): Promise<ScheduleView> {
    return await this.#changeExisting(name, (record, now) => {
      if (record.paused !== undefined) return record;
      return { ...record, paused: { since: now, ...(reason === undefined ? {} : { reason }) } };
    });
  }

  /**
   * Goes on. Occurrences of the pause are counted as `paused`; the next one is the next from now on.
   *
   * @param options `catchUp`: starts those of the pause that lie within the catch-up window instead. Default false.
   */
  async resume(
    name: string,
    { catchUp = false }: { readonly catchUp?: boolean } = {},
  ): Promise<ScheduleView> {
    return await this.#changeExisting(name, (record, now) => {
      const { paused, ...going } = record;
      if (paused === undefined) return record;
      return catchUp ? going : passOver(going, ruleFor(record.spec), now, "paused");
    });
  }

  /**
   * Starts the occurrences of a span of the past, `from` included, `to` not; those whose executions are there already are left
   * alone. Also while it is paused. Resolves when that is stored; it is done by an engine.
   *
   * @throws {MailerError} `invalid_backfill`
   */
  async backfill(name: string, { from, to, sequential = false }: BackfillOptions): Promise<ScheduleView> {
    const start = Math.ceil(Number(from)), end = Math.ceil(Number(to));
    return await this.#changeExisting(name, (record, now) => {
      if (!(start < end)) throw invalidBackfill(name, "it ends before it begins");
      if (end > now + 1) throw invalidBackfill(name, "it ends in the future");
      if (record.backfills.length >= MOST_BACKFILLS) throw invalidBackfill(name, "too many others wait");
      const backfill = { after: start - 1, to: end, ...(sequential ? { sequential: true as const } : {}) };
      return { ...record, backfills: [...record.backfills, backfill] };
    });
  }

  /**
   * Occurrences to come, whether it is paused or not.
   *
   * @param options `limit`: most, default 10, up to 1,000; `after`: from when on, ms, default now.
   */
  async next(
    name: string,
    { limit = 10, after = this.#clock.now() }: { readonly limit?: number; readonly after?: number } = {},
  ): Promise<readonly NextOccurrence[]> {
    const stored = await this.#store.schedules.get(name);
    if (stored === undefined) throw notFound(name);
    return occurrencesOf(decodeRecord(stored).spec, { limit, after });
  }

  async #changeExisting(
    name: string,
    change: (record: ScheduleRecord, now: number) => ScheduleRecord,
  ): Promise<ScheduleView> {
    return await this.#change(name, (record, now) => {
      if (record === undefined) throw notFound(name);
      return change(record, now);
    });
  }

  async #change(
    name: string,
    change: (record: ScheduleRecord | undefined, now: number) => ScheduleRecord,
  ): Promise<ScheduleView> {
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await this.#store.schedules.get(name);
      const before = stored === undefined ? undefined : decodeRecord(stored);
      const after = change(before, Math.floor(this.#clock.now()));
      if (after === before) return viewOf(after);
      if (await this.#store.schedules.write(name, encodeRecord(after), stored?.version ?? null)) {
        this.#onChange();
        return viewOf(after);
      }
    }
    throw busy(name);
  }
}

/**
 * Occurrences of a schedule that need not be stored.
 *
 * @param range `after`: ms since the epoch, not included; `limit`: most, up to 1,000.
 * @throws {MailerError} `invalid_schedule`
 */
export function occurrencesOf(
  given: ScheduleSpec,
  { after, limit }: { readonly after: number; readonly limit: number },
): readonly NextOccurrence[] {
  const spec = checkSchedule(given), rule = ruleFor(spec), found: NextOccurrence[] = [];
  const most = Math.min(limit, MOST_NEXT);
  for (let o = rule.next(after); o !== undefined && found.length < most; o = rule.next(o)) {
    found.push(shown(spec, o));
  }
  return found;
}

function viewOf(
  { spec, paused, handled, open, waiting, backfills, counts, recent }: ScheduleRecord,
): ScheduleView {
  const next = paused === undefined ? ruleFor(spec).next(handled) : undefined;
  return {
    spec,
    running: open.map(({ id }) => id),
    backfills: backfills.length,
    counts,
    recent,
    ...(paused === undefined ? {} : { paused }),
    ...(waiting === undefined ? {} : { waiting }),
    ...(next === undefined ? {} : { next: shown(spec, next) }),
  };
}

function shown(spec: CheckedSpec, occurrence: number): NextOccurrence {
  return { occurrence, due: dueAt(spec, occurrence), execution: occurrenceId(spec.name, occurrence) };
}

function notFound(name: string): MailerError {
  return new MailerError("schedule_not_found", `there is no schedule "${name}"`, {
    hint: "list the schedules to see what there is",
  });
}

function busy(name: string): MailerError {
  return new MailerError(
    "store_busy",
    `the schedule "${name}" could not be changed: others write it all the time`,
  );
}

function invalidBackfill(name: string, why: string): MailerError {
  return new MailerError("invalid_backfill", `schedule "${name}" cannot be filled in: ${why}`, {
    hint: "give the first instant, and the first one behind it, both in the past",
  });
}
