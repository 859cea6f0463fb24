/**
 * The windows a pipeline can ask for: tumbling, sliding, session, count, global.
 *
 * Calendar units: a size of `1d`, `2w`, `1mo` is counted on the calendar of `timezone` (UTC without one; there a day is
 * 24 hours). Days count from 1970-01-01, weeks from Monday 1969-12-29, months from January 1970. Any other size is a
 * fixed length on the axis of time, aligned to the epoch, and the zone only says how the times of rows are printed.
 *
 * @module
 */
import { type Duration, formatDuration } from "../duration.ts";
import { asError } from "../errors.ts";
import { DAY, type Zone, zoneOf } from "../time/mod.ts";
import type { CountWindows, GlobalWindows, PaneWindows, SessionWindows } from "./assigner.ts";
import { CalendarPanes } from "./calendar.ts";
import { type CalendarSize, type Extent, invalidWindow, parseExtent, wholeMilliseconds } from "./extent.ts";
import { FixedPanes } from "./fixed.ts";

/** How windows lie on the axis of time. */
export interface WindowOptions {
  /** Moves all windows by this much; on the calendar it is local time behind midnight. Default 0; may be negative. */
  readonly offset?: Duration;
  /** IANA zone of calendar units and of printed times; UTC without. Never the machine's own. */
  readonly timezone?: string;
}

/**
 * Windows that follow each other without a gap.
 *
 * @param size Length: a duration, or calendar units (`1d`, `1w`, `1mo`).
 * @throws {MailerError} `invalid_window`
 */
export function tumbling(size: Duration | CalendarSize, options: WindowOptions = {}): PaneWindows {
  const extent = parseExtent(size, "size");
  return paneWindows(extent, extent, options, `tumbling ${extent.text}`);
}

/**
 * Windows of `size` that start every `every`, so that a record is in several.
 *
 * @param size Length: a duration, or calendar units (`7d`, `1w`, `3mo`).
 * @param every Distance between two starts, at most `size`, of the same kind.
 * @throws {MailerError} `invalid_window`
 */
export function sliding(
  size: Duration | CalendarSize,
  every: Duration | CalendarSize,
  options: WindowOptions = {},
): PaneWindows {
  const extent = parseExtent(size, "size"), slide = parseExtent(every, "slide");
  return paneWindows(extent, slide, options, `sliding ${extent.text} every ${slide.text}`);
}

/**
 * A window per burst of activity: it ends when a key had no record for `gap`.
 *
 * @param gap Inactivity that ends a session, > 0.
 * @throws {MailerError} `invalid_window`
 */
export function session(gap: Duration, options: Pick<WindowOptions, "timezone"> = {}): SessionWindows {
  const ms = wholeMilliseconds(gap, "gap");
  if (ms <= 0) throw invalidWindow(`gap must be longer than zero, found ${gap}`);
  const description = `session with a gap of ${formatDuration(ms)}`;
  if (options.timezone === undefined) return { kind: "session", gap: ms, description };
  zoneNamed(options.timezone);
  return { kind: "session", gap: ms, timezone: options.timezone, description };
}

/**
 * Windows of a number of records of a key.
 *
 * @param size Records a row covers.
 * @param slide Records between two rows, at most `size`. Default `size`.
 * @throws {MailerError} `invalid_window`
 */
export function count(size: number, slide: number = size): CountWindows {
  for (const [what, value] of [["size", size], ["slide", slide]] as const) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw invalidWindow(
        `${what} of a count window must be a whole number of records, at least 1, found ${value}`,
      );
    }
  }
  if (slide > size) throw slideTooLong(String(slide), String(size));
  const description = slide === size ? `every ${size} records` : `the last ${size} records, every ${slide}`;
  return { kind: "count", size, slide, description };
}

/** One window per key that never ends by itself: rows come from triggers, and when the input ends. */
export function global(): GlobalWindows {
  return { kind: "global", description: "global" };
}

function paneWindows(size: Extent, slide: Extent, options: WindowOptions, what: string): PaneWindows {
  const { timezone } = options;
  const zone = timezone === undefined ? undefined : zoneNamed(timezone);
  const offset = options.offset === undefined ? 0 : wholeMilliseconds(options.offset, "offset");
  if (Math.abs(offset) > 1e14) throw invalidWindow(`offset is too large, found ${options.offset}`);
  const description = what + (timezone === undefined ? "" : ` in ${timezone}`) +
    (offset === 0 ? "" : `, offset ${formatDuration(offset)}`);

  const onCalendar = size.unit === "month" || slide.unit === "month" ||
    ((size.unit === "day" || slide.unit === "day") && zone !== undefined && zone.fixedOffset !== 0);
  if (!onCalendar) {
    if (zone !== undefined && zone.fixedOffset !== 0) refuseMixed([size, slide]);
    const origin = size.weeks || slide.weeks ? FIRST_MONDAY * DAY : 0;
    const fixed = { size: milliseconds(size), slide: milliseconds(slide) };
    if (fixed.slide > fixed.size) throw slideTooLong(slide.text, size.text);
    return new FixedPanes({ ...fixed, offset: origin + offset, timezone, description });
  }
  if (size.unit !== slide.unit) {
    throw invalidWindow(
      `size ${size.text} and slide ${slide.text} are not of one kind`,
      "months slide by months, days and weeks of a time zone by days and weeks",
    );
  }
  if (slide.count > size.count) throw slideTooLong(slide.text, size.text);
  return new CalendarPanes({
    unit: size.unit as "day" | "month",
    size: size.count,
    slide: slide.count,
    origin: size.weeks || slide.weeks ? FIRST_MONDAY : 0,
    offset,
    zone: zone ?? zoneOf("UTC"),
    timezone,
    description,
  });
}

/** 1969-12-29 as a day number. */
const FIRST_MONDAY = -3;

function milliseconds(extent: Extent): number {
  return extent.unit === "day" ? extent.count * DAY : extent.count;
}

function zoneNamed(id: string): Zone {
  try {
    return zoneOf(id);
  } catch (cause) {
    throw invalidWindow(
      `timezone: ${asError(cause).message}`,
      "write an IANA name such as Europe/Berlin",
      cause,
    );
  }
}

function refuseMixed(extents: readonly Extent[]): void {
  const extent = extents.find(({ mixed }) => mixed);
  if (extent === undefined) return;
  throw invalidWindow(
    `${extent.text} is neither calendar days nor a fixed length in a time zone`,
    "write whole days (2d), or hours (36h) for a fixed length",
  );
}

function slideTooLong(slide: string, size: string): Error {
  return invalidWindow(
    `slide ${slide} is longer than size ${size}: records between two windows would be lost`,
    "slide at most by the size",
  );
}
