/**
 * The running source: hands out what was read ahead, and what is to be known of splits, one read after the other.
 *
 * H1 While partitions change hands nothing is handed out of them.
 * H2 What is handed out between two reads is known: what lies in front of the latest one is downstream.
 * H3 Where there are checkpoints, they know the position of every split from the start, and also where only hidden records came: it
 *    is told by a read without records. So a restart does not begin elsewhere, nor with what was deleted meanwhile.
 * H4 What decoding needs is asked for before records are taken out of their split: while that takes, nothing has been handed out.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import { type Alarm, delay } from "../../../lib/clock.ts";
import type {
  Position,
  RunOutcome,
  SourceContext,
  SourceRead,
  SourceReader,
  SplitLag,
} from "../../../lib/connector.ts";
import { asError } from "../../../lib/errors.ts";
import type { KafkaClient, TopicPartition } from "../client.ts";
import { AllPartitions } from "./all_partitions.ts";
import { Committer } from "./committer.ts";
import { RecordDecoder } from "./decode.ts";
import { explained } from "./explain.ts";
import { type Listing, listPartitions } from "./listing.ts";
import type { CheckedKafkaSource } from "./options.ts";
import type { Host, Ownership, OwnershipContext } from "./ownership.ts";
import { Prefetch } from "./prefetch.ts";
import { SharedPartitions } from "./shared_partitions.ts";
import { partitionOf, Split, splitName } from "./split.ts";
import { Start } from "./start.ts";
import { WholeGroup } from "./whole_group.ts";

/** Without checkpoints: how often offsets are committed, ms. */
const COMMIT_EVERY = 5_000;
/** Part of the rebalance timeout that finishing what was handed out may take; the rest is for joining again. */
const SETTLE_SHARE = 2 / 3;

/** Opens a reader: lists partitions, joins the group where there is one. @throws {KafkaError} */
export async function openKafka(options: CheckedKafkaSource, context: SourceContext): Promise<KafkaReader> {
  const factory = options.client ?? (await import("../kafkajs/mod.ts")).kafkaClient;
  const client = factory(options.connection, { clock: context.clock, logger: context.logger });
  let reader: KafkaReader | undefined;
  try {
    const listing = await listPartitions(client, options, { signal: context.signal });
    reader = new KafkaReader(client, listing, options, context);
    await reader.open();
    return reader;
  } catch (error) {
    await (reader?.close("failed") ?? client.close()).catch(() => {}); // what went wrong first counts
    throw explained(error, options);
  }
}

/** Reads partitions. */
export class KafkaReader implements SourceReader {
  splits: readonly string[] = [];
  readonly #client: KafkaClient;
  readonly #options: CheckedKafkaSource;
  readonly #context: SourceContext;
  readonly #start: Start;
  readonly #tracked = new Map<string, Split>();
  readonly #handed = new Map<string, number>();
  readonly #prefetch: Prefetch;
  readonly #decoder: RecordDecoder;
  readonly #ownership: Ownership;
  readonly #committer: Committer | undefined;
  /** What is to be said before more records. */
  readonly #events: SourceRead[] = [];
  readonly #notify = (): void => this.#wake();
  #isOpen = false;
  #isHeld = false;
  /** H4. */
  #isPreparing = false;
  #error: Error | undefined;
  #wake: () => void = () => {};
  /** The split of the latest read, and where it was before. */
  #latest: { readonly split: Split; readonly before: number } | undefined;
  #alarm: Alarm | undefined;
  #committing: Promise<void> = Promise.resolve();

