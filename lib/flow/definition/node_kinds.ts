/**
 * Descriptions of the nodes of a flow: the one source of their validation, JSON Schema and reference.
 *
 * The order of fields is part of the format, as in `fields.ts`.
 *
 * @module
 */
import { type AnyFields, type Report, type Rule, types } from "../../workflow/field_type.ts";
import {
  META,
  NEXT,
  NODE_ID,
  ON_FAILURE,
  ON_PARENT_CLOSE,
  POLICY,
  POSITIVE,
  TEMPLATE,
  TOKEN,
} from "./fields.ts";
import { END, type NodeType } from "./types.ts";

/** Values of a block by the names of its fields. */
export type Values = Readonly<Record<string, unknown>>;

/** A kind of node. */
export interface NodeKind {
  readonly type: NodeType;
  /** One or two sentences for the reference page and for editors. */
  readonly summary: string;
  /** Fields beside `id` and `type`. */
  readonly fields: AnyFields;
  readonly rules?: readonly Rule[];
  /** A node of a flow, as YAML. */
  readonly example: string;
  /** Rules no schema can say; called only on a node without other problems. */
  check?(values: Values, report: Report): void;
}

/** Fields of every node, in front of those of its kind. */
export const NODE_FIELDS = {
  id: { type: TOKEN, summary: "Name of the node in its flow", required: true, example: "charge" },
} as const satisfies AnyFields;

const TARGET = types.matching(/^(?:[A-Za-z0-9_-]{1,128}|\$end)$/, `the id of a node, or ${END}`);

const task: NodeKind = {
  type: "task",
  summary: "Work for a worker: one attempt, or several.",
  example: `id: charge
type: task
kind: charge-card
timeout: 30s
retry: { max_attempts: 4, backoff: exponential, delay: 10s }
next: ship
on_failure: release
`,
  fields: {
    next: NEXT,
    meta: META,
    on_failure: ON_FAILURE,
    kind: { ...POLICY.kind, required: true },
    timeout: POLICY.timeout,
    retry: POLICY.retry,
    output_schema: POLICY.output_schema,
    cache: {
      type: types.looseBlock({
        ttl: { type: POSITIVE, summary: "How long", required: true, example: "1h" },
      }),
      summary: "Takes the result of an earlier job of this node with the same inputs",
    },
    concurrency: POLICY.concurrency,
    dynamic: {
      type: types.list(NODE_ID, 1),
      summary: "Nodes the worker may name as the next one; otherwise next",
      example: ["act", "answer"],
    },
    with: POLICY.with,
    heartbeat: POLICY.heartbeat,
    rate: POLICY.rate,
    priority: POLICY.priority,
  },
  check({ dynamic }, report) {
    noDoubles(dynamic as readonly string[] | undefined, "dynamic", report);
  },
};

const choice: NodeKind = {
  type: "choice",
  summary: "Goes to the first rule that is true, else to the default, wherever that stands.",
  example: `id: check
type: choice
rules:
  - { when: signals.decision.ok == true, to: pay }
  - { default: true, to: $end }
`,
  fields: {
    meta: META,
    rules: {
      type: types.list(
        types.looseBlock({
          when: {
            type: types.expression(),
            summary: "Expression that gives true or false",
            example: "input.amount > 100",
          },
          default: { type: types.boolean(), summary: "true: the rule for when no other is", example: true },
          to: {
            type: TARGET,
            summary: `Node entered next, or ${END}: the execution completes here with the flow's output`,
            required: true,
            example: "pay",
          },
        }, { check: checkRule }),
        1,
      ),
      summary: "Ways out; exactly one is the default",
      required: true,
      example: [{ when: "input.amount > 100", to: "approve" }, { default: true, to: "pay" }],
    },
    on_error: {
      type: types.oneOfWith(["skip", "fail"], { same: { "": "skip" } }),
      summary: "What an expression that fails does: its rule counts as not true, or the execution fails",
      default: "skip",
    },
  },
  check({ rules }, report) {
    const defaults = (rules as readonly Values[]).flatMap((rule, i) => rule.default === true ? [i] : []);
    if (defaults.length === 0) {
      report(["rules"], "missing", "one of the rules is the default", `add { default: true, to: ${END} }`);
    }
    for (const i of defaults.slice(1)) {
      report(["rules", i, "default"], "duplicate", `rule ${defaults[0]} is the default already`);
    }
  },
};

