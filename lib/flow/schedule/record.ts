/**
 * A schedule as it is stored: what it says, and how far it has come.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import type { StoredSchedule } from "../store/port.ts";
import type { CheckedSpec } from "./spec.ts";

/** What became of an occurrence. */
export type OutcomeKind =
  /** Its execution was started. */
  | "started"
  /** An earlier one was still running. */
  | "skipped"
  /** No engine ran at its time, nor within the catch-up window. */
  | "missed"
  /** The schedule was paused. */
  | "paused"
  /** Its execution was there already; only when occurrences are filled in. */
  | "existing"
  /** There is no such flow, or it does not take the input: a dead letter tells. */
  | "refused";

/** An occurrence, and what became of it. */
export interface Outcome {
  /** Which, ms since the epoch. */
  readonly occurrence: number;
  /** What became of it. */
  readonly kind: OutcomeKind;
  /** When that was, ms since the epoch. */
  readonly at: number;
}

/** An execution that was started and may still run. */
export interface OpenRun {
  readonly id: string;
  readonly occurrence: number;
  /** When it was started, ms since the epoch. */
  readonly sentAt: number;
  /** It was told to end. */
  readonly cancelled?: true;
}

/** Occurrences that are filled in. */
export interface Backfill {
  /** Those up to here are dealt with, ms since the epoch. */
  readonly after: number;
  /** First instant behind it, ms since the epoch. */
  readonly to: number;
  /** Each waits for the end of the one before. */
  readonly sequential?: true;
  /** The one before. */
  readonly open?: OpenRun;
}

/** How often something became of occurrences, since the schedule was made. */
export type OutcomeCounts = Readonly<Record<OutcomeKind, number>>;

/** A schedule as it is stored. */
export interface ScheduleRecord {
  readonly spec: CheckedSpec;
  /** Occurrences up to here are dealt with, ms since the epoch. */
  readonly handled: number;
  readonly paused?: { readonly since: number; readonly reason?: string };
  /** Executions that may still run; empty where that does not matter (`allow`). */
  readonly open: readonly OpenRun[];
  /** Occurrence that waits for their end, ms since the epoch. */
  readonly waiting?: number;
  readonly backfills: readonly Backfill[];
  readonly counts: OutcomeCounts;
  /** The last outcomes, the newest last. */
  readonly recent: readonly Outcome[];
}

/** Most outcomes that are kept. */
const MOST_RECENT = 20;

/** A schedule from now on. */
export function newRecord(spec: CheckedSpec, now: number): ScheduleRecord {
  const counts = { started: 0, skipped: 0, missed: 0, paused: 0, existing: 0, refused: 0 };
  return { spec, handled: now, open: [], backfills: [], counts, recent: [] };
}

/** A record with more outcomes. */
export function withOutcomes(record: ScheduleRecord, outcomes: readonly Outcome[]): ScheduleRecord {
  if (outcomes.length === 0) return record;
  const counts = { ...record.counts };
  for (const { kind } of outcomes) counts[kind]++;
  return { ...record, counts, recent: [...record.recent, ...outcomes].slice(-MOST_RECENT) };
}

/** JSON text of a record. */
export function encodeRecord(record: ScheduleRecord): string {
  return stringifyJson(record);
}

/**
 * The record of a text.
 *
 * @throws {MailerError} `schedule_damaged`
 */
export function decodeRecord({ name, text }: StoredSchedule): ScheduleRecord {
  const record = parseJson(text) as Partial<ScheduleRecord> | null;
  if (record?.spec?.name === name && typeof record.handled === "number" && Array.isArray(record.open)) {
    return record as ScheduleRecord;
  }
  throw new MailerError("schedule_damaged", `the stored schedule "${name}" cannot be read`, {
    hint: "it was written by another version of Mailer: delete it and make it anew",
  });
}
