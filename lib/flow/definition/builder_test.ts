import assert from "node:assert/strict";
import { Decimal } from "../../json.ts";
import { defineFlow, FlowError, type TypedFlow } from "./builder.ts";
import { EVERYTHING, flowOf } from "./kit_test.ts";

Deno.test("a flow in code is the flow of the document: definition, canonical form and hash", () => {
  const flow = defineFlow({
    name: "everything",
    description: "all there is",
    start: "first",
    channels: {
      log: { reducer: "append", default: ["a"] },
      total: { reducer: "sum", default: 0 },
      seen: { reducer: "merge", default: { big: 9007199254740993n } },
      last: { default: null },
    },
    output: '{"total": channels.total, "turns": visits["first"]}',
    budget: { tokens: 100.5, steps: 50 },
    maxSteps: 200,
    deadline: "36h",
    searchAttributes: { customer: "input.customer", big: "input.amount > 100" },
    retention: 30 * 86_400_000,
    onExpire: "archive",
    archiveRetention: "8760h",
    triggers: [{ subject: "orders.created" }, { subject: "orders.*", stream: "ORDERS" }],
    nodes: {
      first: {
        type: "task",
        kind: "model",
        meta: { prompt: "hi", big: 12345678901234567890n, exact: new Decimal("0.1000000000000000000001") },
        timeout: 30_000,
        heartbeat: "5s",
        retry: {
          maxAttempts: 4,
          backoff: "exponential",
          delay: "10s",
          maxDelay: "1h",
          jitter: 0.2,
          maxElapsed: "2h",
          except: ["CardRefused", "timeout"],
        },
        outputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
        cache: { ttl: "60m" },
        concurrency: { key: "input.customer", max: 3 },
        rate: { max: 10, per: 60_000, key: "input.customer" },
        priority: 7,
        dynamic: ["ask", "first"],
        next: "ask",
        onFailure: "refused",
      },
      ask: { type: "fanout", branches: ["a", "b", "c"], next: "votes" },
      a: { type: "task", kind: "ask-a" },
      b: {
        type: "subflow",
        flow: "credit-check",
        input: "{customer: input.customer}",
        onParentClose: "abandon",
      },
      c: {
        type: "task",
        kind: "http",
        with: {
          method: "POST",
          url: "https://example.com/{{ input.customer }}?n={{ {a: {b: 1}}.a.b }}",
          headers: { "x-total": "{{ channels.total }}" },
          body: { total: "channels.total", list: ["input.a", 1, true, null] },
          expect: [200, 404],
        },
      },
      votes: { type: "join", waitFor: ["a", "c"], policy: "quorum:1", next: "wait", onFailure: "refused" },
      wait: { type: "await", signal: "decision", timeout: "48h", onTimeout: "refused", next: "both" },
      both: { type: "await", signals: ["paid", "shipped"], policy: "any", timeout: "1h", next: "check" },
      check: {
        type: "choice",
        onError: "fail",
        rules: [
          { default: true, to: "each" },
          { when: 'signals.decision.ok and not (branches.a == "failed")', to: "$end" },
        ],
      },
      each: {
        type: "map",
        over: "results.first.items",
        maxParallel: 2,
        kind: "emit",
        with: { topic: "prices", key: "item.sku", value: "{sku: item.sku, n: index}" },
        next: "children",
      },
      children: { type: "map", over: "[1, 2]", flow: "price-one", input: "{n: item}", next: "nap" },
      nap: { type: "sleep", for: "90m", next: "later" },
      later: { type: "sleep", until: "input.due", next: "tell" },
      tell: { type: "task", kind: "log", with: { message: "done {{ input }}" } },
      refused: { type: "fail", message: "refused: {{ errors.first.error }}" },
    },
  });
  assert.deepEqual(flow, flowOf(EVERYTHING));
});