function checkRule(rule: Values, report: Report): void {
  if (rule.default === true && rule.when !== undefined) {
    report(
      ["when"],
      "excluded",
      `"when" cannot stand beside "default"`,
      "the default is what no other rule takes",
    );
  } else if (rule.default !== true && rule.when === undefined) {
    report(["when"], "missing", "needs when, or default: true");
  }
}

const fanout: NodeKind = {
  type: "fanout",
  summary: "Begins all its branches at once; the join in `next` closes it.",
  example: `id: ask
type: fanout
branches: [ask-a, ask-b, ask-c]
next: votes
`,
  fields: {
    next: { type: NODE_ID, summary: "The join that closes it", required: true, example: "votes" },
    meta: META,
    branches: {
      type: types.list(NODE_ID, 1),
      summary: "Tasks and subflows, 1 to 256, which have no next of their own",
      required: true,
      example: ["ask-a", "ask-b"],
    },
  },
  check({ branches }, report) {
    const list = branches as readonly string[];
    if (list.length > 256) report(["branches"], "too_many", `there are ${list.length} branches, 256 at most`);
    noDoubles(list, "branches", report);
  },
};

const QUORUM = /^quorum:([1-9]\d{0,2})$/;

const join: NodeKind = {
  type: "join",
  summary:
    "Settles as soon as enough branches have succeeded, or too many have failed; what is still under way is cancelled. Its result is an object of the outputs that were there by then.",
  example: `id: votes
type: join
policy: quorum:2
next: report
on_failure: sorry
`,
  fields: {
    next: NEXT,
    meta: META,
    on_failure: ON_FAILURE,
    wait_for: {
      type: types.list(NODE_ID, 1),
      summary: "Branches that count; all without it",
      example: ["ask-a", "ask-b"],
    },
    policy: {
      type: types.matching(/^(?:all|any|quorum:[1-9]\d{0,2})$/, "all, any or quorum:N"),
      summary: "How many of them have to succeed: all, any, or N of them",
      default: "all",
      example: "quorum:2",
    },
  },
  check({ wait_for: waitFor }, report) {
    noDoubles(waitFor as readonly string[] | undefined, "wait_for", report);
  },
};

/** How many of so many branches a policy asks for. */
export function neededOf(policy: string, awaited: number): number {
  const quorum = QUORUM.exec(policy);
  return quorum !== null ? Number(quorum[1]) : policy === "any" ? 1 : awaited;
}

const await_: NodeKind = {
  type: "await",
  summary:
    "Waits for a signal, or for several; one that came before counts. The payload is `signals.NAME` and the node's result; of several, the result is an object of payloads by signal.",
  example: `id: wait
type: await
signal: decision
timeout: 48h
on_timeout: escalate
next: check
`,
  fields: {
    next: NEXT,
    meta: META,
    signal: { type: TOKEN, summary: "The signal", example: "decision" },
    timeout: { type: POSITIVE, summary: "Longest wait", required: true, example: "48h" },
    on_timeout: {
      type: NODE_ID,
      summary: "Node entered when the time is up; without it the execution fails as await_timeout",
      example: "escalate",
    },
    signals: { type: types.list(TOKEN, 1), summary: "Several signals", example: ["paid", "refused"] },
    policy: {
      type: types.oneOf("all", "any"),
      summary: "Whether all of several signals are waited for, or the first of them",
      default: "all",
    },
  },
  rules: [{
    kind: "oneOf",
    groups: [{ required: ["signal"] }, { required: ["signals"], optional: ["policy"] }],
  }],
  check({ signals }, report) {
    const list = signals as readonly string[] | undefined;
    noDoubles(list, "signals", report);
    if (list?.length === 1) {
      report(["signals"], "too_few", "expected at least two signals, found one", `write signal: ${list[0]}`);
    }
  },
};