  constructor(client: KafkaClient, listing: Listing, options: CheckedKafkaSource, context: SourceContext) {
    const { restored, keepsState, id, clock, logger } = context;
    this.#client = client;
    this.#options = options;
    this.#context = context;
    const known = [...listing.partitions, ...this.#hidden(listing)];
    this.#start = new Start({ client, options, restored, keepsState, listing, known });
    this.#decoder = new RecordDecoder(options.format, options.keyFormat);
    this.#prefetch = new Prefetch({
      client,
      options,
      source: id,
      clock,
      logger,
      brokers: listing.brokers,
      listener: {
        changed: this.#notify,
        empty: (split) => this.#events.push({ kind: "empty", split: split.name }),
        moved: (split) => {
          this.#events.push({ kind: "empty", split: split.name });
          this.#tellPosition(split);
        },
        failed: (error) => this.#fail(error),
      },
    });
    this.#ownership = this.#newOwnership({
      client,
      options,
      context,
      logger,
      listing,
      known,
      start: this.#start,
      host: this.#host(),
    });
    const { commit } = this.#ownership;
    this.#committer = commit && new Committer(commit, (error) => {
      logger.log("debug", "offsets were not committed", { source: id, error: error.message });
    });
  }

  /** Finds out what to read. */
  async open(): Promise<void> {
    const { signal } = this.#context;
    await this.#start.findEnds({ signal });
    await this.#ownership.open();
    signal.addEventListener("abort", this.#notify);
    this.splits = [...this.#tracked.keys()];
    this.#isOpen = true;
    for (const split of this.#tracked.values()) this.#announced(split);
    if (this.#context.checkpoints === undefined) this.#commitNowAndThen();
  }

  read(): SourceRead | Promise<SourceRead> {
    this.#latest = undefined;
    return this.#next() ?? abortable(this.#wait(), this.#context.signal);
  }

  async checkpointed(positions: ReadonlyMap<string, Position>): Promise<void> {
    const own = [...positions].filter(([split]) => this.#tracked.has(split)) as [string, number][];
    await this.#committer?.commit(new Map(own));
  }

  /** How far each split is behind, in offsets: hidden records count. */
  lag(): SplitLag[] {
    const known = [...this.#tracked.values()].filter(({ highWatermark }) => highWatermark !== undefined);
    return known.map(({ name, position, highWatermark, lastStableOffset }) => ({
      split: name,
      end: Math.max(0, highWatermark! - position),
      stable: Math.max(0, lastStableOffset! - position),
    }));
  }

  progress(): { readonly done: number; readonly total: number } | undefined {
    if (!this.#options.isBounded) return undefined;
    let done = 0, total = 0;
    for (const { begin, position, end } of this.#tracked.values()) {
      if (end === undefined || end <= begin) continue;
      done += Math.min(position, end) - begin;
      total += end - begin;
    }
    return { done, total };
  }

  /** @param outcome How the run ended; where that is not known, what was handed out last counts as lost. */
  async close(outcome: RunOutcome): Promise<void> {
    const { signal, checkpoints, logger, id } = this.#context;
    signal.removeEventListener("abort", this.#notify);
    this.#alarm?.cancel();
    this.#prefetch.stop();
    try {
      if (checkpoints === undefined && this.#isOpen) await this.#commit(outcome === "done");
    } catch (error) {
      logger.log("warn", "committing offsets failed", { source: id, error: asError(error).message });
    }
    await this.#ownership.close();
    await this.#client.close();
  }

  // Handing out

  #next(): SourceRead | undefined {
    if (this.#error !== undefined) throw this.#error;
    const event = this.#events.shift();
    if (event !== undefined) return event;
    if (this.#isHeld || this.#isPreparing) return undefined;
    const split = this.#prefetch.next();
    if (split !== undefined) return this.#prepare(split) ? this.#records(split) : undefined;
    return this.#isComplete ? { kind: "end" } : undefined;
  }

  /** H4. @returns Whether the next records of the split can be decoded; else whoever waits is woken. */
  #prepare(split: Split): boolean {
    const { clock, signal, batchSize } = this.#context;
    const prepared = this.#decoder.prepare(() => split.peek(batchSize), { clock, signal });
    if (prepared === undefined) return true;
    this.#prefetch.again(split);
    this.#isPreparing = true;
    prepared.catch((error) => this.#fail(error)).then(() => {
      this.#isPreparing = false;
      this.#wake();
    });
    return false;
  }

  #records(split: Split): SourceRead {
    const before = split.position, rows = split.take(this.#context.batchSize);
    this.#prefetch.done(split);
    this.#latest = { split, before };
    const read = this.#decoder.decode(split.name, rows, split.position);
    this.#endIfComplete(split);
    return read;
  }

  async #wait(): Promise<SourceRead> {
    for (;;) {
      const next = this.#next();
      if (next !== undefined) return next;
      this.#context.signal.throwIfAborted();
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      if (!this.#isHeld && !this.#isPreparing) this.#prefetch.poll();
      await promise;
    }
  }

  /** Whether all of a bounded input has been handed out. */
  get #isComplete(): boolean {
    if (!this.#options.isBounded) return false;
    for (const { hasEnded } of this.#tracked.values()) if (!hasEnded) return false;
    return true;
  }

  #endIfComplete(split: Split): void {
    if (!split.isComplete || split.hasEnded) return;
    split.hasEnded = true;
    this.#events.push({ kind: "ended", split: split.name });
  }

  /** See H3. A bounded split may be through. */
  #tellPosition(split: Split): void {
    const { name, position } = split;
    if (this.#context.checkpoints !== undefined) {
      this.#events.push({ kind: "position", split: name, position });
    }
    this.#endIfComplete(split);
  }

  #announced(split: Split): void {
    if (this.#context.restored?.get(split.name) === split.position) this.#endIfComplete(split);
    else this.#tellPosition(split);
  }

  #fail(error: Error): void {
    this.#error ??= asError(explained(error, this.#options));
    this.#wake();
  }

  // Whose partitions they are

  #newOwnership(context: OwnershipContext): Ownership {
    if (this.#options.group === undefined) return new AllPartitions(context);
    return this.#context.keepsState ? new WholeGroup(context) : new SharedPartitions(context);
  }

  /** Partitions that only the checkpoint knows of: a broker may hide them for a moment. Those of other topics are not read any more. */
  #hidden({ names }: Listing): TopicPartition[] {
    const { topics, pattern, partitions } = this.#options, hidden: TopicPartition[] = [];
    const { restored, logger, id } = this.#context;
    for (const split of restored?.keys() ?? []) {
      if (names.has(split)) continue;
      const at = partitionOf(split);
      const isWanted = at !== undefined && (pattern?.test(at.topic) ?? topics.includes(at.topic)) &&
        (partitions?.includes(at.partition) ?? true);
      if (isWanted) hidden.push(at);
      else {
        logger.log("warn", "the checkpoint has a split that is not read any more", { source: id, split });
        this.#events.push({ kind: "removed", splits: [split] });
      }
    }
    return hidden;
  }

  #host(): Host {
    const tracked = this.#tracked;
    return {
      tracked,
      handed: this.#handed,
      track: (partitions, positions) => this.#track(partitions, positions),
      untrack: (splits) => this.#untrack(splits),
      hold: () => void (this.#isHeld = true),
      go: () => {
        this.#isHeld = false;
        this.#prefetch.read(tracked);
        this.#wake();
      },
      settle: () => this.#settle(),
      fail: (error) => this.#fail(error),
    };
  }

  #track(partitions: readonly TopicPartition[], positions: ReadonlyMap<string, number>): void {
    const added: Split[] = [];
    for (const at of partitions) {
      const name = splitName(at), position = positions.get(name)!, known = this.#tracked.get(name);
      if (known === undefined) {
        const split = new Split(at, position, this.#start.end(name));
        this.#tracked.set(name, split);
        added.push(split);
      } else if (position > known.position) {
        known.jump(position);
        this.#tellPosition(known);
      }
    }
    if (added.length === 0 || !this.#isOpen) return;
    this.#events.push({ kind: "added", splits: added.map(({ name }) => name) });
    for (const split of added) this.#tellPosition(split);
  }

  #untrack(names: readonly string[]): void {
    if (names.length === 0) return;
    for (const name of names) {
      const split = this.#tracked.get(name);
      if (split !== undefined) this.#handed.set(name, split.position);
      this.#tracked.delete(name);
      this.#committer?.forget(name);
    }
    const isGone = (read: SourceRead) => "split" in read && names.includes(read.split);
    const events = this.#events.filter((read) => !isGone(read));
    this.#events.splice(0, this.#events.length, ...events, { kind: "removed", splits: names });
    this.#wake();
  }

  // Committing

  /** Has what was handed out worked through: see {@link Host.settle}. */
  async #settle(): Promise<void> {
    const { checkpoints, clock, logger, id } = this.#context;
    const isDirty = [...this.#tracked.values()].some(({ name, begin, position }) =>
      position !== begin && position !== this.#committer?.committed(name)
    );
    if (!isDirty || !this.#isOpen) return;
    const late = new AbortController();
    const deadline = delay(clock, this.#options.rebalanceTimeout * SETTLE_SHARE, late.signal).then(() => {
      throw new Error("it was not there in time");
    });
    try {
      const settled = checkpoints === undefined ? this.#commit(true) : checkpoints.request();
      await Promise.race([settled, deadline]);
    } catch (error) {
      logger.log(
        "warn",
        "no checkpoint before partitions went: what was read since the last one is read again",
        {
          source: id,
          error: asError(error).message,
        },
      );
    } finally {
      deadline.catch(() => {}); // it is not waited for any more
      late.abort();
    }
  }

  #commitNowAndThen(): void {
    if (this.#committer === undefined) return;
    const { clock, logger, id } = this.#context;
    this.#alarm = clock.schedule(COMMIT_EVERY, () => {
      this.#commit(false).catch((error) => {
        logger.log("warn", "committing offsets failed", { source: id, error: asError(error).message });
      }).finally(() => this.#commitNowAndThen());
    });
  }

  /** Without checkpoints: commits what was handed out, with or without the latest read. */
  #commit(withLatest: boolean): Promise<void> {
    const positions = new Map<string, number>();
    for (const split of this.#tracked.values()) {
      const isLatest = !withLatest && this.#latest?.split === split;
      positions.set(split.name, isLatest ? this.#latest!.before : split.position);
    }
    return this.#committing = this.#committing.catch(() => {}) // it was reported to whoever waited for it
      .then(() => this.#committer?.commit(positions));
  }
}
