/**
 * Commands: what is asked of an execution. Each leads to one decision, which may be empty.
 *
 * C1 A command's id tells its repetitions; what a repetition must not do twice is kept by the fold itself.
 * C2 What a worker gives is read as it comes: an output or a usage that does not fit is a failure of its attempt, not a
 *    command that nobody can apply.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import {
  type ChildStatus,
  type FailureReason,
  PARENT,
  type ParentRef,
  SEGMENT,
  type Segment,
} from "./events.ts";
import {
  any,
  count,
  type Fields,
  flag,
  instant,
  instantText,
  isObject,
  isToken,
  listOf,
  nested,
  numbers,
  oneOf,
  optional,
  readShape,
  required,
  type Shape,
  text,
  texts,
  token,
} from "./fields.ts";

/** Longest id of a command, in UTF-16 units. */
export const MAX_COMMAND_ID = 256;

/** Most levels of lists and objects in a command. */
export const MAX_NESTING = 1000;

const QUOTE = 34, BACKSLASH = 92, BRACKET = 91, BRACE = 123;

/** A signal that comes with a start. */
export interface StartSignal {
  /** Tells repetitions. */
  readonly id: string;
  /** Name of the signal. */
  readonly name: string;
  /** What it brings; absent = null. */
  readonly payload?: unknown;
}

/** Reasons a worker, or who watches over it, may give for a failed attempt. */
export type ReportedReason = Extract<
  FailureReason,
  "error" | "delivery_failed" | "heartbeat_timeout" | "invalid_output" | "expression_error"
>;

/** Data of each type of command. */
export interface CommandData {
  /** Starts the execution, or joins it where it is there; `signals` reach it in either case. */
  readonly start: {
    readonly flow: string;
    /** Hash of a version; the newest one else. */
    readonly version?: string;
    readonly input?: unknown;
    readonly parent?: ParentRef;
    /** The first node is entered then. */
    readonly start_at?: number;
    /** The execution fails then, unless it has ended; the flow's own deadline holds too. */
    readonly deadline_at?: number;
    readonly signals?: readonly StartSignal[];
  };
  /** Copies the state of another execution, as it was at `seq`; see `fork.ts`. */
  readonly fork: { readonly from: string; readonly seq: number; readonly writes?: unknown };
  /** An attempt has succeeded. */
  readonly complete: {
    readonly key: string;
    readonly generation: number;
    readonly attempt: number;
    readonly output?: unknown;
    readonly writes?: unknown;
    readonly next?: unknown;
    readonly usage?: unknown;
    readonly cache_key?: string;
    readonly cached?: boolean;
  };
  /** An attempt has failed. */
  readonly fail: {
    readonly key: string;
    readonly generation: number;
    readonly attempt: number;
    readonly error: string;
    readonly retryable: boolean;
    readonly reason?: ReportedReason;
    readonly name?: string;
    readonly usage?: unknown;
    readonly progress?: unknown;
  };
  /** An attempt waits for a person. */
  readonly interrupt: {
    readonly key: string;
    readonly generation: number;
    readonly attempt: number;
    readonly payload?: unknown;
    readonly usage?: unknown;
  };
  /** The answer to an interrupt. */
  readonly resume: { readonly node: string; readonly key?: string; readonly value?: unknown };
  /** Word from outside; the command's id is the signal's. */
  readonly signal: { readonly name: string; readonly payload?: unknown };
  /** Writes to channels; the command's id is the update's. */
  readonly update: { readonly writes: unknown };
  /** Ends the execution, and what it has begun. */
  readonly cancel: { readonly reason?: string };
  /** Holds the way on, retries and waiting; what is under way goes on. */
  readonly pause: { readonly reason?: string };
  /** Lets go on what a pause held. */
  readonly unpause: Readonly<Record<string, never>>;
  /** A timer is due. */
  readonly timer: {
    readonly timer_id: string;
    /** Last progress of the attempt it ends, if it ends one. */
    readonly progress?: unknown;
  };
  /** A child has ended. */
  readonly child_done: {
    readonly child_id: string;
    readonly status: ChildStatus;
    readonly output?: unknown;
    readonly error?: string;
    readonly counters?: Readonly<Record<string, number>>;
  };
  /** The live log was moved into a segment. */
  readonly continue: { readonly segment: Segment };
  /** Goes on by another version of the flow; see `migrate.ts`. */
  readonly migrate: { readonly flow_hash: string; readonly nodes?: Readonly<Record<string, string>> };
  /** Moves a finished execution to cold storage; not for the fold. */
  readonly archive: Readonly<Record<string, never>>;
  /** Removes a finished execution; not for the fold. */
  readonly delete: Readonly<Record<string, never>>;
  /** Lifts a quarantine; not for the fold. */
  readonly redispatch: Readonly<Record<string, never>>;
}

/** Types of commands. */
export type CommandType = keyof CommandData;

/** A command of a type. */
export interface CommandOf<T extends CommandType> {
  /** At most {@link MAX_COMMAND_ID} long; the same for repetitions. */
  readonly id: string;
  /** What is asked. */
  readonly type: T;
  /** Execution it is for. */
  readonly exec_id: string;
  /** When it was made, ms since the epoch. */
  readonly time?: number;
  /** What there is to say about it. */
  readonly data: CommandData[T];
  /** Where the answer goes. */
  readonly reply?: string;
  /** W3C trace context. */
  readonly trace?: string;
}

