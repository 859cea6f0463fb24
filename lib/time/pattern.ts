/**
 * Timestamp patterns in the letters of Unicode LDML: `yyyy-MM-dd HH:mm:ss`, `dd/MMM/yyyy:HH:mm:ss xx`.
 *
 * | letters | meaning |
 * |---|---|
 * | `yyyy` `uuuu` · `y` `u` · `yy` | year of four digits · of any number · of two, 69–99 = 19xx, 00–68 = 20xx |
 * | `M` `MM` `L` `LL` · `MMM` `MMMM` | month as number · English name, short or long |
 * | `d` `dd` · `D` `DDD` | day of the month · of the year |
 * | `E` … `EEEE` | English name of the weekday; must be that of the date |
 * | `H` `HH` `k` `kk` · `h` `hh` `K` `KK` with `a` | hour 0–23, 1–24 · 1–12, 0–11 with AM or PM |
 * | `m` `mm` · `s` `ss` · `S` … `SSSSSSSSS` | minute · second · that many digits of its fraction |
 * | `X` `XX` `XXX` · `x` `xx` `xxx` · `Z` `ZZZZZ` | offset `+05`, `+0530`, `+05:30`, capital: `Z` = UTC · never `Z` · `+0530`, as `XXX` |
 * | `VV` | IANA zone |
 * | `'T'` · `''` | literal text · a quote |
 *
 * A doubled letter wants exactly two digits, a single one takes one or more. Other characters stand for themselves,
 * unknown letters are an error. Names are read in any case. What is missing is the first: January, day 1, 00:00:00.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { DAY, dayNumber, daysInMonth, isLeapYear } from "./civil.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** Milliseconds since the epoch of a text, NaN if it does not fit. */
export type PatternParser = (text: string) => number;

/** What has been read so far. */
interface Reading {
  text: string;
  at: number;
  year: number;
  month: number;
  day: number;
  dayOfYear: number;
  weekday: number;
  hour: number;
  halfDay: number;
  minute: number;
  second: number;
  millisecond: number;
  offset: number | undefined;
  zone: Zone;
}

/** Reads one piece and moves on; false if it is not there. */
type Step = (reading: Reading) => boolean;
type NumberField = "year" | "month" | "day" | "dayOfYear" | "hour" | "minute" | "second";

const MONTHS = "january february march april may june july august september october november december".split(
  " ",
);
const DAYS = "monday tuesday wednesday thursday friday saturday sunday".split(" ");
const PIECE = /'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+/gy;

/** Letters that read a number: the field, the least and largest value, the most digits of a single letter. */
const NUMBERS: Readonly<Record<string, readonly [NumberField, number, number, number]>> = {
  y: ["year", 0, 999_999, 6],
  u: ["year", 0, 999_999, 6],
  M: ["month", 1, 12, 2],
  L: ["month", 1, 12, 2],
  d: ["day", 1, 31, 2],
  D: ["dayOfYear", 1, 366, 3],
  H: ["hour", 0, 23, 2],
  k: ["hour", 1, 24, 2],
  h: ["hour", 1, 12, 2],
  K: ["hour", 0, 11, 2],
  m: ["minute", 0, 59, 2],
  s: ["second", 0, 59, 2],
};
const FIELDS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(NUMBERS).map(([letter, [field]]) => [letter, field]),
);
const HINTS: Readonly<Record<string, string>> = {
  Y: "Y is the year of a week; write yyyy",
  w: "weeks are not supported; write the date as yyyy-MM-dd",
  T: "write a literal T in quotes: 'T'",
  z: "write VV for a zone's name, xx for an offset such as +0530",
};

/**
 * Compiles a pattern.
 *
 * @param zone Zone of patterns without one.
 * @throws {MailerError} `invalid_timestamp_format`, naming the letter and where it stands.
 */
export function compilePattern(pattern: string, zone: Zone): PatternParser {
  const steps = stepsOf(pattern);
  return (text) => {
    const reading: Reading = {
      text,
      at: 0,
      year: NaN,
      month: 1,
      day: 1,
      dayOfYear: NaN,
      weekday: NaN,
      hour: 0,
      halfDay: NaN,
      minute: 0,
      second: 0,
      millisecond: 0,
      offset: undefined,
      zone,
    };
    for (const step of steps) if (!step(reading)) return NaN;
    return reading.at === text.length ? instantOf(reading) : NaN;
  };
}

