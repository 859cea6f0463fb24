/**
 * Benchmarks in processes of their own, on one core where the system lets us say so.
 *
 * @module
 */
import { fileURLToPath } from "node:url";

/** Heap for the biggest input with room to spare; V8's own limit is about half of that. */
const V8_FLAGS = "--v8-flags=--max-old-space-size=8000";

/** How children are kept on one core. */
export interface Pinning {
  /** What goes in front of a command. */
  readonly prefix: readonly string[];
  /** For people. */
  readonly text: string;
}

/** On core 0 with `taskset` where there is one. */
export async function onOneCore(): Promise<Pinning> {
  const prefix = ["taskset", "-c", "0"];
  try {
    const { success } = await new Deno.Command(prefix[0]!, { args: [...prefix.slice(1), "true"] }).output();
    if (success) return { prefix, text: "each pinned to core 0 (taskset)" };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return { prefix: [], text: "NOT pinned to a core (no taskset here)" };
}

/**
 * Runs a module beside this one in a process of its own and parses what it prints.
 *
 * @param module File name in this folder.
 * @returns undefined where it failed; what it says on stderr has been passed through.
 */
export async function runBeside(
  module: string,
  args: readonly string[],
  pinning: Pinning,
): Promise<unknown> {
  const path = fileURLToPath(new URL(module, import.meta.url));
  const [command, ...rest] = [...pinning.prefix, Deno.execPath(), "run", "-A", V8_FLAGS, path, ...args];
  const child = new Deno.Command(command!, { args: rest, stdout: "piped", stderr: "inherit" });
  const { success, stdout } = await child.output();
  return success ? JSON.parse(new TextDecoder().decode(stdout)) : undefined;
}

/** Machine, runtime and commit, in one line: no figure without them. */
export async function circumstances(): Promise<string> {
  const { os, arch } = Deno.build;
  const commit = await commitHash();
  const machine = `${await cpuModel()}, ${navigator.hardwareConcurrency} cores, ${os} ${arch}`;
  return `${machine}; deno ${Deno.version.deno}, v8 ${Deno.version.v8}; commit ${commit ?? "unknown"}`;
}

async function cpuModel(): Promise<string> {
  if (Deno.build.os !== "linux") return "unknown processor";
  const text = await Deno.readTextFile("/proc/cpuinfo");
  return /^model name\s*: (.+)$/m.exec(text)?.[1] ?? "unknown processor";
}

async function commitHash(): Promise<string | undefined> {
  try {
    const cwd = fileURLToPath(new URL(".", import.meta.url));
    const git = new Deno.Command("git", { args: ["describe", "--always", "--dirty"], cwd, stderr: "null" });
    const { success, stdout } = await git.output();
    return success ? new TextDecoder().decode(stdout).trim() : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
