/**
 * What every worker must do, whatever it is written in: one suite for all of them.
 *
 * The suite serves flows on this machine, starts the worker as a program, and looks at what comes of its jobs. The program finds in
 * its environment `MAILER_URL`, `MAILER_TOKEN` and `MAILER_LEASE_MS`, asks for jobs of these kinds, and does:
 *
 * | kind | what it does |
 * | --- | --- |
 * | `contract-output` | output `{"sum": a + b, "big": big}` of the input, `big` as it came |
 * | `contract-writes` | output `{"ok": true}`, writes `["w"]` to the channel `log`, goes on at `chosen`, uses 7 `tokens` |
 * | `contract-retry` | fails, and may be tried again, on attempts 1 and 2; then output `{"attempt": 3}` |
 * | `contract-permanent` | fails with the error `no`, and may not be tried again |
 * | `contract-crash` | lets its code crash on attempt 1; then output `{"attempt": 2}` |
 * | `contract-interrupt` | asks `{"ask": "ok?"}`; resumed, output `{"answer": resume, "asked": interrupt.ask}` of the context |
 * | `contract-item` | output `{"square": item * item, "index": index}` of the context |
 * | `contract-large` | output `{"text": text}` of the input |
 * | `contract-slow` | works for `ms` of the input; then output `{"attempt": attempt, "deliveries": deliveries}` |
 *
 * @module
 */
import assert from "node:assert/strict";
import { delay, systemClock } from "../../clock.ts";
import { type ExecutionView, FlowClient } from "../client/mod.ts";
import { type Flow, parseFlow } from "../definition/mod.ts";
import { FlowEngine } from "../engine/mod.ts";
import { openMemoryStore } from "../store/memory.ts";
import { serveFlows } from "./serve.ts";

/** A worker under test. */
export interface WorkerCommand {
  /** Names the suite. */
  readonly name: string;
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** Folder it runs in. Default: the current one. */
  readonly cwd?: string;
  /** More variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the suite is left out, e.g. where the program is not installed. */
  readonly ignore?: boolean;
}

/** For how long a job is the worker's without a sign of life, ms. */
const LEASE_MS = 1000;
/** Time a case may take, ms. */
const PATIENCE = 20_000;
const TOKEN = "a-token-for-the-worker-contract";

/** Registers the suite. */
export function workerContract(worker: WorkerCommand): void {
  for (const [title, run] of Object.entries(CASES)) {
    Deno.test({
      name: `${worker.name} worker: ${title}`,
      ignore: worker.ignore === true,
      fn: () => inScene(worker, run),
    });
  }
}

interface ContractScene {
  /** Runs an execution to its end. */
  run(flow: string, input?: unknown): Promise<ExecutionView>;
  readonly client: FlowClient;
}

