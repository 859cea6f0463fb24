/**
 * The calls about executions, flows and dead letters.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { BulkAction, RecordedEvent } from "../client/mod.ts";
import { type Flow, parseFlow } from "../definition/mod.ts";
import type { AttributeFilter, Query } from "../store/port.ts";
import { eventStream } from "./events.ts";
import {
  any,
  type FieldsOf,
  flag,
  instant,
  list,
  must,
  nested,
  object,
  oneOf,
  text,
  texts,
  token,
  type ValuesOf,
  whole,
} from "./fields.ts";
import { LONGEST_WAIT } from "./jobs.ts";
import { Reply, type Route, route } from "./route.ts";

const ID = text("Tells repetitions: the same id again changes nothing. Default: a new one", { max: 256 });
const NEW_ID = token("Id of the new execution. Default: a new one");
const STATUS = oneOf("How they stand", "running", "waiting", "completed", "failed", "cancelled");
const WAIT_MS = 30_000;
/** Decisions of a page of a history. */
const PAGE = 500;
/** Characters of a page of a history; one decision may be larger. */
const LARGEST_PAGE = 4 * 1024 * 1024;

const SENT = {
  summary: "Its id, and whether it led to anything; that is absent where another process carries it out.",
  schema: {
    type: "object",
    properties: { id: { type: "string" }, changed: { type: "boolean" } },
    required: ["id"],
  },
};
const STARTED = {
  type: "object",
  properties: { id: { type: "string" }, joined: { type: "boolean" } },
  required: ["id", "joined"],
};
const EXECUTION = { $ref: "#/components/schemas/Execution" };
const FORKED = {
  status: 201,
  summary: "The new execution; 200 where it was there already.",
  schema: STARTED,
};

const CONDITIONS = {
  status: STATUS,
  flow: token("Name of their flow"),
  attr: list(
    "Conditions on search attributes: NAME=VALUE, also with != < <= > >= and ^= (begins with)",
    text("A condition"),
    {
      max: 16,
    },
  ),
  from: instant("Created then or later"),
  to: instant("Created before"),
} satisfies FieldsOf;

const OPERATORS: Readonly<Record<string, AttributeFilter["op"]>> = {
  "=": "=",
  "!=": "!=",
  "<": "<",
  "<=": "<=",
  ">": ">",
  ">=": ">=",
  "^=": "prefix",
};

function filterOf(condition: string): AttributeFilter {
  const [, name, op, value] = /^([A-Za-z0-9_-]{1,128})(!=|<=|>=|\^=|=|<|>)(.*)$/s.exec(condition) ?? [];
  if (name !== undefined) return { name, op: OPERATORS[op!]!, value: value! };
  throw new MailerError("invalid_query", `${JSON.stringify(condition.slice(0, 200))} is no condition`, {
    hint: "NAME=VALUE, also with != < <= > >= and ^=",
  });
}

function queryOf({ status, flow, attr, from, to }: ValuesOf<typeof CONDITIONS>): Query {
  return {
    ...(status === undefined ? {} : { status }),
    ...(flow === undefined ? {} : { flow }),
    ...(attr === undefined ? {} : { attrs: attr.map(filterOf) }),
    ...(from === undefined ? {} : { from: Number(from) }),
    ...(to === undefined ? {} : { to: Number(to) }),
  };
}

