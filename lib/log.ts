/**
 * Structured logging: one line an event, fields as data.
 *
 * @module
 */

/** Importance, lowest first. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Where the runtime reports what happens. */
export interface Logger {
  /** Reports one event. The message is constant, what varies is in `fields`. Called synchronously; it must not throw. */
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** Says nothing. The default of an embedded pipeline: errors reach the caller of `execute` anyway. */
export const silentLogger: Logger = { log() {} };
