/**
 * Kills a process that runs a workflow with the Postgres sink by `kill -9`, at random instants, and starts it again until it has come to
 * its end; or kills the server, and starts that again. The table is then that of a run in which nobody was killed.
 *
 * As a program: `deno run -A tests/postgres/kill_rounds.ts ROUNDS [insert|upsert…]`.
 *
 * @module
 */
// deno-lint-ignore-file no-console -- a program prints
import assert from "node:assert/strict";
import { type Postgres, postgresService } from "../services/mod.ts";
import { schemaWith } from "./kit.ts";

/** Modes of the sink. */
export const MODES = ["insert", "upsert"] as const;

/** What came of a round. */
export interface Round {
  /** Processes that were killed. */
  readonly kills: number;
  /** Of these, those that had taken a checkpoint at least. */
  readonly restored: number;
  /** Rows that were looked at. */
  readonly rows: number;
}

const RECORDS = 40_000;
const KEYS = 50;
/** Records a second: so a run takes a second or two, on a busy machine as well. */
const RATE = 30_000;
const CLI = new URL("../../cli.ts", import.meta.url).pathname;

/** Numbers 0 ≤ x < 1, the same for the same seed (Numerical Recipes' linear congruence). */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** The input, and the sums of each key as they grow. */
function scenario(): { readonly input: string; readonly sums: ReadonlyMap<string, readonly number[]> } {
  const next = random(7), lines: string[] = [], sums = new Map<string, number[]>();
  for (let i = 0; i < RECORDS; i++) {
    const k = `k${Math.floor(next() * KEYS)}`, v = Math.floor(next() * 100) + 1;
    lines.push(JSON.stringify({ k, v }));
    const of = sums.get(k) ?? [];
    of.push((of.at(-1) ?? 0) + v);
    sums.set(k, of);
  }
  return { input: lines.join("\n") + "\n", sums };
}

function workflow(mode: string, table: string): string {
  const keys = mode === "upsert" ? ", mode: upsert, conflictColumns: [k]" : "";
  return `name: killed
source:
  type: file
  file: { path: in.ndjson }
pipeline:
  - { id: slow, type: throttle, throttle: { rate: ${RATE / 20}, per: 50ms } }
  - { id: key, type: keyBy, keyBy: { fields: [k], partitions: 3 } }
  - { id: sum, type: reduce, reduce: { function: sum, field: v } }
sink:
  id: out
  type: postgres
  postgres: { dsn: "\${DSN}", table: ${table}, mapping: { k: k, sum: total }${keys} }
env:
  state: { backend: sqlite }
  checkpointing: { interval: 100ms }
`;
}

/** A table, and a folder with a document that fills it. */
class Scene implements AsyncDisposable {
  readonly #scenario = scenario();

  private constructor(
    private readonly postgres: Postgres,
    private readonly mode: (typeof MODES)[number],
    private readonly schema: string,
    readonly folder: string,
  ) {}

