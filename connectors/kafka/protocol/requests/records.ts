/**
 * Produce, Fetch and ListOffsets.
 *
 * @module
 */
import type { AbortedTransaction } from "../record_set.ts";
import { type Api, byTopic, type Throttled } from "./api.ts";

/** Batches for one leader. */
export interface ProduceQuestion {
  /** Set in transactions. */
  readonly transactionalId: string | undefined;
  /** -1 = all in-sync copies, 1 = the leader, 0 = nobody, and no answer. */
  readonly acks: number;
  /** How long the leader may wait for copies, ms. */
  readonly timeoutMs: number;
  /** At most one a partition. */
  readonly batches: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly bytes: Uint8Array;
  }[];
}

/** What became of one batch. */
export interface ProduceResult {
  readonly topic: string;
  readonly partition: number;
  readonly error: number;
  readonly baseOffset: number;
  /** What the broker says besides. */
  readonly detail: string | undefined;
}

/** Version 8: since Kafka 2.4. */
export const produce: Api<ProduceQuestion, Throttled & { readonly results: readonly ProduceResult[] }> = {
  key: 0,
  name: "Produce",
  version: 8,
  write(to, { transactionalId, acks, timeoutMs, batches }) {
    to.nullableString(transactionalId).int16(acks).int32(timeoutMs);
    to.array(byTopic(batches), ([topic, ofTopic]) => {
      to.string(topic).array(ofTopic, ({ partition, bytes }) => to.int32(partition).bytes(bytes));
    });
  },
  read(from) {
    const results = from.array(() => {
      const topic = from.string();
      return from.array(() => {
        const [partition, error, baseOffset] = [from.int32(), from.int16(), from.int64()];
        from.time(); // append time
        from.int64(); // log start
        const ofRecords = from.array(() => [from.int32(), from.nullableString()] as const);
        const detail = from.nullableString() ?? ofRecords.find(([, text]) => text !== undefined)?.[1];
        return { topic, partition, error, baseOffset, detail };
      });
    }).flat();
    return { results, throttleMs: from.int32() };
  },
};

/** Positions of partitions of one leader. */
export interface FetchQuestion {
  readonly maxWaitMs: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly committedOnly: boolean;
  readonly partitions: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly offset: number;
    readonly maxBytes: number;
  }[];
}

/** What came of one partition. */
export interface FetchResult {
  readonly topic: string;
  readonly partition: number;
  readonly error: number;
  readonly highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
  /** Only when `committedOnly`. */
  readonly aborted: readonly AbortedTransaction[];
  /** A record set. */
  readonly bytes: Uint8Array;
}

/** Version 11: since Kafka 2.3. Without fetch sessions: every request names all its partitions. */
export const fetchRecords: Api<
  FetchQuestion,
  Throttled & { readonly error: number; readonly results: readonly FetchResult[] }
> = {
  key: 1,
  name: "Fetch",
  version: 11,
  write(to, { maxWaitMs, minBytes, maxBytes, committedOnly, partitions }) {
    to.int32(-1).int32(maxWaitMs).int32(minBytes).int32(maxBytes).int8(committedOnly ? 1 : 0);
    to.int32(0).int32(-1); // no session
    to.array(byTopic(partitions), ([topic, ofTopic]) => {
      to.string(topic).array(ofTopic, ({ partition, offset, maxBytes }) => {
        to.int32(partition).int32(-1).int64(offset).int64(-1).int32(maxBytes);
      });
    });
    to.int32(0).string(""); // nothing forgotten, no rack
  },
  read(from) {
    const [throttleMs, error] = [from.int32(), from.int16()];
    from.int32(); // session
    const results = from.array(() => {
      const topic = from.string();
      return from.array(() => {
        const [partition, error] = [from.int32(), from.int16()];
        const [highWatermark, lastStableOffset, logStartOffset] = [from.int64(), from.int64(), from.int64()];
        const aborted = from.array(() => ({ producerId: from.int64(), firstOffset: from.int64() }));
        from.int32(); // preferred replica
        const bytes = from.bytes();
        return { topic, partition, error, highWatermark, lastStableOffset, logStartOffset, aborted, bytes };
      });
    }).flat();
    return { throttleMs, error, results };
  },
};

/** In the place of a timestamp: the end. */
export const LATEST = -1;
/** In the place of a timestamp: the start. */
export const EARLIEST = -2;

/** Places to look up at one leader. */
export interface ListOffsetsQuestion {
  readonly committedOnly: boolean;
  readonly partitions: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly timestamp: number;
  }[];
}

/** What was found. */
export interface ListOffsetsResult {
  readonly topic: string;
  readonly partition: number;
  readonly error: number;
  /** -1 = no record with this timestamp or a later one. */
  readonly offset: number;
}

/** Version 5: since Kafka 2.3. */
export const listOffsets: Api<
  ListOffsetsQuestion,
  Throttled & { readonly results: readonly ListOffsetsResult[] }
> = {
  key: 2,
  name: "ListOffsets",
  version: 5,
  write(to, { committedOnly, partitions }) {
    to.int32(-1).int8(committedOnly ? 1 : 0);
    to.array(byTopic(partitions), ([topic, ofTopic]) => {
      to.string(topic).array(
        ofTopic,
        ({ partition, timestamp }) => to.int32(partition).int32(-1).int64(timestamp),
      );
    });
  },
  read(from) {
    const throttleMs = from.int32();
    const results = from.array(() => {
      const topic = from.string();
      return from.array(() => {
        const [partition, error] = [from.int32(), from.int16()];
        from.time();
        const offset = from.int64();
        from.int32(); // leader epoch
        return { topic, partition, error, offset };
      });
    }).flat();
    return { throttleMs, results };
  },
};
