/**
 * `process` on a keyed stream: a function of the user's with state and timers of its key.
 *
 * Q1 Event-time timers due at the watermark a record carries fire before the record, in the order of their times (of one time: in
 *    the order they were set). One that is set to a time that has passed fires right behind the call that set it.
 * Q2 A timer belongs to a key and has a name; setting one again under its name moves it. A timer without a name is named by
 *    its time, so that setting it twice is one timer.
 * Q3 Timers fire whatever state the key has. A processing-time timer never fires before its time.
 * Q4 At the end of a complete input all event-time timers fire, those that they set as well; processing-time timers that are not
 *    due do not. A key that goes on setting timers then is an error, not a run that never ends.
 * Q5 What a call does counts when it has gone well: one that throws emits nothing, and leaves state and timers as they were before it.
 *    A timer whose call throws has fired all the same.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { KeyIdentity } from "../../key.ts";
import type { Headers, RecordContext, Watermark } from "../../record.ts";
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import { isTimestamp } from "../../runtime/watermarks.ts";
import { KeyedState, type StateNote } from "../../state/keyed.ts";
import type { TimeDomain } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import { RowWriter } from "../rows.ts";
import type { EmitOptions, KeyedContext, KeyedProcess, Timer } from "./context.ts";
import { type DueTimer, KeyTimers } from "./timers.ts";

/** What a checkpoint keeps besides the tables. */
interface Own {
  readonly states: readonly StateNote[];
  readonly timersSet: number;
}

interface Emitted {
  readonly writer: RowWriter;
  readonly value: unknown;
  readonly timestamp: number;
  readonly headers: Headers | undefined;
}

/** Timers a key may set one after the other when the input has ended. */
const MOST_TIMERS_AT_END = 100_000;

/** Runs a keyed process function. */
export class KeyedProcessOperator extends EventTimeOperator {
  /** The state of this partition. */
  readonly state: KeyedState;
  readonly #process: KeyedProcess<unknown, unknown, unknown>;
  readonly #timers: KeyTimers;
  readonly #sides = new Map<string, RowWriter>();
  /** What the call under way has emitted. */
  readonly #emitted: Emitted[] = [];
  readonly #context: KeyedContext;
  // What is being worked on.
  #timestamp = NaN;
  #record: RecordContext | undefined;
  #carried: Watermark = -Infinity;

  constructor(process: KeyedProcess<unknown, unknown, unknown>, context: OperatorContext) {
    super(context);
    this.#process = process;
    const partition = keyedState(context);
    this.state = new KeyedState(context.id, partition, {
      event: () => this.watermark,
      eventOfWrite: () => this.watermark === -Infinity ? this.#timestamp : this.watermark,
      processing: () => context.clock.now(),
    });
    this.#timers = new KeyTimers(partition, this.state);
    this.#context = this.#contextOfCalls();
  }

  inspect(key: unknown): Readonly<Record<string, unknown>> {
    return this.state.inspect(key);
  }

