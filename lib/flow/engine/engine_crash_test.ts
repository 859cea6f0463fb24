/**
 * A process that dies at any commit, before it or right after it: another takes over, and everything ends as if nothing had happened.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Call, Fault } from "../store/faults.ts";
import { FlowClient } from "../client/mod.ts";
import { done, interrupt, type Job } from "./mod.ts";
import { nodes, Scene } from "./kit_test.ts";

const PARENT = `name: parent
start: a
channels: { log: { reducer: append }, total: { reducer: sum, default: 0 } }
budget: { calls: 100 }
nodes:
  - { id: a, type: task, kind: add, retry: { max_attempts: 3, backoff: fixed, delay: 2s }, next: f }
  - { id: f, type: fanout, branches: [ x, y, z ], next: j }
  - { id: x, type: task, kind: add }
  - { id: y, type: subflow, flow: child, input: "{n: 1}" }
  - { id: z, type: task, kind: add, retry: { max_attempts: 3, backoff: fixed, delay: 1s } }
  - { id: j, type: join, policy: all, next: m }
  - { id: m, type: map, over: "[{n: 1}, {n: 2}, {n: 3}, {n: 4}]", flow: child, max_parallel: 2, next: s }
  - { id: s, type: sleep, for: 10s, next: w }
  - { id: w, type: await, signal: go, timeout: 1h, next: c }
  - { id: c, type: choice, rules: [ { when: "visits.l < 4", to: l }, { default: true, to: t } ] }
  - { id: l, type: task, kind: add, next: c }
  - { id: t, type: map, over: "[1, 2, 3]", kind: item, max_parallel: 2, next: e }
  - { id: e, type: subflow, flow: fails, on_failure: end }
  - { id: end, type: task, kind: add }
`;
const CHILD = nodes("child", "id: p, type: sleep, for: 1s, next: q", "id: q, type: task, kind: twice");
const FAILS = nodes("fails", "id: p, type: fail, message: 'no {{ input.none }}'");

const WORKERS = {
  add: ({ node, attempt }: Job) => {
    if ((node === "a" && attempt < 3) || (node === "z" && attempt < 2)) throw new Error(`not yet ${attempt}`);
    return done({ output: { node }, writes: { log: node, total: 1 }, usage: { calls: 1 } });
  },
  flaky: ({ node, attempt }: Job) => {
    if (attempt < 3) throw new Error(`not yet ${attempt}`);
    return done({ output: { node, attempt }, writes: { log: node } });
  },
  twice: ({ context }: Job) => ({ n: 2 * (context.input as { n: number }).n }),
  item: ({ context }: Job) => ({ item: context.item }),
  ask: () => interrupt(),
};
const ALL = [0, 1, 2, 3];

interface End {
  readonly seen: unknown;
  readonly commits: number;
}

/** Runs it with one engine whose store fails as told, and then with another. */
async function run(
  fault: (call: Call) => Fault | undefined,
  historyLimit: number,
  parent = PARENT,
): Promise<End> {
  await using scene = await Scene.open({
    flows: [parent, CHILD, FAILS],
    workers: {},
    partitions: [],
    pollMs: 1000,
    ownershipMs: 5000,
    historyLimit,
    snapshotEvery: 7,
    drainMs: 1000,
    worker: { leaseMs: 3000 },
  });
  let commits = 0, isOpen = false;
  const store = await scene.otherStore((call) => {
    if (!isOpen || call.op !== "commit") return undefined;
    return fault({ ...call, n: ++commits });
  });
  isOpen = true;
  const first = scene.newEngine(store, { partitions: ALL }, WORKERS);
  await first.start().catch(() => undefined);
  const signals = Array.from({ length: 8 }, (_, i) => ({ name: "go", payload: { i }, id: `s${i}` }));
  const go = { signals, id: "e" };
  const client = new FlowClient({ store, engine: first, clock: scene.clock });
  const started = client.start("parent", {}, go).catch(() => undefined);
  await scene.clock.advance("20s");
  const second = scene.newEngine(await scene.otherStore(), { partitions: ALL }, WORKERS);
  await second.start();
  const again = new FlowClient({ store: second.core.store, engine: second, clock: scene.clock }).start(
    "parent",
    {},
    go,
  );
  await scene.clock.advance("40s");
  await Promise.all([started, again]);
  const { status, output, results, visits, counters, channels, errors, waiting } = await scene.client.get(
    "e",
  );
  const { log, ...others } = channels as { log: string[] };
  const seen = { status, results, visits, counters, others, errors, waiting, log: log.toSorted() };
  assert.deepEqual(output, channels);
  const all = await scene.client.list({ limit: 100 });
  assert.deepEqual((await scene.client.deadLetters()).items, []);
  return {
    seen: { ...seen, executions: all.items.map(({ id, status }) => `${id} ${status}`).sort() },
    commits,
  };
}

