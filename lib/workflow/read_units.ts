/**
 * Reading of numbers with units: sizes, durations and lengths of windows.
 *
 * @module
 */
import { parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { exactNumber } from "../json.ts";
import type { WindowLength } from "./blocks.ts";
import type { FieldType } from "./field_type.ts";
import { mismatch, type ReadContext, type Site } from "./reader.ts";
import type { ScalarNode } from "./tree.ts";
import { wordsOf } from "./words.ts";

const LARGEST_DURATION = Number.MAX_SAFE_INTEGER;
const DURATION_HINT = "write a number with a unit, such as 500ms, 30s, 5m, 1h30m or 1d";

/** What a text that came out of `${…}` is as a number. */
export function numberIn(value: ScalarNode["value"]): ScalarNode["value"] {
  if (typeof value !== "string") return value;
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(value) ? exactNumber(value) : value;
}

const SIZE = /^(\d+(?:\.\d+)?) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$/;
const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

export function readSize(node: ScalarNode, site: Site, context: ReadContext): number | undefined {
  const value = node.reference === undefined ? node.value : numberIn(node.value);
  const parts = typeof value === "string" ? SIZE.exec(value) : null;
  const bytes = typeof value === "number"
    ? value
    : parts === null
    ? NaN
    : Number(parts[1]) * UNITS[parts[2]!]!;
  if (Number.isSafeInteger(bytes) && bytes >= 1) return bytes;
  return mismatch(site, context, "a number of bytes or a size such as 64MiB");
}

const CALENDAR = /^(\d+)(d|w|mo)$/;
const CALENDAR_UNITS = { d: "day", w: "week", mo: "month" } as const;

export function readTime(
  type: Extract<FieldType, { kind: "duration" | "windowLength" }>,
  node: ScalarNode,
  site: Site,
  context: ReadContext,
): number | WindowLength | undefined {
  const wrong = (hint?: string) => mismatch(site, context, wordsOf(type), hint);
  if (node.value === 0 && type.kind === "duration" && (type.min ?? 0) <= 0) return 0;
  if (typeof node.value !== "string") return wrong(DURATION_HINT);
  const text = node.value;
  if (type.kind === "windowLength") {
    const calendar = CALENDAR.exec(text);
    if (calendar !== null) {
      const count = Number(calendar[1]);
      const unit = CALENDAR_UNITS[calendar[2] as keyof typeof CALENDAR_UNITS];
      return count >= 1 && count <= 10_000 ? { kind: "calendar", unit, count } : wrong();
    }
    if (/\dd|\dw|\dmo/.test(text)) {
      return wrong("days, weeks and months stand alone; 36h is a day and a half");
    }
  }
  let ms: number;
  try {
    ms = parseDuration(text);
  } catch (error) {
    if (!(error instanceof MailerError)) throw error;
    return wrong(DURATION_HINT);
  }
  const least = type.kind === "windowLength" ? 1 : type.min;
  if (Math.abs(ms) > LARGEST_DURATION || (least !== undefined && ms < least)) return wrong();
  if (type.kind === "duration") return ms;
  return Number.isSafeInteger(ms) ? { kind: "fixed", ms } : wrong("whole milliseconds");
}
