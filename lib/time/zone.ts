/**
 * Time zones: the offset at an instant, and the instant of a local time.
 *
 * The rules come from `Temporal`. A call to it costs microseconds, so the stretch of time around the last answer, in
 * which the offset does not change, is kept: the usual question is two comparisons.
 *
 * Local times are milliseconds too: what the epoch milliseconds would be if the local clock showed UTC.
 *
 * Z1 `offsetAt` agrees with `Temporal` at every instant, also behind the last known rule change.
 * Z2 `instantOf` is Temporal's `compatible`: in a gap the time that much later, in an overlap the earlier of both.
 * Z3 The zone is named, always. The machine's own is never asked for.
 *
 * @module
 */
import { MailerError } from "../errors.ts";

/** The clock of a place. */
export interface Zone {
  /** As `Temporal` writes it: `America/New_York`, `+05:30`, `UTC`. */
  readonly id: string;
  /** Offset for the whole of time, where there is only one, ms; else undefined. */
  readonly fixedOffset: number | undefined;
  /** Local time − UTC at an instant, ms. */
  offsetAt(instant: number): number;
  /** Instant of a local time; see Z2. */
  instantOf(local: number): number;
  /** First instant at which the local clock shows `local` or later: for a midnight that does not exist, where the day begins. */
  firstInstantOf(local: number): number;
  /** End of the stretch around `instant` in which the offset stays the same; `Infinity` if it does for ever. */
  unchangedUntil(instant: number): number;
  /** Start of that stretch, or `-Infinity`. */
  unchangedSince(instant: number): number;
}

/** A stretch of time with one offset, half open. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

/** Temporal's last instant; the rules in force there are continued beyond. */
const LAST_INSTANT = 8.64e15;
/** Further from a change than any two offsets of a zone are apart (24 h, where the date line moved). */
const FAR = 48 * 3_600_000;
/** Stretches kept. More than any zone has seen until now; a walk through the far future drops old ones. */
const MOST_STRETCHES = 512;

/**
 * The zone of a name.
 *
 * @param id IANA name in any case, or an offset such as `+05:30`.
 * @throws {MailerError} `unknown_timezone`
 */
export function zoneOf(id: string): Zone {
  let known: string;
  try {
    known = Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(id).timeZoneId;
  } catch (cause) {
    throw new MailerError("unknown_timezone", `"${id}" is not a time zone`, {
      cause,
      hint: "write an IANA name such as Europe/Berlin, an offset such as +05:30, or UTC",
    });
  }
  return new RuledZone(known);
}

class RuledZone implements Zone {
  readonly id: string;
  readonly fixedOffset: number | undefined;
  /** The stretch of the last answer. */
  #near: Stretch;
  /** All stretches met, by time. */
  #met: Stretch[] = [];

  constructor(id: string) {
    this.id = id;
    this.#near = this.#lookUp(0);
    this.fixedOffset = this.#near.from === -Infinity && this.#near.to === Infinity
      ? this.#near.offset
      : undefined;
  }

  offsetAt(instant: number): number {
    return this.#stretchAt(instant).offset;
  }

  unchangedUntil(instant: number): number {
    return this.#stretchAt(instant).to;
  }

  unchangedSince(instant: number): number {
    return this.#stretchAt(instant).from;
  }

  instantOf(local: number): number {
    const { from, to, offset } = this.#stretchAt(local - this.#near.offset);
    const instant = local - offset;
    if (instant >= from + FAR && instant < to - FAR) return instant;
    const gap = this.#resolve(local);
    return typeof gap === "number" ? gap : local - gap.offset;
  }

  firstInstantOf(local: number): number {
    const { from, to, offset } = this.#stretchAt(local - this.#near.offset);
    const instant = local - offset;
    if (instant >= from + FAR && instant < to - FAR) return instant;
    const gap = this.#resolve(local);
    return typeof gap === "number" ? gap : gap.to;
  }

  /** The earliest instant of a local time near a change; for one the clock skips, the stretch before the gap. */
  #resolve(local: number): number | Stretch {
    let stretch = this.#stretchAt(local - FAR);
    for (;;) {
      const instant = local - stretch.offset;
      if (instant < stretch.to) return instant; // and not before it, as the steps below see to
      const next = this.#stretchAt(stretch.to);
      if (local - next.offset < next.from) return stretch; // behind one and before the other: the clock jumps over it
      stretch = next;
    }
  }

  #stretchAt(instant: number): Stretch {
    const near = this.#near;
    return instant >= near.from && instant < near.to ? near : (this.#near = this.#find(instant));
  }

  #find(instant: number): Stretch {
    const met = this.#met;
    let low = 0, high = met.length; // first stretch that ends behind `instant`
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (met[middle]!.to <= instant) low = middle + 1;
      else high = middle;
    }
    const candidate = met[low];
    if (candidate !== undefined && candidate.from <= instant) return candidate;
    const found = this.#lookUp(instant);
    if (met.length >= MOST_STRETCHES) this.#met = [found];
    else met.splice(low, 0, found);
    return found;
  }

  #lookUp(instant: number): Stretch {
    const within = Math.min(Math.max(Math.floor(instant), -LAST_INSTANT), LAST_INSTANT - 1);
    const at = (ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(this.id);
    const here = at(within);
    return {
      // "previous" is strictly before, and a change at `within` itself has happened
      from: at(within + 1).getTimeZoneTransition("previous")?.epochMilliseconds ?? -Infinity,
      to: here.getTimeZoneTransition("next")?.epochMilliseconds ?? Infinity,
      offset: here.offsetNanoseconds / 1e6,
    };
  }
}