function instantOf(reading: Reading): number {
  const { year, month, dayOfYear, weekday, halfDay, offset, zone } = reading;
  let day: number;
  if (!Number.isNaN(dayOfYear)) {
    if (dayOfYear === 366 && !isLeapYear(year)) return NaN;
    day = dayNumber(year, 1, dayOfYear);
  } else {
    if (reading.day > daysInMonth(year, month)) return NaN;
    day = dayNumber(year, month, reading.day);
  }
  if (!Number.isNaN(weekday) && (day + 3) - Math.floor((day + 3) / 7) * 7 !== weekday) return NaN;
  const hour = Number.isNaN(halfDay) ? reading.hour % 24 : reading.hour % 12 + 12 * halfDay;
  const local = day * DAY + hour * 3_600_000 + reading.minute * 60_000 + reading.second * 1000 +
    reading.millisecond;
  const instant = offset === undefined ? zone.instantOf(local) : local - offset;
  return Math.abs(instant) <= 8.64e15 ? instant : NaN;
}

function stepsOf(pattern: string): Step[] {
  const steps: Step[] = [];
  const letters: string[] = [];
  const pieces: { letter: string; count: number; literal: string; at: number }[] = [];
  PIECE.lastIndex = 0;
  let end = 0;
  for (let match = PIECE.exec(pattern); match !== null; match = PIECE.exec(pattern)) {
    const [all, quoted, letter = ""] = match;
    const literal = quoted === undefined
      ? (letter === "" ? all : "")
      : quoted === ""
      ? "'"
      : quoted.replaceAll("''", "'");
    pieces.push({ letter, count: all.length, literal, at: end });
    end = PIECE.lastIndex;
    if (letter !== "") letters.push(letter);
  }
  if (end < pattern.length) throw invalid(pattern, `the quote at position ${end + 1} is not closed`);
  for (const [i, { letter, count, literal, at }] of pieces.entries()) {
    const next = pieces[i + 1];
    const tight = next !== undefined &&
      (next.letter === "S" || (next.letter in NUMBERS && !(/[ML]/.test(next.letter) && next.count > 2)));
    const step = letter === "" ? literalStep(literal) : fieldStep(letter, count, tight ? "tight" : "loose");
    if (step === undefined) {
      const what = `${letter.repeat(count)} at position ${at + 1}`;
      throw invalid(pattern, `${what} is not supported`, HINTS[letter]);
    }
    steps.push(step);
  }
  checkTogether(pattern, letters);
  return steps;
}

/** Patterns that read, but hardly what was meant. */
function checkTogether(pattern: string, letters: readonly string[]): void {
  const given = new Set<string>();
  for (const letter of letters) {
    const field = /[XxZV]/.test(letter) ? "an offset or zone" : FIELDS[letter] ?? letter;
    if (given.has(field)) {
      throw invalid(pattern, `${field} stands twice`, "MM is the month, mm the minute, dd the day");
    }
    given.add(field);
  }
  if (!given.has("year")) {
    throw invalid(pattern, "it has no year", "an instant needs a date: yyyy-MM-dd HH:mm");
  }
  if (given.has("dayOfYear") && (given.has("month") || given.has("day"))) {
    throw invalid(pattern, "D is the day of the year", "write dd for the day of the month");
  }
  if (given.has("day") && !given.has("month")) {
    throw invalid(pattern, "it has no month", "MM is the month, mm the minute");
  }
  if (given.has("a") !== (letters.includes("h") || letters.includes("K"))) {
    throw invalid(pattern, "hours 1–12 (h) and AM or PM (a) need each other", "write HH for hours 0–23");
  }
}

function fieldStep(letter: string, count: number, fit: "tight" | "loose"): Step | undefined {
  const number = NUMBERS[letter];
  if (number !== undefined && Object.hasOwn(NUMBERS, letter)) {
    const [field, least, largest, most] = number;
    if (field === "month" && count > 2) return count < 5 ? nameStep("month", MONTHS, 1) : undefined;
    if (field === "year" && count === 2) return twoDigitYear;
    if (count > most) return undefined;
    // A single letter takes what digits there are, unless digits of the next field follow at once.
    return numberStep(field, least, largest, count, count === 1 && fit === "loose" ? most : count);
  }
  switch (letter) {
    case "E":
      return count < 5 ? nameStep("weekday", DAYS, 0) : undefined;
    case "a":
      return count < 4 ? nameStep("halfDay", ["am", "pm"], 0) : undefined;
    case "S":
      return count < 10 ? fractionStep(count) : undefined;
    case "X":
      return count < 4 ? offsetStep(count, "Z") : undefined;
    case "x":
      return count < 4 ? offsetStep(count, "digits") : undefined;
    case "Z":
      return count < 4 ? offsetStep(2, "digits") : count === 5 ? offsetStep(3, "Z") : undefined;
    case "V":
      return count === 2 ? zoneStep() : undefined;
    default:
      return undefined;
  }
}

