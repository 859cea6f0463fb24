/**
 * The commands of `mailer`. What a command needs is loaded when it is called: starting a workflow pays for nothing else.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import type { LogLevel } from "../log.ts";
import type { CommandDescription, OptionDescription } from "./command.ts";
import { FLOW_NOTES, FLOW_OPTIONS } from "./flow/options.ts";
import { parseAddress } from "./run/address.ts";

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

const DEBUG: OptionDescription = { flags: "--debug", summary: "print stack traces of errors" };
const ALLOW_UNSET: OptionDescription = {
  flags: "--allow-unset",
  summary: "let ${NAME} without a value pass",
};

const DATA_DIR: OptionDescription = {
  flags: "--data-dir <DIR>",
  summary: "folder for state and checkpoints (default: ./data)",
};

function json(summary: string): OptionDescription {
  return { flags: "--json", summary };
}

function parseLevel(text: string): LogLevel {
  const level = LEVELS.find((one) => one === text);
  if (level === undefined) throw new MailerError("usage", `expected one of ${LEVELS.join(", ")}`);
  return level;
}

function parseBufferSize(text: string): number {
  const size = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(size) || size < 1) {
    throw new MailerError("usage", "expected a whole number from 1");
  }
  return size;
}

/** All of them, in the order of the help. */
export const COMMANDS: readonly CommandDescription[] = [
  {
    name: "run",
    summary: "run workflows until their input ends",
    args: ["<FILE...>"],
    options: [
      DATA_DIR,
      { flags: "--from-savepoint <NAME>", summary: "go on from a savepoint, not from the newest checkpoint" },
      { flags: "--stop-savepoint <NAME>", summary: "take a savepoint when an interrupted run has drained" },
      {
        flags: "--allow-unmatched-state",
        summary: "leave state behind of parts that the workflow does not have any more",
      },
      {
        flags: "--metrics <HOST:PORT>",
        summary: "serve /metrics, /healthz and /readyz; port 0 takes a free one",
        parse: parseAddress,
      },
      {
        flags: "--buffer-size <N>",
        summary: "records that may wait between two stages, instead of the workflow's env.bufferSize",
        parse: parseBufferSize,
      },
      { flags: "-q, --quiet", summary: "no closing line" },
      { flags: "--verbose", summary: "say when a workflow runs" },
      { flags: "--progress", summary: "show progress where standard error is no terminal, too" },
      json("problems as JSON lines on standard output, the closing line as JSON on standard error"),
      {
        flags: "--log-level <LEVEL>",
        summary: `least to report: ${LEVELS.join(", ")} (default: warn)`,
        parse: parseLevel,
      },
      DEBUG,
    ],
    notes: `Results go to standard output, everything else to standard error.
SIGINT or SIGTERM stops gracefully: what was read is processed, open windows stay open. A second one stops at once.

Exit codes: 0 done (dead letters or not), 1 failed, 2 usage or invalid document, 3 not drained within
env.shutdownTimeout, 4 another instance has taken over, 130 interrupted twice. When the reader of standard output
goes away (as with | head), a workflow that writes nowhere else ends with 0, without a word.`,
    load: async () => (await import("./run/command.ts")).run,
  },
  {
    name: "validate",
    summary: "report everything that is wrong with workflows, without opening anything",
    args: ["<FILE...>"],
    options: [json("problems as JSON lines"), ALLOW_UNSET, DEBUG],
    load: async () => (await import("./validate.ts")).validate,
  },
  {
    name: "lint",
    summary: "point out what is valid and still doubtful",
    args: ["<FILE...>"],
    options: [
      json("warnings as JSON lines"),
      { flags: "--strict", summary: "exit with 1 where there are warnings" },
      ALLOW_UNSET,
      DEBUG,
    ],
    load: async () => (await import("./lint.ts")).lint,
  },
  {
    name: "explain",
    summary: "show stages, edges and the guarantee of a workflow",
    args: ["<FILE>"],
    options: [json("the pipeline as JSON"), DEBUG],
    load: async () => (await import("./explain.ts")).explain,
  },
  {
    name: "dry-run",
    summary: "have sources and sinks look whether a run could start, changing nothing",
    args: ["<FILE...>"],
    options: [DATA_DIR, json("a JSON line for each source and sink"), DEBUG],
    notes:
      `Connects to what the workflows talk to: servers, topics, tables, files, and whether they may be read or written.
Exit code 1 where a run would fail.`,
    load: async () => (await import("./dry_run.ts")).dryRun,
  },
  {
    name: "checkpoints",
    summary: "list, show, verify or remove the checkpoints of a workflow that is not running",
    args: ["<ACTION>", "<FILE>", "[NUMBER...]"],
    options: [
      DATA_DIR,
      { flags: "--force", summary: "rm: also what the workflow would go on from" },
      json("as JSON"),
      DEBUG,
    ],
    notes: `Actions:
  ls FILE                     savepoints and checkpoints, the newest first
  show FILE NUMBER|NAME       how far sources had been read, what operators hold, what sinks have prepared
  verify FILE [NUMBER|NAME]   reads every page; exit code 1 where anything is damaged
  rm FILE NUMBER…             removes checkpoints; the newest good one only with --force`,
    load: async () => (await import("./durable/checkpoints.ts")).checkpoints,
  },
  {
    name: "savepoint",
    summary: "list, create or remove the savepoints of a workflow that is not running",
    args: ["<ACTION>", "<FILE>", "[NAME...]"],
    options: [DATA_DIR, json("as JSON"), DEBUG],
    notes: `Actions:
  ls FILE            savepoints by name
  create FILE NAME   makes the newest completed checkpoint a savepoint, which stays until it is removed
  rm FILE NAME…      removes savepoints
mailer run --from-savepoint NAME goes on from one.`,
    load: async () => (await import("./durable/savepoint.ts")).savepoint,
  },
  {
    name: "state",
    summary: "show what an operator holds of a key, in a checkpoint of a workflow that is not running",
    args: ["<FILE>", "<OPERATOR>", "[KEY]"],
    options: [
      DATA_DIR,
      {
        flags: "--at <NUMBER|NAME>",
        summary: "look into this checkpoint or savepoint (default: the newest)",
      },
      json("as JSON lines"),
      DEBUG,
    ],
    notes:
      `KEY is JSON, or else a text: 42 is a number, '"42"' and c1 are texts. Without KEY: the number of keys.`,
    load: async () => (await import("./durable/state.ts")).state,
  },
  {
    name: "txn",
    summary: "list or abort transactions on the Kafka clusters of a workflow",
    args: ["<ACTION>", "<FILE>", "[ID]"],
    options: [json("a JSON line for each transaction"), DEBUG],
    notes: `Actions:
  ls FILE         those that are open, and those of the workflow's own sinks
  abort FILE ID   aborts an open one, which held back whoever reads committed records; its writer is refused from then on`,
    load: async () => (await import("./txn.ts")).txn,
  },
  {
    name: "flow",
    summary: "everything about flows: write, test, run, start, look, steer",
    args: ["<ACTION>", "[ARG...]"],
    options: [...FLOW_OPTIONS, DATA_DIR, json("as JSON, or JSON lines"), DEBUG],
    notes: FLOW_NOTES,
    load: async () => (await import("./flow/command.ts")).flow,
  },
  {
    name: "serve",
    summary: "serve flows over HTTP, to programs and workers in any language",
    args: ["[FLOW...]"],
    options: [
      { flags: "--flows <PATH...>", summary: "files and folders of flows to register" },
      DATA_DIR,
      {
        flags: "--listen <HOST:PORT>",
        summary: "where to listen; port 0 takes a free one (default: 127.0.0.1:8088)",
        parse: parseAddress,
      },
      {
        flags: "--token-file <FILE>",
        summary: "file with the token that calls need; without one only this machine is served",
      },
      { flags: "-q, --quiet", summary: "do not say that it is ready" },
      json("what it says as JSON lines on standard error"),
      {
        flags: "--log-level <LEVEL>",
        summary: `least to report: ${LEVELS.join(", ")} (default: info)`,
        parse: parseLevel,
      },
      DEBUG,
    ],
    notes:
      `Executions lie in the data folder, and go on where they were when it is started again. docs/flow-api.md describes
the interface, docs/flow-workers.md how workers get their jobs. /healthz, /readyz and /metrics are served as well.
Tasks of the built-in kinds http and log are done here, all others by workers.
SIGINT or SIGTERM drains. A second one stops at once.`,
    load: async () => (await import("./serve/command.ts")).serve,
  },
  {
    name: "test",
    summary: "run the tests of workflows, on virtual time",
    args: ["<FILE.test.yaml...>"],
    options: [json("a JSON line for each case"), DEBUG],
    load: async () => (await import("./test/command.ts")).test,
  },
  {
    name: "new",
    summary: "start a document; without KIND, list the kinds",
    args: ["[KIND]", "[NAME]"],
    options: [DEBUG],
    notes:
      "With NAME the document is written to NAME.yaml (a test to NAME.test.yaml), else to standard output.",
    load: async () => (await import("./new.ts")).newDocument,
  },
  {
    name: "schema",
    summary: "print the JSON Schema of workflows, for editors",
    args: [],
    options: [DEBUG],
    load: async () => (await import("./pages.ts")).schema,
  },
  {
    name: "reference",
    summary: "print the reference of workflows, as Markdown",
    args: [],
    options: [DEBUG],
    load: async () => (await import("./pages.ts")).reference,
  },
  {
    name: "version",
    summary: "print the versions of Mailer, Deno and V8",
    args: [],
    options: [json("as JSON"), DEBUG],
    load: async () => (await import("./version.ts")).version,
  },
];
