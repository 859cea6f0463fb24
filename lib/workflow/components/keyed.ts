/**
 * Keys, and the operators that work on one key at a time.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import { type AnyFields, type Field, type Fields, types, type Variant } from "../field_type.ts";
import { LABEL } from "./common.ts";

/** Chooses the key. */
export const keyBy: OperatorComponent = {
  kind: "operator",
  type: "keyBy",
  summary: "Chooses the key of each record. What comes behind it works on one key at a time.",
  carried: true,
  example: `id: by-customer
type: keyBy
keyBy: { field: customer.id, partitions: 4 }
`,
  block: types.looseBlock<blocks.KeyByBlock>({
    field: { type: types.path(), summary: "Field with the key", example: "customer.id" },
    fields: {
      type: types.list(types.path(), 1),
      summary: "Fields that make the key together",
      example: ["rack", "host"],
    },
    expr: { type: types.expression(), summary: "Expression that gives the key", example: "value.id % 10" },
    partitions: {
      type: types.int({ min: 0, max: 1024 }),
      summary: "Workers that share the keys; 0 means 16",
      default: 16,
    },
    label: LABEL,
  }, {
    rules: [{
      kind: "oneOf",
      groups: [{ required: ["field"] }, { required: ["fields"] }, { required: ["expr"] }],
    }],
    check({ fields }, report) {
      const seen = new Set<unknown>();
      (fields as readonly string[] | undefined ?? []).forEach((field, i) => {
        if (seen.has(field)) report(["fields", i], "duplicate", `"${field}" is already part of the key`);
        seen.add(field);
      });
    },
    finish: (block) => ({ ...block, partitions: block.partitions === 0 ? 16 : block.partitions }),
  }),
};

const FIELD: Fields<{ field: string }>["field"] = {
  type: types.path(),
  summary: "Field the function looks at",
  required: true,
  example: "amount",
};

const RUNNING_TTL: Field<number> = {
  type: types.duration(1),
  summary: "Forget a key when event time has gone on this far from its latest record; not behind a window",
  example: "1d",
};

/** One running result. */
export const reduce: OperatorComponent = {
  kind: "operator",
  type: "reduce",
  summary: "Key and one result: a new row for every record, or behind a window one row when it closes.",
  carried: true,
  needsKey: true,
  endsWindow: true,
  example: `id: totals
type: reduce
reduce: { function: sum, field: amount }
`,
  block: types.looseBlock<blocks.ReduceBlock>({
    function: {
      type: types.oneOf("count", "sum", "avg", "min", "max", "first", "last"),
      summary: "count counts records; the others look at a field",
      required: true,
      example: "sum",
    },
    field: { type: types.path(), summary: "Field the function looks at", example: "amount" },
    as: {
      type: types.path(),
      summary: "Name of the result; the function's name unless given",
      example: "total",
    },
    ttl: RUNNING_TTL,
    label: LABEL,
  }, {
    rules: [{
      kind: "requires",
      when: { field: "function", notIn: ["count"] },
      fields: ["field"],
      because: "{value} needs a field",
    }],
    finish: (block) => ({ ...block, as: block.as ?? block.function }),
  }),
};

const ORDER = {
  type: types.oneOf("desc", "asc"),
  summary: "desc: largest first",
  default: "desc",
} as const;

/** Fields of `topN`, as an operator and as a function. */
const TOP_N: Fields<blocks.TopNBlock> = {
  n: { type: types.int({ min: 1, max: 10_000 }), summary: "How many records", required: true, example: 3 },
  by: { type: types.path(), summary: "Field that ranks them", required: true, example: "amount" },
  order: ORDER,
};

const OF_A_FIELD: AnyFields = { field: FIELD };
const FUNCTIONS: Readonly<Record<string, Variant>> = {
  count: { summary: "Number of records", fields: {} },
  sum: { summary: "Sum of numbers, exact for integers", fields: OF_A_FIELD },
  avg: { summary: "Mean of numbers", fields: OF_A_FIELD },
  min: { summary: "Least number or text", fields: OF_A_FIELD },
  max: { summary: "Greatest number or text", fields: OF_A_FIELD },
  first: { summary: "Value of the earliest record", fields: OF_A_FIELD },
  last: { summary: "Value of the latest record", fields: OF_A_FIELD },
  distinct: { summary: "Number of different values, exact", fields: OF_A_FIELD },
  percentile: {
    summary: "Value below which p percent of the values lie, by nearest rank",
    fields: {
      field: FIELD,
      p: { type: types.number({ above: 0, max: 100 }), summary: "Percent", required: true, example: 95 },
    },
  },
  topN: { summary: "The best records as a list", fields: TOP_N },
  collect: {
    summary: "Values, or whole records without a field, as a list",
    fields: {
      field: { type: types.path(), summary: "Field to collect; whole records without it" },
      limit: {
        type: types.int({ min: 1, max: 100_000 }),
        summary: "Most that are kept: the first",
        default: 100,
      },
    },
  },
};

/** Several results at once. */
export const aggregate: OperatorComponent = {
  kind: "operator",
  type: "aggregate",
  summary: "Key and several results: a new row for every record, or behind a window one row when it closes.",
  carried: true,
  needsKey: true,
  endsWindow: true,
  example: `id: stats
type: aggregate
aggregate: { functions: [ { as: orders, function: count }, { as: total, function: sum, field: amount } ] }
`,
  block: types.block<blocks.AggregateBlock>({
    functions: {
      type: types.list(
        types.variants<blocks.AggregateFunction>(
          "function",
          "What to compute",
          {
            as: {
              type: types.path(),
              summary: "Name of the result; the function's name unless given",
              example: "total",
            },
          },
          FUNCTIONS,
          { finish: (one) => ({ ...one, as: one.as ?? one.function }) },
        ),
        1,
      ),
      summary: "What to compute",
      required: true,
    },
    ttl: RUNNING_TTL,
  }),
};

/** The best of a window. */
export const topN: OperatorComponent = {
  kind: "operator",
  type: "topN",
  summary: "The best records of each key and window, best first, each with its rank.",
  carried: true,
  needsKey: true,
  needsWindow: true,
  endsWindow: true,
  example: `id: best
type: topN
topN: { n: 3, by: amount, order: desc }
`,
  block: types.block<blocks.TopNBlock>(TOP_N),
};

/** The first of each key. */
export const dedupe: OperatorComponent = {
  kind: "operator",
  type: "dedupe",
  summary: "Passes the first record of a key, and none for a time of event time after it.",
  carried: true,
  needsKey: true,
  example: `id: once
type: dedupe
dedupe: { ttl: 1h }
`,
  block: types.block<blocks.DedupeBlock>({
    ttl: { type: types.duration(1), summary: "How long a key is remembered", required: true, example: "1h" },
  }),
};
