/**
 * Random flows in code, right by construction: a chain of nodes and of fan-outs with their joins, ways ahead at random.
 *
 * @module
 */
import fc from "fast-check";
import { Decimal } from "../../json.ts";
import type { FlowSpec } from "./builder_types.ts";

type Values = Record<string, unknown>;

const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/);
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(
    "yes",
    "1e3",
    "null",
    "- a",
    "a: b",
    "# c",
    "~",
    "0x1",
    "a\nb",
    "\u0085",
    "'",
    '"',
    "<<",
    "x ",
    "{a}",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "`a",
  ),
);
const plainText = text.filter((value) => !value.includes("{{"));
const number = fc.oneof(
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.bigInt({ min: 2n ** 60n, max: 2n ** 80n }),
  fc.constantFrom(new Decimal("0.12345678901234567890123"), new Decimal("1e999"), 0, -0, 1e21, 1e-7),
);

/** Any JSON value. */
export const free: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, false),
    number,
    text,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(text, token, fc.constantFrom("10", "9", "__proto__x")), tie("value"), {
      maxKeys: 3,
    }),
  ),
})).value;
const object = fc.dictionary(fc.oneof(token, text), free, { maxKeys: 3 });

/** Durations as they may be written in code; above zero. */
const duration = fc.oneof(
  fc.integer({ min: 1, max: 10 ** 12 }),
  fc.double({ min: 0.001, max: 10 ** 6, noNaN: true }),
  fc.constantFrom("30s", "1h30m", "250ms", "1.5h", "1d", "2d3h4m5.006s", "1us"),
);
const expression = fc.constantFrom(
  "input.a",
  "1 + 2",
  "'x'",
  "[1, 2]",
  "{a: input.b}",
  "not input.c or visits['a'] > 1",
);
const template = fc.oneof(plainText, fc.constant("a {{ input.b }} c"));

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const shape = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Values> =>
  fc.record(fields) as fc.Arbitrary<Values>;

const retry = fc.record({
  maxAttempts: fc.integer({ min: 2, max: 64 }),
  backoff: maybe(fc.constantFrom("fixed", "linear", "exponential")),
  delay: maybe(duration),
  maxDelay: maybe(duration),
  jitter: maybe(fc.constantFrom(0, 0.2, 1)),
  maxElapsed: maybe(duration),
  except: maybe(fc.array(token, { minLength: 1, maxLength: 3 })),
});

const settings = fc.oneof(
  fc.record({
    kind: fc.constant("http"),
    with: fc.record({
      url: template,
      method: fc.constantFrom("POST", "PUT"),
      headers: maybe(fc.dictionary(token, template, { maxKeys: 2 })),
      body: maybe(
        fc.oneof(expression, fc.record({ a: expression, b: fc.array(fc.oneof(expression, fc.integer())) })),
      ),
      expect: maybe(fc.array(fc.integer({ min: 100, max: 599 }), { minLength: 1, maxLength: 3 })),
    }),
  }),
  fc.record({
    kind: fc.constant("emit"),
    with: fc.record({ topic: token, key: maybe(expression), value: expression }),
  }),
  fc.record({ kind: fc.constant("log"), with: fc.record({ message: maybe(template) }) }),
  fc.record({ kind: token.filter((kind) => !["http", "emit", "log"].includes(kind)) }),
);

const policy = fc.tuple(
  settings,
  shape({
    timeout: maybe(duration),
    heartbeat: maybe(duration),
    retry: maybe(retry),
    outputSchema: maybe(fc.constantFrom({}, { type: "object" }, { type: "object", required: ["a"] })),
    concurrency: maybe(fc.record({ key: expression, max: fc.integer({ min: 1, max: 9 }) })),
    rate: maybe(
      fc.record({ max: fc.integer({ min: 1, max: 9 }), per: maybe(duration), key: maybe(expression) }),
    ),
    priority: maybe(fc.integer({ min: -100, max: 100 })),
  }),
).map(([a, b]) => ({ ...a, ...b }));

const child = shape({
  flow: token,
  input: maybe(expression),
  onParentClose: maybe(fc.constantFrom("cancel", "abandon")),
});
const task = shape({ cache: maybe(fc.record({ ttl: duration })) }).chain((more) =>
  policy.map((all) => ({ type: "task", ...more, ...all }))
);
const subflow = child.map((all) => ({ type: "subflow", ...all }));
const width = maybe(fc.integer({ min: 0, max: 256 }));