/** All of them. */
export const EXECUTION_ROUTES: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/executions",
    tag: "executions",
    summary: "Starts an execution, or joins the one that has the id",
    body: {
      flow: must(token("Name of the flow")),
      input: any("An object. Default: an empty one"),
      id: token("Its id. Default: a new one"),
      version: token("Hash of the version. Default: the newest"),
      startAt: instant("Its first node is entered then. Default: at once"),
      deadline: instant("It fails then, unless it has ended"),
      signals: list(
        "Signals that reach it in the same decision",
        nested("signal", {
          name: must(token("Name of the signal")),
          payload: any("What it brings. Default null"),
          id: text("Tells repetitions", { max: 256 }),
        }),
        { max: 64 },
      ),
      joinExisting: flag("Whether an execution of the flow with this id is as good. Default true"),
      traceparent: text("W3C trace context", { max: 256 }),
    },
    answers: {
      status: 201,
      summary: "It exists, durably; 200 where it was there already.",
      schema: STARTED,
    },
    handle: async ({ client }, { body: { flow, input, ...options } }) => {
      const started = await client.start(flow, input, options);
      return new Reply(started.joined ? 200 : 201, started);
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions",
    tag: "executions",
    summary: "Lists executions, a page at a time",
    query: {
      ...CONDITIONS,
      order: oneOf("By time of creation. Default newest", "newest", "oldest"),
      limit: whole("Most entries", { min: 1, max: 1000, byDefault: 50 }),
      cursor: text("Where the page before ended", { max: 1000 }),
    },
    answers: { summary: "A page: `items`, and a `cursor` where there may be more." },
    handle: ({ client }, { query: { order, limit, cursor, ...conditions } }) =>
      client.list({
        ...queryOf(conditions),
        ...(order === undefined ? {} : { order }),
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      }),
  }),
  route({
    method: "POST",
    path: "/v1/bulk",
    tag: "executions",
    summary: "Does the same with all executions that fit a query",
    body: {
      do: must(oneOf("What is done", "cancel", "signal", "rerun", "archive", "delete")),
      query: nested("query", CONDITIONS),
      reason: text("cancel: why"),
      name: token("signal: its name"),
      payload: any("signal: what it brings"),
      id: text("signal: tells repetitions of the whole", { max: 200 }),
      node: token("rerun: the node"),
      dryRun: flag("Only count"),
      all: flag("Has to be true for a query without a condition"),
      limit: whole("Most executions. Default: all", { min: 1 }),
    },
    answers: { summary: "What was done: `matched`, `done`, `skipped`, `failed`, `failures`, `dryRun`." },
    waits: true,
    handle: ({ client }, { body, signal }) => {
      const { query = {}, dryRun, all, limit } = body;
      return client.bulk(queryOf(query), actionOf(body), {
        ...(dryRun === undefined ? {} : { dryRun }),
        ...(all === undefined ? {} : { all }),
        ...(limit === undefined ? {} : { limit }),
        signal,
      });
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}",
    tag: "executions",
    summary: "An execution as it is now, or as it was",
    query: { seq: whole("As it was behind this decision", { min: 1 }) },
    answers: { summary: "The execution.", schema: EXECUTION },
    handle: ({ client }, { path, query: { seq } }) => {
      return seq === undefined ? client.get(path.id) : client.stateAt(path.id, seq);
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/executions/{id}",
    tag: "executions",
    summary: "Removes an execution that has ended",
    answers: SENT,
    handle: ({ client }, { path }) => client.delete(path.id),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/history",
    tag: "executions",
    summary: "What has happened, in order",
    query: {
      from: whole("First decision. Default 1", { min: 1 }),
      limit: whole("Most decisions", { min: 1, max: 10_000, byDefault: PAGE }),
    },
    answers: { summary: "`events`, and in `next` the first decision of the next page where there is one." },
    handle: async ({ client }, { path, query: { from = 1, limit = PAGE } }) => {
      const events = await client.history(path.id, { from, limit: limit + 1 });
      const next = endOfPage(events, limit);
      return next === undefined ? { events } : { events: events.filter(({ seq }) => seq < next), next };
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/outputs/{node}",
    tag: "executions",
    summary: "All outputs of a node: of tasks (not of the items of a map), subflows and joins",
    answers: { summary: "`outputs`, in order." },
    handle: async ({ client }, { path: { id, node } }) => ({ outputs: await client.outputHistory(id, node) }),
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/watch",
    tag: "executions",
    summary: "What happens, as it happens: server-sent events, until the execution has ended",
    query: { from: whole("First decision. Default: behind the header Last-Event-ID, or 1", { min: 1 }) },
    answers: { summary: "An event for each event, of its type; `end` at the end." },
    waits: true,
    handle: async ({ client, clock, draining }, { path, query, headers, goesOn }) => {
      await client.get(path.id); // what is not there is said by the status
      const last = headers.get("last-event-id") ?? "";
      const from = query.from ?? (/^\d{1,15}$/.test(last) ? Number(last) + 1 : 1);
      const events = (signal: AbortSignal) => client.watch(path.id, { from, signal });
      return eventStream({ clock, events, draining, onEnd: goesOn() });
    },
  }),
  route({
    method: "GET",
    path: "/v1/executions/{id}/wait",
    tag: "executions",
    summary: "Waits until an execution has ended",
    query: { timeoutMs: whole("Longest wait, ms", { max: LONGEST_WAIT, byDefault: WAIT_MS }) },
    answers: { summary: "`ended`, and the `execution` as it is then; ask again where it has not." },
    waits: true,
    handle: async ({ client }, { path, query: { timeoutMs = WAIT_MS }, signal }) => {
      try {
        return { ended: true, execution: await client.wait(path.id, { timeoutMs, signal }) };
      } catch (error) {
        if ((error as MailerError).code !== "wait_timed_out" && !signal.aborted) throw error;
        const execution = await client.get(path.id);
        return { ended: execution.endedAt !== undefined, execution };
      }
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/signal",
    tag: "executions",
    summary: "Sends a signal; one that nobody waits for yet is kept",
    body: { name: must(token("Name of the signal")), payload: any("What it brings. Default null"), id: ID },
    answers: SENT,
    handle: ({ client }, { path, body: { name, payload, ...options } }) =>
      client.signal(path.id, name, payload, options),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/update",
    tag: "executions",
    summary: "Writes to channels",
    body: { writes: must(object("Values by channel")), id: ID },
    answers: { summary: "The execution behind that.", schema: EXECUTION },
    handle: ({ client }, { path, body: { writes, ...options } }) => client.update(path.id, writes, options),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/resume",
    tag: "executions",
    summary: "Answers an interrupted task",
    body: {
      node: must(token("The node")),
      key: text("Which one of the node: NODE#INDEX. Default: the first", { max: 200 }),
      value: any("The answer. Default null"),
      id: ID,
    },
    answers: SENT,
    handle: ({ client }, { path, body: { node, value, ...options } }) =>
      client.resume(path.id, node, value, options),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/cancel",
    tag: "executions",
    summary: "Ends an execution, and what it has begun; one that has ended stays as it is",
    body: { reason: text("Why"), id: ID },
    answers: SENT,
    handle: ({ client }, { path, body: { reason, ...options } }) => client.cancel(path.id, reason, options),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/pause",
    tag: "executions",
    summary: "Holds the way on, retries and waiting; what is under way goes on",
    body: { reason: text("Why"), id: ID },
    answers: SENT,
    handle: ({ client }, { path, body: { reason, ...options } }) => client.pause(path.id, reason, options),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/unpause",
    tag: "executions",
    summary: "Lets go on what a pause held",
    body: { id: ID },
    answers: SENT,
    handle: ({ client }, { path, body }) => client.unpause(path.id, body),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/fork",
    tag: "executions",
    summary: "A new execution that goes on from how this one was behind a decision",
    body: {
      seq: must(whole("The decision", { min: 1 })),
      id: NEW_ID,
      writes: object("Writes to channels, made before anything goes on"),
    },
    answers: FORKED,
    handle: async ({ client }, { path, body: { seq, ...options } }) => {
      const forked = await client.fork(path.id, seq, options);
      return new Reply(forked.joined ? 200 : 201, forked);
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/rerun",
    tag: "executions",
    summary: "A fork that does a node again, as it was entered last",
    body: {
      node: must(token("The node")),
      id: NEW_ID,
      writes: object("Writes to channels, made before anything goes on"),
    },
    answers: FORKED,
    handle: async ({ client }, { path, body: { node, ...options } }) => {
      const forked = await client.rerun(path.id, node, options);
      return new Reply(forked.joined ? 200 : 201, forked);
    },
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/migrate",
    tag: "executions",
    summary: "Moves an execution to another version of its flow",
    body: {
      version: token("Hash of the version. Default: the newest"),
      nodes: texts("New names of nodes, by their old ones"),
      dryRun: flag("Only say what keeps it from that"),
      id: ID,
    },
    answers: { summary: "`from`, `to`, `problems`, `migrated`." },
    handle: ({ client }, { path, body }) => client.migrate(path.id, body),
  }),
  route({
    method: "POST",
    path: "/v1/executions/{id}/archive",
    tag: "executions",
    summary: "Puts an execution that has ended away: it can be read and forked, and changes no more",
    body: {},
    answers: SENT,
    handle: ({ client }, { path }) => client.archive(path.id),
  }),
  route({
    method: "POST",
    path: "/v1/flows/register",
    tag: "flows",
    summary: "Stores a version of a flow, and makes it the newest of its name",
    body: {
      definition: object("The flow, as JSON"),
      yaml: text("The flow, as the text of a YAML document", { max: 4_194_304 }),
    },
    answers: { status: 201, summary: "`name`, `hash`, `latest`." },
    handle: async ({ client }, { body: { definition, yaml } }) => {
      return new Reply(201, await client.register(flowOf(definition, yaml)));
    },
  }),
  route({
    method: "GET",
    path: "/v1/flows",
    tag: "flows",
    summary: "Versions of flows",
    answers: { summary: "`flows`: name, hash, and whether it is the newest of its name." },
    handle: async ({ client }) => ({ flows: await client.flows() }),
  }),
  route({
    method: "GET",
    path: "/v1/flows/{name}",
    tag: "flows",
    summary: "A version of a flow",
    query: { version: token("Its hash. Default: the newest") },
    answers: { summary: "`definition` and `hash`." },
    handle: ({ client }, { path, query: { version } }) => client.flow(path.name, version),
  }),
  route({
    method: "GET",
    path: "/v1/dead-letters",
    tag: "dead letters",
    summary: "What could not be done, the newest first",
    query: {
      limit: whole("Most entries", { min: 1, max: 500, byDefault: 50 }),
      cursor: text("Where the page before ended", { max: 1000 }),
    },
    answers: { summary: "A page: `items`, and a `cursor` where there may be more." },
    handle: ({ client }, { query }) => client.deadLetters(query),
  }),
  route({
    method: "POST",
    path: "/v1/dead-letters/{id}/redrive",
    tag: "dead letters",
    summary: "Has what a dead letter is about done again; the letter goes",
    body: {},
    answers: { summary: "The `execution` it is about." },
    handle: ({ client }, { path }) => client.redrive(path.id),
  }),
];

function actionOf({ do: what, reason, name, payload, id, node }: {
  readonly do: BulkAction["do"];
  readonly reason?: string;
  readonly name?: string;
  readonly payload?: unknown;
  readonly id?: string;
  readonly node?: string;
}): BulkAction {
  switch (what) {
    case "cancel":
      return { do: what, ...(reason === undefined ? {} : { reason }) };
    case "signal":
      if (name === undefined) throw missing("name", what);
      return {
        do: what,
        name,
        ...(payload === undefined ? {} : { payload }),
        ...(id === undefined ? {} : { id }),
      };
    case "rerun":
      if (node === undefined) throw missing("node", what);
      return { do: what, node };
    default:
      return { do: what };
  }
}

/** The first decision that does not belong to the page any more; undefined where all do. */
function endOfPage(events: readonly RecordedEvent[], limit: number): number | undefined {
  let size = 0, decisions = 0, last = 0, first = 0;
  for (const event of events) {
    if (event.seq !== last) {
      if (decisions === limit || (decisions > 0 && size > LARGEST_PAGE)) return event.seq;
      decisions++;
      last = event.seq;
      first ||= event.seq;
    }
    size += stringifyJson(event).length;
    // A decision that goes beyond the size is the first of the next page, unless it is the first of this one.
    if (size > LARGEST_PAGE && last !== first) return last;
  }
  return undefined;
}

function missing(name: string, what: string): MailerError {
  return new MailerError("invalid_argument", `to ${what} needs "${name}"`);
}

/** The flow of a call. */
function flowOf(definition: unknown, yaml: string | undefined): Flow {
  if ((definition === undefined) === (yaml === undefined)) {
    throw new MailerError("invalid_argument", 'either "definition" or "yaml" is needed');
  }
  const parsed = yaml === undefined
    ? parseFlow(stringifyJson(definition), { file: "definition.json" })
    : parseFlow(yaml, { file: "flow.yaml" });
  if (parsed.flow !== undefined) return parsed.flow;
  const problems = parsed.problems.map(({ line, message }) =>
    yaml === undefined ? message : `line ${line}: ${message}`
  );
  throw new MailerError("invalid_flow", problems.join("; "), {
    ...(parsed.problems[0]?.hint === undefined ? {} : { hint: parsed.problems[0].hint }),
  });
}
