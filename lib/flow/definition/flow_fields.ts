/**
 * Description of a flow as a whole.
 *
 * The order of fields is part of the format, as in `fields.ts`.
 *
 * @module
 */
import { Decimal } from "../../json.ts";
import { type AnyFields, types } from "../../workflow/field_type.ts";
import { NODE_ID, POSITIVE, TOKEN } from "./fields.ts";
import { NODE } from "./node_kinds.ts";

const CHANNEL = types.looseBlock({
  reducer: {
    type: types.oneOf("replace", "append", "merge", "sum"),
    summary:
      "How a write meets what is there: the last one wins, lists are put together (anything else becomes an element), objects are merged field by field, numbers are added",
    default: "replace",
  },
  default: { type: types.any(), summary: "Value at the start; none before the first write without it" },
}, {
  check({ reducer, default: value }, report) {
    if (value === undefined || value === null) return;
    const wanted = DEFAULTS[reducer as string];
    if (wanted !== undefined && !wanted.fits(value)) {
      report(
        ["default"],
        "wrong_type",
        `the default of a channel with reducer ${String(reducer)} is ${wanted.what}`,
      );
    }
  },
});

const DEFAULTS: Readonly<Record<string, { readonly what: string; fits(value: unknown): boolean }>> = {
  append: { what: "a list", fits: Array.isArray },
  merge: {
    what: "an object",
    fits: (value) => typeof value === "object" && !Array.isArray(value) && !isNumber(value),
  },
  sum: { what: "a number", fits: isNumber },
};

/** Whether a value of a document is a number, in whatever way it is kept. */
function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint" || value instanceof Decimal;
}

/** Parts between points; `*` stands for a part, `>` at the end for one or more. */
const SUBJECT = /^(?:>|(?:\*|[^\s.*>]+)(?:\.(?:\*|[^\s.*>]+))*(?:\.>)?)$/;

const TRIGGER = types.looseBlock({
  subject: {
    type: types.matching(SUBJECT, "a subject such as orders.created"),
    summary: "Subject of the messages",
    required: true,
    example: "orders.created",
  },
  stream: {
    type: TOKEN,
    summary:
      "Stream that keeps them: each starts one execution. Without it a message nobody is there for is lost",
    example: "ORDERS",
  },
});

/** Fields of a flow. */
export const FLOW_FIELDS = {
  name: { type: TOKEN, summary: "Name of the flow", required: true, example: "order-saga" },
  version: {
    type: types.oneOfWith(["1"], { same: { "": "1" } }),
    summary: "Version of the format",
    default: "1",
  },
  description: { type: types.text(), summary: "What it is for" },
  start: {
    type: NODE_ID,
    summary: "Node an execution begins with; without it the one node that nothing leads to",
    example: "reserve",
  },
  channels: {
    type: types.map(CHANNEL),
    summary: "State that tasks share, by name",
    example: { total: { reducer: "sum", default: 0 } },
  },
  output: {
    type: types.expression(),
    summary:
      "Expression that gives the output, an object; without it all channels where there are any, else the result of the last node",
    example: "{receipt: results.charge.receipt}",
  },
  nodes: { type: types.list(NODE, 1), summary: "The nodes", required: true },
  budget: {
    type: types.map(types.number({ above: 0 })),
    summary: "Most of a counter; above it the execution fails as budget_exceeded. steps are node entries",
    example: { tokens: 100_000 },
  },
  max_steps: {
    type: types.int({ min: 0 }),
    summary: "Most entries of nodes; the next one fails the execution. 0 means 1000",
    default: 1000,
  },
  search_attributes: {
    type: types.map(types.expression()),
    summary: "Expressions over input that executions can be found by",
    example: { customer: "input.customer" },
  },
  retention: {
    type: types.duration(),
    summary: "How long a finished execution stays as it is; for ever without it",
    example: "720h",
  },
  on_expire: {
    type: types.oneOf("archive", "delete"),
    summary: "What becomes of it then",
    default: "archive",
  },
  archive_retention: {
    type: types.duration(),
    summary: "How long an archived execution is kept; for ever without it",
    example: "8760h",
  },
  triggers: {
    type: types.list(TRIGGER),
    summary: "Subjects whose messages start executions; one that is no object becomes `data` of the input",
  },
  deadline: {
    type: POSITIVE,
    summary: "Longest an execution may take; then it fails as deadline_exceeded",
    example: "24h",
  },
} as const satisfies AnyFields;

/** A whole flow, as one type. */
export const FLOW = types.looseBlock(FLOW_FIELDS, {
  rules: [{
    kind: "forbids",
    when: { field: "on_expire", in: ["delete"] },
    fields: ["archive_retention"],
    because: "nothing is archived where on_expire is {value}",
  }],
});
