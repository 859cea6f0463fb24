/**
 * What a command is: a description, from which help and the parser come, and a function that is loaded when it is called.
 *
 * @module
 */
import type { LogLevel } from "../log.ts";
import type { ExitCode } from "./exit_code.ts";
import type { Host } from "./host.ts";
import type { Address } from "./run/address.ts";

/** What was asked for with `--…`. Absent means the default, which the command knows. */
export interface Flags {
  readonly json?: true;
  readonly quiet?: true;
  readonly verbose?: true;
  readonly progress?: true;
  readonly debug?: true;
  readonly strict?: true;
  readonly allowUnset?: true;
  readonly dataDir?: string;
  readonly force?: true;
  /** Number of a checkpoint or name of a savepoint. */
  readonly at?: string;
  readonly fromSavepoint?: string;
  readonly stopSavepoint?: string;
  readonly allowUnmatchedState?: true;
  readonly metrics?: Address;
  /** Records. */
  readonly bufferSize?: number;
  readonly logLevel?: LogLevel;
  /** Files and folders of flows. */
  readonly flows?: readonly string[];
  readonly listen?: Address;
  /** File that holds the token. */
  readonly tokenFile?: string;
}

/** One call of a command. */
export interface Call {
  readonly args: readonly string[];
  readonly flags: Flags;
}

/** Does the work. What it throws is printed, and sets the exit code. */
export type Command = (call: Call, host: Host) => ExitCode | Promise<ExitCode>;

/** An option, as it is declared. */
export interface OptionDescription {
  /** `-q, --quiet`, or `--data-dir <DIR>`. */
  readonly flags: string;
  readonly summary: string;
  /**
   * The value of its text.
   *
   * @throws {MailerError} with a message that says what is expected.
   */
  readonly parse?: (text: string) => unknown;
}

/** A command, as it is declared. */
export interface CommandDescription {
  readonly name: string;
  readonly summary: string;
  /** `<FILE...>`, `[NAME]`, in order. */
  readonly args: readonly string[];
  readonly options: readonly OptionDescription[];
  /** Printed behind the help. */
  readonly notes?: string;
  load(): Promise<Command>;
}
