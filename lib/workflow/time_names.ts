/**
 * Time zones and time formats as they are written in documents.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { nearest } from "../expr/mod.ts";
import { timestampParser, zoneOf } from "../time/mod.ts";

/** Formats with a name. */
const TIME_FORMATS: readonly string[] = ["auto", "rfc3339", "epochMillis", "epochSeconds"];

/**
 * The zone, if there is one of this name.
 *
 * @throws {MailerError} `unknown_timezone`, with the one that was probably meant.
 */
export function checkTimezone(name: string): string {
  try {
    zoneOf(name);
    return name;
  } catch (error) {
    throw withSuggestion(error, name, Intl.supportedValuesOf("timeZone"));
  }
}

/**
 * The format, if timestamps can be read by it.
 *
 * @throws {MailerError} `invalid_timestamp_format`, with the one that was probably meant.
 */
export function checkTimeFormat(format: string): string {
  try {
    timestampParser({ format });
    return format;
  } catch (error) {
    throw withSuggestion(error, format, TIME_FORMATS);
  }
}

function withSuggestion(error: unknown, text: string, names: readonly string[]): unknown {
  const near = text.length > 64 ? undefined : nearest(text, names);
  if (!(error instanceof MailerError) || near === undefined) return error;
  return new MailerError(error.code, error.message, { cause: error, hint: `did you mean "${near}"?` });
}
