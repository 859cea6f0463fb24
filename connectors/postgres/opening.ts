/**
 * What the Postgres sink does when a run opens it, recovers by it or has it check itself.
 *
 * @module
 */
import type {
  CheckContext,
  Committable,
  Finding,
  Recovered,
  SinkContext,
  SinkRecovery,
  SinkWriter,
} from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { Checkpoints, postgresCommittable } from "./checkpoints.ts";
import { CommittingWriter } from "./committing_writer.ts";
import { LIMITS, type Limits, type WriterOptions } from "./intake.ts";
import { PlainWriter } from "./plain_writer.ts";
import { type RetryOptions, withRetries } from "./retries.ts";
import type { Server } from "./server.ts";
import { Session } from "./session.ts";
import { Table, type Target } from "./table.ts";

/** Options with their defaults. */
export interface Settings extends Target {
  readonly server: Server;
  readonly batchSize: number;
  readonly flushInterval: number;
  readonly maxRetries: number;
  readonly queryTimeout: number;
  readonly checkpointTable: string;
  readonly scope: string | undefined;
  /** Undefined: the usual ones. */
  readonly limits: Limits | undefined;
}

/** Opens a writer. */
export async function open(settings: Settings, context: SinkContext): Promise<SinkWriter<unknown>> {
  const { checkpoints: known } = context, { table: tableName } = settings;
  const restored = known?.restored === undefined ? undefined : postgresCommittable(tableName, known.restored);
  const halt = new AbortController();
  const signal = AbortSignal.any([context.signal, halt.signal]);
  const retries = retriesOf(settings, { ...context, signal });
  const connect = connectorOf(settings, { clock: context.clock, signal });
  return await withSession(connect, retries, "keep", async (session) => {
    const table = await Table.lookUp(session, settings);
    const { batchSize, flushInterval, limits = LIMITS } = settings;
    const options: WriterOptions = {
      table,
      batchSize,
      flushInterval,
      limits,
      retries,
      connect,
      halt: () => halt.abort(new MailerError("aborted", "the sink was closed")),
    };
    if (known === undefined) return new PlainWriter(options, context, session);
    const checkpoints = checkpointsOf(settings, context.id);
    const run = await checkpoints.begin(session, restored);
    if (restored !== undefined && await checkpoints.isBehind(session, restored)) {
      const text = "the table has rows of later checkpoints than the one the run goes on from";
      const fields = { sink: context.id, table: tableName, checkpoint: restored.checkpoint };
      context.logger.log("warn", text, fields);
    }
    return new CommittingWriter(options, context, { session, checkpoints, run, tableName });
  });
}

/** Whether what was prepared is committed. */
export async function recover(
  settings: Settings,
  committable: Committable,
  context: SinkRecovery,
): Promise<Recovered> {
  const prepared = postgresCommittable(settings.table, committable);
  const connect = connectorOf(settings, context), checkpoints = checkpointsOf(settings, context.id);
  return await withSession(connect, retriesOf(settings, context), "close", async (session) => {
    const isCommitted = await checkpoints.isCommitted(session, prepared);
    return isCommitted ? "committed" : "lost";
  });
}

/** Looks whether a run could start. */
export async function check(settings: Settings, context: CheckContext): Promise<readonly Finding[]> {
  const { id, checkpointInterval } = context, { server } = settings;
  const connect = connectorOf(settings, context);
  return await withSession(connect, retriesOf({ maxRetries: 0 }, context), "close", async (session) => {
    const { name, width } = await Table.lookUp(session, settings);
    const columns = width === 1 ? "1 column" : `${width} columns`;
    return [
      { ok: true, text: `table "${name}" at ${server.name}, ${columns}` },
      ...(checkpointInterval === undefined ? [] : [await checkpointsOf(settings, id).check(session)]),
    ];
  });
}

function connectorOf(
  { server, queryTimeout }: Settings,
  { clock, signal }: Pick<SinkContext, "clock" | "signal">,
): () => Promise<Session> {
  return () => Session.open(server, { clock, signal, queryTimeout });
}

/** Opens a session for `work`, anew where it fails for a reason that passes. */
async function withSession<T>(
  connect: () => Promise<Session>,
  retries: RetryOptions,
  after: "keep" | "close",
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return await withRetries(retries, async () => {
    const session = await connect();
    try {
      const result = await work(session);
      if (after === "close") await session.close();
      return result;
    } catch (error) {
      await session.destroy();
      throw error;
    }
  });
}

function retriesOf({ maxRetries }: Pick<Settings, "maxRetries">, context: SinkRecovery): RetryOptions {
  const { id: sink, clock, logger, signal } = context;
  return { sink, maxRetries, clock, logger, signal };
}

function checkpointsOf({ checkpointTable, table, scope }: Settings, sink: string): Checkpoints {
  return new Checkpoints({ checkpointTable, table, scope, sink });
}
