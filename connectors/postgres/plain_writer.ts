/**
 * Writer of a Postgres sink without checkpoints: rows are in the table as soon as they are sent.
 *
 * P1 Rows are sent when there are `batchSize` of them, or `flushInterval` after the first; what is there then goes together, up to a
 *    limit of rows and size a statement. One statement is under way at a time, and while it is the next rows are collected.
 * P2 What goes wrong there is thrown by the next call. A flush waits for everything.
 * P3 A statement is a transaction of its own. Where the connection is lost during one it is sent again: at least once.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Alarm } from "../../lib/clock.ts";
import type { SinkContext, SinkWriter } from "../../lib/connector.ts";
import type { Batch } from "../../lib/record.ts";
import { Intake, type WriterOptions } from "./intake.ts";
import { withRetries } from "./retries.ts";
import type { Rows } from "./rows.ts";
import { Sender } from "./sender.ts";
import type { Session } from "./session.ts";
import { writeRows } from "./write_rows.ts";

/** See the head of this file. */
export class PlainWriter implements SinkWriter<unknown> {
  readonly #options: WriterOptions;
  readonly #context: SinkContext;
  readonly #intake: Intake;
  readonly #sender: Sender;
  #session: Session;
  #alarm: Alarm | undefined;

  constructor(options: WriterOptions, context: SinkContext, session: Session) {
    this.#options = options;
    this.#context = context;
    this.#intake = new Intake(options, context, options.batchSize);
    this.#sender = new Sender(this.#intake, () => this.#sendAll());
    this.#session = session;
  }

  write(batch: Batch): void | Promise<void> {
    const written = this.#sender.write(batch, true, this.#context.signal);
    if (!this.#intake.isDue && this.#intake.rows > 0) this.#setAlarm();
    return written;
  }

  flush(): Promise<void> {
    return abortable(this.#sender.flush(), this.#context.signal);
  }

  async close(): Promise<void> {
    this.#alarm?.cancel();
    if (!this.#sender.isBusy) return await this.#session.close();
    this.#options.halt(); // nobody has waited for what is under way
    await this.#sender.idle();
    await this.#session.destroy();
  }

  #setAlarm(): void {
    const { clock } = this.#context, { flushInterval } = this.#options;
    this.#alarm ??= clock.schedule(flushInterval, () => {
      this.#alarm = undefined;
      this.#sender.start(true);
    });
  }

  async #sendAll(): Promise<void> {
    this.#alarm?.cancel();
    this.#alarm = undefined;
    for (let rows = this.#intake.first(true); rows !== undefined; rows = this.#intake.first(true)) {
      await this.#write(rows);
      this.#intake.shift();
    }
  }

  async #write(rows: Rows): Promise<void> {
    const { table, retries, connect } = this.#options;
    const attempt = async (from: number, to: number): Promise<void> => {
      if (this.#session.isGone) this.#session = await connect();
      await this.#session.query(table.statement, rows.literals(from, to, table.dedupe), true);
    };
    await writeRows(
      rows,
      (from, to) => withRetries(retries, () => attempt(from, to)),
      (row, error) => this.#intake.refuse([{ rows, row, error }]),
    );
  }
}