Deno.test("the compiler knows the names of nodes, and the types of input and output", () => {
  interface Order {
    readonly id: string;
  }
  const flow = defineFlow({
    name: "typed",
    types: {} as { input: Order; output: { readonly receipt: string } },
    nodes: { pay: { type: "task", kind: "pay", next: "tell" }, tell: { type: "task", kind: "log" } },
  });
  const typed: TypedFlow<Order, { readonly receipt: string }> = flow;
  assert.deepEqual(Object.keys(typed.definition).includes("types"), false);
  // @ts-expect-error another input
  const _other: TypedFlow<{ readonly other: number }, { readonly receipt: string }> = flow;
  assert.throws(() =>
    defineFlow({
      name: "t",
      // @ts-expect-error a node that is not there
      nodes: { pay: { type: "task", kind: "pay", next: "tel" }, tell: { type: "task", kind: "log" } },
    }), FlowError);
  assert.throws(() =>
    defineFlow({
      name: "t",
      // @ts-expect-error a field of another kind of node
      nodes: { pay: { type: "task", kind: "pay", signal: "s" } },
    }), FlowError);
  assert.throws(() =>
    defineFlow({
      name: "t",
      // @ts-expect-error a node that is not there
      start: "tell",
      nodes: { pay: { type: "task", kind: "pay" } },
    }), FlowError);
});

Deno.test("a flow that is not right: all problems, named as in code", () => {
  const wrong = () =>
    defineFlow({
      name: "t",
      maxSteps: -1,
      nodes: {
        pay: { type: "task", kind: "pay", retry: { maxAttempts: 100 }, outputSchema: { type: "x" } },
        wait: { type: "await", signal: "s", timeout: 0 },
        each: { type: "map", over: "input.", kind: "k" },
      },
    });
  assert.throws(wrong, (error) => {
    assert.ok(error instanceof FlowError);
    assert.equal(error.code, "invalid_flow");
    assert.deepEqual(error.problems.map(({ path, code }) => `${path} ${code}`), [
      "maxSteps wrong_type",
      "nodes.pay.retry.maxAttempts wrong_type",
      "nodes.pay.outputSchema bad_schema",
      "nodes.wait.timeout wrong_type",
      "nodes.each.over invalid_expression",
    ]);
    assert.match(
      error.message,
      /^flow "t": \n {2}- maxSteps: expected a whole number of at least 0, found -1\n/,
    );
    return true;
  });
});

Deno.test("what is no JSON value is refused, wherever it stands", () => {
  const cycle: Record<string, unknown> = {};
  cycle.again = cycle;
  const table: [meta: Record<string, unknown>, path: string][] = [
    [{ a: new Date(0) }, "nodes.pay.meta.a"],
    [{ a: [() => 1] }, "nodes.pay.meta.a[0]"],
    [{ a: NaN }, "nodes.pay.meta.a"],
    [{ a: Symbol("x") }, "nodes.pay.meta.a"],
    [{ a: new Map() }, "nodes.pay.meta.a"],
  ];
  const flow = (meta: Record<string, unknown>) =>
    defineFlow({ name: "t", nodes: { pay: { type: "task", kind: "k", meta } } });
  for (const [meta, path] of table) {
    assert.throws(() => flow(meta), (error) => {
      assert.ok(error instanceof FlowError);
      assert.deepEqual(error.problems.map((problem) => `${problem.path} ${problem.code}`), [
        `${path} not_json`,
      ]);
      return true;
    });
  }
  assert.throws(() => flow(cycle), /nested too deeply/);
  assert.deepEqual(flow({ a: undefined, b: 1 }).definition.nodes[0]!.meta, { b: 1 });
});

Deno.test("ids that are numbers would lose their place", () => {
  assert.throws(
    () =>
      defineFlow({
        name: "t",
        nodes: { b: { type: "task", kind: "k", next: "1" }, 1: { type: "task", kind: "k" } },
      }),
    /"1" would lose its place/,
  );
});

Deno.test("code that the compiler has not seen", () => {
  const untyped = defineFlow as unknown as (spec: unknown) => unknown;
  for (
    const spec of [
      {},
      { name: 5, nodes: [] },
      { name: "t", nodes: null },
      { name: "t", nodes: { a: null } },
      { name: "t", nodes: { a: { type: "task", kind: "k", retry: 5 } } },
    ]
  ) {
    assert.throws(() => untyped(spec), FlowError, JSON.stringify(spec));
  }
});
