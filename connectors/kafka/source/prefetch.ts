/**
 * Reads ahead: what the fetcher brings, split by split, and whose turn it is.
 *
 * F1 One answer of a broker at most is held here, and one is on its way from each: together they keep to the budget. The share of a
 *    partition is the budget by their number, so many partitions do not make it larger.
 * F2 Splits with records take turns, a batch each: one with much to read does not hold up another.
 * F3 What is fetched of a partition that is not read (any more) is ignored.
 * F4 While there is something to hand out, or nobody asks, nothing is fetched.
 *
 * @module
 */
import { asError } from "../../../lib/errors.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Logger } from "../../../lib/log.ts";
import type { FetchedPartition, KafkaClient, KafkaFetcher } from "../client.ts";
import { OffsetOutOfRangeError } from "../errors.ts";
import { type CheckedKafkaSource, visibleEnd } from "./options.ts";
import { type Split, splitName } from "./split.ts";

/** The most one partition has in one answer, bytes. */
const MAX_PARTITION_BYTES = 2 ** 20;
/** So often it is said of a split that nothing came, ms. */
const SAY_EMPTY_EVERY = 100;

/** What whoever reads hears of. */
export interface PrefetchListener {
  /** Something has come: records, or one of the calls below. */
  changed(): void;
  /** A fetch of the split came back empty. */
  empty(split: Split): void;
  /** The position of the split has moved, with no record to show for it. */
  moved(split: Split): void;
  /** Nothing more can be read. */
  failed(error: Error): void;
}

/** What it works with. */
export interface PrefetchOptions {
  readonly client: KafkaClient;
  readonly options: CheckedKafkaSource;
  readonly source: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Number of brokers. */
  readonly brokers: number;
  readonly listener: PrefetchListener;
}

/** Reads ahead in a set of splits. */
export class Prefetch {
  readonly #context: PrefetchOptions;
  #splits: ReadonlyMap<string, Split> = new Map();
  /** Splits with records, in the order of their turns. */
  #turns: Split[] = [];
  #fetcher: KafkaFetcher | undefined;
  #isPolling = false;

  constructor(context: PrefetchOptions) {
    this.#context = context;
  }

  /** Reads these splits, each behind what was fetched of it. What is on its way is dropped. */
  read(splits: ReadonlyMap<string, Split>): void {
    this.stop();
    this.#splits = splits;
    this.#turns = [...splits.values()].filter(({ hasRecords }) => hasRecords);
    const open = [...splits.values()].filter((split) => !isFetched(split));
    if (open.length === 0) return;
    this.#fetcher = this.#context.client.fetcher(this.#limits(open.length));
    for (const split of open) this.#fetcher.assign(split, split.fetched);
  }

  /** Fetches nothing more; what was handed in stays. */
  stop(): void {
    const fetcher = this.#fetcher;
    this.#fetcher = undefined;
    this.#isPolling = false;
    void fetcher?.close();
  }

  /** The split whose turn it is; undefined where none has records. */
  next(): Split | undefined {
    const split = this.#turns.shift();
    if (split !== undefined && !split.hasRecords) return this.next(); // it went on elsewhere
    return split;
  }

  /** The split keeps its turn. */
  again(split: Split): void {
    this.#turns.unshift(split);
  }

  /** The split had its turn. */
  done(split: Split): void {
    if (split.hasRecords) this.#turns.push(split);
  }

  /** Waits for the next answer, unless it does so already. */
  poll(): void {
    const fetcher = this.#fetcher;
    if (fetcher === undefined || this.#isPolling) return;
    this.#isPolling = true;
    fetcher.poll().then(
      (answer) => this.#take(fetcher, () => this.#add(fetcher, answer)),
      (error) => this.#take(fetcher, () => this.#fail(fetcher, error)),
    );
  }

  /** What comes of a fetcher that is in use no more has been dropped. */
  #take(fetcher: KafkaFetcher, take: () => void): void {
    if (this.#fetcher !== fetcher) return;
    this.#isPolling = false;
    take();
    this.#context.listener.changed();
  }

  #add(fetcher: KafkaFetcher, answer: readonly FetchedPartition[]): void {
    const { clock, listener } = this.#context, now = clock.monotonic();
    for (const fetched of answer) {
      const split = this.#splits.get(splitName(fetched));
      if (split === undefined) continue;
      const hadRecords = split.hasRecords, hasMoved = split.add(fetched);
      if (isFetched(split)) fetcher.revoke(split);
      if (hasMoved) listener.moved(split);
      else if (!split.hasRecords && now - split.saidEmptyAt >= SAY_EMPTY_EVERY) {
        split.saidEmptyAt = now;
        listener.empty(split);
      }
      if (split.hasRecords && !hadRecords) this.#turns.push(split);
    }
  }

  #fail(fetcher: KafkaFetcher, error: unknown): void {
    const { listener, options } = this.#context;
    if (!(error instanceof OffsetOutOfRangeError) || options.onOffsetLost === "fail") {
      return listener.failed(asError(error));
    }
    this.#goOn(fetcher, error, options.onOffsetLost).catch((cause) => {
      if (this.#fetcher === fetcher) listener.failed(asError(cause));
    });
  }

  /** Goes on where there are records, and says what is lost. */
  async #goOn(fetcher: KafkaFetcher, lost: OffsetOutOfRangeError, how: "earliest" | "latest"): Promise<void> {
    const { client, listener, logger, options, source } = this.#context;
    const split = this.#splits.get(splitName(lost));
    if (split === undefined) return fetcher.revoke(lost);
    this.#isPolling = true; // until it is assigned anew, the fetcher says the same again
    const at = how === "earliest" ? "earliest" : visibleEnd(options);
    const [offset] = await client.listOffsets([{ topic: lost.topic, partition: lost.partition, at }]);
    if (this.#fetcher !== fetcher) return;
    this.#isPolling = false;
    logger.log("warn", "records were deleted before they were read", {
      source,
      split: split.name,
      wanted: lost.offset,
      goesOnAt: offset,
      onOffsetLost: how,
    });
    split.jump(offset!);
    if (isFetched(split)) fetcher.revoke(split);
    else fetcher.assign(split, offset!);
    listener.moved(split);
    listener.changed();
  }

  /** See F1. */
  #limits(partitions: number) {
    const { options, brokers } = this.#context, leaders = Math.min(brokers, partitions);
    const budget = options.prefetchBytes / (leaders + 1), share = options.prefetchBytes / 2 / partitions;
    return {
      isolation: options.isolation,
      minBytes: options.fetchMinBytes,
      maxBytes: atLeastOne(Math.min(options.fetchMaxBytes, budget)),
      maxPartitionBytes: atLeastOne(Math.min(MAX_PARTITION_BYTES, share)),
      maxWaitMs: options.fetchMaxWait,
    };
  }
}

/** Whether all of a bounded read is here. */
function isFetched({ end, fetched }: Split): boolean {
  return end !== undefined && fetched >= end;
}

const atLeastOne = (bytes: number): number => Math.max(1, Math.floor(bytes));
