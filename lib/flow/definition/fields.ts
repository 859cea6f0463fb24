/**
 * Descriptions of what several kinds of nodes share, and of the settings of the built-in kinds of tasks.
 *
 * The order of fields is part of the format: the canonical form, and so the hash, follows it. A new field goes to the
 * end of its block.
 *
 * @module
 */
import { type AnyFields, type FieldType, types } from "../../workflow/field_type.ts";

/** Names of flows, nodes, channels, signals, kinds, counters and attributes. */
export const TOKEN_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

/** The type of such names. */
export const TOKEN: FieldType<string> = types.matching(
  TOKEN_PATTERN,
  "a name: up to 128 letters, digits, _ and -",
);

/** The type of fields that name a node. */
export const NODE_ID: FieldType<string> = types.matching(TOKEN_PATTERN, "the id of a node");

/** A duration above zero; fractions of a millisecond are rounded up. */
export const POSITIVE: FieldType<number> = types.duration(Number.MIN_VALUE);

/** Text with `{{ expression }}` in it. This very object marks a template: descriptions are compared with it. */
export const TEMPLATE: FieldType<string> = {
  kind: "text",
  what: "a text, which may hold {{ expressions }}",
};

/** A value whose texts are expressions. This very object marks it, as with {@link TEMPLATE}. */
export const SHAPE: FieldType<unknown> = { kind: "any" };

/** The node entered next. */
export const NEXT = { type: NODE_ID, summary: "Node entered next; without it the execution completes here" };

/** The node entered after a failure. */
export const ON_FAILURE = {
  type: NODE_ID,
  summary: "Node entered when this one has failed; without it the execution fails",
};

/** Free data. */
export const META = {
  type: types.map(types.any()),
  summary: "Free data for workers and tools",
  example: { team: "payments" },
};

/** The retry block. */
export const RETRY: FieldType = types.looseBlock({
  max_attempts: {
    type: types.int({ min: 0, max: 64 }),
    summary: "All attempts together; 0 and 1 mean no retry",
    default: 1,
    example: 3,
  },
  backoff: {
    type: types.oneOf("fixed", "linear", "exponential"),
    summary: "The wait before retry n: delay, delay × n, or delay × 2^(n − 1)",
    default: "fixed",
  },
  delay: {
    type: POSITIVE,
    summary: "First wait, from the failure",
    default: "1s",
  },
  max_delay: {
    type: POSITIVE,
    summary: "Longest wait; never below delay",
    default: "5m",
  },
  jitter: {
    type: types.number({ min: 0, max: 1 }),
    summary: "Share of the wait that is cut off at random: 0.2 waits between 80 and 100 percent of it",
    default: 0,
  },
  max_elapsed: {
    type: POSITIVE,
    summary: "No retry begins later than this after the first attempt; no limit without it",
  },
  except: {
    type: types.list(types.matching(/\S/, "a reason or the name of an error"), 1),
    summary: "Reasons, or names of errors, that are final at once",
    example: ["CardRefused", "invalid_output"],
  },
}, {
  rules: [{
    kind: "forbids",
    when: { field: "max_attempts", in: [0, 1] },
    fields: ["backoff"],
    because: "max_attempts is {value}, so there is no retry",
  }],
});

const CONCURRENCY: FieldType = types.looseBlock({
  key: {
    type: types.expression(),
    summary: "Expression; the limit holds for each of its values",
    required: true,
    example: "input.customer",
  },
  max: { type: types.int({ min: 1 }), summary: "Most jobs at once", required: true, example: 2 },
});

const RATE: FieldType = types.looseBlock({
  max: { type: types.int({ min: 1 }), summary: "Most jobs in the time", required: true, example: 10 },
  per: { type: POSITIVE, summary: "The time", default: "1s" },
  key: { type: types.expression(), summary: "Expression; the limit holds for each of its values" },
});

