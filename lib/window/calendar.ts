/**
 * Windows of calendar days and months on the clock of a time zone. (Weeks are seven days, counted from a Monday.)
 *
 * C1 A boundary is the first instant at which the local clock shows it: midnight, or midnight plus `offset`. Where the
 *    clock skips midnight the day starts when it resumes; where midnight comes twice the first one counts.
 * C2 Windows advance by the calendar, so a day has 23, 24 or 25 hours, or whatever the zone makes of it.
 * C3 A day that a zone leaves out altogether has no window of its own.
 *
 * With an offset, a boundary inside a skipped hour is that much later (`compatible`, as in `Temporal`).
 *
 * @module
 */
import { civilDate, DAY, dayNumber, type Zone } from "../time/mod.ts";
import type { PaneWindows } from "./assigner.ts";
import { greatestCommonDivisor } from "./fixed.ts";

/** What {@link CalendarPanes} needs. Days count from 1970-01-01, months from January 1970. */
export interface CalendarExtent {
  readonly unit: "day" | "month";
  /** Units a window lasts, > 0. */
  readonly size: number;
  /** Units between the starts of two windows, 0 < slide ≤ size. */
  readonly slide: number;
  /** Number of a unit at which a window starts. */
  readonly origin: number;
  /** Local time behind midnight at which a unit starts, ms; may be negative. */
  readonly offset: number;
  readonly zone: Zone;
  /** Zone as its user wrote it, if any. */
  readonly timezone: string | undefined;
  readonly description: string;
}

/** Tumbling and sliding windows of calendar length. */
export class CalendarPanes implements PaneWindows {
  readonly kind = "panes";
  readonly timezone?: string;
  readonly description: string;
  readonly single: boolean;
  readonly #extent: CalendarExtent;
  readonly #pane: number;
  /** The pane of the last answer. */
  #from = NaN;
  #to = NaN;

  constructor(extent: CalendarExtent) {
    this.#extent = extent;
    this.#pane = greatestCommonDivisor(extent.size, extent.slide);
    this.single = extent.size === extent.slide;
    this.description = extent.description;
    if (extent.timezone !== undefined) this.timezone = extent.timezone;
  }

  paneStart(timestamp: number): number {
    if (timestamp >= this.#from && timestamp < this.#to) return this.#from;
    const first = this.#align(this.#unitAt(timestamp), this.#pane);
    this.#to = this.#startOf(first + this.#pane);
    return this.#from = this.#startOf(first);
  }
  paneEnd(start: number): number {
    if (start === this.#from) return this.#to;
    return this.#startOf(this.#align(this.#unitAt(start), this.#pane) + this.#pane);
  }
  firstWindow(pane: number): number {
    if (this.single) return pane;
    const { size, slide } = this.#extent;
    const unit = this.#align(this.#unitAt(pane), this.#pane);
    return this.#startOf(this.#align(unit - size, slide) + slide);
  }
  nextWindow(start: number): number {
    const { slide } = this.#extent;
    return this.#startOf(this.#align(this.#unitAt(start), slide) + slide);
  }
  windowEnd(start: number): number {
    const { size, slide } = this.#extent;
    return this.#startOf(this.#align(this.#unitAt(start), slide) + size);
  }

  /** The last unit at or before `unit` that is a multiple of `step` from the origin. */
  #align(unit: number, step: number): number {
    const { origin } = this.#extent;
    return Math.floor((unit - origin) / step) * step + origin;
  }

  /** The last unit that starts at or before an instant. */
  #unitAt(instant: number): number {
    const { zone, offset } = this.#extent;
    let unit = this.#unitOfDay(Math.floor((instant + zone.offsetAt(instant) - offset) / DAY));
    // Near a clock change the local date is but a guess: it may go back, and a boundary may be moved.
    while (this.#startOf(unit) > instant) unit--;
    while (this.#startOf(unit + 1) <= instant) unit++;
    return unit;
  }

  #unitOfDay(day: number): number {
    if (this.#extent.unit === "day") return day;
    const { year, month } = civilDate(day);
    return (year - 1970) * 12 + month - 1;
  }

  /** The instant at which a unit starts. */
  #startOf(unit: number): number {
    const { zone, offset } = this.#extent;
    const year = Math.floor(unit / 12);
    const day = this.#extent.unit === "day" ? unit : dayNumber(1970 + year, unit - year * 12 + 1, 1);
    return offset === 0 ? zone.firstInstantOf(day * DAY) : zone.instantOf(day * DAY + offset);
  }
}
