/**
 * Commands of a client: checked, and cut off from the values they were made of.
 *
 * K1 What a caller does with a value afterwards changes nothing: a command holds a copy, as its JSON would.
 * K2 Each sending has an id of its own, unless the caller gave one: repetitions are told by the fold, and a store drops nothing that
 *    was refused before.
 *
 * @module
 */
import { asError } from "../../errors.ts";
import { TOKEN_PATTERN } from "../definition/mod.ts";
import {
  type CommandData,
  type CommandOf,
  type CommandType,
  decodeCommand,
  encodeCommand,
  MAX_COMMAND_ID,
} from "../fold/mod.ts";
import { FlowClientError } from "./errors.ts";

/** An instant: ms since the epoch, or a date. */
export type Instant = number | Date;

/** Refuses what is no name. */
export function checkToken(value: unknown, what: string): asserts value is string {
  if (typeof value === "string" && TOKEN_PATTERN.test(value)) return;
  throw invalid(`${shown(value)} is no ${what}: 1 to 128 letters, digits, "_" and "-"`);
}

/** Refuses what is no id of a command. */
export function checkCommandId(value: unknown): asserts value is string {
  if (typeof value === "string" && value !== "" && value.length <= MAX_COMMAND_ID) return;
  throw invalid(`${shown(value)} is no id: 1 to ${MAX_COMMAND_ID} characters`);
}

/** Refuses what is no number of a decision. */
export function checkSeq(value: unknown): asserts value is number {
  if (Number.isSafeInteger(value) && value as number >= 1) return;
  throw invalid(`${shown(value)} is no decision: a whole number from 1 on`);
}

/** Milliseconds of an instant. */
export function instantMs(value: Instant, what: string): number {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms === "number" && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  throw invalid(`${what} is no instant: a date, or milliseconds since the epoch`);
}

/** A new id. */
export function newId(): string {
  // deno-lint-ignore mailer/injected-time -- tells it from all others ever made; nothing else depends on it
  return crypto.randomUUID();
}

/** A command, as it will be read. */
export function commandOf<T extends CommandType>(
  type: T,
  id: string,
  execId: string,
  data: CommandData[T],
  trace?: string,
): CommandOf<T> {
  const command = { id, type, exec_id: execId, data, ...(trace === undefined ? {} : { trace }) };
  try {
    return decodeCommand(encodeCommand(command as never)) as CommandOf<T>;
  } catch (cause) {
    throw new FlowClientError("invalid_argument", `${type}: ${asError(cause).message}`, { cause });
  }
}

/** Something given is not right. */
export function invalid(message: string): FlowClientError {
  return new FlowClientError("invalid_argument", message);
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 200)) : String(value);
}
