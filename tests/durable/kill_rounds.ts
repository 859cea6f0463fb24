/**
 * Kills a process that runs a workflow with `kill -9`, at random instants, and starts it again until it has come to its end.
 *
 * As a program: `deno run -A tests/durable/kill_rounds.ts ROUNDS [memory|kv|sqlite…]`.
 *
 * @module
 */
// deno-lint-ignore-file no-console -- a program prints
import assert from "node:assert/strict";

/** Backends there are. */
export const BACKENDS = ["memory", "kv", "sqlite"] as const;

/** What came of a round. */
export interface Round {
  /** Processes that were killed. */
  readonly kills: number;
  /** Of these, those that had taken a checkpoint at least. */
  readonly restored: number;
}

const RECORDS = 40_000;
/** Records a second: so a run takes a second or two, on a busy machine as well. */
const RATE = 30_000;
const CLI = new URL("../../cli.ts", import.meta.url).pathname;

/** Numbers 0 ≤ x < 1, the same for the same seed (Numerical Recipes' linear congruence). */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** The input, and what must come out: computed here, by the definition of a window. */
function scenario(): { readonly input: string; readonly expected: string[] } {
  const next = random(7), lines: string[] = [];
  const sums = new Map<string, number>();
  for (let i = 0; i < RECORDS; i++) {
    const record = {
      k: `k${Math.floor(next() * 50)}`,
      t: i * 10 + Math.floor(next() * 900),
      v: Math.floor(next() * 100),
    };
    lines.push(JSON.stringify(record));
    const start = Math.floor(record.t / 5000) * 5000;
    const name = `${start} ${record.k}`;
    sums.set(name, (sums.get(name) ?? 0) + record.v);
  }
  const expected = [...sums].map(([name, sum]) => {
    const [start, k] = name.split(" ");
    const window = { start: iso(Number(start)), end: iso(Number(start) + 5000) };
    return JSON.stringify({ k, sum, window });
  });
  return { input: lines.join("\n") + "\n", expected: expected.sort() };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function workflow(backend: string): string {
  return `name: killed
source:
  type: file
  file: { path: in.ndjson }
  watermark: { maxOutOfOrderness: 1s }
pipeline:
  - { id: slow, type: throttle, throttle: { rate: ${RATE} } }
  - { id: time, type: timestamp, timestamp: { field: t, format: epochMillis, maxOutOfOrderness: 1s } }
  - { id: key, type: keyBy, keyBy: { fields: [k], partitions: 3 } }
  - { id: per, type: window, window: { type: tumbling, size: 5s } }
  - { id: sum, type: reduce, reduce: { function: sum, field: v } }
sink: { id: out, type: file, file: { path: out.ndjson } }
env:
  state: { backend: ${backend} }
  checkpointing: { interval: 100ms }
`;
}

/** One round: from nothing to the end, with kills in between. The output is that of the definition. */
export async function killRound(backend: string, seed: number, mostKills = 6): Promise<Round> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-kill-" });
  try {
    const { input, expected } = scenario(), next = random(seed);
    await Deno.writeTextFile(`${folder}/in.ndjson`, input);
    await Deno.writeTextFile(`${folder}/wf.yaml`, workflow(backend));
    let kills = 0, restored = 0;
    for (;;) {
      const { code, said } = await runOnce(folder, kills >= mostKills ? undefined : next);
      if (said.includes("msg=restored")) restored++;
      if (code !== "killed") {
        assert.equal(code, 0, said);
        break;
      }
      kills++;
    }
    const out = await Deno.readTextFile(`${folder}/out.ndjson`);
    assert.deepEqual(
      out.trimEnd().split("\n").sort(),
      expected,
      `backend ${backend}, seed ${seed}, ${kills} kills`,
    );
    for await (const { name } of Deno.readDir(folder)) {
      assert.ok(!name.startsWith(".out.ndjson.pending"), `${name} was left behind`);
    }
    return { kills, restored };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** One process. `random` says when it is killed; undefined: it is not. */
async function runOnce(
  folder: string,
  random: (() => number) | undefined,
): Promise<{ readonly code: number | "killed"; readonly said: string }> {
  const options = ["--log-level", "info", "--verbose", "--data-dir", `${folder}/data`];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--unstable-kv", CLI, "run", ...options, `${folder}/wf.yaml`],
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const timers: ReturnType<typeof setTimeout>[] = [];
  const killIn = (delay: number): void => void timers.push(setTimeout(() => kill(child), delay));
  // Some while they start or recover, most of them while records flow.
  if (random !== undefined && random() < 0.15) killIn(random() * 400);
  let said = "", isRunning = false;
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    said += text;
    if (isRunning || !said.includes("killed: running")) continue;
    isRunning = true;
    if (random !== undefined) killIn(random() * RECORDS / RATE * 1000 * 0.6);
  }
  const { code, signal } = await child.status;
  for (const timer of timers) clearTimeout(timer);
  return { code: signal === null ? code : "killed", said };
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // it had ended by itself
  }
}

if (import.meta.main) {
  const [rounds = "10", ...backends] = Deno.args;
  for (const backend of backends.length === 0 ? BACKENDS : backends) {
    let kills = 0, restored = 0;
    for (let seed = 1; seed <= Number(rounds); seed++) {
      const round = await killRound(backend, seed);
      kills += round.kills;
      restored += round.restored;
    }
    console.log(
      `${backend}: ${rounds} rounds, ${kills} kills, ${restored} restored runs, every output right`,
    );
  }
}