  protected override snapshotOwn(): unknown {
    return { states: this.state.snapshot(), timersSet: this.#timers.timersSet } satisfies Own;
  }

  protected override restoreOwn(own: readonly unknown[]): void {
    const all = own as readonly Own[];
    this.state.restore(all.flatMap(({ states }) => states));
    this.#timers.restore(Math.max(0, ...all.map(({ timersSet }) => timersSet)));
    this.#count();
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number): void {
    this.state.enter(record.key);
    this.#timestamp = timestamp;
    this.#carried = this.watermark;
    this.#record = record;
    this.#call(() => this.#process.onRecord(value, this.#context));
    if (this.#timers.earliest("event") <= this.watermark) this.#due("event", this.watermark, this.watermark);
  }

  protected override fire(): void {
    this.#due("event", this.watermark, this.before);
    this.state.expire();
    this.#count();
  }
  protected override onClock(now: number): void {
    this.#due("processing", now, this.watermark);
    this.#due("event", this.watermark, this.watermark);
    this.state.expire();
    this.#count();
  }
  protected override nextDue(): number {
    this.#count();
    return Math.min(this.#timers.earliest("processing"), this.state.nextExpiry);
  }

  protected override flush(): void {
    this.state.check();
    super.flush();
    for (const writer of this.#sides.values()) writer.flush();
  }

  /** Fires what is due, earliest first; timers set meanwhile count as well. `carried`: the watermark that its rows carry. */
  #due(domain: TimeDomain, now: number, carried: Watermark): void {
    const timers = this.#timers, setBefore = timers.timersSet;
    const chains = now === Infinity ? new Map<KeyIdentity, number>() : undefined;
    for (let due = timers.take(domain, now); due !== undefined; due = timers.take(domain, now)) {
      if (chains !== undefined && due.order > setBefore) this.#lengthen(chains, due.identity);
      this.#fireTimer(due, domain, carried);
    }
  }

  #lengthen(chains: Map<KeyIdentity, number>, identity: KeyIdentity): void {
    const length = (chains.get(identity) ?? 0) + 1;
    chains.set(identity, length);
    if (length <= MOST_TIMERS_AT_END) return;
    throw new MailerError(
      "endless_timers",
      `operator "${this.context.id}": a key sets timer after timer although the input has ended, ${length} of them`,
      { hint: "set no new event-time timer when `context.watermark` is Infinity" },
    );
  }

  #fireTimer({ identity, key, name, time }: DueTimer, domain: TimeDomain, carried: Watermark): void {
    const timer: Timer = { name, time, domain };
    this.state.enter(key, identity);
    this.#timestamp = Number.isFinite(time) ? time : this.before; // a timer at Infinity is one for the end
    this.#carried = carried;
    this.#record = undefined;
    try {
      this.#call(() => this.#process.onTimer?.(timer, this.#context));
    } catch (error) {
      this.context.failed(this.standIn({ timer }, key, time), 0, error);
    }
  }

  #call(work: () => void): void {
    const emitted = this.#emitted, { key } = this.state.call;
    try {
      work();
      for (const { writer, value, timestamp, headers } of emitted) {
        writer.add(value, key, timestamp, this.#carried, undefined, headers);
      }
    } catch (error) {
      this.state.undo();
      throw error;
    } finally {
      emitted.length = 0;
      this.#record = undefined;
      this.state.leave();
    }
  }

  #count(): void {
    this.context.gauges.stateEntries = this.state.size;
    this.context.gauges.timers = this.#timers.size;
  }

  #emit(writer: RowWriter, value: unknown, options: EmitOptions | undefined): void {
    const timestamp: unknown = options?.timestamp ?? this.#timestamp;
    if (!isTimestamp(timestamp)) {
      throw new MailerError(
        "no_timestamp",
        `emit: expected milliseconds since the epoch, got ${String(timestamp)}`,
      );
    }
    this.#emitted.push({ writer, value, timestamp, headers: options?.headers ?? this.#record?.headers });
  }

  #side(tag: string): RowWriter {
    let writer = this.#sides.get(tag);
    if (writer === undefined) {
      const { context } = this;
      writer = new RowWriter(context.output(tag), context.channel, context.id, String(context.partition));
      this.#sides.set(tag, writer);
    }
    return writer;
  }

  #set(domain: TimeDomain, time: number, name: string | undefined): void {
    if (Number.isNaN(time)) {
      throw new MailerError("invalid_timer", `operator "${this.context.id}": a timer needs a time, not NaN`);
    }
    this.#timers.set(domain, time, name);
  }

  #contextOfCalls(): KeyedContext {
    // deno-lint-ignore no-this-alias -- getters of the object below speak of the operator
    const operator = this;
    const { state } = this;
    return {
      get key() {
        return state.call.key;
      },
      get timestamp() {
        return operator.#timestamp;
      },
      get watermark() {
        return operator.watermark;
      },
      get record() {
        return operator.#record;
      },
      emit: (value, options) => this.#emit(this.rows, value, options),
      output: (tag, value, options) => this.#emit(this.#side(tag), value, options),
      setEventTimer: (time, name) => this.#set("event", time, name),
      setProcessingTimer: (time, name) => this.#set("processing", time, name),
      deleteEventTimer: (nameOrTime) => this.#timers.delete("event", nameOrTime),
      deleteProcessingTimer: (nameOrTime) => this.#timers.delete("processing", nameOrTime),
      value: (name, options) => state.value(name, options),
      list: (name, options) => state.list(name, options),
      map: (name, options) => state.map(name, options),
      reducing: (name, reduce, options) => state.reducing(name, reduce, options),
    };
  }
}
