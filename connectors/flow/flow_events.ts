/**
 * Source `flowEvents`: what happens to executions, as records. A split for each partition of the store.
 *
 * E1 Each event of each decision is one record, in the order the decisions of a partition were committed; those of one execution are
 *    all in one split.
 * E2 An offset is the decision's position in its partition and the number of the event in it: from every position reading goes on
 *    with the next event.
 * E3 Nothing is left out silently: of a decision whose execution has been deleted since there is still a record for each type of
 *    event it had, marked `gone`; where the feed was cut in front of the position, reading fails.
 *
 * @module
 */
import type { Source, SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { Executions } from "../../lib/flow/engine/executions.ts";
import { Flows } from "../../lib/flow/engine/flows.ts";
import { decodeEvents, type FlowEvent } from "../../lib/flow/fold/mod.ts";
import type { FeedItem, FlowStore, Watch } from "../../lib/flow/store/port.ts";

/** An event of an execution, as a record. */
export interface FlowEventRecord {
  /** Id of the execution; also the key of the record. */
  readonly execution: string;
  /** Name of its flow; null where it has been deleted. */
  readonly flow: string | null;
  /** Sequence of the decision in its execution. */
  readonly seq: number;
  /** Number of the event in its execution; null where it has been deleted. */
  readonly i: number | null;
  /** Type of the event, e.g. `NodeCompleted`. */
  readonly type: string;
  /** When it happened, ms since the epoch; also the timestamp of the record. Where that is not known any more: when it was read. */
  readonly time: number;
  /** What there is to say about it. */
  readonly data: unknown;
  /** Set where the execution has been deleted: only the type is known. */
  readonly gone?: true;
}

/** Settings of {@link flowEvents}. */
export interface FlowEventsOptions {
  /** Where the executions lie. */
  readonly store: FlowStore;
  /** Only these types of events. Default: all. */
  readonly types?: readonly string[];
  /** Only executions of these flows. Default: all. */
  readonly flows?: readonly string[];
  /** Where to begin without a checkpoint. Default `earliest`. */
  readonly start?: "earliest" | "latest";
  /** `end`: reads what there is when it is opened, and ends. Default: goes on for ever. */
  readonly until?: "end";
}

/** Room for the events of one decision in an offset. */
const PER_DECISION = 65_536;
/** Decisions that are read at once. */
const MOST_DECISIONS = 128;

/** Events of executions. */
export function flowEvents(options: FlowEventsOptions): Source<FlowEventRecord> {
  const { types, flows, start = "earliest", until } = options;
  return {
    type: "flowEvents",
    describe: () => ({
      start,
      ...(types === undefined ? {} : { types }),
      ...(flows === undefined ? {} : { flows }),
      ...(until === undefined ? {} : { until }),
    }),
    open: (context) => EventsReader.open(options, context),
  };
}

/** A partition, as it is read. */
interface Split {
  readonly name: string;
  readonly partition: number;
  /** Offset of the next event. */
  next: number;
  /** Position of the feed it ends at. */
  readonly end: number;
  state: "reading" | "empty" | "ended";
}

/** What was read of a partition. */
interface Column {
  readonly values: FlowEventRecord[];
  readonly offsets: number[];
  readonly next: number;
}

class EventsReader implements SourceReader<FlowEventRecord> {
  readonly splits: readonly string[];
  readonly #options: FlowEventsOptions;
  readonly #context: SourceContext;
  readonly #splits: readonly Split[];
  readonly #watch: Watch;
  readonly #executions: Executions;
  #turn = 0;

  static async open(options: FlowEventsOptions, context: SourceContext): Promise<EventsReader> {
    const { store, start = "earliest", until } = options, { restored } = context;
    const partitions = Array.from({ length: store.partitions.count }, (_, partition) => partition);
    const splits = await Promise.all(partitions.map(async (partition): Promise<Split> => {
      const name = String(partition), position = restored?.get(name);
      const end = start === "latest" || until === "end" ? await store.feed.end(partition) : Infinity;
      const first = start === "latest" ? end : await store.feed.begin(partition);
      return {
        name,
        partition,
        next: position === undefined ? first * PER_DECISION : offsetOf(name, position),
        end: until === "end" ? end : Infinity,
        state: "reading",
      };
    }));
    return new EventsReader(options, context, splits);
  }

  private constructor(options: FlowEventsOptions, context: SourceContext, splits: readonly Split[]) {
    const { store } = options;
    this.#options = options;
    this.#context = context;
    this.#splits = splits;
    this.splits = splits.map(({ name }) => name);
    this.#watch = store.watch(splits.map(({ partition }) => `feed:${partition}` as const));
    this.#executions = new Executions(store, new Flows(store.definitions, context.clock));
  }

  async read(): Promise<SourceRead<FlowEventRecord>> {
    const isBounded = this.#options.until === "end";
    for (;;) {
      this.#context.signal.throwIfAborted();
      const split = this.#nextSplit();
      if (split === undefined) {
        if (this.#splits.every(({ state }) => state === "ended")) return { kind: "end" };
        await this.#watch.next(this.#context.signal);
        for (const each of this.#splits) if (each.state === "empty") each.state = "reading";
        continue;
      }
      if (Math.floor(split.next / PER_DECISION) >= split.end) {
        split.state = "ended";
        return { kind: "ended", split: split.name };
      }
      const before = split.next, { values, offsets, next } = await this.#column(split);
      split.next = next;
      if (!isBounded) this.#turn++;
      if (values.length > 0) return this.#records(split, values, offsets);
      if (next > before) return { kind: "position", split: split.name, position: next }; // all of it was of no interest
      split.state = "empty";
      return { kind: "empty", split: split.name };
    }
  }

  /** Partitions in turn; of a bounded input one after the other. */
  #nextSplit(): Split | undefined {
    const { length } = this.#splits;
    for (let i = 0; i < length; i++) {
      const split = this.#splits[(this.#turn + i) % length]!;
      if (split.state === "reading") return split;
    }
    return undefined;
  }

  #records(split: Split, values: FlowEventRecord[], offsets: readonly number[]): SourceRead<FlowEventRecord> {
    return {
      kind: "records",
      split: split.name,
      values,
      offsets: Float64Array.from(offsets),
      timestamps: Float64Array.from(values, ({ time }) => time),
      keys: values.map(({ execution }) => execution),
      position: split.next,
    };
  }

  /** The next events of a partition, as many as a read may have. */
  async #column(split: Split): Promise<Column> {
    const { store } = this.#options, { batchSize } = this.#context, { partition, next } = split;
    const from = Math.floor(next / PER_DECISION),
      limit = Math.min(MOST_DECISIONS, batchSize, split.end - from);
    const items = await store.feed.read(partition, from, limit);
    const decisions = await Promise.all(items.map((item) => this.#events(item)));
    const values: FlowEventRecord[] = [], offsets: number[] = [];
    let at = next;
    for (const [d, { position }] of items.entries()) {
      const base = position * PER_DECISION, events = decisions[d]!;
      for (let i = Math.max(0, at - base); i < events.length; i++) {
        if (values.length === batchSize) return { values, offsets, next: base + i };
        if (!this.#isWanted(events[i]!)) continue;
        values.push(events[i]!);
        offsets.push(base + i);
      }
      at = base + PER_DECISION;
    }
    return { values, offsets, next: at };
  }

  #isWanted({ type, flow }: FlowEventRecord): boolean {
    const { types, flows } = this.#options;
    return (types?.includes(type) ?? true) && (flow === null || (flows?.includes(flow) ?? true));
  }

  async #events(item: FeedItem): Promise<FlowEventRecord[]> {
    const { execId, seq, note = "" } = item, head = await this.#options.store.executions.head(execId);
    const events = head === undefined ? undefined : await this.#decision(item),
      flow = head?.summary.flow ?? null;
    const about = { execution: execId, flow, seq };
    if (events !== undefined) {
      return events.map(({ i, type, time, data }) => ({ ...about, i, type, time, data }));
    }
    const time = this.#context.clock.now();
    return note.split(",").filter((type) => type !== "").map((type) => (
      { ...about, i: null, type, time, data: null, gone: true as const }
    ));
  }

  /** Events of a decision, wherever they lie; undefined where the execution was deleted meanwhile. */
  async #decision({ execId, seq }: FeedItem): Promise<FlowEvent[] | undefined> {
    const [live] = await this.#options.store.executions.log(execId, seq, 1);
    if (live?.seq === seq) return decodeEvents(live.events);
    const history = await this.#executions.history(execId);
    const found = history?.find((decision) => decision.seq === seq);
    return found === undefined ? undefined : decodeEvents(found.events);
  }

  close(): void {
    this.#watch.close();
  }
}

function offsetOf(split: string, position: unknown): number {
  if (Number.isSafeInteger(position) && (position as number) >= 0) return position as number;
  throw new MailerError(
    "invalid_position",
    `split "${split}": ${JSON.stringify(position)} is no position of a feed`,
    {
      hint: "the checkpoint is of another source: start without it, or give the source another id",
    },
  );
}