async function inScene(worker: WorkerCommand, body: (scene: ContractScene) => Promise<void>): Promise<void> {
  await using store = await openMemoryStore();
  await using engine = await new FlowEngine({ store, flows: flows() }).start();
  await using server = serveFlows({ engine, port: 0, token: TOKEN });
  const [program, ...args] = worker.command;
  const child = new Deno.Command(program, {
    args,
    ...(worker.cwd === undefined ? {} : { cwd: worker.cwd }),
    env: { ...worker.env, MAILER_URL: server.url, MAILER_TOKEN: TOKEN, MAILER_LEASE_MS: String(LEASE_MS) },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  const client = new FlowClient({ store, engine });
  try {
    await body({
      client,
      run: async (flow, input) => {
        const { id } = await client.start(flow, input);
        return await client.wait(id, { timeoutMs: PATIENCE });
      },
    });
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
}

const CASES: Readonly<Record<string, (scene: ContractScene) => Promise<void>>> = {
  "gives an output, digit for digit": async ({ run }) => {
    const { status, output } = await run("contract-output", { a: 2, b: 40, big: 90071992547409931234567n });
    assert.equal(status, "completed");
    assert.deepEqual(output, { sum: 42, big: 90071992547409931234567n });
  },
  "writes to channels, chooses the way, counts what it uses": async ({ run }) => {
    const { output, results, counters, visits } = await run("contract-writes", { a: 1, b: 2, big: 3 });
    assert.deepEqual(output, { log: ["w"] });
    assert.deepEqual(results, { work: { ok: true }, chosen: { sum: 3, big: 3 } });
    assert.deepEqual(counters, { tokens: 7 });
    assert.deepEqual(visits, { work: 1, chosen: 1 });
  },
  "fails, and is tried again until it works": async ({ run }) => {
    const { status, output } = await run("contract-retry");
    assert.equal(status, "completed");
    assert.deepEqual(output, { attempt: 3 });
  },
  "fails for good": async ({ run }) => {
    const { status, failure } = await run("contract-permanent");
    assert.equal(status, "failed");
    assert.equal(failure?.error, "no");
    assert.equal(failure?.reason, "error");
  },
  "survives code that crashes, and tries it again": async ({ run }) => {
    const { status, output } = await run("contract-crash");
    assert.equal(status, "completed");
    assert.deepEqual(output, { attempt: 2 });
  },
  "waits for a person, and goes on with the answer": async ({ client }) => {
    const { id } = await client.start("contract-interrupt");
    const isAsking = ({ waiting }: ExecutionView): boolean => waiting.interrupts.length > 0;
    const { waiting } = await client.waitUntil(id, isAsking, { timeoutMs: PATIENCE });
    assert.deepEqual(waiting.interrupts, [{ node: "work", key: "work", payload: { ask: "ok?" } }]);
    await client.resume(id, "work", { yes: true });
    const { output } = await client.wait(id, { timeoutMs: PATIENCE });
    assert.deepEqual(output, { answer: { yes: true }, asked: "ok?" });
  },
  "does the items of a map": async ({ run }) => {
    const { status, results } = await run("contract-items", { items: [3, 1, 4, 1, 5, 9] });
    assert.equal(status, "completed");
    assert.deepEqual(
      results["work"],
      [3, 1, 4, 1, 5, 9].map((item, index) => ({ square: item * item, index })),
    );
  },
  "takes and gives 2 MiB": async ({ run }) => {
    const text = "0123456789abcde\u00e9".repeat((2 * 1024 * 1024) / 17 + 1);
    const { status, output } = await run("contract-large", { text });
    assert.equal(status, "completed");
    assert.equal((output as { text: string }).text === text, true);
  },
  "keeps a job that takes longer than its lease": async ({ run }) => {
    const { status, output } = await run("contract-slow", { ms: 3.5 * LEASE_MS });
    assert.equal(status, "completed");
    assert.deepEqual(output, { attempt: 1, deliveries: 1 });
  },
  "goes on when the job it works on is not wanted any more": async ({ client, run }) => {
    const { id } = await client.start("contract-slow", { ms: PATIENCE });
    await delay(systemClock, LEASE_MS / 2);
    await client.cancel(id, "enough");
    assert.equal((await client.wait(id)).status, "cancelled");
    assert.equal((await run("contract-output", { a: 1, b: 1, big: 1 })).status, "completed");
  },
};

function flows(): Flow[] {
  const task = (name: string, more = ""): string =>
    `name: ${name}\nnodes:\n  - {id: work, type: task, kind: ${name}${more}}\n`;
  return [
    task("contract-output"),
    task("contract-retry", ", retry: {max_attempts: 3, delay: 50ms}"),
    task("contract-permanent", ", retry: {max_attempts: 3, delay: 50ms}"),
    task("contract-crash", ", retry: {max_attempts: 2, delay: 50ms}"),
    task("contract-interrupt"),
    task("contract-large"),
    task("contract-slow"),
    "name: contract-items\nnodes:\n  - {id: work, type: map, over: input.items, kind: contract-item}\n",
    `name: contract-writes
start: work
channels: {log: {reducer: append}}
nodes:
  - {id: work, type: task, kind: contract-writes, dynamic: [chosen], next: other}
  - {id: chosen, type: task, kind: contract-output}
  - {id: other, type: fail, message: nobody chose}
`,
  ].map((text, i) => {
    const { flow, problems } = parseFlow(text, { file: `contract${i}.yaml` });
    assert.deepEqual(problems, []);
    return flow!;
  });
}
