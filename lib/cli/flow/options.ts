/**
 * The actions of `mailer flow`: how each is called, and which options it takes.
 *
 * @module
 */
import type { Flags, OptionDescription } from "../command.ts";

/** Options of the actions, besides those of all commands. */
export interface FlowFlags extends Flags {
  readonly store?: string;
  readonly input?: string;
  readonly with?: readonly string[];
  readonly workers?: string;
  readonly timeout?: string;
  readonly wait?: true;
  readonly id?: string;
  readonly version?: string;
  readonly startAt?: string;
  readonly deadline?: string;
  readonly signal?: readonly string[];
  readonly new?: true;
  readonly traceparent?: string;
  readonly payload?: string;
  readonly value?: string;
  readonly key?: string;
  readonly reason?: string;
  readonly writes?: string;
  readonly nodes?: string;
  readonly node?: string;
  readonly seq?: string;
  readonly from?: string;
  readonly to?: string;
  readonly dryRun?: true;
  readonly status?: string;
  readonly flow?: string;
  readonly attr?: readonly string[];
  readonly order?: string;
  readonly limit?: string;
  readonly cursor?: string;
  readonly all?: true;
}

/** Options of `mailer flow`, in the order of the help. */
export const FLOW_OPTIONS: readonly OptionDescription[] = [
  { flags: "--store <PATH>", summary: "file of the store (default: flows.db in the data folder)" },
  { flags: "--input <JSON>", summary: "input of the execution: an object, or @FILE" },
  { flags: "--with <FILE...>", summary: "run: further flows, for subflows" },
  { flags: "--workers <MODULE>", summary: "run: module that exports `workers`, functions by kind" },
  { flags: "--timeout <DURATION>", summary: "give up waiting then, e.g. 30s" },
  { flags: "--wait", summary: "start: wait for the end" },
  {
    flags: "--id <ID>",
    summary: "id of the execution, fork, signal or update; asking again with it does nothing twice",
  },
  { flags: "--version <HASH>", summary: "version of the flow (default: the newest)" },
  {
    flags: "--start-at <TIME>",
    summary: "start: enter the first node then: RFC 3339, or a duration from now",
  },
  {
    flags: "--deadline <TIME>",
    summary: "start: the execution fails then: RFC 3339, or a duration from now",
  },
  { flags: "--signal <NAME=JSON...>", summary: "start: signals that come with it" },
  { flags: "--new", summary: "start: fail where there is an execution with this id" },
  { flags: "--traceparent <TEXT>", summary: "start: W3C trace context" },
  { flags: "--payload <JSON>", summary: "signal: what it brings" },
  { flags: "--value <JSON>", summary: "resume: the answer" },
  { flags: "--key <KEY>", summary: "resume: which item of a map, as node#index" },
  { flags: "--reason <TEXT>", summary: "cancel, pause: why" },
  { flags: "--writes <JSON>", summary: "update, fork, rerun: writes to channels, an object" },
  { flags: "--nodes <JSON>", summary: "migrate: new names of nodes by old ones, an object" },
  { flags: "--node <NODE>", summary: "history: only outputs of this node; bulk rerun: the node" },
  { flags: "--seq <N>", summary: "get: as it was behind this decision" },
  { flags: "--from <N|TIME>", summary: "history, watch: first decision; list, bulk: created then or later" },
  { flags: "--to <TIME>", summary: "list, bulk: created before" },
  { flags: "--dry-run", summary: "migrate: only say what is in the way; bulk: only count" },
  { flags: "--status <STATUS>", summary: "list, bulk: running, waiting, completed, failed or cancelled" },
  { flags: "--flow <NAME>", summary: "list, bulk: of this flow" },
  {
    flags: "--attr <FILTER...>",
    summary: "list, bulk: search attributes: name=value, also != < <= > >= and ^= (begins with)",
  },
  { flags: "--order <ORDER>", summary: "list: newest or oldest first (default: newest)" },
  { flags: "--limit <N>", summary: "list, dlq, history, bulk: most entries" },
  { flags: "--cursor <TEXT>", summary: "list, dlq: go on where the page before ended" },
  { flags: "--all", summary: "bulk: every execution is meant" },
];

/** An action. */
export interface Action {
  /** Behind its name. */
  readonly usage: string;
  readonly summary: string;
  /** Least and most arguments. */
  readonly args: readonly [number, number];
  /** Options it takes, by their names in {@link FlowFlags}. `json` and `debug` are everybody's. */
  readonly flags: readonly (keyof FlowFlags)[];
}

const STORE = ["store", "dataDir"] as const;
const QUERY = ["status", "flow", "attr", "from", "to"] as const;

