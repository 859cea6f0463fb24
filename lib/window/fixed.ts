/**
 * Windows of a fixed number of milliseconds, aligned to the epoch plus an offset.
 *
 * Arithmetic is exact for |t| ≤ 8.64e15: the quotient of two whole numbers below 2^53 is never rounded up to the next
 * whole one, so flooring it is safe.
 *
 * @module
 */
import type { PaneWindows } from "./assigner.ts";

/** What {@link FixedPanes} needs; all lengths in whole ms. */
export interface FixedExtent {
  /** 0 < size ≤ 1e14. */
  readonly size: number;
  /** 0 < slide ≤ size. */
  readonly slide: number;
  /** Any; a window starts at `offset`. */
  readonly offset: number;
  readonly timezone: string | undefined;
  readonly description: string;
}

/** Tumbling and sliding windows of fixed length. */
export class FixedPanes implements PaneWindows {
  readonly kind = "panes";
  readonly timezone?: string;
  readonly description: string;
  readonly single: boolean;
  readonly #size: number;
  readonly #slide: number;
  readonly #offset: number;
  readonly #pane: number;

  constructor(extent: FixedExtent) {
    this.#size = extent.size;
    this.#slide = extent.slide;
    this.#pane = greatestCommonDivisor(extent.size, extent.slide);
    this.#offset = extent.offset - Math.floor(extent.offset / extent.slide) * extent.slide;
    this.single = extent.size === extent.slide;
    this.description = extent.description;
    if (extent.timezone !== undefined) this.timezone = extent.timezone;
  }

  paneStart(timestamp: number): number {
    const pane = this.#pane, offset = this.#offset;
    return Math.floor((timestamp - offset) / pane) * pane + offset;
  }
  paneEnd(start: number): number {
    return start + this.#pane;
  }
  firstWindow(pane: number): number {
    if (this.single) return pane;
    const slide = this.#slide, offset = this.#offset;
    return Math.floor((pane - this.#size - offset) / slide) * slide + slide + offset;
  }
  nextWindow(start: number): number {
    return start + this.#slide;
  }
  windowEnd(start: number): number {
    return start + this.#size;
  }
}

/** Greatest common divisor of two positive whole numbers. */
export function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
