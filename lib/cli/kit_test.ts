/**
 * A world for commands under test: a folder of its own, streams that are kept, interrupts at will.
 *
 * @module
 */
import { systemClock } from "../clock.ts";
import type { Sink, Source } from "../connector.ts";
import { type CollectingSink, collectingSink, scriptedSource } from "../testing/mod.ts";
import type { Connectors } from "../workflow/registry.ts";
import type { Host, Output } from "./host.ts";
import { codeLoader } from "./load_code.ts";
import { main } from "./main.ts";

/** An output that keeps what is written. */
export interface KeptOutput extends Output {
  readonly text: string;
}

/** Makes a kept output. */
export function keptOutput(kind: "terminal" | "pipe" = "pipe", columns = 80): KeptOutput {
  let text = "";
  return {
    write: (more) => {
      text += more;
    },
    isTerminal: kind === "terminal",
    columns: () => columns,
    get text() {
      return text;
    },
  };
}

/** What can be set of a world. */
export interface WorldOptions {
  /** Texts of files in the folder. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Code the program carries. */
  readonly code?: Readonly<Record<string, unknown>>;
  /** Stands in for the sources of documents. */
  readonly source?: (id: string) => Source | undefined;
  /** Stands in for the sinks of documents. */
  readonly sink?: (id: string) => Sink | undefined;
}

/** What a command did. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A world under test. */
export interface World {
  readonly host: Host;
  /** Rows that reached sinks which nothing stands in for, by id. */
  rows(sink: string): readonly unknown[];
  interrupt(): void;
  /** Runs `mailer`. */
  mailer(...args: readonly string[]): Promise<Ended>;
  /** The names of the files in the folder. */
  files(): readonly string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes a world. Its connectors read the records of `slice` and `generator` sources, and collect what sinks are given. */
export async function world(options: WorldOptions = {}): Promise<World> {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  const sinks = new Map<string, CollectingSink<unknown>>();
  const interrupts = new Set<() => void>();
  const connectors: Connectors = {
    source(spec) {
      const own = options.source?.(spec.id);
      if (own !== undefined) return own;
      if (spec.type !== "slice" && spec.type !== "generator") throw new Error(`no source ${spec.type} here`);
      const values = spec.records.map(({ value }) => typeof value === "string" ? JSON.parse(value) : value);
      return scriptedSource([{ do: "records", values }, { do: "end" }]).source;
    },
    sink(spec) {
      const own = options.sink?.(spec.id);
      if (own !== undefined) return own;
      const made = collectingSink<unknown>();
      sinks.set(spec.id, made);
      return made.sink;
    },
  };
  const host = (stdout: Output, stderr: Output): Host => ({
    cwd: folder,
    env: (name) => options.env?.[name],
    stdout,
    stderr,
    clock: systemClock,
    connectors: () => Promise.resolve(connectors),
    loadCode: codeLoader({ carried: options.code ?? {}, isStandalone: false }),
    onInterrupt(callback) {
      interrupts.add(callback);
      return () => interrupts.delete(callback);
    },
    exit: (code) => {
      throw new Error(`exit ${code}`);
    },
  });
  return {
    host: host(keptOutput(), keptOutput()),
    rows: (sink) => sinks.get(sink)?.values ?? [],
    interrupt: () => {
      for (const callback of interrupts) callback();
    },
    async mailer(...args) {
      const out = keptOutput(), err = keptOutput();
      const code = await main(args, host(out, err));
      return { code, out: out.text, err: err.text };
    },
    files: () => [...Deno.readDirSync(folder)].map(({ name }) => name).sort(),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