/** Any command. */
export type Command = { [T in CommandType]: CommandOf<T> }[CommandType];

const attempt = { key: required(text), generation: required(count), attempt: required(count) };

const SHAPES: { readonly [T in CommandType]: Shape<CommandData[T]> } = {
  start: {
    flow: required(token),
    version: optional(text),
    input: optional(any),
    parent: optional(nested(PARENT)),
    start_at: optional(instant),
    deadline_at: optional(instant),
    signals: optional(
      listOf(nested<StartSignal>({ id: required(text), name: required(token), payload: optional(any) })),
    ),
  },
  fork: { from: required(token), seq: required(count), writes: optional(any) },
  complete: {
    ...attempt,
    output: optional(any),
    writes: optional(any),
    next: optional(any),
    usage: optional(any),
    cache_key: optional(text),
    cached: optional(flag),
  },
  fail: {
    ...attempt,
    error: required(text),
    retryable: required(flag),
    reason: optional(
      oneOf("error", "delivery_failed", "heartbeat_timeout", "invalid_output", "expression_error"),
    ),
    name: optional(text),
    usage: optional(any),
    progress: optional(any),
  },
  interrupt: { ...attempt, payload: optional(any), usage: optional(any) },
  resume: { node: required(token), key: optional(text), value: optional(any) },
  signal: { name: required(token), payload: optional(any) },
  update: { writes: required(any) },
  cancel: { reason: optional(text) },
  pause: { reason: optional(text) },
  unpause: {},
  timer: { timer_id: required(text), progress: optional(any) },
  child_done: {
    child_id: required(text),
    status: required(oneOf("completed", "failed", "cancelled")),
    output: optional(any),
    error: optional(text),
    counters: optional(numbers),
  },
  continue: { segment: required(nested(SEGMENT)) },
  migrate: { flow_hash: required(text), nodes: optional(texts) },
  archive: {},
  delete: {},
  redispatch: {},
};

/** All types of commands. */
export const COMMAND_TYPES: readonly CommandType[] = Object.keys(SHAPES) as CommandType[];

/** Types of commands that are not decided by the fold: the engine carries them out itself. */
export const OPERATIONAL: ReadonlySet<CommandType> = new Set(["archive", "delete", "redispatch"]);

const ENVELOPE: Shape<Pick<CommandOf<CommandType>, "id" | "exec_id" | "time" | "reply" | "trace">> = {
  id: required((value) =>
    typeof value === "string" && value !== "" && value.length <= MAX_COMMAND_ID ? value : undefined
  ),
  exec_id: required(token),
  time: optional(instant),
  reply: optional(text),
  trace: optional(text),
};

/** JSON text of a command. */
export function encodeCommand(command: Command): string {
  const { time, data } = command;
  return stringifyJson({
    ...command,
    ...(time === undefined ? {} : { time: instantText(time) }),
    data: command.type === "start" ? withTimes(data as CommandData["start"]) : data,
  });
}

function withTimes(data: CommandData["start"]): unknown {
  const { start_at, deadline_at } = data;
  return {
    ...data,
    ...(start_at === undefined ? {} : { start_at: instantText(start_at) }),
    ...(deadline_at === undefined ? {} : { deadline_at: instantText(deadline_at) }),
  };
}

/**
 * The command of a JSON text.
 *
 * @throws {MailerError} `not_json`; `invalid_command` naming what does not fit.
 */
export function decodeCommand(source: string): Command {
  if (isDeep(source)) throw invalid(`a command is nested no deeper than ${MAX_NESTING} levels`);
  const value = parseJson(source);
  if (!isObject(value)) throw invalid("a command is an object");
  const { type } = value;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type)) {
    throw invalid(`the command type ${JSON.stringify(type)} is unknown`);
  }
  const envelope = readShape(value, ENVELOPE, "invalid_command", `command ${type}`);
  const shape = SHAPES[type as CommandType] as Shape<Fields>;
  const data = readShape(value["data"] ?? {}, shape, "invalid_command", `data of command ${type}`);
  return { ...envelope, type, data } as unknown as Command;
}

/** Whether lists and objects of a JSON text are nested too deeply to be written again. */
function isDeep(source: string): boolean {
  if (source.length < 2 * MAX_NESTING) return false;
  let depth = 0, inText = false;
  for (let i = 0; i < source.length; i++) {
    const code = source.charCodeAt(i);
    if (code === QUOTE) inText = !inText;
    else if (inText) i += code === BACKSLASH ? 1 : 0;
    else if (code === BRACKET || code === BRACE) {
      if (++depth > MAX_NESTING) return true;
    } else if (code === BRACKET + 2 || code === BRACE + 2) depth--;
  }
  return false;
}

/** What is wrong with the ids of a command that was not decoded; `undefined` where they are right. */
export function idProblem(command: Command): string | undefined {
  if (command.id === "" || command.id.length > MAX_COMMAND_ID) {
    return `the id of a command has 1 to ${MAX_COMMAND_ID} characters`;
  }
  if (!isToken(command.exec_id)) {
    return `${JSON.stringify(command.exec_id)} is no execution id: 1 to 128 letters, digits, "_" and "-"`;
  }
  return undefined;
}

function invalid(message: string): MailerError {
  return new MailerError("invalid_command", message);
}
