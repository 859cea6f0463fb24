/**
 * Schedules as people write them, checked.
 *
 * @module
 */
import { type Duration, parseDuration } from "../../duration.ts";
import { asError, MailerError } from "../../errors.ts";
import { type Fields, isObject, isToken } from "../fold/fields.ts";
import { type Rule, ruleOf } from "./expression.ts";

/** What happens to an occurrence while an execution of the schedule is still running. */
export type Overlap =
  /** It is left out. */
  | "skip"
  /** One waits for the end; more are left out. */
  | "buffer"
  /** It is started all the same. */
  | "allow"
  /** What runs is cancelled, and then it is started; of several that wait the newest. */
  | "cancel";

/** When to start what. */
export interface ScheduleSpec {
  /** Names it, and begins the ids of its executions: 1 to 100 letters, digits, `_` and `-`. */
  readonly name: string;
  /** When: see `expression.ts`. */
  readonly cron: string;
  /** IANA zone the expression goes by. Default UTC. */
  readonly timezone?: string;
  /** Name of the flow. */
  readonly flow: string;
  /** Hash of the version. Default: the newest at each occurrence. */
  readonly version?: string;
  /** Input of the executions: an object. Default none. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** Field of the input that gets the occurrence, as RFC 3339 text in UTC. Default: none does. */
  readonly occurrenceField?: string;
  /** Default `skip`. */
  readonly overlap?: Overlap;
  /** How late an occurrence may still be started, where no engine ran; what is older is counted and logged. Default 1 day. */
  readonly catchUp?: Duration;
  /** Occurrences are started up to so much later, each by an amount worked out from its time and the name. Default 0. */
  readonly jitter?: Duration;
}

/** A schedule that is in order. */
export interface CheckedSpec extends Omit<ScheduleSpec, "catchUp" | "jitter"> {
  /** What happens while one is running. */
  readonly overlap: Overlap;
  /** How late it may be started, ms. */
  readonly catchUp: number;
  /** How much later it may be started, ms. */
  readonly jitter: number;
}

const OVERLAPS: readonly Overlap[] = ["skip", "buffer", "allow", "cancel"];
const CATCH_UP = 86_400_000;
const MOST_NAME = 100;
const FIELDS = [
  "name",
  "cron",
  "timezone",
  "flow",
  "version",
  "input",
  "occurrenceField",
  "overlap",
  "catchUp",
  "jitter",
];

/**
 * Checks a schedule, as it comes from a program or a document.
 *
 * @throws {MailerError} `invalid_schedule` with all that is wrong.
 */
export function checkSchedule(given: unknown): CheckedSpec {
  if (!isObject(given)) throw new MailerError("invalid_schedule", "a schedule is an object");
  const problems: string[] = [];
  for (const field of Object.keys(given)) {
    if (!FIELDS.includes(field)) problems.push(`there is no field "${field}"`);
  }
  const name = token(given, "name", problems), flow = token(given, "flow", problems);
  if (name.length > MOST_NAME) problems.push(`"name" is longer than ${MOST_NAME} characters`);
  const version = optional(given, "version", problems, token);
  const occurrenceField = optional(given, "occurrenceField", problems, text);
  const timezone = optional(given, "timezone", problems, text), cron = text(given, "cron", problems);
  if (problems.length === 0) {
    try {
      ruleOf(cron, timezone);
    } catch (error) {
      problems.push(asError(error).message);
    }
  }
  const { input, overlap = "skip" } = given;
  if (input !== undefined && !isObject(input)) problems.push(`"input" is an object`);
  if (!OVERLAPS.includes(overlap as Overlap)) problems.push(`"overlap" is one of ${OVERLAPS.join(", ")}`);
  const catchUp = duration(given, "catchUp", CATCH_UP, problems),
    jitter = duration(given, "jitter", 0, problems);
  if (problems.length > 0) {
    const which = typeof given["name"] === "string" ? ` "${given["name"].slice(0, 128)}"` : "";
    throw new MailerError("invalid_schedule", `schedule${which}: ${problems.join("; ")}`);
  }
  return {
    name,
    cron,
    flow,
    overlap: overlap as Overlap,
    catchUp,
    jitter,
    ...(timezone === undefined ? {} : { timezone }),
    ...(version === undefined ? {} : { version }),
    ...(input === undefined ? {} : { input: input as Fields }),
    ...(occurrenceField === undefined ? {} : { occurrenceField }),
  };
}

/** The rule of a schedule that is in order. */
export function ruleFor({ cron, timezone }: Pick<ScheduleSpec, "cron" | "timezone">): Rule {
  return ruleOf(cron, timezone);
}

type Reader = (given: Fields, field: string, problems: string[]) => string;

function text(given: Fields, field: string, problems: string[]): string {
  const value = given[field];
  if (typeof value === "string" && value !== "") return value;
  problems.push(`"${field}" is a text`);
  return "";
}

function token(given: Fields, field: string, problems: string[]): string {
  const value = given[field];
  if (typeof value === "string" && isToken(value)) return value;
  problems.push(`"${field}" is 1 to 128 letters, digits, "_" and "-"`);
  return "";
}

function optional(given: Fields, field: string, problems: string[], read: Reader): string | undefined {
  return given[field] === undefined ? undefined : read(given, field, problems);
}

function duration(given: Fields, field: string, missing: number, problems: string[]): number {
  const value = given[field];
  if (value === undefined) return missing;
  try {
    const ms = parseDuration(value as Duration);
    if (ms >= 0) return Math.round(ms);
  } catch { // said below, as for one below 0
  }
  problems.push(`"${field}" is a duration of 0 or more`);
  return missing;
}
