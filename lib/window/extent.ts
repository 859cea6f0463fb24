/**
 * Lengths of windows as they are written: `5m`, `1h30m` on the axis of time; `1d`, `2w`, `1mo` on the calendar.
 *
 * @module
 */
import { type Duration, parseDuration } from "../duration.ts";
import { asError, MailerError } from "../errors.ts";

/** A whole number of calendar units. */
export type CalendarSize = `${number}d` | `${number}w` | `${number}mo`;

/** A parsed length. */
export interface Extent {
  readonly unit: "ms" | "day" | "month";
  readonly count: number;
  /** Written in weeks: counted from Monday 1969-12-29. */
  readonly weeks: boolean;
  /** Written with a `d` beside other units, so that it has no place on a calendar. */
  readonly mixed: boolean;
  /** For messages and descriptions. */
  readonly text: string;
}

const CALENDAR = /^(\d+)(d|w|mo)$/;
/** Longest extent, about 3,000 years; keeps the arithmetic on the axis exact. */
const LONGEST = 1e14;

/** Error of a window that cannot be. */
export function invalidWindow(message: string, hint?: string, cause?: unknown): MailerError {
  return new MailerError("invalid_window", message, {
    ...(hint === undefined ? {} : { hint }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * Length of a window, or the distance between two.
 *
 * @param what `size`, `slide`, `gap`: for the message.
 * @throws {MailerError} `invalid_window` unless it is positive and in whole milliseconds or calendar units.
 */
export function parseExtent(value: Duration | CalendarSize, what: string): Extent {
  const text = typeof value === "number" ? `${value}ms` : value.trim();
  const calendar = CALENDAR.exec(text);
  if (calendar === null) {
    const count = wholeMilliseconds(value, what);
    if (count <= 0) throw invalidWindow(`${what} must be longer than zero, found ${text}`);
    if (count > LONGEST) throw invalidWindow(`${what} must be shorter than 3,000 years, found ${text}`);
    return { unit: "ms", count, weeks: false, mixed: text.includes("d"), text };
  }
  const number = Number(calendar[1]), unit = calendar[2]!;
  if (number === 0) throw invalidWindow(`${what} must be longer than zero, found ${text}`);
  if (number > (unit === "mo" ? 36_000 : unit === "w" ? 150_000 : 1_000_000)) {
    throw invalidWindow(`${what} must be shorter than 3,000 years, found ${text}`);
  }
  return {
    unit: unit === "mo" ? "month" : "day",
    count: unit === "w" ? number * 7 : number,
    weeks: unit === "w",
    mixed: false,
    text,
  };
}

/**
 * A duration in whole milliseconds.
 *
 * @throws {MailerError} `invalid_window` naming `what`.
 */
export function wholeMilliseconds(value: Duration, what: string): number {
  let ms: number;
  try {
    ms = parseDuration(value);
  } catch (cause) {
    throw invalidWindow(
      `${what}: ${asError(cause).message}`,
      "write a duration such as 30s, 5m or 1h30m, or calendar units such as 1d, 1w or 1mo",
      cause,
    );
  }
  if (!Number.isSafeInteger(ms)) throw invalidWindow(`${what} must be in whole milliseconds, found ${value}`);
  return ms;
}
