/**
 * When a schedule is due: cron expressions and their relatives. The only file that knows croner.
 *
 * - `30 3 * * mon-fri`, `0 30 3 * * mon-fri`: minute, hour, day of the month, month, day of the week; a field for seconds may stand in
 *   front. Names, lists, ranges, steps, `*`, `?` (the same), `L`. Where both kinds of days are restricted either suffices.
 * - `@yearly @annually @monthly @weekly @daily @midnight @hourly`
 * - `@every 90s`: at multiples of the time since 1970, at least 1 s. So what is due depends neither on when a schedule was made, nor
 *   on when a process was started.
 * - `@at 2026-12-24T18:00:00Z`: once.
 *
 * E1 What is due is worked out from the expression, the time zone and an instant, and from nothing else.
 * E2 `next(t)` is later than `t`, always, or there is none; the search ends.
 * E3 Clock changes: a fixed time of day (one second, one minute, one hour) that the clock skips is due at the first instant behind the
 *    gap, and one that comes twice is due the first time. Anything else goes by the clock as it is: what is skipped is not due, what
 *    comes twice is due twice.
 *
 * @module
 */
import { Cron } from "croner";
import { parseDuration } from "../../duration.ts";
import { asError, MailerError } from "../../errors.ts";
import { parseRfc3339 } from "../../time/rfc3339.ts";
import { type Zone, zoneOf } from "../../time/mod.ts";

/** When something is due. */
export interface Rule {
  /** The first instant behind `after` (ms since the epoch), `undefined` where there is none. */
  next(after: number): number | undefined;
}

const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 0 1 1 *",
  "@annually": "0 0 0 1 1 *",
  "@monthly": "0 0 0 1 * *",
  "@weekly": "0 0 0 * * 0",
  "@daily": "0 0 0 * * *",
  "@midnight": "0 0 0 * * *",
  "@hourly": "0 0 * * * *",
};
const LEAST_EVERY = 1000;
const HINT =
  "write five or six fields such as `0 30 3 * * mon-fri`, `@daily`, `@every 15m` or `@at 2026-12-24T18:00:00Z`";

/**
 * The rule of an expression.
 *
 * @param timezone IANA name; default UTC.
 * @throws {MailerError} `invalid_cron`; `unknown_timezone`
 */
export function ruleOf(expression: string, timezone = "UTC"): Rule {
  const zone = zoneOf(timezone), text = expression.trim();
  const [word = "", rest] = split(text);
  switch (word.toLowerCase()) {
    case "@every":
      return every(text, rest);
    case "@at":
      return at(text, zone, rest);
    default:
      return cron(text, zone);
  }
}

function split(text: string): readonly [string, string] | readonly [string] {
  const space = text.search(/\s/);
  return space < 0 ? [text] : [text.slice(0, space), text.slice(space).trim()];
}

function every(text: string, rest = ""): Rule {
  let period: number;
  try {
    period = parseDuration(rest);
  } catch (cause) {
    throw invalid(text, asError(cause).message, cause);
  }
  if (period < LEAST_EVERY) throw invalid(text, "the shortest time is 1 s");
  if (!Number.isInteger(period)) throw invalid(text, "the time is a whole number of milliseconds");
  return { next: (after) => (Math.floor(after / period) + 1) * period };
}

function at(text: string, zone: Zone, rest = ""): Rule {
  const instant = parseRfc3339(rest, zone);
  if (Number.isNaN(instant)) throw invalid(text, `"${rest}" is no RFC 3339 time`);
  return { next: (after) => after < instant ? instant : undefined };
}

function cron(text: string, zone: Zone): Rule {
  const fields = (NICKNAMES[text.toLowerCase()] ?? text).split(/\s+/);
  if (text.startsWith("@") && fields.length === 1) throw invalid(text, "there is no such name");
  if (fields.length !== 5 && fields.length !== 6) {
    throw invalid(text, `it has ${fields.length} fields, not 5 or 6`);
  }
  // To croner a question mark is the moment it is read at.
  const pattern = fields.map((field) => field === "?" ? "*" : field).join(" ");
  if (pattern.includes("?")) throw invalid(text, "a question mark stands alone in its field");
  let job: Cron;
  try {
    job = new Cron(pattern, { timezone: zone.id, mode: "5-or-6-parts", paused: true });
  } catch (cause) {
    throw invalid(text, asError(cause).message, cause);
  }
  return {
    next: (after) => job.nextRun(new Date(Math.floor(after)))?.getTime(),
  };
}

function invalid(text: string, why: string, cause?: unknown): MailerError {
  return new MailerError("invalid_cron", `"${text}" says no time: ${why}`, { hint: HINT, cause });
}