function literalStep(literal: string): Step {
  return (reading) => {
    if (!reading.text.startsWith(literal, reading.at)) return false;
    reading.at += literal.length;
    return true;
  };
}

function numberStep(field: NumberField, least: number, largest: number, fewest: number, most: number): Step {
  return (reading) => {
    const number = readDigits(reading, fewest, most);
    if (!(number >= least && number <= largest)) return false;
    reading[field] = number;
    return true;
  };
}

function twoDigitYear(reading: Reading): boolean {
  const number = readDigits(reading, 2, 2);
  reading.year = number + (number < 69 ? 2000 : 1900);
  return !Number.isNaN(number);
}

function fractionStep(count: number): Step {
  return (reading) => {
    const number = readDigits(reading, count, count);
    reading.millisecond = Math.floor(number * 1000 / 10 ** count);
    return !Number.isNaN(number);
  };
}

/** Names in full or as their first three letters (AM and PM have two). */
function nameStep(field: "month" | "weekday" | "halfDay", names: readonly string[], first: number): Step {
  return (reading) => {
    const rest = reading.text.slice(reading.at, reading.at + 9).toLowerCase();
    const index = names.findIndex((name) => rest.startsWith(name.slice(0, 3)));
    if (index === -1) return false;
    const name = names[index]!;
    reading.at += rest.startsWith(name) ? name.length : 3;
    reading[field] = index + first;
    return true;
  };
}

function offsetStep(form: number, zero: "Z" | "digits"): Step {
  return (reading) => {
    const sign = reading.text[reading.at];
    if (sign === "Z" && zero === "Z") {
      reading.at++;
      reading.offset = 0;
      return true;
    }
    if (sign !== "+" && sign !== "-") return false;
    reading.at++;
    const hours = readDigits(reading, 2, 2);
    let minutes = 0;
    if (form === 3) {
      if (reading.text[reading.at] !== ":") return false;
      reading.at++;
    }
    if (form > 1) minutes = readDigits(reading, 2, 2);
    else if (/^\d\d/.test(reading.text.slice(reading.at))) minutes = readDigits(reading, 2, 2);
    if (!(hours <= 23 && minutes <= 59)) return false;
    reading.offset = (hours * 60 + minutes) * (sign === "-" ? -60_000 : 60_000);
    return true;
  };
}

function zoneStep(): Step {
  let last: { id: string; zone: Zone } | undefined;
  return (reading) => {
    const id = /^[A-Za-z][A-Za-z0-9_+/-]*/.exec(reading.text.slice(reading.at))?.[0];
    if (id === undefined) return false;
    reading.at += id.length;
    if (last?.id !== id) {
      try {
        last = { id, zone: zoneOf(id) };
      } catch (error) {
        if (error instanceof MailerError) return false; // no such zone: the text does not fit
        throw error;
      }
    }
    reading.zone = last.zone;
    return true;
  };
}

/** A number of `fewest` to `most` digits; NaN if there are fewer. */
function readDigits(reading: Reading, fewest: number, most: number): number {
  let number = 0, count = 0;
  for (; count < most; count++) {
    const digit = reading.text.charCodeAt(reading.at + count) - 48;
    if (!(digit >= 0 && digit <= 9)) break;
    number = number * 10 + digit;
  }
  reading.at += count;
  return count < fewest ? NaN : number;
}

function invalid(pattern: string, problem: string, hint?: string): MailerError {
  return new MailerError("invalid_timestamp_format", `"${pattern}" is not a timestamp format: ${problem}`, {
    hint: hint ?? "write auto, rfc3339, epochMillis, epochSeconds, or a pattern such as yyyy-MM-dd HH:mm:ss",
  });
}
