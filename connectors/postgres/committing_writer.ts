/**
 * Writer of a Postgres sink that commits with checkpoints: rows and checkpoint in one transaction.
 *
 * W1 Rows are sent into a transaction as they come, a full piece at a time; `prepare` sends the rest. So what the server refuses is
 *    known before the checkpoint is durable, and memory does not grow with the interval. `commit` notes the checkpoint
 *    (`checkpoints.ts`) and commits.
 * W2 What belongs to a checkpoint is an interval. Several may wait for their commits. All are sent into the one transaction, with a
 *    savepoint in front of each but the first: a commit of an earlier one goes back to the savepoint behind it, and later ones are sent
 *    again. Until then nothing of them holds a lock against the earlier one.
 * W3 What has been sent is kept, so that it can be sent again, on another connection as well. Beyond `limits.kept` characters, rows of
 *    the first interval are let go: then a lost connection is the end of the run, which goes on from its last checkpoint. Those of
 *    later ones are put aside at the server (`spill.ts`).
 * W4 Where the connection is lost during a COMMIT, the next one asks what has become of it before anything is sent again.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Committable, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import type { Batch } from "../../lib/record.ts";
import { type Checkpoints, postgresCommittable, type SinkRun } from "./checkpoints.ts";
import { isRolledBack } from "./database_error.ts";
import { Intake, type Refusal, type WriterOptions } from "./intake.ts";
import { withRetries } from "./retries.ts";
import type { Rows } from "./rows.ts";
import { Sender } from "./sender.ts";
import type { Session } from "./session.ts";
import { rowsLost, Spill } from "./spill.ts";
import { writeRows } from "./write_rows.ts";

/** Rows that were sent once. */
interface Piece {
  /** Undefined: they are put aside. */
  rows: Rows | undefined;
  spilled: number | undefined;
  /** Whether they are in the transaction. */
  isSent: boolean;
}

/** W2. */
class Interval {
  /** Undefined for the last one: it has not been prepared. */
  checkpoint: number | undefined;
  pieces: Piece[] = [];
  /** Whether everything can be sent again. */
  isWhole = true;
  /** Whether there is a savepoint in front of it. */
  isMarked = false;
  /** Name of that savepoint. */
  readonly mark: string;

  constructor(number: number) {
    this.mark = `interval_${number}`;
  }
}

/** What a writer that commits begins with. */
export interface Beginning {
  readonly session: Session;
  readonly checkpoints: Checkpoints;
  readonly run: SinkRun;
  /** The table as it is called in committables. */
  readonly tableName: string;
}

/** See the head of this file. */
export class CommittingWriter implements SinkWriter<unknown> {
  readonly #options: WriterOptions;
  readonly #context: SinkContext;
  readonly #begun: Beginning;
  readonly #intake: Intake;
  readonly #sender: Sender;
  readonly #spill: Spill;
  #session: Session;
  #isInTransaction = false;
  /** Whether the session may commit: it has asked what the one before has left. */
  #isReady = true;
  #intervals: [Interval, ...Interval[]] = [new Interval(0)];
  #numbered = 0;
  /** Characters of the pieces in memory. */
  #kept = 0;
  /** The last checkpoint that is committed. */
  #committed = 0;
  #hasForgotten = false;
  /** Rows of the piece being sent that were refused. */
  #refused: Refusal[] = [];

  constructor(options: WriterOptions, context: SinkContext, begun: Beginning) {
    this.#options = options;
    this.#context = context;
    this.#begun = begun;
    this.#intake = new Intake(options, context, Infinity);
    this.#sender = new Sender(this.#intake, (all) => this.#send(all));
    this.#spill = new Spill(options.connect);
    this.#session = begun.session;
  }

  write(batch: Batch): void | Promise<void> {
    return this.#sender.write(batch, false, this.#context.signal);
  }

