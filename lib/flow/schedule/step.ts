/**
 * What is due of a schedule: from its record and the time of day to the next record, and the commands that go with it. Pure.
 *
 * D1 Occurrences are dealt with in their order, each once: what is sent and that it was sent are written together.
 * D2 A clock that is set back makes nothing due again.
 * D3 Nothing vanishes: what is not started is counted, with its reason.
 *
 * @module
 */
import type { Command } from "../fold/mod.ts";
import type { Rule } from "./expression.ts";
import { cancelCommand, dueAt, occurrenceId, startCommand } from "./occurrence.ts";
import {
  type Backfill,
  type OpenRun,
  type Outcome,
  type OutcomeKind,
  type ScheduleRecord,
  withOutcomes,
} from "./record.ts";

/** What a step goes by. */
export interface StepInput {
  readonly rule: Rule;
  /** ms since the epoch */
  readonly now: number;
  /** Which of the executions in the record still run. */
  readonly open: ReadonlySet<string>;
  /** Which of {@link backfillIds} are there already. */
  readonly existing: ReadonlySet<string>;
  /** Why no execution would be started now. */
  readonly refusal?: string | undefined;
}

/** What comes of a step. */
export interface Step {
  /** The same object where nothing has changed. */
  readonly record: ScheduleRecord;
  /** At most {@link MOST_SENT} and what they cancel. */
  readonly send: readonly Command[];
  readonly outcomes: readonly Outcome[];
  /** More is due. */
  readonly again: boolean;
  /** When something is due next, ms since the epoch. */
  readonly next: number | undefined;
  /** Executions whose end something waits for. */
  readonly awaited: readonly string[];
}

/** Most executions a step starts: their inputs, as large as they may be, fit into one atomic operation. */
export const MOST_SENT = 10;
/** Occurrences a step looks at. */
const MOST_WALKED = 200;
/** Occurrences that are counted where they are passed over. */
const MOST_PASSED = 2000;
/** Missed occurrences that are counted one by one; of more than that only that there were more. */
const MOST_MISSED = 100_000;
/** Lateness that is none: a catch-up window is at least so long, ms. */
const GRACE = 10_000;

/** Ids of the executions a step may fill in next. */
export function backfillIds({ spec, backfills: [first] }: ScheduleRecord, rule: Rule): string[] {
  const ids: string[] = [];
  if (first === undefined) return ids;
  for (
    let o = rule.next(first.after);
    o !== undefined && o < first.to && ids.length < MOST_SENT;
    o = rule.next(o)
  ) {
    ids.push(occurrenceId(spec.name, o));
  }
  return ids;
}

/** Makes a step. */
export function stepOf(record: ScheduleRecord, input: StepInput): Step {
  return new Stepping(record, input).run();
}

/**
 * Passes over what is due, e.g. as it was paused.
 *
 * @returns Behind it; of what there was the first 2,000 are counted.
 */
export function passOver(record: ScheduleRecord, rule: Rule, now: number, kind: OutcomeKind): ScheduleRecord {
  const outcomes: Outcome[] = [];
  for (let o = rule.next(record.handled); o !== undefined && o <= now; o = rule.next(o)) {
    outcomes.push({ occurrence: o, kind, at: now });
    if (outcomes.length === MOST_PASSED) break;
  }
  return { ...withOutcomes(record, outcomes), handled: Math.max(now, record.handled) };
}

class Stepping {
  readonly #before: ScheduleRecord;
  readonly #input: StepInput;
  readonly #send: Command[] = [];
  readonly #outcomes: Outcome[] = [];
  #started = 0;
  #handled: number;
  #open: OpenRun[];
  #waiting: number | undefined;
  #backfills: readonly Backfill[];
  #again = false;
  #next: number | undefined;

  constructor(record: ScheduleRecord, input: StepInput) {
    this.#before = record;
    this.#input = input;
    this.#handled = record.handled;
    this.#open = record.open.filter(({ id }) => input.open.has(id));
    this.#waiting = record.waiting;
    this.#backfills = record.backfills;
  }

  run(): Step {
    if (this.#before.paused === undefined) {
      this.#startWaiting();
      this.#takeDue();
    }
    this.#fillIn();
    return {
      record: this.#record(),
      send: this.#send,
      outcomes: this.#outcomes,
      again: this.#again,
      next: this.#next,
      awaited: this.#awaited(),
    };
  }

  #startWaiting(): void {
    if (this.#waiting === undefined || this.#open.length > 0) return;
    const occurrence = this.#waiting;
    this.#waiting = undefined;
    this.#start(occurrence);
  }

