/**
 * Operators that ask or start something outside the pipeline.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import { types } from "../field_type.ts";

/** One request a record. */
export const http: OperatorComponent = {
  kind: "operator",
  type: "http",
  summary: "Asks an HTTP service for each record and adds its answer to the value.",
  carried: false,
  parallel: true,
  example: `id: enrich
type: http
http:
  urlExpr: '"https://example.com/customers/" + value.customer.id'
  headers: { authorization: "Bearer \${TOKEN:-none}" }
  as: customer.profile
`,
  block: types.block<blocks.HttpBlock>({
    url: { type: types.matching(/^https?:\/\/.+/, "an http or https URL"), summary: "Where to ask" },
    urlExpr: {
      type: types.expressionOf("text"),
      summary: "Expression that gives the URL",
      example: '"https://example.com/" + value.id',
    },
    method: { type: types.oneOf("GET", "POST", "PUT", "PATCH", "DELETE"), summary: "Method", default: "GET" },
    headers: {
      type: types.map(types.text()),
      summary: "Headers of the request; their values are never shown",
      default: {},
      secret: true,
    },
    body: {
      type: types.expression(),
      summary: "Expression that gives the body, sent as JSON",
      example: "value",
    },
    as: { type: types.path(), summary: "Field the answer goes to", default: "response" },
    timeout: { type: types.duration(1), summary: "Longest wait for an answer", default: "10s" },
    capacity: {
      type: types.int({ min: 1, max: 10_000 }),
      summary: "Requests under way at a time",
      default: 16,
    },
    ordered: { type: types.boolean(), summary: "Keep the order of the records", default: true },
  }, { rules: [{ kind: "oneOf", groups: [{ required: ["url"] }, { required: ["urlExpr"] }] }] }),
};

/** One execution a record. */
export const flow: OperatorComponent = {
  kind: "operator",
  type: "flow",
  summary: "Starts an execution of a flow for each record and passes the record on.",
  carried: false,
  example: `id: start
type: flow
flow: { name: order-saga, id: 'value.order', input: value }
`,
  block: types.block<blocks.FlowBlock>({
    name: {
      type: types.matching(/./, "a name"),
      summary: "Name of the flow",
      required: true,
      example: "order-saga",
    },
    id: {
      type: types.expressionOf("text"),
      summary: "Expression that gives the execution's id; source, split and offset without it",
      example: "value.order",
    },
    input: { type: types.expression(), summary: "Expression that gives the input; the value without it" },
  }),
};