  flush(): Promise<void> {
    return abortable(this.#sender.flush(), this.#context.signal);
  }

  async prepare(checkpoint: number): Promise<Committable> {
    await this.flush();
    this.#intervals.at(-1)!.checkpoint = checkpoint;
    this.#intervals.push(new Interval(++this.#numbered));
    const { run: { scope, run }, tableName: table } = this.#begun;
    return { table, scope, run, checkpoint };
  }

  commit(committable: Committable): Promise<void> {
    return abortable(this.#commit(committable), this.#context.signal);
  }

  async close(): Promise<void> {
    if (this.#sender.isBusy || !this.#isReady) this.#options.halt(); // nobody has waited for what is under way
    await this.#sender.idle();
    await this.#session.close();
    await this.#spill.close();
  }

  async #commit(committable: Committable): Promise<void> {
    const { tableName, run: { run, scope } } = this.#begun;
    const { checkpoint, ...of } = postgresCommittable(tableName, committable);
    if (of.run !== run || of.scope !== scope) {
      throw new MailerError("output_changed", `table "${tableName}": another run prepared the checkpoint`);
    }
    await this.#sender.idle();
    await withRetries(this.#options.retries, async () => {
      await this.#ready();
      if (checkpoint <= this.#committed) return;
      const last = this.#intervals.findIndex((one) => one.checkpoint === checkpoint);
      if (last < 0) {
        throw new MailerError(
          "output_changed",
          `table "${tableName}": checkpoint ${checkpoint} was not prepared`,
        );
      }
      await this.#sendAgain(last);
      await this.#commitUpTo(last, checkpoint);
    });
  }

  async #commitUpTo(last: number, checkpoint: number): Promise<void> {
    const { checkpoints, run } = this.#begun, session = this.#session;
    try {
      await this.#begin();
      await this.#rollBackBehind(last);
      if (!this.#hasForgotten) await checkpoints.forgetEarlier(session, run);
      await checkpoints.advance(session, run, checkpoint);
      const { command } = await session.query("commit");
      if (command !== "COMMIT") throw new Error(`the server answered COMMIT with ${command}`);
    } catch (error) {
      await session.destroy(); // whatever it is, the next one asks
      throw error;
    }
    this.#isInTransaction = false;
    this.#hasForgotten = true;
    await this.#drop(last + 1, checkpoint);
  }

  /** Intervals that are committed. */
  async #drop(count: number, checkpoint: number): Promise<void> {
    const [first, ...rest] = this.#intervals.slice(count), spilled: number[] = [];
    for (const { pieces } of this.#intervals.slice(0, count)) {
      for (const piece of pieces) {
        this.#kept -= piece.rows?.size ?? 0;
        if (piece.spilled !== undefined) spilled.push(piece.spilled);
      }
    }
    this.#intervals = [first!, ...rest];
    this.#committed = checkpoint;
    await this.#spill.remove(spilled);
  }

  /** Sends what is due, or all there is. */
  async #send(all: boolean): Promise<void> {
    await withRetries(this.#options.retries, async () => {
      await this.#ready();
      await this.#sendAgain(this.#intervals.length - 1);
      for (let rows = this.#intake.first(all); rows !== undefined; rows = this.#intake.first(all)) {
        await this.#sendNew(rows);
      }
    });
  }

  async #sendNew(rows: Rows): Promise<void> {
    const interval = this.#intervals.at(-1)!;
    await this.#write(rows, interval);
    const refused = this.#refused;
    this.#refused = [];
    this.#intake.refuse(refused);
    this.#intake.shift();
    const settled = rows.settle(new Set(refused.map(({ row }) => row)));
    if (settled.length === 0) return;
    interval.pieces.push({ rows: settled, spilled: undefined, isSent: true });
    this.#kept += settled.size;
    await this.#bound();
  }

  /** Sends what is no longer in the transaction, of the intervals up to `last`. */
  async #sendAgain(last: number): Promise<void> {
    for (const interval of this.#intervals.slice(0, last + 1)) {
      for (const piece of interval.pieces) {
        if (piece.isSent) continue;
        await this.#writeAgain(piece, interval);
        piece.isSent = true;
      }
    }
  }

  async #writeAgain({ rows: inMemory, spilled }: Piece, interval: Interval): Promise<void> {
    const rows = inMemory ?? await this.#spill.get(spilled!);
    rows.done = 0;
    try {
      await this.#write(rows, interval);
      this.#intake.refuse(this.#refused); // throws where there is any: its record is not known any more
    } catch (error) {
      await this.#session.destroy(); // a part of it may be in the transaction
      throw error;
    }
  }

  async #write(rows: Rows, interval: Interval): Promise<void> {
    await this.#begin();
    if (!interval.isMarked && interval !== this.#intervals[0]) {
      await this.#session.query(`savepoint ${interval.mark}`);
      interval.isMarked = true;
    }
    await writeRows(
      rows,
      (from, to) => this.#insert(rows, from, to),
      (row, error) => this.#refused.push({ rows, row, error }),
    );
  }

  async #insert(rows: Rows, from: number, to: number): Promise<void> {
    const session = this.#session, { table } = this.#options;
    const results = await Promise.allSettled([
      session.query("savepoint piece"),
      session.query(table.statement, rows.literals(from, to, table.dedupe), true),
      session.query("release savepoint piece"),
    ]);
    const failed = results.find(({ status }) => status === "rejected");
    if (failed?.status !== "rejected") return;
    // Of a deadlock there is no way out but to let go of everything.
    if (isRolledBack(failed.reason)) await session.destroy();
    if (session.isGone) throw failed.reason;
    await session.query("rollback to savepoint piece; release savepoint piece");
    throw failed.reason;
  }

  async #begin(): Promise<void> {
    if (this.#isInTransaction) return;
    // What is deferred to the commit could not be told from the other rows then.
    await this.#session.query("begin isolation level read committed; set constraints all immediate");
    this.#isInTransaction = true;
  }

  /** Takes back what was sent of the intervals behind the one with this index. */
  async #rollBackBehind(last: number): Promise<void> {
    const behind = this.#intervals.slice(last + 1), first = behind.find(({ isMarked }) => isMarked);
    if (first === undefined) return;
    await this.#session.query(`rollback to savepoint ${first.mark}`);
    this.#unsend(behind);
  }

  #unsend(intervals: readonly Interval[]): void {
    this.#intake.rewind();
    this.#refused = [];
    for (const interval of intervals) {
      interval.isMarked = false;
      for (const piece of interval.pieces) piece.isSent = false;
    }
  }

  /** Sees to it that the connection is there and may commit (W4). */
  async #ready(): Promise<void> {
    const { checkpoints, run } = this.#begun, lost = this.#session;
    if (lost.isGone) {
      this.#isReady = false;
      this.#isInTransaction = false;
      this.#unsend(this.#intervals);
      this.#session = await this.#options.connect();
    }
    if (this.#isReady) return;
    const committed = await checkpoints.resume(this.#session, run);
    const count = this.#intervals.findLastIndex(({ checkpoint = Infinity }) => checkpoint <= committed) + 1;
    if (count > 0) await this.#drop(count, committed);
    if (!this.#intervals[0].isWhole) {
      throw rowsLost("the connection was lost with more rows under way than are kept", undefined);
    }
    this.#isReady = true;
  }

  /** W3. */
  async #bound(): Promise<void> {
    const [first, ...later] = this.#intervals;
    if (this.#kept > this.#options.limits.kept) {
      first.pieces = first.pieces.filter((piece) => !this.#letGo(piece, first));
    }
    for (const piece of later.flatMap(({ pieces }) => pieces)) {
      if (this.#kept <= this.#options.limits.kept) return;
      if (piece.rows === undefined) continue;
      piece.spilled = await this.#spill.put(piece.rows);
      this.#kept -= piece.rows.size;
      piece.rows = undefined;
    }
  }

  #letGo(piece: Piece, interval: Interval): boolean {
    if (!piece.isSent || piece.rows === undefined) return false;
    interval.isWhole = false;
    this.#kept -= piece.rows.size;
    return true;
  }
}
