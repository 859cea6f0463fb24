/**
 * Pieces of rows that are put aside at the server until they are wanted again: in a temporary table of a connection of its own, which
 * goes with that connection.
 *
 * @module
 */
import { MailerError } from "../../lib/errors.ts";
import { isLost } from "./database_error.ts";
import { Rows } from "./rows.ts";
import type { Session } from "./session.ts";

/** See the head of this file. */
export class Spill {
  readonly #connect: () => Promise<Session>;
  #session: Session | undefined;
  #last = 0;

  /** @param connect Opens a session. */
  constructor(connect: () => Promise<Session>) {
    this.#connect = connect;
  }

  /** Puts rows aside. @returns What to ask for them with. */
  async put(rows: Rows): Promise<number> {
    if (this.#session === undefined) {
      this.#session = await this.#connect();
      await this.#session.query(
        "create temporary table mailer_spill (id bigint primary key, rows text not null)",
      );
    }
    const id = ++this.#last;
    await this.#use((session) =>
      session.query("insert into mailer_spill values ($1::bigint, $2)", [String(id), rows.toText()], true)
    );
    return id;
  }

  /** The rows; they stay. */
  async get(id: number): Promise<Rows> {
    const { rows: [row] } = await this.#use((session) =>
      session.query("select rows from mailer_spill where id = $1::bigint", [String(id)], true)
    );
    return Rows.fromText(String(row!["rows"]));
  }

  /** The rows are not wanted any more. */
  async remove(ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#use((session) =>
      session.query("delete from mailer_spill where id = any($1::bigint[])", [`{${ids.join(",")}}`])
    );
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    await this.#session?.close();
  }

  async #use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    try {
      return await work(this.#session!);
    } catch (error) {
      if (!isLost(error)) throw error;
      throw rowsLost("the connection that keeps rows of checkpoints under way was lost", error);
    }
  }
}

/** Rows that cannot be sent again: the run is to go on from its last checkpoint. */
export function rowsLost(what: string, cause: unknown): MailerError {
  return new MailerError("rows_lost", `postgres: ${what}`, {
    cause,
    hint: "nothing of the checkpoint was written: a run that starts again goes on from the one before",
  });
}
