/**
 * What the command line needs of the world outside: its streams, its environment, signals, and what the program was built with.
 *
 * H1 Nobody who stops reading makes a command fail: what is written to a closed stream is left out.
 * H2 Relative paths start where the user stands: `INIT_CWD`, which `deno task` sets, before the working directory.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";
import type { Connectors, LoadCode } from "../workflow/registry.ts";
import { onInterrupt } from "./interrupts.ts";
import { codeLoader } from "./load_code.ts";
import { permitted } from "./permission.ts";

/** Where text goes. */
export interface Output {
  /** Writes all of it before it returns. */
  write(text: string): void;
  /** Whether people watch it as it comes. */
  readonly isTerminal: boolean;
  /** Width of the terminal in characters. */
  columns(): number;
}

/** The world of one call of `mailer`. */
export interface Host {
  /**
   * Folder that relative paths on the command line start from.
   *
   * @throws {MailerError} `not_permitted` where Deno does not let us know it.
   */
  readonly cwd: string;
  /**
   * A variable of the environment.
   *
   * @throws {MailerError} `not_permitted` where Deno does not let us read it.
   */
  env(name: string): string | undefined;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly clock: Clock;
  /** Loads the connectors of some types of sources and sinks, among those the program was built with. */
  connectors(types: ReadonlySet<string>): Promise<Connectors>;
  readonly loadCode: LoadCode;
  /** Calls `callback` for every interrupt until the returned function is called; a burst of signals is one interrupt. */
  onInterrupt(callback: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): never;
}

/** What a program is built with. */
export interface Carried {
  /** Loads the connectors of some types of sources and sinks; called only by commands that need them. */
  connectors(types: ReadonlySet<string>): Promise<Connectors>;
  /** Code that documents may name, by `name` or `./module.ts#name`; a compiled binary can run no other. */
  readonly code?: Readonly<Record<string, unknown>>;
}

/** The world as Deno shows it. */
export function denoHost({ connectors, code = {} }: Carried): Host {
  return {
    get cwd() {
      return permitted(() => Deno.env.get("INIT_CWD") || Deno.cwd());
    },
    env: (name) => permitted(() => Deno.env.get(name)),
    stdout: output(Deno.stdout),
    stderr: output(Deno.stderr),
    clock: systemClock,
    connectors,
    loadCode: codeLoader({ carried: code, isStandalone: Deno.build.standalone }),
    onInterrupt,
    exit: (status) => Deno.exit(status),
  };
}

function output(stream: typeof Deno.stdout): Output {
  const encoder = new TextEncoder();
  let isClosed = false;
  return {
    write(text) {
      let rest = encoder.encode(text);
      while (rest.length > 0 && !isClosed) {
        try {
          rest = rest.subarray(stream.writeSync(rest));
        } catch (error) {
          if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
          isClosed = true;
        }
      }
    },
    isTerminal: stream.isTerminal(),
    columns: () => Deno.consoleSize().columns,
  };
}