/** The actions, in the order of the help. */
export const FLOW_ACTIONS: Readonly<Record<string, Action>> = {
  new: { usage: "[flow|test]", summary: "prints a document to begin with", args: [0, 1], flags: [] },
  validate: {
    usage: "FILE…",
    summary: "reports everything that is wrong with flows",
    args: [0, Infinity],
    flags: [],
  },
  test: {
    usage: "FILE.test.yaml…",
    summary: "runs the tests of flows, on virtual time",
    args: [0, Infinity],
    flags: [],
  },
  schema: { usage: "", summary: "prints the JSON Schema of flows, for editors", args: [0, 0], flags: [] },
  reference: { usage: "", summary: "prints the reference of flows, as Markdown", args: [0, 0], flags: [] },
  run: {
    usage: "FILE",
    summary: "runs one execution to its end, and prints its output",
    args: [1, 1],
    flags: ["input", "with", "workers", "timeout", "dataDir", "id"],
  },
  register: {
    usage: "FILE…",
    summary: "stores flows, each the newest of its name",
    args: [1, Infinity],
    flags: STORE,
  },
  flows: { usage: "", summary: "lists the stored flows", args: [0, 0], flags: STORE },
  flow: { usage: "NAME", summary: "prints a stored flow", args: [1, 1], flags: [...STORE, "version"] },
  start: {
    usage: "FLOW",
    summary: "starts an execution",
    args: [1, 1],
    flags: [
      ...STORE,
      "input",
      "id",
      "version",
      "startAt",
      "deadline",
      "signal",
      "new",
      "traceparent",
      "wait",
      "timeout",
    ],
  },
  signal: {
    usage: "ID NAME",
    summary: "sends a signal",
    args: [2, 2],
    flags: [...STORE, "payload", "id"],
  },
  resume: {
    usage: "ID NODE",
    summary: "answers an interrupted task",
    args: [2, 2],
    flags: [...STORE, "value", "key", "id"],
  },
  update: {
    usage: "ID",
    summary: "writes to channels, and prints the execution",
    args: [1, 1],
    flags: [...STORE, "writes", "id"],
  },
  cancel: { usage: "ID", summary: "ends an execution", args: [1, 1], flags: [...STORE, "reason"] },
  pause: { usage: "ID", summary: "holds an execution", args: [1, 1], flags: [...STORE, "reason"] },
  unpause: { usage: "ID", summary: "lets it go on", args: [1, 1], flags: STORE },
  get: { usage: "ID", summary: "shows an execution", args: [1, 1], flags: [...STORE, "seq"] },
  history: {
    usage: "ID",
    summary: "shows what has happened",
    args: [1, 1],
    flags: [...STORE, "from", "limit", "node"],
  },
  watch: {
    usage: "ID",
    summary: "shows what happens, until the execution has ended",
    args: [1, 1],
    flags: [...STORE, "from"],
  },
  wait: {
    usage: "ID",
    summary: "waits for the end; exit code 1 unless it is completed",
    args: [1, 1],
    flags: [...STORE, "timeout"],
  },
  fork: {
    usage: "ID SEQ",
    summary: "begins a new execution with the state behind a decision",
    args: [2, 2],
    flags: [...STORE, "id", "writes"],
  },
  rerun: {
    usage: "ID NODE",
    summary: "forks where a node was entered last",
    args: [2, 2],
    flags: [...STORE, "id", "writes"],
  },
  migrate: {
    usage: "ID",
    summary: "moves an execution to another version of its flow",
    args: [1, 1],
    flags: [...STORE, "version", "nodes", "dryRun"],
  },
  list: {
    usage: "",
    summary: "lists executions",
    args: [0, 0],
    flags: [...STORE, ...QUERY, "order", "limit", "cursor"],
  },
  bulk: {
    usage: "ACTION [NAME]",
    summary: "cancel, signal NAME, rerun, archive or delete all that fit --status, --flow …",
    args: [1, 2],
    flags: [...STORE, ...QUERY, "limit", "dryRun", "all", "reason", "payload", "node", "id"],
  },
  archive: { usage: "ID", summary: "puts an execution away that has ended", args: [1, 1], flags: STORE },
  delete: { usage: "ID", summary: "removes an execution that has ended", args: [1, 1], flags: STORE },
  dlq: {
    usage: "",
    summary: "lists what could not be done",
    args: [0, 0],
    flags: [...STORE, "limit", "cursor"],
  },
  redrive: { usage: "LETTER", summary: "has it done again", args: [1, 1], flags: STORE },
};

const WIDTH = Math.max(...Object.entries(FLOW_ACTIONS).map(([name, { usage }]) => `${name} ${usage}`.length));

/** Printed behind the help. */
export const FLOW_NOTES = `Actions:
${
  Object.entries(FLOW_ACTIONS)
    .map(([name, { usage, summary }]) => `  ${`${name} ${usage}`.padEnd(WIDTH)}  ${summary}`)
    .join("\n")
}

run needs no server: it carries the flow out itself, in memory, or with --data-dir in a file. Kinds http and log are built in; others
come from --workers, a module with \`export const workers = { kind: (job) => output }\`. The output goes to standard output as JSON.
The other actions work on a store that \`mailer serve\` may have open too. JSON is given as text, or as @FILE.

Exit codes: 0 done, 1 failed or cancelled, 2 usage or invalid document, 130 interrupted twice.`;
