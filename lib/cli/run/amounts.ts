/**
 * Numbers and times as people read them.
 *
 * @module
 */
import { formatDuration } from "../../duration.ts";

/** `1234567` → `1,234,567`. */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** A stretch of time, ms, as short as is useful: `340 ms`, `1.2 s`, `1m5s`. */
export function spanText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  return formatDuration(Math.floor(ms / 1000) * 1000);
}
