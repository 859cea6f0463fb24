/**
 * `process` on a keyed stream: a function of the user's with state and timers of its key.
 *
 * Q1 Event-time timers due at the watermark a record carries fire before the record, in the order of their times.
 * Q2 A timer belongs to a key and has a name; setting one again under its name moves it. A timer without a name is named by
 *    its time, so that setting it twice is one timer.
 * Q3 Timers fire whatever state the key has. A processing-time timer never fires before its time.
 * Q4 At the end of a complete input all event-time timers fire; processing-time timers that are not due do not.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { TimeHeap } from "../../heap.ts";
import { Batch, type RecordContext, type Watermark } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import { type KeyEntry, MemoryState } from "../../state/memory.ts";
import type { TimeDomain } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import { RowWriter } from "../rows.ts";
import type { EmitOptions, KeyedContext, KeyedProcess, Timer } from "./context.ts";

interface Pending {
  readonly entry: KeyEntry;
  readonly name: string | undefined;
}

/** Runs a keyed process function. */
export class KeyedProcessOperator extends EventTimeOperator {
  /** The state of this partition. */
  readonly state: MemoryState;
  readonly #process: KeyedProcess<unknown, unknown, unknown>;
  readonly #timers = { event: new TimeHeap<Pending>(), processing: new TimeHeap<Pending>() };
  readonly #sides = new Map<string, RowWriter>();
  readonly #context: KeyedContext;
  // What is being worked on.
  #entry!: KeyEntry;
  #timestamp = NaN;
  #record: RecordContext | undefined;
  #carried: Watermark = -Infinity;

  constructor(process: KeyedProcess<unknown, unknown, unknown>, context: OperatorContext) {
    super(context);
    this.#process = process;
    this.state = new MemoryState(context.id, {
      event: () => this.watermark,
      processing: () => context.clock.now(),
    });
    this.#context = this.#contextOfCalls();
  }

  inspect(key: unknown): Readonly<Record<string, unknown>> {
    return this.state.inspect(key);
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    this.#entry = this.state.enter(record.key);
    this.#timestamp = timestamp;
    this.#carried = own;
    this.#record = record;
    this.#call(() => this.#process.onRecord(value, this.#context));
  }

  protected override fire(): void {
    this.#due("event", this.watermark);
    this.state.expire();
    this.#count();
  }
  protected override onClock(now: number): void {
    this.#due("processing", now);
    this.state.expire();
    this.#count();
  }
  protected override nextDue(): number {
    this.#count();
    for (const writer of this.#sides.values()) writer.flush();
    return Math.min(this.#timers.processing.earliest, this.state.nextExpiry);
  }

  /** Fires what is due, earliest first; timers set meanwhile count as well. */
  #due(domain: TimeDomain, now: number): void {
    const heap = this.#timers[domain];
    while (heap.isDue(now)) {
      const time = heap.earliest, { entry, name } = heap.pop();
      const id = timerId(domain, name ?? time);
      if (entry.timers.get(id) !== time) continue; // moved or deleted since
      entry.timers.delete(id);
      this.#fireTimer(entry, { name, time, domain });
    }
  }

  #fireTimer(entry: KeyEntry, timer: Timer): void {
    this.#entry = entry;
    this.state.enterEntry(entry);
    this.#timestamp = timer.time;
    this.#carried = timer.domain === "event" ? this.before : this.watermark;
    this.#record = undefined;
    try {
      this.#call(() => this.#process.onTimer?.(timer, this.#context));
    } catch (error) {
      this.context.failed(this.#timerBatch(timer), 0, error);
    }
  }

  #call(work: () => void): void {
    try {
      work();
    } finally {
      this.#record = undefined;
      this.state.leave();
    }
  }

  #count(): void {
    this.context.gauges.stateEntries = this.state.size;
    this.context.gauges.timers = this.#timers.event.size + this.#timers.processing.size;
  }

  /** Stands for a timer where a record is expected: in errors and dead letters. */
  #timerBatch(timer: Timer): Batch {
    const { context } = this;
    return new Batch<unknown>(
      [{ timer }],
      {
        channel: context.channel,
        source: context.id,
        split: String(context.partition),
        timestamps: Float64Array.of(timer.time),
        watermarks: Float64Array.of(this.before),
        firstOffset: undefined,
        offsets: undefined,
        headers: undefined,
        keys: [this.#entry.key],
        texts: undefined,
        windows: undefined,
        bytes: 0,
      },
      undefined,
      undefined,
      false,
    );
  }

  #emit(writer: RowWriter, value: unknown, options: EmitOptions | undefined): void {
    const timestamp = options?.timestamp ?? this.#timestamp;
    writer.add(value, this.#entry.key, timestamp, this.#carried, undefined, options?.headers ?? this.#record?.headers);
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
    if (Number.isNaN(time)) throw new MailerError("invalid_timer", `operator "${this.context.id}": a timer needs a time, not NaN`);
    const id = timerId(domain, name ?? time);
    if (this.#entry.timers.get(id) === time) return;
    this.#entry.timers.set(id, time);
    this.#timers[domain].push(time, { entry: this.#entry, name });
  }

  #contextOfCalls(): KeyedContext {
    // deno-lint-ignore no-this-alias -- getters of the object below speak of the operator
    const operator = this;
    const { state } = this;
    return {
      get key() {
        return operator.#entry.key;
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
      deleteEventTimer: (nameOrTime) => this.#entry.timers.delete(timerId("event", nameOrTime)),
      deleteProcessingTimer: (nameOrTime) => this.#entry.timers.delete(timerId("processing", nameOrTime)),
      value: (name, options) => state.value(name, options),
      list: (name, options) => state.list(name, options),
      map: (name, options) => state.map(name, options),
      reducing: (name, reduce, options) => state.reducing(name, reduce, options),
    };
  }
}

function timerId(domain: TimeDomain, nameOrTime: string | number): string {
  return `${domain} ${typeof nameOrTime === "number" ? `@${nameOrTime}` : `=${nameOrTime}`}`;
}