/** Every so many commits it dies; a whole round, with 1, takes minutes. */
const STEP = 6;
/** Flows that are made up. */
const RUNS = 6;

for (const historyLimit of [0, 15]) {
  Deno.test(`F46 dying at any commit changes nothing (history limit ${historyLimit})`, async () => {
    const quiet = await run(() => undefined, historyLimit);
    assert.equal((quiet.seen as { status: string }).status, "completed");
    assert.ok(quiet.commits > 40, String(quiet.commits));
    for (let n = 1 + historyLimit % STEP; n <= quiet.commits; n += STEP) {
      const how = Math.floor(n / STEP) % 2 === 0 ? "crash" : "crash-after";
      const { seen } = await run(
        (call) => call.op === "commit" && call.n === n ? how : undefined,
        historyLimit,
      );
      assert.deepEqual(seen, quiet.seen, `${how} at commit ${n}`);
    }
  });
}

/** Some nodes, the first of them `n<i>`; behind them it goes on to `next`. */
type Block = (i: number, next: string) => string[];

const retry = fc.constantFrom("", ", retry: { max_attempts: 3, backoff: fixed, delay: 1s }");
const BLOCK: fc.Arbitrary<Block> = fc.oneof(
  retry.map((r): Block => (i, next) => [
    `id: n${i}, type: task, kind: ${r === "" ? "add" : "flaky"}${r}, next: ${next}`,
  ]),
  fc.tuple(fc.constantFrom("all", "quorum:3"), retry).map(([policy, r]): Block => (i, next) => [
    `id: n${i}, type: fanout, branches: [n${i}a, n${i}b, n${i}c], next: n${i}j`,
    `id: n${i}a, type: task, kind: add`,
    `id: n${i}b, type: task, kind: ${r === "" ? "add" : "flaky"}${r}`,
    `id: n${i}c, type: subflow, flow: child, input: '{n: ${i}}'`,
    `id: n${i}j, type: join, policy: '${policy}', next: ${next}`,
  ]),
  fc.tuple(fc.nat(5), fc.boolean(), fc.integer({ min: 1, max: 3 })).map(
    ([n, flow, width]): Block => (i, next) => [
      `id: n${i}, type: map, over: '[${
        Array.from({ length: n }, (_, k) => `{n: ${k}}`)
      }]', max_parallel: ${width}, ` +
      `${flow ? "flow: child" : "kind: item"}, next: ${next}`,
    ],
  ),
  fc.constant<Block>((i, next) => [`id: n${i}, type: sleep, for: 2s, next: ${next}`]),
  fc.constant<Block>((i, next) => [`id: n${i}, type: await, signal: go, timeout: 1h, next: ${next}`]),
  fc.constant<Block>((
    i,
    next,
  ) => [`id: n${i}, type: subflow, flow: fails, on_failure: ${next}, next: ${next}`]),
  fc.integer({ min: 1, max: 4 }).map((times): Block => (i, next) => [
    `id: n${i}, type: task, kind: add, next: n${i}c`,
    `id: n${i}c, type: choice, rules: [{ when: 'visits.n${i} < ${times}', to: n${i} }, { default: true, to: ${next} }]`,
  ]),
);

Deno.test("F45 any flow, dying at any commit", async () => {
  const flows = fc.array(BLOCK, { minLength: 1, maxLength: 6 }).map((blocks) => {
    const lines = blocks.flatMap((block, i) => block(i, i === blocks.length - 1 ? "end" : `n${i + 1}`));
    return `start: n0
channels: { log: { reducer: append, default: [] }, total: { reducer: sum, default: 0 } }
` + nodes("parent", ...lines, "id: end, type: task, kind: add");
  });
  const place = fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), after: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      flows,
      fc.array(place, { minLength: 2, maxLength: 2 }),
      fc.constantFrom(0, 12),
      async (flow, places, limit) => {
        const quiet = await run(() => undefined, limit, flow);
        assert.equal((quiet.seen as { status: string }).status, "completed");
        for (const { share, after } of places) {
          const n = 1 + Math.floor(share * (quiet.commits - 1)), how = after ? "crash-after" : "crash";
          const { seen } = await run(
            (call) => call.op === "commit" && call.n === n ? how : undefined,
            limit,
            flow,
          );
          assert.deepEqual(seen, quiet.seen, `${how} at commit ${n}`);
        }
      },
    ),
    { numRuns: RUNS },
  );
});
