/**
 * Durations, written one way everywhere: `500ms`, `30s`, `5m`, `1h30m`, `1.5h`, `1d` (24 hours).
 *
 * @module
 */
import { MailerError } from "./errors.ts";

/** Milliseconds, or text such as `1h30m`. */
export type Duration = number | string;

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  "µs": 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d)/gy;

/**
 * Milliseconds of a duration.
 *
 * @param value A number of milliseconds, or text: numbers with units `ns us ms s m h d`, largest first by habit, a sign in front allowed.
 * @throws {MailerError} `invalid_duration` naming the text.
 */
export function parseDuration(value: Duration): number {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw invalid(String(value));
    return value;
  }
  const text = value.trim();
  if (text === "0") return 0;
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  PART.lastIndex = 0;
  let total = 0, end = 0;
  for (let part = PART.exec(body); part !== null; part = PART.exec(body)) {
    total += Number(part[1]) * UNITS[part[2]!]!;
    end = PART.lastIndex;
  }
  if (end === 0 || end !== body.length) throw invalid(value);
  return negative ? -total : total;
}

/** Shortest usual text of a duration: `90000` → `1m30s`, `250` → `250ms`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1000) return `${Number(ms.toFixed(3))}ms`;
  let rest = ms, text = "";
  for (const [unit, size] of [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000]] as const) {
    const whole = Math.floor(rest / size);
    if (whole > 0) text += `${whole}${unit}`;
    rest -= whole * size;
  }
  if (rest > 0) text += `${Number((rest / 1000).toFixed(3))}s`;
  return text;
}

function invalid(text: string): MailerError {
  return new MailerError("invalid_duration", `"${text}" is not a duration`, {
    hint: "write a number with a unit, such as 500ms, 30s, 5m, 1h30m or 1d",
  });
}
