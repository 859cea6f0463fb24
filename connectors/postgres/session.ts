/**
 * One connection to a server: the only file that knows the client, `npm:postgres`, which is loaded when the first one is opened.
 *
 * S1 A session is one connection and never another: when that is gone, the session is. So what was set, begun or fenced on it never
 *    silently continues on a fresh one.
 * S2 Every query has a deadline, by the clock that was handed in. A session that misses one is given up.
 * S3 Times are UTC in every session, so a text without a zone means the same everywhere.
 *
 * @module
 */
import type { Socket } from "node:net";
import type postgres from "postgres";
import { connectionLost, databaseError, timedOut } from "./database_error.ts";
import type { Server } from "./server.ts";
import { connectTo, type SessionOptions } from "./socket.ts";

/** What a query gave. */
export interface Answer {
  /** Rows by column; whole numbers of eight bytes are texts. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** What was done, e.g. `COMMIT`; of several statements nothing. */
  readonly command: string;
}

/** So much later than the server's own timeout is ours, so that the session survives where the server answers at all. */
const GRACE = 1000;

const SETTINGS = `select pg_backend_pid() as pid,
  (select extract(epoch from backend_start)::text from pg_stat_activity where pid = pg_backend_pid()) as started,
  set_config('timezone', 'UTC', false), set_config('datestyle', 'ISO, YMD', false),
  set_config('statement_timeout', $1, false),
  (select count(set_config(name, '0', false)) from pg_settings
   where name in ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout'))`;

/** See the head of this file. */
export class Session {
  /** Process of the server that serves it. */
  pid = 0;
  /** When that began, as the server writes it: with `pid` it is one session for ever. */
  started = "";
  readonly #server: Server;
  readonly #options: SessionOptions;
  readonly #socket: Socket;
  readonly #sql: postgres.Sql;
  readonly #isGone = Promise.withResolvers<void>();
  /** Why it cannot be used any more. */
  #end: Error | undefined;

  private constructor(server: Server, options: SessionOptions, socket: Socket, client: typeof postgres) {
    this.#server = server;
    this.#options = options;
    this.#socket = socket;
    socket.on("error", () => {}); // it shows as a close
    socket.once("close", () => {
      this.#end ??= connectionLost(server.name, new Error("the connection was closed"));
      this.#isGone.resolve();
    });
    this.#sql = client(clientOptions(server, socket));
  }

  /**
   * Connects and logs in.
   *
   * @throws {DatabaseError} `postgres_connection`, `postgres_timeout`, `postgres_error`
   */
  static async open(server: Server, options: SessionOptions): Promise<Session> {
    const { default: client } = await import("postgres");
    const socket = await connectTo(server, options);
    let session: Session;
    try {
      session = new Session(server, options, socket, client);
    } catch (error) {
      socket.destroy(); // the client may not look at the environment, for example
      throw error;
    }
    try {
      const { rows: [row] } = await session.query(SETTINGS, [String(Math.ceil(options.queryTimeout))]);
      session.pid = Number(row!["pid"]);
      session.started = String(row!["started"]);
      return session;
    } catch (error) {
      await session.destroy();
      throw error;
    }
  }

  /** Whether it cannot be used any more. */
  get isGone(): boolean {
    return this.#end !== undefined;
  }

  /**
   * Sends a statement; without parameters it may be several. Statements are worked through in the order they were sent.
   *
   * @param parameters As Postgres reads them.
   * @throws {DatabaseError}
   */
  async query(text: string, parameters: readonly string[] = [], prepare = false): Promise<Answer> {
    if (this.#end !== undefined) throw this.#end;
    const { signal } = this.#options;
    signal.throwIfAborted();
    const pending = this.#sql.unsafe(text, [...parameters], { prepare }).execute();
    const limit = this.#options.queryTimeout;
    const answer = Promise.withResolvers<Answer>();
    const alarm = this.#options.clock.schedule(limit + GRACE, () => {
      this.#giveUp(timedOut(this.#server.name, `"${text.trim().split(/\s+/)[0]}"`, limit));
      answer.reject(this.#end);
    });
    const onAbort = () => {
      this.#giveUp(signal.reason);
      answer.reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    pending.then(
      (rows) => answer.resolve({ rows: [...rows], command: rows.command }),
      (error) => answer.reject(this.#failed(error)),
    );
    try {
      return await answer.promise;
    } finally {
      alarm.cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Logs out. */
  async close(): Promise<void> {
    if (this.#end === undefined) {
      this.#end = connectionLost(this.#server.name, new Error("the session was closed"));
      await this.#sql.end({ timeout: 0 });
      this.#socket.destroySoon();
    }
    await this.#isGone.promise;
  }

  /** Gives the connection up, whatever is under way. */
  async destroy(): Promise<void> {
    this.#giveUp(connectionLost(this.#server.name, new Error("the session was given up")));
    await this.#isGone.promise;
  }

  #giveUp(reason: Error): void {
    this.#end ??= reason;
    this.#socket.destroy();
  }

  #failed(thrown: unknown): Error {
    const error = this.#end ?? databaseError(this.#server.name, thrown);
    if ("isLost" in error && error.isLost === true) this.#giveUp(error);
    return error;
  }
}

/** Everything is said, so that the client looks for little in the environment; it keeps no times of its own. */
function clientOptions(server: Server, socket: Socket): postgres.Options<Record<string, never>> {
  let isUsed = false;
  const { user, password, database, applicationName, settings } = server;
  const [first] = server.addresses;
  const options = {
    max: 1,
    fetch_types: false,
    prepare: true,
    idle_timeout: null,
    max_lifetime: null,
    connect_timeout: null,
    keep_alive: 30,
    max_pipeline: 100,
    backoff: false,
    debug: false,
    sslnegotiation: null,
    publications: "alltables",
    ssl: false, // `socket.ts` has seen to it
    host: "path" in first! ? first.path : first!.host,
    port: "path" in first! ? 5432 : first!.port,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    connection: {
      application_name: applicationName,
      ...(settings === undefined ? {} : { options: settings }),
    },
    onnotice: () => {},
    socket: () => {
      if (isUsed) throw new Error("the connection was closed"); // S1
      isUsed = true;
      return socket;
    },
  };
  return options as unknown as postgres.Options<Record<string, never>>; // its types do not know `socket` and null
}
