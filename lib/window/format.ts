/**
 * Times of rows as text: RFC 3339 with milliseconds.
 *
 * F1 The text reads back as the same instant. (RFC 3339 offsets are whole minutes: before standard time, where a zone
 *    was some seconds off, the clock shown is the one of the rounded offset.)
 * F2 Years outside 0 … 9999 have a sign and six digits, as in `Date` and `Temporal`.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { civilDate, DAY, type Zone, zoneOf } from "../time/mod.ts";

const MINUTE = 60_000;

/** Formats instants of one zone. Rows of one firing share their minute, so that much of the text is kept. */
export class InstantFormat {
  readonly #zone: Zone | undefined;
  /** Start of the minute that prefix and suffix show. */
  #start = NaN;
  /** The part of it they hold for: less than a minute where the offset changes within. */
  #from = NaN;
  #to = NaN;
  #prefix = "";
  #suffix = "Z";

  /**
   * A format of one zone.
   *
   * @param timezone IANA zone; UTC, written `Z`, without.
   * @throws {MailerError} `unknown_timezone`
   */
  constructor(timezone?: string) {
    this.#zone = timezone === undefined ? undefined : zoneOf(timezone);
  }

  /**
   * The text of an instant.
   *
   * @param instant Milliseconds since the epoch; a fraction is cut off.
   * @throws {MailerError} `bad_timestamp` for what is no instant: NaN, or beyond the years ±275,760.
   */
  format(instant: number): string {
    const ms = Math.floor(instant);
    if (!(ms >= this.#from && ms < this.#to)) this.#turnTo(ms);
    const rest = ms - this.#start;
    const seconds = Math.floor(rest / 1000);
    return this.#prefix + two(seconds) + "." + three(rest - seconds * 1000) + this.#suffix;
  }

  #turnTo(ms: number): void {
    if (!(Math.abs(ms) <= 8.64e15)) throw new MailerError("bad_timestamp", `${ms} is not an instant`);
    const zone = this.#zone;
    let offset = 0;
    if (zone !== undefined) {
      offset = Math.round(zone.offsetAt(ms) / MINUTE) * MINUTE;
      const minutes = Math.abs(offset) / MINUTE, hours = Math.floor(minutes / 60);
      this.#suffix = (offset < 0 ? "-" : "+") + two(hours) + ":" + two(minutes - hours * 60);
    }
    const minute = Math.floor((ms + offset) / MINUTE) * MINUTE;
    const start = minute - offset;
    this.#from = zone === undefined ? start : Math.max(start, zone.unchangedSince(ms));
    this.#to = zone === undefined ? start + MINUTE : Math.min(start + MINUTE, zone.unchangedUntil(ms));
    this.#start = start;
    const day = Math.floor(minute / DAY);
    const { year, month, day: date } = civilDate(day);
    const minutes = (minute - day * DAY) / MINUTE, hours = Math.floor(minutes / 60);
    this.#prefix = yearText(year) + "-" + two(month) + "-" + two(date) + "T" + two(hours) + ":" +
      two(minutes - hours * 60) + ":";
  }
}

/** Formats of the zones met. There are a few hundred zones, so it does not grow without bound. */
const formats = new Map<string | undefined, InstantFormat>();

/**
 * An instant as RFC 3339 with milliseconds: `2026-03-08T05:00:00.000Z`, or in a zone `2026-03-08T00:00:00.000-05:00`.
 *
 * @param instant Milliseconds since the epoch.
 * @param timezone IANA zone; UTC without.
 * @throws {MailerError} `bad_timestamp`, `unknown_timezone`
 */
export function formatInstant(instant: number, timezone?: string): string {
  let format = formats.get(timezone);
  if (format === undefined) {
    format = new InstantFormat(timezone);
    formats.set(timezone, format);
  }
  return format.format(instant);
}

function two(n: number): string {
  return n < 10 ? "0" + n : "" + n;
}

function three(n: number): string {
  return n < 10 ? "00" + n : n < 100 ? "0" + n : "" + n;
}

function yearText(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, "0");
  return (year < 0 ? "-" : "+") + String(Math.abs(year)).padStart(6, "0");
}
