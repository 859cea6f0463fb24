/**
 * Tables, sizes, ages and values as people read them.
 *
 * @module
 */
import { formatDuration } from "../../duration.ts";
import { stringifyJson } from "../../json.ts";

/** The longest value that is shown whole in a table. */
const LONGEST = 120;
const UNITS = ["kB", "MB", "GB", "TB"];

/** A column: its heading, and which way its cells are moved. */
export interface Column {
  readonly title: string;
  /** Default left. */
  readonly align?: "left" | "right";
}

/** Rows under headings, two spaces between columns; each line with its line end. Columns in which nothing stands are left out. */
export function tableText(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  indent = "",
): string {
  const shown = columns.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== ""));
  const lines = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => line[i]!.length)));
  const cell = (text: string, i: number): string =>
    columns[i]!.align === "right" ? text.padStart(widths[i]!) : text.padEnd(widths[i]!);
  return lines.map((line) => `${indent}${shown.map((i) => cell(line[i]!, i)).join("  ")}`.trimEnd() + "\n")
    .join("");
}

/** `340 B`, `1.2 kB`, `36 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let unit = -1;
  for (; bytes >= 999.5 && unit < UNITS.length - 1; unit++) bytes /= 1000;
  return `${bytes < 9.95 ? bytes.toFixed(1) : Math.round(bytes)} ${UNITS[unit]}`;
}

/** How long ago, in its largest unit: `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. */
export function ageText(ms: number): string {
  if (ms < 0) return "in the future";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** A duration, ms: `12 ms`, `1.2 s`, `1m5s`. */
export function tookText(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  return formatDuration(Math.round(ms / 1000) * 1000);
}

/** A time of day, ms since the epoch: `2024-05-01T12:00:03Z`; beyond all dates the number itself. */
export function timeText(time: number): string {
  return isoTime(time)?.replace(/\.\d+Z$/, "Z") ?? String(time);
}

/** A time in ISO 8601 with milliseconds; undefined beyond all dates. */
export function isoTime(time: number): string | undefined {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** `1 key`, `2 keys`. */
export function countedText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** What was removed, as a line. */
export function removedText(labels: readonly string[], runs: number): string {
  const pages = runs === 0 ? "" : `, and ${countedText(runs, "run")} of pages that only they needed`;
  return `removed ${labels.join(", ")}${labels.length === 1 ? pages.replace("they", "it") : pages}\n`;
}

/** A value as a line of JSON, cut where it is long. */
export function valueText(value: unknown): string {
  const text = valueJson(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}

/** A value as a line of JSON. */
export function valueJson(value: unknown): string {
  return stringifyJson(plain(value));
}

/**
 * What JSON can say of a stored value: a map with texts for keys becomes an object, another one a list of pairs, a set a list, bytes
 * Base64, numbers that JSON has not their names.
 */
export function plain(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Map) {
    const pairs = Array.from(value, ([key, held]) => [plain(key), plain(held)] as const);
    return pairs.every(([key]) => typeof key === "string" && key !== "__proto__")
      ? Object.fromEntries(pairs as [string, unknown][])
      : pairs;
  }
  if (value instanceof Set) return Array.from(value, plain);
  if (Array.isArray(value)) return Array.from(value, plain);
  if (value instanceof Uint8Array) return value.toBase64();
  if (value instanceof ArrayBuffer) return new Uint8Array(value).toBase64();
  if (value instanceof DataView) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).toBase64();
  }
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as Iterable<unknown>, plain);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return value;
  return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, plain(held)]));
}
