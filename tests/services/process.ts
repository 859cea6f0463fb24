/**
 * Servers as processes that never outlive who wanted them.
 *
 * A `Keeper` is a temporary folder and the processes that work in it. A small shell holds the other end of a pipe: when that
 * closes, for whatever reason, it kills what is left and removes the folder.
 *
 * 1. When a keeper is disposed of, its processes have ended and its folder is gone.
 * 2. The same happens, within some seconds, when the process that has the keeper is killed.
 * 3. A number of a process is written down before the program begins, and removed when it has ended, so that the shell
 *    kills nobody else.
 *
 * @module
 */
import { statOf } from "./cache.ts";
import { lastLines } from "./unavailable.ts";

/** Reads until the owner is gone. `$1` is the folder. First asks, then kills; again and again, for what was just being started. */
const SHELL = `
trap '' INT TERM HUP
read -r _
each() { for file in "$1"/pids/*; do [ -f "$file" ] && kill "-$2" "$(cat "$file")" 2>/dev/null && found=1; done; }
each "$1" INT
for _ in 1 2 3 4 5 6 7 8 9 10; do
  found=
  each "$1" 0
  [ -z "$found" ] && break
  sleep 0.1
done
for _ in 1 2 3 4 5 6 7 8 9 10; do
  each "$1" 9
  rm -rf "$1" 2>/dev/null && exit 0
  sleep 0.1
done
rm -rf "$1"
`;

/** Writes down its number and becomes the program: `$1` is the file for the number, `$2` the log, then the command. */
const BECOME = `
echo $$ >"$1.new" && mv "$1.new" "$1" || exit 1
exec >>"$2" 2>&1
shift 2
exec "$@"
`;

/** How a program is started. */
export interface ProgramOptions {
  /** Names its log; unique in its keeper among those that run. */
  readonly name: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that runs. */
export class Program {
  /** Resolves when it has ended. */
  readonly ended: Promise<Deno.CommandStatus>;
  readonly #child: Deno.ChildProcess;
  #hasEnded = false;

  /** Made by a `Keeper`. */
  constructor(
    readonly name: string,
    readonly logFile: string,
    child: Deno.ChildProcess,
    numberFile: string,
  ) {
    this.#child = child;
    this.ended = (async () => {
      const status = await child.status;
      this.#hasEnded = true;
      await Deno.remove(numberFile).catch((error: unknown) => {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      });
      return status;
    })();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** All that it has printed so far. */
  async log(): Promise<string> {
    try {
      return await Deno.readTextFile(this.logFile);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return "";
      throw error;
    }
  }

  /** Sends a signal and waits until the program has ended; kills it after `patience` ms. */
  async end(signal: Deno.Signal = "SIGTERM", patience = 20_000): Promise<void> {
    this.signal(signal);
    const timer = setTimeout(() => this.signal("SIGKILL"), patience);
    await this.ended;
    clearTimeout(timer);
  }

  /** Sends a signal, to nobody if the program has ended. */
  signal(signal: Deno.Signal): void {
    if (this.#hasEnded) return;
    try {
      this.#child.kill(signal);
    } catch (error) {
      // It has just ended by itself, and its status is on its way.
      if (!(error instanceof Deno.errors.NotFound || error instanceof TypeError)) throw error;
    }
  }

  /**
   * Waits until the program does what it was started for.
   *
   * @param isReady Asked every 30 ms.
   * @param patience In ms.
   * @throws {Error} With the end of its log, if it ends or takes too long.
   */
  async ready(isReady: () => boolean | Promise<boolean>, patience = 60_000): Promise<void> {
    const deadline = performance.now() + patience;
    for (;;) {
      if (await isReady()) return;
      const tooLong = performance.now() > deadline;
      if (this.#hasEnded || tooLong) {
        const what = this.#hasEnded ? "has ended" : `is not ready after ${patience / 1000} s`;
        throw new Error(`${this.name} ${what}:\n${lastLines(await this.log())}`);
      }
      await pause(30);
    }
  }
}

/** A temporary folder and the programs that work in it. */
export class Keeper implements AsyncDisposable {
  readonly #programs = new Set<Program>();
  #starts = 0;
  #ending: Promise<void> | undefined;

  private constructor(readonly folder: string, private readonly shell: Deno.ChildProcess) {}

  /** @param name Part of the folder's name, for who looks at what is left in a temporary folder. */
  static async open(name: string): Promise<Keeper> {
    const folder = await Deno.makeTempDir({ prefix: `mailer-${name}-` });
    await Deno.chmod(folder, 0o755); // a server may run as somebody else
    await Deno.mkdir(`${folder}/pids`);
    const shell = new Deno.Command("sh", {
      args: ["-c", SHELL, "keeper", folder],
      cwd: "/",
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
    return new Keeper(folder, shell);
  }

  /** Starts a program; what it prints goes to a log in the folder. */
  start(command: readonly string[], { name, cwd = this.folder, env = {} }: ProgramOptions): Program {
    const id = `${name}-${++this.#starts}`;
    const numberFile = `${this.folder}/pids/${id}`, logFile = `${this.folder}/${id}.log`;
    const child = new Deno.Command("sh", {
      args: ["-c", BECOME, name, numberFile, logFile, ...command],
      cwd,
      env: { ...env },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const program = new Program(name, logFile, child, numberFile);
    this.#programs.add(program);
    program.ended.finally(() => this.#programs.delete(program));
    return program;
  }

  /** Ends what still runs, all at once, and removes the folder. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#ending ??= this.#end();
  }

  async #end(): Promise<void> {
    await Promise.all([...this.#programs].map((program) => program.end()));
    await this.shell.stdin.close();
    await this.shell.status;
  }
}

/** Lets time pass. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** What a program that ends by itself has done. */
export interface Outcome {
  readonly success: boolean;
  readonly stdout: string;
  /** Standard output and standard error. */
  readonly output: string;
}

/** Runs a program to its end. */
export async function run(
  command: readonly string[],
  { cwd, env = {}, input = "" }: { cwd?: string; env?: Readonly<Record<string, string>>; input?: string } =
    {},
): Promise<Outcome> {
  const [program, ...args] = command;
  const child = new Deno.Command(program!, {
    args,
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writing = write(child.stdin, input);
  const { success, stdout, stderr } = await child.output();
  await writing;
  const decoder = new TextDecoder(), text = decoder.decode(stdout);
  return { success, stdout: text, output: text + decoder.decode(stderr) };
}

async function write(stream: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch (error) {
    // It has ended without reading; its status says how.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}

/** Where a program of that name is on the PATH. */
export function whereIs(program: string): string | undefined {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    const found = folder === "" ? undefined : statOf(`${folder}/${program}`);
    if (found?.isFile && ((found.mode ?? 0) & 0o111) !== 0) return `${folder}/${program}`;
  }
  return undefined;
}