/** Fields of work by a worker, in the order of the format: those a map of tasks has too. */
export const POLICY = {
  kind: { type: TOKEN, summary: "Kind of worker; http, emit and log are built in", example: "charge-card" },
  timeout: {
    type: POSITIVE,
    summary: "Longest an attempt may take; then it fails as timeout and may be retried",
    example: "30s",
  },
  retry: { type: RETRY, summary: "Further attempts" },
  output_schema: {
    type: types.map(types.any()),
    summary: "JSON Schema of the output; it refers to nothing outside of itself",
    example: { type: "object", required: ["receipt"] },
  },
  concurrency: { type: CONCURRENCY, summary: "Most jobs at once, over all executions" },
  with: {
    type: types.map(types.any()),
    summary: "Settings of a built-in kind",
    example: { method: "POST", url: "https://example.com/pay" },
  },
  heartbeat: {
    type: POSITIVE,
    summary: "Longest an attempt may be silent; then it fails as heartbeat_timeout and may be retried",
    example: "20s",
  },
  rate: { type: RATE, summary: "Most jobs in a time, over all executions" },
  priority: {
    type: types.int({ min: -100, max: 100 }),
    summary: "Jobs of a higher priority are handed out first",
    default: 0,
  },
} as const satisfies AnyFields;

/** How children end with their parent. */
export const ON_PARENT_CLOSE = {
  type: types.oneOf("cancel", "abandon"),
  summary: "What becomes of a child that is under way when this execution ends",
  default: "cancel",
} as const;

/** A kind of task that needs no worker. */
export interface BuiltInKind {
  readonly kind: string;
  readonly summary: string;
  /** A node of a flow, as YAML. */
  readonly example: string;
  /** Its `with`. */
  readonly settings: Extract<FieldType, { kind: "block" }>;
}

/** All of them. */
export const BUILT_IN_KINDS: readonly BuiltInKind[] = [
  {
    kind: "http",
    summary:
      "One HTTP request. Attempts carry the same `Idempotency-Key`. The output is `{status, headers, body}`.",
    example: `id: notify
type: task
kind: http
with:
  method: POST
  url: https://example.com/orders/{{ input.order }}
  headers: { accept: application/json }
  body: { order: input.order, paid: results.charge.receipt }
  expect: [200, 202]
`,
    settings: block({
      method: {
        type: types.oneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
        summary: "Method of the request",
        default: "GET",
      },
      url: {
        type: TEMPLATE,
        summary: "Address; what expressions put in is percent-encoded, but for one at its very beginning",
        required: true,
        example: "https://example.com/orders/{{ input.order }}",
      },
      headers: {
        type: types.map(TEMPLATE),
        summary: "Headers by name",
        example: { accept: "application/json" },
      },
      body: {
        type: SHAPE,
        summary: "Sent as JSON: an expression, or a block or list in which every text is one",
        example: { order: "input.order" },
      },
      expect: {
        type: types.list(types.int({ min: 100, max: 599 }), 1),
        summary: "Statuses that are a success; 200 to 299 without it",
        example: [200, 404],
      },
    }, (values, report) => {
      if (values.body === undefined) return;
      if (values.method === "GET" || values.method === "HEAD") {
        report(["body"], "excluded", `a ${String(values.method)} request has no body`, "set method: POST");
      }
    }),
  },
  {
    kind: "emit",
    summary: "One record to a source of a stream, or to a topic. The output is an empty object.",
    example: `id: announce
type: task
kind: emit
with:
  topic: orders-paid
  key: input.order
  value: { order: input.order, receipt: results.charge.receipt }
`,
    settings: {
      ...block({
        source: { type: types.matching(/\S/, "the id of a source"), summary: "Source of a stream" },
        topic: {
          type: types.matching(/\S/, "the name of a topic"),
          summary: "Topic",
          example: "orders-paid",
        },
        key: {
          type: types.expression(),
          summary: "Expression that gives the key; the execution's id without it",
        },
        value: {
          type: SHAPE,
          summary: "The value: an expression, or a block or list in which every text is one",
          required: true,
          example: { order: "input.order" },
        },
      }),
      rules: [{ kind: "oneOf", groups: [{ required: ["source"] }, { required: ["topic"] }] }],
    },
  },
  {
    kind: "log",
    summary: "One line in the log. The output is an empty object.",
    example: `id: tell
type: task
kind: log
with: { message: "order {{ input.order }} is paid" }
`,
    settings: block({
      message: { type: TEMPLATE, summary: "The line; the node's id without it", example: "paid" },
    }),
  },
];

function block(
  fields: AnyFields,
  check?: BuiltInKind["settings"]["check"],
): Extract<FieldType, { kind: "block" }> {
  return { kind: "block", fields, ...(check === undefined ? {} : { check }) };
}

/** The built-in kind of a name. */
export function builtInKind(kind: unknown): BuiltInKind | undefined {
  return BUILT_IN_KINDS.find((one) => one.kind === kind);
}
