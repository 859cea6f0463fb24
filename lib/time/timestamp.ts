/**
 * Event time out of a record: a text or number, read by a format.
 *
 * | format | reads |
 * |---|---|
 * | `auto` | RFC 3339 text; numbers, and texts that are numbers, as milliseconds since the epoch |
 * | `rfc3339` | RFC 3339 text |
 * | `epochMillis`, `epochSeconds` | numbers, and texts that are numbers |
 * | a pattern | text (or a whole number, taken as text), see `pattern.ts` |
 *
 * T1 Instants are whole milliseconds, rounded down.
 * T2 Local times are those of `timezone`. One that a clock change skips is that much later, of one that comes twice the
 *    first is meant (`compatible`, as in `Temporal`).
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { stringifyJson } from "../json.ts";
import { isNumeric } from "../numeric.ts";
import { type EpochUnit, parseEpoch } from "./epoch.ts";
import { compilePattern } from "./pattern.ts";
import { parseRfc3339 } from "./rfc3339.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** How timestamps are written. */
export interface TimestampOptions {
  /** `auto`, `rfc3339`, `epochMillis`, `epochSeconds`, or a pattern. Default `auto`. */
  readonly format?: string;
  /** IANA zone of texts that have neither offset nor zone. Default UTC; never the machine's own. */
  readonly timezone?: string;
}

/** Milliseconds since the epoch of a value. Throws {@link MailerError} `bad_timestamp`, naming the value and the format. */
export type TimestampParser = (value: unknown) => number;

/**
 * Compiles the reading of timestamps.
 *
 * @throws {MailerError} `invalid_timestamp_format`, `unknown_timezone`
 */
export function timestampParser(options: TimestampOptions = {}): TimestampParser {
  const { format = "auto", timezone = "UTC" } = options;
  const parse = parserOf(format, zoneOf(timezone));
  return (value) => {
    const instant = parse(value);
    if (instant === instant) return instant;
    throw badTimestamp(value, format);
  };
}

/** Gives NaN for what does not fit. */
function parserOf(format: string, zone: Zone): (value: unknown) => number {
  switch (format) {
    case "auto":
      return (value) => {
        if (typeof value !== "string") return isNumeric(value) ? parseEpoch(value, "milliseconds") : NaN;
        const instant = parseRfc3339(value, zone);
        return instant === instant ? instant : parseEpoch(value, "milliseconds");
      };
    case "rfc3339":
      return (value) => typeof value === "string" ? parseRfc3339(value, zone) : NaN;
    case "epochMillis":
      return epochParser("milliseconds");
    case "epochSeconds":
      return epochParser("seconds");
    default: {
      const parse = compilePattern(format, zone);
      return (value) =>
        typeof value === "string" ? parse(value) : isWhole(value) ? parse(String(value)) : NaN;
    }
  }
}

function epochParser(unit: EpochUnit): (value: unknown) => number {
  return (value) => typeof value === "string" || isNumeric(value) ? parseEpoch(value, unit) : NaN;
}

function isWhole(value: unknown): boolean {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

function badTimestamp(value: unknown, format: string): MailerError {
  if (value === undefined) {
    return new MailerError("bad_timestamp", `there is no timestamp (format ${format})`);
  }
  const text = typeof value === "number" ? String(value) : stringifyJson(value);
  const shown = text.length <= 60 ? text : text.slice(0, 57) + "…";
  return new MailerError("bad_timestamp", `${shown} is not a timestamp of format ${format}`);
}
