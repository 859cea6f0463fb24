/**
 * The table in which a sink says, in the transaction that writes its rows, up to which checkpoint they are there.
 *
 * C1 A row stands for one run of a sink: `committed` is the last checkpoint whose rows are in the table. It is set in the transaction
 *    that has written these rows, so both are there or neither is.
 * C2 `session` is the connection that may commit for a run, NULL when none may any more. A transaction sets `committed` under the
 *    number it was given, and looks whether that still stands. Whoever takes a run over changes it first. He waits for a transaction that has set
 *    `committed` already, and ends its connection, so what he then reads is final: nobody guesses what became of a COMMIT.
 * C3 Runs of one sink have one `scope`. It is made when the sink first runs and handed on in its committables; so two pipelines
 *    never have the same, unless somebody gives them the same name.
 * C4 A run takes over from all earlier ones of its scope. When it has committed, nobody asks for those any more, and their rows go.
 *
 * @module
 */
import type { Committable, Finding } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { DatabaseError } from "./database_error.ts";
import type { Session } from "./session.ts";
import { qualified } from "./table.ts";

/** The committable of a Postgres sink. */
export interface PostgresCommittable {
  readonly table: string;
  readonly scope: string;
  /** Number of the run that prepared it. */
  readonly run: number;
  readonly checkpoint: number;
}

/** A run that may commit. */
export interface SinkRun {
  readonly scope: string;
  readonly run: number;
  /** C2; changes when the connection does. */
  session: number;
}

/** Whom the rows are about. */
export interface CheckpointNames {
  /** The table of checkpoints, `table` or `schema.table`. */
  readonly checkpointTable: string;
  /** The table that the sink writes to. */
  readonly table: string;
  /** Scope that was asked for. */
  readonly scope: string | undefined;
  /** Id of the sink, for people. */
  readonly sink: string;
}

/** See the head of this file. */
export class Checkpoints {
  readonly #names: CheckpointNames;
  readonly #table: string;

  constructor(names: CheckpointNames) {
    this.#names = names;
    this.#table = qualified(names.checkpointTable);
  }

  /**
   * A new run, which takes over from all earlier ones of its scope (C4).
   *
   * @param restored The committable it goes on from.
   */
  async begin(session: Session, restored: PostgresCommittable | undefined): Promise<SinkRun> {
    await this.#create(session);
    const scope = restored?.scope ?? this.#names.scope ?? await newScope(session);
    await this.#endSessions(session, scope, undefined);
    for (;;) {
      await session.query("begin isolation level read committed");
      await session.query(
        `update ${this.#table} set session = null where scope = $1 and session is not null`,
        [scope],
      );
      try {
        const { rows: [row] } = await session.query(
          `insert into ${this.#table} (scope, run, session, committed, sink, target, backend_pid, backend_start)
select $1, coalesce(max(run), 0) + 1, 1, 0, $2, $3, $4::int, $5 from ${this.#table} where scope = $1
returning run::text`,
          [scope, this.#names.sink, this.#names.table, String(session.pid), session.started],
        );
        await session.query("commit");
        return { scope, run: Number(row!["run"]), session: 1 };
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.state !== "23505") throw error;
        await session.query("rollback"); // another one began in the same moment: theirs is the earlier
      }
    }
  }

  /**
   * Goes on on another connection.
   *
   * @returns The last checkpoint that is committed.
   * @throws {MailerError} `output_fenced` where another run has taken over.
   */
  async resume(session: Session, run: SinkRun): Promise<number> {
    await this.#endSessions(session, run.scope, run.run);
    const { rows: [row] } = await session.query(
      `update ${this.#table} set session = session + 1, backend_pid = $3::int, backend_start = $4
where scope = $1 and run = $2::bigint and session = $5::bigint returning session::text, committed::text`,
      [run.scope, String(run.run), String(session.pid), session.started, String(run.session)],
    );
    if (row === undefined) throw this.#takenOver();
    run.session = Number(row["session"]);
    return Number(row["committed"]);
  }

  /** In a transaction: what it has written is the rows up to a checkpoint. */
  async advance(
    session: Session,
    { scope, run, session: number }: SinkRun,
    checkpoint: number,
  ): Promise<void> {
    const { rows } = await session.query(
      `update ${this.#table} set committed = $4::bigint, updated_at = now()
where scope = $1 and run = $2::bigint and session = $3::bigint returning 1`,
      [scope, String(run), String(number), String(checkpoint)],
      true,
    );
    if (rows.length === 0) throw this.#takenOver();
  }

  /** C4. */
  async forgetEarlier(session: Session, { scope, run }: SinkRun): Promise<void> {
    await session.query(`delete from ${this.#table} where scope = $1 and run < $2::bigint`, [
      scope,
      String(run),
    ]);
  }

