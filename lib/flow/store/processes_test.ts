// Several processes on one file. Run with arguments, this file is one of them.
import assert from "node:assert/strict";
import { delay, systemClock } from "../../clock.ts";
import { openKvStore } from "./kv.ts";
import type { FlowStore, Ownership, Summary } from "./port.ts";

const SUMMARY: Summary = {
  flow: "f",
  flowHash: "h",
  status: "running",
  createdAt: 1,
  updatedAt: 1,
  attrs: {},
};
const EXECUTIONS = Array.from({ length: 12 }, (_, i) => `e${i}`);
const LEASE = 400;

/**
 * Takes what partitions it can get, and commits in their executions; says so on stdout behind every commit. Ends when each
 * execution has so many decisions.
 */
async function work(path: string, name: string, rounds: number): Promise<void> {
  await using store = await openKvStore({ path });
  await Deno.stdout.write(new TextEncoder().encode("ready\n"));
  await Deno.stdin.read(new Uint8Array(1)); // until the others are ready, too
  const owned = new Map<number, Ownership>();
  const done = new Set<string>();
  while (done.size < EXECUTIONS.length) {
    await Promise.all(EXECUTIONS.map(async (execId) => {
      const partition = store.partitions.of(execId);
      let ownership = owned.get(partition);
      if (ownership === undefined || ownership.lost) {
        ownership = await store.partitions.acquire(partition, name, LEASE);
        if (ownership === undefined) return;
        owned.set(partition, ownership);
      }
      await step(store, ownership, execId, name, rounds, done);
    }));
    // Partitions go from hand to hand; some without being given back.
    for (const [partition, ownership] of owned) {
      if (ownership.epoch % 4 !== 0) await store.partitions.release(ownership);
      if (ownership.lost) owned.delete(partition);
    }
    await delay(systemClock, 3); // lets the other have its turn
    for (const execId of EXECUTIONS) {
      if ((await store.executions.head(execId))?.seq === rounds) done.add(execId);
    }
  }
}

async function step(
  store: FlowStore,
  ownership: Ownership,
  execId: string,
  name: string,
  rounds: number,
  done: Set<string>,
): Promise<void> {
  const head = await store.executions.head(execId), seq = (head?.seq ?? 0) + 1;
  if (seq > rounds) return void done.add(execId);
  const outcome = await store.executions.commit({
    execId,
    ownership,
    head,
    events: `["${execId} ${seq} ${name}"]`,
    lastIndex: seq,
    ...head === undefined ? { summary: SUMMARY } : {},
    dedup: [`s${seq}`],
    jobs: [{ id: `j${seq}`, kind: "k", text: "" }],
    removeJobs: [`j${seq - 1}`],
    timers: [{ id: "t", at: seq, text: "" }],
  });
  assert(["committed", "conflict", "fenced"].includes(outcome.kind), outcome.kind);
  if (outcome.kind === "committed") {
    await Deno.stdout.write(new TextEncoder().encode(`${execId} ${seq} ${name}\n`));
  }
}

if (import.meta.main && Deno.args.length === 3) {
  const [path, name, rounds] = Deno.args;
  await work(path!, name!, Number(rounds));
}

/** A process that works, once it is told to go. */
class Worker {
  readonly #child: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #errors: Promise<string>;
  #text = "";

  constructor(path: string, name: string, rounds: number) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--unstable-kv", "--no-check", import.meta.url, path, name, String(rounds)],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    this.#errors = new Response(this.#child.stderr).text();
  }

  /** What it has said so far. */
  get said(): string[] {
    return this.#text.split("\n").slice(1, -1); // the first line is "ready"
  }

  /** Waits until it has said so much, or its end. */
  async lines(most: number): Promise<void> {
    while (this.#text.split("\n").length <= most) {
      const { value, done } = await this.#lines.read();
      if (done) return;
      this.#text += value;
    }
  }

  async go(): Promise<void> {
    const writer = this.#child.stdin.getWriter();
    await writer.write(new Uint8Array(1));
    await writer.close();
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Waits for its end; what it said on stderr. */
  async end(): Promise<{ readonly success: boolean; readonly errors: string }> {
    await this.lines(Infinity);
    const { success } = await this.#child.status;
    return { success, errors: await this.#errors };
  }
}

/** What is there is what was said to be committed, each once. */
async function compare(path: string, said: readonly string[], killed: ReadonlySet<string>): Promise<void> {
  await using store = await openKvStore({ path });
  const found: string[] = [];
  let started = 0;
  for (const execId of EXECUTIONS) {
    const head = await store.executions.head(execId), log = await store.executions.log(execId, 1, 1000);
    assert.deepEqual(log.map(({ seq }) => seq), Array.from({ length: head?.seq ?? 0 }, (_, i) => i + 1));
    for (const { seq, events } of log) {
      const [text] = JSON.parse(events) as [string];
      assert(text.startsWith(`${execId} ${seq} `));
      found.push(text);
    }
    if (head === undefined) continue; // nobody came to it
    started++;
    assert.deepEqual(Object.keys(head.jobs), [`j${head.seq}`]);
    assert.deepEqual(head.timers, { t: head.seq });
  }
  const heard = new Set(said), stored = new Set(found);
  assert.equal(stored.size, found.length);
  for (const text of heard) assert(stored.has(text), `"${text}" was acknowledged, and is not there`);
  // One that was killed may have committed what it could not say any more.
  for (const text of stored) {
    assert(heard.has(text) || killed.has(text.split(" ")[2]!), `nobody said "${text}"`);
  }
  assert.equal(
    (await store.jobs.lease({ kind: "k", max: 100, worker: "w", leaseMs: 1 })).length,
    started,
  );
}

Deno.test("two processes on one file, each taking partitions from the other: every decision once", async () => {
  const folder = await Deno.makeTempDir(), path = `${folder}/flows`;
  try {
    const workers = ["a", "b"].map((name) => new Worker(path, name, 25));
    for (const worker of workers) await worker.lines(1);
    for (const worker of workers) await worker.go();
    for (const { success, errors } of await Promise.all(workers.map((worker) => worker.end()))) {
      assert(success, errors);
    }
    for (const { said } of workers) assert(said.length > 0, "one of them was never let in");
    const said = workers.flatMap((worker) => worker.said);
    assert.equal(said.length, EXECUTIONS.length * 25);
    await compare(path, said, new Set());
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("P4: what was acknowledged is there when the process is killed", async () => {
  const folder = await Deno.makeTempDir(), path = `${folder}/flows`;
  try {
    const said: string[] = [], killed = new Set<string>();
    for (let round = 0; round < 3; round++) {
      const worker = new Worker(path, `k${round}`, 1_000_000);
      killed.add(`k${round}`);
      await worker.lines(1);
      await worker.go();
      await worker.lines(40);
      worker.kill(); // in the middle of its work
      await worker.end();
      said.push(...worker.said);
    }
    assert(said.length > 100);
    await compare(path, said, killed);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
