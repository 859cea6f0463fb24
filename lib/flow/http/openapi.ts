/**
 * The description of the interface, made from the table of routes.
 *
 * @module
 */
import { ERROR_STATUSES } from "./errors.ts";
import { type FieldsOf, schemaOf } from "./fields.ts";
import type { Route } from "./route.ts";

const JOB = {
  type: "object",
  description: "An attempt of a task, in the hands of a worker.",
  properties: {
    id: { type: "string" },
    lease: { type: "string", description: "Goes with every call about the job" },
    lease_ms: { type: "integer" },
    heartbeat_ms: {
      type: "integer",
      description: "Longest silence until the attempt fails as heartbeat_timeout",
    },
    deliveries: { type: "integer", description: "How often this attempt was handed out, from 1 on" },
    exec_id: { type: "string" },
    flow: { type: "string" },
    flow_hash: { type: "string" },
    node: { type: "string" },
    kind: { type: "string" },
    key: { type: "string", description: "The node, or NODE#INDEX for an item of a map" },
    index: { type: "integer" },
    generation: { type: "integer" },
    attempt: { type: "integer", description: "From 1 on" },
    idempotency_key: { type: "string", description: "The same for all attempts of this task" },
    context: {
      type: "object",
      description:
        "input, channels, results, last_node, visits, signals, branches, counters, errors; item and index; " +
        "resume and interrupt of a task that goes on; progress of the attempt before",
    },
    meta: { type: "object" },
    with: { type: "object", description: "Settings of a built-in kind, worked out" },
    concurrency: { type: "object" },
  },
  required: ["id", "lease", "lease_ms", "deliveries", "exec_id", "node", "kind", "key", "attempt", "context"],
};

const EXECUTION = {
  type: "object",
  properties: {
    id: { type: "string" },
    flow: { type: "string" },
    flowHash: { type: "string" },
    status: { enum: ["running", "waiting", "completed", "failed", "cancelled"] },
    paused: { type: "boolean" },
    input: {},
    output: {},
    failure: { type: "object" },
    channels: { type: "object" },
    results: { type: "object" },
    waiting: { type: "object", description: "What it waits for" },
    seq: { type: "integer", description: "Sequence of the last decision" },
    createdAt: { type: "integer", description: "ms since 1970" },
    updatedAt: { type: "integer" },
    endedAt: { type: "integer" },
    archived: { type: "boolean" },
  },
  required: ["id", "flow", "flowHash", "status", "seq"],
};

const ERROR = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: { code: { type: "string" }, message: { type: "string" }, hint: { type: "string" } },
      required: ["code", "message"],
    },
  },
  required: ["error"],
};

/** An OpenAPI 3.1 document. */
export function openApi(routes: readonly Route[]): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route);
  return {
    openapi: "3.1.0",
    info: { title: "Mailer: flows", version: "1", description: "Durable executions of flows." },
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Job: JOB, Execution: EXECUTION, Error: ERROR },
      responses: Object.fromEntries(
        Object.entries(ERROR_STATUSES).map(([status, description]) => [`Error${status}`, {
          description,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        }]),
      ),
    },
  };
}

function operation({ path, tag, summary, query = {}, body, answers, waits }: Route): unknown {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const { status = 200, summary: description, schema } = answers;
  const errors = Object.keys(ERROR_STATUSES).filter((one) =>
    one !== "405" && (one !== "429" || waits === true)
  );
  return {
    tags: [tag],
    summary,
    ...(names.length + Object.keys(query).length === 0
      ? {}
      : { parameters: [...names, ...parameters(query)] }),
    ...(body === undefined ? {} : {
      requestBody: { required: true, content: { "application/json": { schema: schemaOf(body) } } },
    }),
    responses: {
      [status]: {
        description,
        ...(schema === undefined ? {} : { content: { "application/json": { schema } } }),
      },
      ...Object.fromEntries(errors.map((one) => [one, { $ref: `#/components/responses/Error${one}` }])),
    },
  };
}

function parameters(query: FieldsOf): unknown[] {
  return Object.entries(query).map(([name, { summary, schema, required }]) => ({
    name,
    in: "query",
    description: summary,
    required,
    schema,
  }));
}
