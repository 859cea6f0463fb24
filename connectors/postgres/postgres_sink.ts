/**
 * Sink `postgres`: rows of a table, added or put in the place of others.
 *
 * G1 Nothing is connected, and neither the client nor most of this folder is loaded, before a run opens.
 * G2 Without checkpoints rows are written as they come, at least once: `plain_writer.ts`. With checkpoints each is there exactly once,
 *    from the commit of its checkpoint on: `committing_writer.ts`.
 * G3 What the table lacks ends the run before its first record: `table.ts`.
 * G4 The password is in no description, message or log line: `server.ts`, `database_error.ts`.
 *
 * @module
 */
import type { Sink } from "../../lib/connector.ts";
import { type Duration, parseDuration } from "../../lib/duration.ts";
import { MailerError } from "../../lib/errors.ts";
import { parsePath } from "../../lib/path.ts";
import type { Settings } from "./opening.ts";
import { parseDsn } from "./server.ts";

/** Settings of {@link postgresSink}. */
export interface PostgresSinkOptions {
  /**
   * Connection URL, `postgres://user:password@host:5432/database`. What it leaves out is taken from `PGUSER`, `PGPASSWORD` and
   * `PGDATABASE`. Of its parameters `sslmode` (`disable` unless given), `sslrootcert`, `application_name`, `host` and `options` count.
   */
  readonly dsn: string;
  /** `table` or `schema.table`, with their case as the server has them. */
  readonly table: string;
  /** Column for each field path. What is missing in a record is NULL. */
  readonly mapping: Readonly<Record<string, string>>;
  /** `insert` adds rows, `upsert` replaces those with the same key. Default `insert`. */
  readonly mode?: "insert" | "upsert";
  /** With `upsert`: the columns of the key, which have a unique index. */
  readonly conflictColumns?: readonly string[];
  /** With `upsert`: columns that are replaced. Default all others; none: a row that is there stays. */
  readonly updateColumns?: readonly string[];
  /** Rows that are waited for; what is there then is written together. Default 100. With checkpoints rows are written for each. */
  readonly batchSize?: number;
  /** Longest wait for more rows, without checkpoints. Default 5 s. */
  readonly flushInterval?: Duration;
  /** Further attempts where the server or the way to it fails, after 0.5 s, 1 s, 2 s and so on. Default 3. */
  readonly maxRetries?: number;
  /** Longest time for a statement, also for connecting. Default 30 s. */
  readonly queryTimeout?: Duration;
  /** Table that says which checkpoints are committed; it is made where it is missing. Default `mailer_checkpoints`. */
  readonly checkpointTable?: string;
  /**
   * Name of the sink in that table. Runs that have it take over from each other, even where the later knows no checkpoint of the earlier
   * one: so no two sinks may have the same. Default: one that is made in the first run and handed on in checkpoints.
   */
  readonly name?: string;
}

/**
 * Writes records as rows. Errors: when a run opens `no_table`, `no_column`, `no_unique_index`, `generated_column`; of a record, to
 * the sink's failure policy, `invalid_value`, `constraint_violation`, `row_refused`, `not_an_object`; `postgres_connection`,
 * `postgres_timeout` where further attempts did not help; `rows_lost` where a checkpoint has to be done again; `output_fenced` where
 * another run has taken over.
 *
 * @throws {MailerError} `invalid_dsn`, `invalid_postgres_options`, `invalid_path`, `invalid_duration`
 */
export function postgresSink<T = unknown>(options: PostgresSinkOptions): Sink<T> {
  return postgresSinkWithin<T>(options, undefined);
}

/** {@link postgresSink} with other limits, for tests. */
export function postgresSinkWithin<T = unknown>(
  options: PostgresSinkOptions,
  limits: Settings["limits"],
): Sink<T> {
  const settings: Settings = { ...settingsOf(options), limits };
  const { server, table, mapping, conflictColumns, updateColumns, batchSize } = settings;
  return {
    type: "postgres",
    describe: () => ({
      server: server.name,
      table,
      mapping: Object.fromEntries(mapping),
      mode: conflictColumns === undefined ? "insert" : "upsert",
      ...(conflictColumns === undefined ? {} : { conflictColumns, updateColumns }),
      batchSize,
    }),
    commits: "atomic",
    recover: async (committable, context) => await (await opening()).recover(settings, committable, context),
    check: async (context) => await (await opening()).check(settings, context),
    open: async (context) => await (await opening()).open(settings, context),
  };
}

/** G1. */
function opening(): Promise<typeof import("./opening.ts")> {
  return import("./opening.ts");
}

const TABLE = /^[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)?$/;

function settingsOf(options: PostgresSinkOptions): Omit<Settings, "limits"> {
  const { table, mode = "insert", batchSize = 100, maxRetries = 3, name } = options;
  const { checkpointTable = "mailer_checkpoints", conflictColumns } = options;
  check(TABLE.test(table), "table is the name of a table, or schema.table");
  check(TABLE.test(checkpointTable), "checkpointTable is the name of a table, or schema.table");
  check(mode === "insert" || mode === "upsert", "mode is insert or upsert");
  check(Number.isSafeInteger(batchSize) && batchSize >= 1, "batchSize is a whole number ≥ 1");
  check(Number.isSafeInteger(maxRetries) && maxRetries >= 0, "maxRetries is a whole number ≥ 0");
  check(name !== "", "name is not empty");
  const flushInterval = parseDuration(options.flushInterval ?? "5s");
  const queryTimeout = parseDuration(options.queryTimeout ?? "30s");
  check(flushInterval > 0 && queryTimeout > 0, "flushInterval and queryTimeout are > 0");
  const columns = columnsOf(options);
  const updateColumns = options.updateColumns ?? columns.filter((one) => !conflictColumns?.includes(one));
  return {
    server: parseDsn(options.dsn),
    table,
    mapping: Object.entries(options.mapping),
    conflictColumns: mode === "upsert" ? conflictColumns : undefined,
    updateColumns: mode === "upsert" ? updateColumns : [],
    batchSize,
    flushInterval,
    maxRetries,
    queryTimeout,
    checkpointTable,
    scope: name,
  };
}

/** The columns that are written, each of them once. */
function columnsOf({ mapping, mode, conflictColumns, updateColumns }: PostgresSinkOptions): string[] {
  const columns = Object.values(mapping);
  check(columns.length > 0, "mapping has a column at least");
  check(new Set(columns).size === columns.length, "no column is filled twice");
  for (const path of Object.keys(mapping)) parsePath(path);
  if (mode === "upsert") check((conflictColumns ?? []).length > 0, "upsert needs conflictColumns");
  else check(conflictColumns === undefined && updateColumns === undefined, "only upsert has key columns");
  for (const column of [...conflictColumns ?? [], ...updateColumns ?? []]) {
    check(columns.includes(column), `"${column}" is no column of the mapping`);
  }
  return columns;
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new MailerError("invalid_postgres_options", `postgres sink: ${what}`);
}