  #takeDue(): void {
    const { rule, now } = this.#input, { spec } = this.#before;
    const earliest = now - Math.max(spec.catchUp, GRACE);
    let walked = 0;
    for (let o = rule.next(this.#handled); o !== undefined; o = rule.next(o)) {
      const due = dueAt(spec, o);
      if (due > now) return void (this.#next = due);
      if (this.#started >= MOST_SENT || walked++ >= MOST_WALKED) return void (this.#again = true);
      if (due >= earliest) this.#take(o);
      else {
        this.#became(o, "missed");
        const behind = rule.next(o) ?? o;
        if (earliest - o > MOST_MISSED * (behind - o)) {
          this.#handled = o = earliest - spec.jitter - 1;
          continue;
        }
      }
      this.#handled = o;
    }
  }

  /** An occurrence is due. */
  #take(occurrence: number): void {
    const { overlap } = this.#before.spec;
    if (this.#open.length === 0 || overlap === "allow" || this.#input.refusal !== undefined) {
      return this.#start(occurrence);
    }
    if (overlap === "skip" || (overlap === "buffer" && this.#waiting !== undefined)) {
      return this.#became(occurrence, "skipped");
    }
    if (overlap === "cancel") {
      for (const { id, cancelled } of this.#open) {
        if (cancelled === undefined) this.#send.push(cancelCommand(id, occurrence));
      }
      this.#open = this.#open.map((run) => ({ ...run, cancelled: true as const }));
      if (this.#waiting !== undefined) this.#became(this.#waiting, "skipped");
    }
    this.#waiting = occurrence;
  }

  #start(occurrence: number): void {
    const run = this.#sendStart(occurrence);
    if (run !== undefined && this.#before.spec.overlap !== "allow") this.#open.push(run);
  }

  /** @returns The execution, where there will be one. What is refused is sent too: so it becomes a dead letter. */
  #sendStart(occurrence: number): OpenRun | undefined {
    const { now, refusal } = this.#input, command = startCommand(this.#before.spec, occurrence);
    this.#send.push(command);
    this.#started++;
    this.#became(occurrence, refusal === undefined ? "started" : "refused");
    return refusal === undefined ? { id: command.exec_id, occurrence, sentAt: now } : undefined;
  }

  /** Starts occurrences of the past, those of one request after those of the other. */
  #fillIn(): void {
    const [first, ...others] = this.#backfills, { rule, open, existing } = this.#input;
    if (first === undefined) return;
    const { sequential, to } = first;
    let run = first.open !== undefined && open.has(first.open.id) ? first.open : undefined,
      after = first.after;
    for (let walked = 0;; walked++) {
      const o = rule.next(after);
      if (o === undefined || o >= to) {
        this.#backfills = others;
        this.#again ||= others.length > 0;
        return;
      }
      if (sequential === true && run !== undefined) break;
      if (this.#started >= MOST_SENT || walked >= MOST_SENT) {
        this.#again = true;
        break;
      }
      if (existing.has(occurrenceId(this.#before.spec.name, o))) this.#became(o, "existing");
      else run = this.#sendStart(o);
      after = o;
    }
    if (after === first.after && run === first.open) return;
    const { open: _, ...rest } = first;
    const now: Backfill = {
      ...rest,
      after,
      ...(sequential === true && run !== undefined ? { open: run } : {}),
    };
    this.#backfills = [now, ...others];
  }

  #became(occurrence: number, kind: OutcomeKind): void {
    this.#outcomes.push({ occurrence, kind, at: this.#input.now });
  }

  #awaited(): string[] {
    const run = this.#backfills[0]?.open;
    return [
      ...(this.#waiting === undefined ? [] : this.#open.map(({ id }) => id)),
      ...(run === undefined ? [] : [run.id]),
    ];
  }

  #record(): ScheduleRecord {
    const before = this.#before;
    const isSame = this.#handled === before.handled && this.#waiting === before.waiting &&
      this.#outcomes.length === 0 && this.#send.length === 0 && this.#backfills === before.backfills;
    // That something has ended is written with what follows from it.
    if (isSame) return before;
    const { waiting: _, ...rest } = before;
    return withOutcomes({
      ...rest,
      handled: this.#handled,
      open: this.#open,
      backfills: this.#backfills,
      ...(this.#waiting === undefined ? {} : { waiting: this.#waiting }),
    }, this.#outcomes);
  }
}
