/**
 * Operators that split, join, pace and thin the stream.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import { type AnyFields, type Field, types } from "../field_type.ts";
import { LABEL, NAME } from "./common.ts";
import { WINDOW } from "./window.ts";

/** Named ways on. */
export const route: OperatorComponent = {
  kind: "operator",
  type: "route",
  summary:
    "Sends each record to the output of the first route that is true, else to the default, else nowhere (counted). Its outputs are read by name.",
  carried: true,
  parallel: true,
  namedOutputsOnly: true,
  example: `id: split
type: route
route: { routes: [ { name: eu, when: 'value.region == "eu"' } ], default: rest }
`,
  block: types.block<blocks.RouteBlock>({
    routes: {
      type: types.list(
        types.block<{ name: string; when: string }>({
          name: { type: NAME, summary: "Name of the output", required: true, example: "eu" },
          when: {
            type: types.expressionOf("bool"),
            summary: "Expression that is true for its records",
            required: true,
            example: 'value.region == "eu"',
          },
        }),
        1,
      ),
      summary: "Routes, tried in order",
      required: true,
    },
    default: { type: NAME, summary: "Output of the records no route takes", example: "rest" },
  }, {
    check({ routes }, report) {
      const seen = new Set<string>();
      (routes as blocks.RouteBlock["routes"]).forEach(({ name }, i) => {
        if (seen.has(name)) report(["routes", i, "name"], "duplicate", `there is already a route "${name}"`);
        seen.add(name);
      });
    },
  }),
  sideOutputs(block) {
    const { routes, default: other } = block as unknown as blocks.RouteBlock;
    return [...new Set([...routes.map(({ name }) => name), ...(other === undefined ? [] : [other])])];
  },
};

const SIDES: AnyFields = {
  left: { type: types.text(), summary: "Node on the left side", example: "orders" },
  right: { type: types.text(), summary: "Node on the right side", example: "payments" },
  label: LABEL,
  as: {
    type: types.block<{ left: string; right: string }>({
      left: { type: types.path(), summary: "Name of the left record in a row", default: "left" },
      right: { type: types.path(), summary: "Name of the right record in a row", default: "right" },
    }, {
      check({ left, right }, report) {
        if (left === right) report(["right"], "duplicate", "left and right have the same name");
      },
    }),
    summary: "Names of the two records in a row",
    default: {},
  },
};
const KIND: Field<"inner" | "left" | "right" | "full"> = {
  type: types.oneOf("inner", "left", "right", "full"),
  summary: "Which records without a partner give rows as well",
  default: "inner",
};
const BY_NODES = { kind: "oneOf", groups: [{ required: ["left", "right"] }] } as const;

/** Pairs of two inputs. */
export const join: OperatorComponent = {
  kind: "operator",
  type: "join",
  summary: "Pairs records of two inputs that have the same key.",
  carried: false,
  needsKey: true,
  example: `id: paid
type: join
join: { left: orders, right: payments, within: 15m }
`,
  block: types.variants<blocks.JoinBlock>("type", "How records find each other", SIDES, {
    interval: {
      summary: "By the distance of their event times",
      fields: {
        kind: KIND,
        leftSource: { type: types.text(), summary: "The same as left, in the older format" },
        rightSource: { type: types.text(), summary: "The same as right, in the older format" },
        within: { type: types.duration(), summary: "Largest distance, either way", example: "15m" },
        before: {
          type: types.duration(),
          summary: "How much earlier the right record may be",
          example: "2m",
        },
        after: { type: types.duration(), summary: "How much later the right record may be", example: "15m" },
      },
      rules: [
        {
          kind: "oneOf",
          groups: [{ required: ["left", "right"] }, { required: ["leftSource", "rightSource"] }],
        },
        { kind: "oneOf", groups: [{ required: ["within"] }, { required: ["before", "after"] }] },
      ],
    },
    window: {
      summary: "By being in the same window",
      fields: {
        kind: KIND,
        window: {
          type: WINDOW,
          summary: "The window",
          required: true,
          example: { type: "tumbling", size: "5m" },
        },
      },
      rules: [BY_NODES],
    },
    lookup: {
      summary: "Each left record with the latest right record of its key",
      fields: {
        kind: {
          ...KIND,
          type: types.oneOf("inner", "left"),
          summary: "left: rows without a right record as well",
        },
        ttl: {
          type: types.duration(1),
          summary: "How long a right record is remembered; for ever without it",
        },
      },
      rules: [BY_NODES],
    },
  }, {
    default: "interval",
    finish(block) {
      const { within } = block;
      return within === undefined ? block : { ...block, before: within, after: within };
    },
  }),
};

/** Not faster than so much. */
export const throttle: OperatorComponent = {
  kind: "operator",
  type: "throttle",
  summary: "Holds records back so that no more than a number pass in a time.",
  carried: true,
  example: `id: slow
type: throttle
throttle: { rate: 100, per: 1s }
`,
  block: types.block<blocks.ThrottleBlock>({
    rate: {
      type: types.number({ above: 0 }),
      summary: "Records that may pass",
      required: true,
      example: 100,
    },
    per: { type: types.duration(1), summary: "In this time", default: "1s" },
  }),
};

/** Some of them. */
export const sample: OperatorComponent = {
  kind: "operator",
  type: "sample",
  summary: "Passes a share of the records, the same ones in every run.",
  carried: true,
  example: `id: some
type: sample
sample: { ratio: 0.1, seed: 7 }
`,
  block: types.block<blocks.SampleBlock>({
    ratio: {
      type: types.number({ min: 0, max: 1 }),
      summary: "Share that passes",
      required: true,
      example: 0.1,
    },
    seed: { type: types.int(), summary: "Another number chooses other records", default: 0 },
  }),
};

/** Lists of values. */
export const batch: OperatorComponent = {
  kind: "operator",
  type: "batch",
  summary: "Gathers values into lists.",
  carried: false,
  example: `id: hundred
type: batch
batch: { size: 100, every: 1s }
`,
  block: types.block<blocks.BatchBlock>({
    size: { type: types.int({ min: 1 }), summary: "Most values in a list", example: 100 },
    every: { type: types.duration(1), summary: "Longest wait for more values", example: "1s" },
  }, { rules: [{ kind: "anyOf", fields: ["size", "every"] }] }),
};