/** Nodes of one place in the chain, without names and ways. */
const place: fc.Arbitrary<Values> = fc.oneof(
  task,
  task,
  subflow,
  fc.tuple(policy, expression, width).map(([all, over, maxParallel]) => ({
    type: "map",
    over,
    maxParallel,
    ...all,
  })),
  fc.tuple(child, expression, width).map(([all, over, maxParallel]) => ({
    type: "map",
    over,
    maxParallel,
    ...all,
  })),
  fc.record({ type: fc.constant("await"), signal: token, timeout: duration }),
  fc.record({
    type: fc.constant("await"),
    signals: fc.uniqueArray(token, { minLength: 2, maxLength: 4 }),
    policy: maybe(fc.constantFrom("any", "all")),
    timeout: duration,
  }),
  fc.record({ type: fc.constant("sleep"), for: fc.oneof(duration, fc.constant(0)) }),
  fc.record({ type: fc.constant("sleep"), until: expression }),
  fc.record({ type: fc.constant("choice"), when: expression, onError: maybe(fc.constant("fail")) }),
  fc.record({
    type: fc.constant("fanout"),
    branches: fc.array(fc.oneof(task, subflow), { minLength: 1, maxLength: 4 }),
    policy: maybe(fc.constantFrom("all", "any", "quorum:1")),
    some: fc.boolean(),
  }),
);

/** Random flows for `defineFlow`. */
export const flowSpec: fc.Arbitrary<FlowSpec<string>> = fc.record({
  name: token,
  description: maybe(text),
  channels: maybe(fc.dictionary(
    token,
    fc.oneof(
      fc.record({ reducer: fc.constant("append"), default: maybe(fc.array(free, { maxLength: 2 })) }),
      fc.record({ reducer: fc.constant("merge"), default: maybe(object) }),
      fc.record({ reducer: fc.constant("sum"), default: maybe(number) }),
      fc.record({ reducer: maybe(fc.constant("replace")), default: maybe(free) }),
    ),
    { maxKeys: 3 },
  )),
  output: maybe(expression),
  budget: maybe(fc.dictionary(token, fc.double({ min: 0.001, max: 1e9, noNaN: true }), { maxKeys: 3 })),
  maxSteps: maybe(fc.integer({ min: 0, max: 5000 })),
  searchAttributes: maybe(fc.dictionary(token, fc.constantFrom("input.a", "1"), { maxKeys: 3 })),
  expiry: maybe(fc.record({ retention: duration, onExpire: maybe(fc.constantFrom("archive", "delete")) })),
  triggers: maybe(fc.array(fc.record({ subject: token, stream: maybe(token) }), { maxLength: 2 })),
  deadline: maybe(duration),
  places: fc.array(fc.tuple(place, maybe(object), fc.nat(), fc.nat({ max: 3 })), {
    minLength: 1,
    maxLength: 7,
  }),
}).map(({ places, expiry, ...rest }) =>
  ({ ...rest, ...expiry, start: "n0", nodes: chained(places) }) as unknown as FlowSpec<string>
);

/** Gives the nodes of a chain ids and ways: each leads to the one behind it, and perhaps further. */
function chained(places: readonly [Values, Values | undefined, number, number][]): Record<string, Values> {
  const nodes: Record<string, Values> = {};
  places.forEach(([all, meta, far, ways], at) => {
    const id = `n${at}`, next = at + 1 < places.length ? `n${at + 1}` : undefined;
    const ahead = next === undefined ? undefined : `n${at + 1 + far % (places.length - at - 1)}`;
    const common = { meta, next };
    const { type, branches, policy: joining, some, when, ...fields } = all;
    if (type === "fanout") {
      const ids = (branches as Values[]).map((branch, i) => {
        nodes[`${id}b${i}`] = branch;
        return `${id}b${i}`;
      });
      nodes[id] = { type, branches: ids, next: `${id}j`, meta };
      const waitFor = some === true ? ids.slice(0, 1 + far % ids.length) : undefined;
      nodes[`${id}j`] = {
        type: "join",
        policy: joining,
        waitFor,
        ...common,
        onFailure: ways > 1 ? ahead : undefined,
      };
    } else if (type === "choice") {
      const rules = [{ when, to: ahead ?? "$end" }, { default: true, to: next ?? "$end" }];
      nodes[id] = { type, meta, ...fields, rules: ways % 2 === 0 ? rules : rules.reverse() };
    } else if (type === "await") {
      nodes[id] = { type, ...common, ...fields, policy: joining, onTimeout: ways > 1 ? ahead : undefined };
    } else if (type === "sleep") nodes[id] = { type, ...common, ...fields };
    else {
      const dynamic = type === "task" && ways === 3 && ahead !== undefined ? { dynamic: [ahead] } : {};
      nodes[id] = { type, ...common, ...fields, ...dynamic, onFailure: ways > 1 ? ahead : undefined };
    }
  });
  return nodes;
}
