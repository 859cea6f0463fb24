import assert from "node:assert/strict";
import { flowOf, nodesOf, Run, T0 } from "./fold_fixture.ts";
import { answerId, cacheKey, jobBody, jobId } from "./mod.ts";

Deno.test("the body of a job: who, what, and all there is to see", () => {
  const run = new Run(flowOf(`
name: f
start: a
channels: { log: { reducer: append, default: [] } }
nodes:
  - { id: a, type: task, kind: k, next: b }
  - { id: b, type: task, kind: http, with: { method: POST, url: "https://x/{{ input.id }}", body: { n: results.a.n } }, meta: { team: t }, concurrency: { key: "'all'", max: 3 } }
`));
  run.start({ id: "o 1" });
  run.complete("a", { n: 1 }, { writes: { log: "x" }, usage: { cost: 2 } });
  const body = jobBody(run.flow, run.state!, run.attempt("b"))!;
  assert.deepEqual(body, {
    exec_id: "x",
    flow: "f",
    flow_hash: run.flow.hash,
    node: "b",
    kind: "http",
    key: "b",
    generation: 2,
    attempt: 1,
    idempotency_key: "x.b.2",
    context: {
      input: { id: "o 1" },
      channels: { log: ["x"] },
      results: { a: { n: 1 } },
      last_node: "a",
      visits: { a: 1, b: 1 },
      signals: {},
      branches: {},
      counters: { cost: 2 },
      errors: {},
    },
    meta: { team: "t" },
    with: body.with,
    concurrency: { key: "all", max: 3 },
  });
  assert.equal(body.with!["url"], "https://x/o%201");
  assert.deepEqual(body.with!["body"], { n: 1 });
  assert.equal(jobBody(run.flow, run.state!, { ...run.attempt("b"), attempt: 2 }), undefined);
  assert.deepEqual([jobId("x", body), answerId("x", body)], ["job.x.b.2.1", "w.x.b.2.1"]);
});

Deno.test("what was handed out does not change when the execution goes on", () => {
  const run = new Run(nodesOf("id: m, type: map, over: '[1, 2]', kind: k"));
  run.start();
  const { context } = jobBody(run.flow, run.state!, run.attempt("m#0"))!, before = JSON.stringify(context);
  run.complete("m#1");
  run.complete("m#0");
  assert.equal(JSON.stringify(context), before);
});

const CACHED = `
name: f
start: a
channels: { c: {} }
nodes:
  - { id: a, type: task, kind: k, cache: { ttl: 1h }, retry: { max_attempts: 2, delay: 1s }, next: w }
  - { id: w, type: await, signal: go, timeout: 1h, next: a }
`;

Deno.test("the key of a kept result: what the worker sees, not visits, counters, errors or the last node", () => {
  const keyOf = (prepare: (run: Run) => void, text = CACHED, input: unknown = { n: 1 }): string => {
    const run = new Run(flowOf(text));
    run.start(input);
    prepare(run);
    return cacheKey(run.state!, run.state!.tasks.get("a")!);
  };
  const base = keyOf(() => {});
  assert.match(base, /^[0-9a-f]{32}$/);
  const same: readonly ((run: Run) => void)[] = [
    (run) => {
      run.fail("a", "e", { usage: { cost: 1 } });
      run.fire();
    },
    (run) => run.signal("other", 1),
  ];
  for (const prepare of same) assert.equal(keyOf(prepare), base);
  const others = [
    keyOf(() => {}, CACHED, { n: 2 }),
    keyOf(() => {}, CACHED.replace("1h", "2h")),
    keyOf((run) => run.send("update", { writes: { c: 1 } })),
    keyOf((run) => {
      run.complete("a", { v: 1 });
      run.signal("go", 1);
    }),
    keyOf((run) => {
      run.send("interrupt", { ...run.attempt("a"), payload: 1 });
      run.send("resume", { node: "a" });
    }),
    keyOf((run) => {
      run.send("interrupt", { ...run.attempt("a"), payload: 1 });
      run.send("resume", { node: "a", value: 2 });
    }),
  ];
  assert.equal(new Set([base, ...others]).size, others.length + 1);
});

Deno.test("a result is kept once, for its time; one that came from there is not kept again", () => {
  const run = new Run(flowOf(CACHED));
  run.start();
  const { cache } = run.effectsOf("job")[0]!;
  run.complete("a", { v: 1 }, { cache_key: cache!.key, writes: { c: 1 }, usage: { cost: 1 } });
  assert.deepEqual(run.effectsOf("cache_put"), [{
    type: "cache_put",
    key: cache!.key,
    result: { output: { v: 1 }, writes: { c: 1 }, usage: { cost: 1 } },
    expiresAt: T0 + 3_600_000,
  }]);
  run.signal("go");
  run.complete("a", { v: 1 }, { cache_key: run.effectsOf("job").at(-1)!.cache!.key, cached: true });
  assert.equal(run.effectsOf("cache_put").length, 1);
});