const map: NodeKind = {
  type: "map",
  summary:
    "The same for every element of a list: a task (`kind`) or an execution of another flow (`flow`). Its result is the list of outputs, in the order of the elements. `input` and `on_parent_close` go with `flow`, what is about workers goes with `kind`.",
  example: `id: each
type: map
over: results.list.items
max_parallel: 2
kind: price
retry: { max_attempts: 2, delay: 5s }
next: done
on_failure: broken
`,
  fields: {
    next: NEXT,
    meta: META,
    on_failure: ON_FAILURE,
    over: {
      type: types.expression(),
      summary: "Expression that gives the list; null is an empty one",
      required: true,
      example: "input.items",
    },
    max_parallel: {
      type: types.int({ min: 0, max: 256 }),
      summary: "Most elements under way at once; 0 means 100",
      default: 100,
    },
    kind: POLICY.kind,
    timeout: POLICY.timeout,
    retry: POLICY.retry,
    output_schema: POLICY.output_schema,
    flow: { type: TOKEN, summary: "Flow that is executed for every element", example: "price-one" },
    input: {
      type: types.expression(),
      summary:
        "Expression that gives a child's input, over item and index too; the element itself without it",
      example: "{sku: item.sku, position: index}",
    },
    on_parent_close: ON_PARENT_CLOSE,
    concurrency: POLICY.concurrency,
    with: POLICY.with,
    heartbeat: POLICY.heartbeat,
    rate: POLICY.rate,
    priority: POLICY.priority,
  },
  rules: [{
    kind: "oneOf",
    groups: [{
      required: ["kind"],
      optional: ["timeout", "retry", "output_schema", "concurrency", "with", "heartbeat", "rate", "priority"],
    }, { required: ["flow"], optional: ["input", "on_parent_close"] }],
  }],
};

const subflow: NodeKind = {
  type: "subflow",
  summary: "An execution of another flow, whose output is the result.",
  example: `id: ask
type: subflow
flow: credit-check
input: "{customer: input.customer}"
next: decide
on_failure: sorry
`,
  fields: {
    next: NEXT,
    meta: META,
    on_failure: ON_FAILURE,
    flow: {
      type: TOKEN,
      summary: "The flow; its newest version when the child starts",
      required: true,
      example: "credit-check",
    },
    input: {
      type: types.expression(),
      summary: "Expression that gives the child's input, an object; this execution's input without it",
      example: "{customer: input.customer}",
    },
    on_parent_close: ON_PARENT_CLOSE,
  },
};

const sleep: NodeKind = {
  type: "sleep",
  summary: "Lets time pass. It has no result.",
  example: `id: nap
type: sleep
for: 24h
next: remind
`,
  fields: {
    next: NEXT,
    meta: META,
    for: { type: types.duration(), summary: "How long", example: "24h" },
    until: {
      type: types.expression(),
      summary: "Expression that gives the end as RFC 3339 text; an end in the past is now",
      example: "input.due",
    },
  },
  rules: [{ kind: "oneOf", groups: [{ required: ["for"] }, { required: ["until"] }] }],
};

const fail: NodeKind = {
  type: "fail",
  summary: "Ends the execution as failed, with reason `failed`.",
  example: `id: refused
type: fail
message: order {{ input.order }} is refused
`,
  fields: {
    meta: META,
    message: {
      type: TEMPLATE,
      summary: "What is told, with expressions where they are wanted",
      required: true,
      example: "order refused",
    },
  },
};

/** All kinds, in the order of the reference. */
export const NODE_KINDS: readonly NodeKind[] = [
  task,
  choice,
  fanout,
  join,
  await_,
  map,
  subflow,
  sleep,
  fail,
];

/** A kind by its name. */
export function nodeKind(type: unknown): NodeKind | undefined {
  return NODE_KINDS.find((kind) => kind.type === type);
}

/** The type of a node: the form is chosen by `type`. */
export const NODE = types.variants(
  "type",
  "Kind of node",
  NODE_FIELDS,
  Object.fromEntries(
    NODE_KINDS.map(({ type, summary, fields, rules = [] }) => [type, { summary, fields, rules }]),
  ),
  { check: (values, report) => nodeKind(values.type)?.check?.(values, report) },
);

function noDoubles(names: readonly string[] | undefined, field: string, report: Report): void {
  const seen = new Set<string>();
  (names ?? []).forEach((name, i) => {
    if (seen.has(name)) report([field, i], "duplicate", `"${name}" stands here already`);
    seen.add(name);
  });
}
