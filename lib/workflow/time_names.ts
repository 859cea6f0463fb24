/**
 * Time zones and time formats as they are written in documents.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { nearest } from "../expr/mod.ts";

/** Formats with a name. */
export const TIME_FORMATS: readonly string[] = ["auto", "rfc3339", "epochMillis", "epochSeconds"];

/** Letters of Unicode LDML that a pattern may have. */
const LETTERS = /^[yuMdDHhKkmsSaEXxZVzOeQL]+$/;

/**
 * The zone, if there is one of this name.
 *
 * @throws {MailerError} `unknown_timezone`.
 */
export function checkTimezone(name: string): string {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return name;
  } catch (cause) {
    const near = nearest(name, Intl.supportedValuesOf("timeZone"));
    throw new MailerError("unknown_timezone", `there is no time zone "${name}"`, {
      cause,
      hint: near === undefined ? "write an IANA name such as Europe/Berlin" : `did you mean "${near}"?`,
    });
  }
}

/**
 * The format, if it has a name or is a pattern with a year, or with letters that stand for parts of a time.
 *
 * @throws {MailerError} `unknown_format`.
 */
export function checkTimeFormat(format: string): string {
  if (TIME_FORMATS.includes(format)) return format;
  const letters = format.replace(/'(?:[^']|'')*'/g, "").replace(/[^A-Za-z]/g, "");
  if (!format.includes("'") || (format.match(/'/g)!.length % 2 === 0)) {
    if (/[yu]/.test(letters) && /[dD]/.test(letters) && LETTERS.test(letters)) return format;
  }
  const near = nearest(format, TIME_FORMATS);
  throw new MailerError("unknown_format", `"${format}" is no time format`, {
    hint: near !== undefined
      ? `did you mean "${near}"?`
      : `write ${
        TIME_FORMATS.join(", ")
      }, or a pattern such as yyyy-MM-dd HH:mm:ss with other letters in single quotes`,
  });
}