  /**
   * Whether what was prepared is committed. From then on nobody can commit it any more.
   *
   * @throws {MailerError} `checkpoint_unknown` where the table says nothing of the run.
   */
  async isCommitted(session: Session, { scope, run, checkpoint }: PostgresCommittable): Promise<boolean> {
    let row: Readonly<Record<string, unknown>> | undefined;
    if (await this.#isThere(session)) {
      await this.#endSessions(session, scope, run);
      ({ rows: [row] } = await session.query(
        `update ${this.#table} set session = null where scope = $1 and run = $2::bigint returning committed::text`,
        [scope, String(run)],
      ));
    }
    if (row === undefined) {
      throw new MailerError(
        "checkpoint_unknown",
        `table "${this.#names.table}": "${this.#names.checkpointTable}" knows nothing of run ${run}, which prepared checkpoint ${checkpoint}`,
        {
          lasting: true,
          hint: "see that dsn leads to the database it ran with; or start without the checkpoint",
        },
      );
    }
    return Number(row["committed"]) >= checkpoint;
  }

  /** Whether rows of later checkpoints than this one are in the table. */
  async isBehind(session: Session, { scope, run, checkpoint }: PostgresCommittable): Promise<boolean> {
    const { rows: [row] } = await session.query(
      `select exists (select from ${this.#table} where scope = $1 and committed > 0
and (run > $2::bigint or (run = $2::bigint and committed > $3::bigint))) as behind`,
      [scope, String(run), String(checkpoint)],
    );
    return row!["behind"] === true;
  }

  /** Whether a run could write down its checkpoints; changes nothing. */
  async check(session: Session): Promise<Finding> {
    const name = this.#names.checkpointTable, schema = name.split(".").slice(0, -1)[0] ?? "";
    if (await this.#isThere(session)) {
      const { rows: [row] } = await session.query(
        "select bool_and(has_table_privilege($1, p)) as may from unnest('{select,insert,update,delete}'::text[]) p",
        [this.#table],
      );
      if (row!["may"] === true) return { ok: true, text: `table "${name}" for checkpoints` };
      return { ok: false, text: `table "${name}" may not be written`, hint: `grant all on ${name}` };
    }
    const { rows: [row] } = await session.query(
      "select has_schema_privilege(coalesce(nullif($1, ''), current_schema()), 'create') as may",
      [schema],
    );
    if (row!["may"] === true) return { ok: true, text: `table "${name}" for checkpoints will be made` };
    return {
      ok: false,
      text: `table "${name}" for checkpoints is not there, and may not be made`,
      hint: "let the first run have the right to create it, or name one with checkpointTable",
    };
  }

  /** Without the right to make tables it is enough that the table is there. */
  async #create(session: Session): Promise<void> {
    if (await this.#isThere(session)) return;
    try {
      await session.query(`create table if not exists ${this.#table} (
  scope text not null,
  run bigint not null,
  session bigint,
  committed bigint not null,
  sink text not null,
  target text not null,
  backend_pid integer not null,
  backend_start text not null,
  updated_at timestamptz not null default now(),
  primary key (scope, run)
)`);
    } catch (error) {
      if (!await this.#isThere(session)) throw error; // else another sink has made it in this moment
    }
  }

  /**
   * Ends the connections of runs, so that nothing they have begun holds rows locked. One of another user's cannot be ended, and need
   * not be: it is waited for.
   *
   * @param run Undefined: all of the scope.
   */
  async #endSessions(session: Session, scope: string, run: number | undefined): Promise<void> {
    await session.query(
      `select pg_terminate_backend(a.pid) from ${this.#table} c
join pg_stat_activity a on a.pid = c.backend_pid and extract(epoch from a.backend_start)::text = c.backend_start
where c.scope = $1 and ($2 = '' or c.run::text = $2) and c.session is not null and a.pid <> pg_backend_pid()
  and pg_has_role(a.usesysid, 'usage') and (current_setting('is_superuser') = 'on'
    or not (select rolsuper from pg_roles where oid = a.usesysid))`,
      [scope, run === undefined ? "" : String(run)],
    );
  }

  async #isThere(session: Session): Promise<boolean> {
    const { rows: [row] } = await session.query("select to_regclass($1) is not null as found", [
      this.#table,
    ]);
    return row!["found"] === true;
  }

  #takenOver(): MailerError {
    return new MailerError(
      "output_fenced",
      `table "${this.#names.table}": another run of this sink has taken over`,
      { hint: "let one process run the pipeline; give each pipeline a name of its own" },
    );
  }
}

async function newScope(session: Session): Promise<string> {
  const { rows: [row] } = await session.query("select gen_random_uuid()::text as scope");
  return String(row!["scope"]);
}

/**
 * The committable of the sink that writes to `table`.
 *
 * @throws {MailerError} `output_changed` where it is that of another sink.
 */
export function postgresCommittable(table: string, committable: Committable): PostgresCommittable {
  if (isPostgresCommittable(committable) && committable.table === table) return committable;
  const other = isPostgresCommittable(committable)
    ? `a sink for table "${committable.table}"`
    : "another kind of sink";
  throw new MailerError("output_changed", `table "${table}": the checkpoint was taken with ${other}`, {
    hint: "give the sink an id of its own, or its old table; or start without the checkpoint",
  });
}

function isPostgresCommittable(committable: Committable): committable is PostgresCommittable {
  const { table, scope, run, checkpoint } = (committable ?? {}) as Partial<PostgresCommittable>;
  return typeof table === "string" && typeof scope === "string" && Number.isSafeInteger(run) &&
    Number.isSafeInteger(checkpoint);
}
