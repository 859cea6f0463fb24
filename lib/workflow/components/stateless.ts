/**
 * Operators that look at one record at a time.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import { type Fields, types } from "../field_type.ts";
import { LABEL, NAME, PARALLELISM, TIMESTAMP_FIELDS } from "./common.ts";

const WITHOUT_VALUE = ["exists", "not_exists"];
const ORDERINGS = ["greater_than", "greater_than_or_equal", "less_than", "less_than_or_equal"];

/** Keeps records. */
export const filter: OperatorComponent = {
  kind: "operator",
  type: "filter",
  summary: "Keeps the records for which a comparison of a field, an expression, or code says true.",
  carried: true,
  parallel: true,
  example: `id: completed
type: filter
filter: { field: status, operator: equals, value: completed }
`,
  block: types.block<blocks.FilterBlock>({
    field: { type: types.path(), summary: "Field to compare", example: "status" },
    operator: {
      type: types.oneOf(
        "equals",
        "not_equals",
        "greater_than",
        "greater_than_or_equal",
        "less_than",
        "less_than_or_equal",
        "contains",
        "exists",
        "not_exists",
      ),
      summary: "How to compare; a missing field only satisfies not_exists",
      example: "equals",
    },
    value: {
      type: types.any(),
      summary: "What to compare with; numbers compare with numbers, texts with texts",
      example: "completed",
    },
    where: {
      type: types.expressionOf("bool"),
      summary: "Expression that is true or false",
      example: "value.amount > 10",
    },
    ref: { type: types.ref(), summary: "Function that gives true or false", example: "./ops.ts#isComplete" },
    label: LABEL,
    parallelism: PARALLELISM,
  }, {
    rules: [
      {
        kind: "oneOf",
        groups: [
          { required: ["field", "operator"], optional: ["value"] },
          { required: ["where"] },
          { required: ["ref"] },
        ],
      },
      {
        kind: "requires",
        when: { field: "operator", notIn: WITHOUT_VALUE },
        fields: ["value"],
        because: "{value} needs a value to compare with",
      },
    ],
    check({ operator, value }, report) {
      if (!ORDERINGS.includes(String(operator))) return;
      if (value !== null && typeof value !== "boolean" && !isBlockOrList(value)) return;
      report(["value"], "bad_value", `${operator} compares numbers or texts, and would keep no record here`);
    },
  }),
};

function isBlockOrList(value: unknown): boolean {
  return Array.isArray(value) ||
    (typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype);
}

const MAP_FIELDS: Fields<blocks.MapBlock> = {
  expr: {
    type: types.expression(),
    summary: "Expression that gives the new value",
    example: '{"id": value.id}',
  },
  ref: { type: types.ref(), summary: "Function that gives the new value", example: "./ops.ts#shape" },
  label: LABEL,
  parallelism: PARALLELISM,
};
const EXPR_OR_REF = [{ kind: "oneOf", groups: [{ required: ["expr"] }, { required: ["ref"] }] }] as const;

/** One value for one value. */
export const map: OperatorComponent = {
  kind: "operator",
  type: "map",
  summary: "Replaces the value of each record.",
  carried: true,
  parallel: true,
  example: `id: shape
type: map
map: { expr: '{"id": value.id, "total": value.qty * value.price}' }
`,
  block: types.block<blocks.MapBlock>(MAP_FIELDS, { rules: EXPR_OR_REF }),
};

/** Any number of values for one value. */
export const flatMap: OperatorComponent = {
  kind: "operator",
  type: "flatMap",
  summary: "Replaces each record by one record for every element of a list.",
  carried: true,
  parallel: true,
  example: `id: words
type: flatMap
flatMap: { expr: 'value.words' }
`,
  block: types.block<blocks.MapBlock>({
    ...MAP_FIELDS,
    expr: {
      type: types.expressionOf("list"),
      summary: "Expression that gives a list of new values",
      example: "value.words",
    },
    ref: {
      type: types.ref(),
      summary: "Function that gives a list of new values",
      example: "./ops.ts#words",
    },
  }, { rules: EXPR_OR_REF }),
};

/** Code with everything. */
export const process: OperatorComponent = {
  kind: "operator",
  type: "process",
  summary: "Runs code that may fail, use state and timers behind a keyBy, and write to side outputs.",
  carried: true,
  parallel: true,
  endsWindow: true,
  example: `id: check
type: process
process: { ref: './ops.ts#check', outputs: [rejected] }
`,
  block: types.block<blocks.ProcessBlock>({
    ref: { type: types.ref(), summary: "Function to run", required: true, example: "./ops.ts#check" },
    outputs: { type: types.list(NAME), summary: "Names of its side outputs", example: ["rejected"] },
    label: LABEL,
    parallelism: PARALLELISM,
  }),
  sideOutputs: ({ outputs }) => outputs as readonly string[] | undefined,
};

/** One record for each element. */
export const explode: OperatorComponent = {
  kind: "operator",
  type: "explode",
  summary:
    "Gives one record for each element of a list, the element in place of the list or under another name.",
  carried: true,
  parallel: true,
  example: `id: lines
type: explode
explode: { field: items, as: item }
`,
  block: types.looseBlock<blocks.ExplodeBlock>({
    field: { type: types.path(), summary: "Field with the list", required: true, example: "items" },
    as: {
      type: types.path(),
      summary: "Where the element goes; without it, where the list was",
      example: "item",
    },
  }, { finish: ({ field, as }) => ({ field, as: as ?? field }) }),
};

/** Event time from here on. */
export const timestamp: OperatorComponent = {
  kind: "operator",
  type: "timestamp",
  summary: "Takes event time from a field, and makes watermarks from here on.",
  carried: true,
  example: `id: event-time
type: timestamp
timestamp: { field: at, maxOutOfOrderness: 5s }
`,
  block: types.block<blocks.TimestampOperatorBlock>({
    ...TIMESTAMP_FIELDS,
    maxOutOfOrderness: {
      type: types.duration(),
      summary: "How far a record may be behind the newest one without being late",
      default: "0s",
      example: "5s",
    },
    idleTimeout: {
      type: types.duration(1),
      summary: "A split that gave nothing for so long holds no window open",
      example: "30s",
    },
  }),
};

/** Records that fit a schema. */
export const validate: OperatorComponent = {
  kind: "operator",
  type: "validate",
  summary: "Checks each value against a JSON Schema; one that does not fit has failed.",
  carried: false,
  parallel: true,
  example: `id: checked
type: validate
validate: { schema: { type: object, required: [id] } }
`,
  block: types.block<blocks.ValidateBlock>({
    schema: {
      type: types.schema(),
      summary: "The schema, or the path of a JSON file with it",
      required: true,
      example: { type: "object", required: ["id"] },
    },
  }),
};
