/**
 * What a run reports, one line an event: `time=… level=warn workflow=copy msg="sink failed, trying again" sink=out`.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { asError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { Logger, LogLevel } from "../../log.ts";

const WEIGHT: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Where lines of one workflow go, and which. */
export interface LineLoggerOptions {
  readonly workflow: string;
  /** The least that is reported. */
  readonly level: LogLevel;
  readonly form: "text" | "json";
  readonly clock: Clock;
  /** Hides secrets. */
  readonly mask: (text: string) => string;
  readonly say: (line: string) => void;
}

/** A logger that writes lines. */
export function lineLogger({ workflow, level: least, form, clock, mask, say }: LineLoggerOptions): Logger {
  return {
    log(level, message, fields = {}) {
      if (WEIGHT[level] < WEIGHT[least]) return;
      const line = { time: new Date(clock.now()).toISOString(), level, workflow, msg: message, ...fields };
      const masked = Object.entries(line).map(([key, value]) => [key, maskedValue(value, mask)] as const);
      say(form === "json" ? stringifyJson(Object.fromEntries(masked)) : masked.map(pairText).join(" "));
    },
  };
}

function maskedValue(value: unknown, mask: (text: string) => string): unknown {
  if (value instanceof Error) return mask(asError(value).message);
  if (typeof value === "string") return mask(value);
  return typeof value === "object" && value !== null ? mask(stringifyJson(value)) : value;
}

function pairText([key, value]: readonly [string, unknown]): string {
  const text = String(value);
  return `${key}=${/^[^\s"=]+$/.test(text) ? text : JSON.stringify(text)}`;
}