  static async open(postgres: Postgres, mode: (typeof MODES)[number]): Promise<Scene> {
    const folder = await Deno.makeTempDir({ prefix: "mailer-kill-" });
    const key = mode === "upsert" ? "primary key" : "";
    const schema = await schemaWith(
      postgres,
      `create table t (k text ${key}, total bigint, pos bigint generated always as identity)`,
    );
    const scene = new Scene(postgres, mode, schema, folder);
    await Deno.writeTextFile(`${folder}/in.ndjson`, scene.#scenario.input);
    await Deno.writeTextFile(`${folder}/wf.yaml`, workflow(mode, `${schema}.t`));
    return scene;
  }

  get dsn(): string {
    return `${this.postgres.url}?options=${encodeURIComponent(`-c search_path=${this.schema}`)}`;
  }

  /** Checks the table. @returns How many rows it has. */
  async check(what: string): Promise<number> {
    const { postgres, schema, mode } = this, { sums } = this.#scenario;
    const rows = await postgres.rows(
      `select k, json_agg(total order by pos) as totals from ${schema}.t group by k`,
    );
    const found = new Map(rows.map(({ k, totals }) => [k as string, totals as number[]]));
    assert.equal(found.size, sums.size, what);
    let count = 0;
    for (const [k, of] of sums) {
      assert.deepEqual(found.get(k), mode === "insert" ? of : of.slice(-1), `${mode}, ${what}, key ${k}`);
      count += found.get(k)!.length;
    }
    const runs = await postgres.rows(`select run from ${schema}.mailer_checkpoints where committed > 0`);
    assert.equal(runs.length, 1, "earlier runs were left behind");
    return count;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Deno.remove(this.folder, { recursive: true });
  }
}

/** One round: from an empty table to the end, with kills in between. */
export async function killRound(
  postgres: Postgres,
  mode: (typeof MODES)[number],
  seed: number,
  mostKills = 6,
): Promise<Round> {
  await using scene = await Scene.open(postgres, mode);
  const next = random(seed);
  let kills = 0, restored = 0;
  for (;;) {
    const { code, said } = await runOnce(scene, kills >= mostKills ? undefined : next);
    if (said.includes("msg=restored")) restored++;
    if (code !== "killed") {
      assert.equal(code, 0, said);
      break;
    }
    kills++;
  }
  return { kills, restored, rows: await scene.check(`seed ${seed}, ${kills} kills`) };
}

/** One round in which the server is killed while records flow. @param postgres A server of one's own. */
export async function serverRound(
  postgres: Postgres,
  mode: (typeof MODES)[number],
  seed: number,
): Promise<Round> {
  await using scene = await Scene.open(postgres, mode);
  const next = random(seed);
  let kills = 0;
  const { code, said } = await runOnce(scene, undefined, async (hasEnded) => {
    for (; kills < 3 && !hasEnded(); kills++) {
      await new Promise((resolve) => setTimeout(resolve, next() * 300));
      await postgres.kill();
      await postgres.start();
    }
  });
  assert.equal(code, 0, said);
  return { kills, restored: 0, rows: await scene.check(`seed ${seed}, ${kills} kills of the server`) };
}

/**
 * One process.
 *
 * @param random Says when it is killed; undefined: it is not.
 * @param meanwhile Done from when records flow.
 */
async function runOnce(
  { folder, dsn }: Scene,
  random: (() => number) | undefined,
  meanwhile?: (hasEnded: () => boolean) => Promise<void>,
): Promise<{ readonly code: number | "killed"; readonly said: string }> {
  const options = ["--log-level", "info", "--verbose", "--data-dir", `${folder}/data`];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", CLI, "run", ...options, `${folder}/wf.yaml`],
    env: { DSN: dsn },
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const timers: ReturnType<typeof setTimeout>[] = [];
  const killIn = (delay: number): void => void timers.push(setTimeout(() => kill(child), delay));
  // Some while they start or recover, most of them while records flow.
  if (random !== undefined && random() < 0.15) killIn(random() * 400);
  let said = "", isRunning = false, hasEnded = false, doing: Promise<void> | undefined;
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    said += text;
    if (isRunning || !said.includes("killed: running")) continue;
    isRunning = true;
    doing = meanwhile?.(() => hasEnded);
    if (random !== undefined) killIn(random() * RECORDS / RATE * 1000 * 0.6);
  }
  const { code, signal } = await child.status;
  hasEnded = true;
  await doing;
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
  const [rounds = "10", ...modes] = Deno.args;
  await using postgres = await postgresService({ own: true });
  for (const mode of MODES) {
    if (modes.length > 0 && !modes.includes(mode)) continue;
    for (const [whom, round] of [["process", killRound], ["server", serverRound]] as const) {
      let kills = 0, restored = 0;
      for (let seed = 1; seed <= Number(rounds); seed++) {
        const found = await round(postgres, mode, seed);
        kills += found.kills;
        restored += found.restored;
      }
      console.log(
        `${mode}: ${rounds} rounds, ${kills} kills of the ${whom}, ${restored} restored runs, every table right`,
      );
    }
  }
}
