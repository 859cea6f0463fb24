/**
 * How long `mailer run` takes from the start of its process until a workflow of ten operators runs.
 *
 * "Runs" is taken from outside: the first row is on stdout, so everything has been read, checked, opened, and a record has
 * been through all ten operators. The time includes the start of Deno itself, which is given beside it.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { medianAndSpread } from "./measure.ts";

/** Times of all starts, ms. */
export interface StartupResult {
  /** Process start to first row. */
  readonly firstRow: readonly number[];
  /** Process start to exit, of the same runs. */
  readonly exit: readonly number[];
  /** A program that does nothing, start to exit. */
  readonly empty: readonly number[];
}

/** Starts workflow and empty program `runs` times each, by turns, after one start each to fill caches. */
export async function measureStartup(runs: number): Promise<StartupResult> {
  const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
  const workflow = ["run", "-A", path("../cli.ts"), "run", path("startup.yaml")];
  const empty = ["eval", "0"];
  const result = { firstRow: [] as number[], exit: [] as number[], empty: [] as number[] };
  for (let run = 0; run <= runs; run++) {
    const nothing = await start(empty);
    const { firstByteMs, exitMs } = await start(workflow);
    if (firstByteMs === undefined) throw new Error("the workflow ended without a row");
    if (run === 0) continue;
    result.empty.push(nothing.exitMs);
    result.firstRow.push(firstByteMs);
    result.exit.push(exitMs);
  }
  return result;
}

/** Median and distance of the quartiles, ms, rounded to tenths. */
export function middle(times: readonly number[]): { readonly medianMs: number; readonly spreadMs: number } {
  const { median, spread } = medianAndSpread(times);
  return { medianMs: Math.round(median * 10) / 10, spreadMs: Math.round(spread * 10) / 10 };
}

async function start(args: readonly string[]): Promise<{ firstByteMs: number | undefined; exitMs: number }> {
  const data = await Deno.makeTempDir();
  const started = performance.now();
  try {
    const child = new Deno.Command(Deno.execPath(), {
      args: [...args],
      cwd: data, // whatever a run leaves behind goes there
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const said = new Response(child.stderr).text();
    let firstByteMs: number | undefined;
    for await (const _ of child.stdout) firstByteMs ??= performance.now() - started;
    const { success, code } = await child.status;
    const exitMs = performance.now() - started;
    if (!success) throw new Error(`deno ${args.join(" ")} ended with exit code ${code}:\n${await said}`);
    await said;
    return { firstByteMs, exitMs };
  } finally {
    await Deno.remove(data, { recursive: true });
  }
}
