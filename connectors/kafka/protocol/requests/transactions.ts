/**
 * What transactional and idempotent producers ask their coordinator. All of it is the first generation of transactions, which every
 * broker from 2.5 on speaks.
 *
 * @module
 */
import { type Api, byTopic, type Throttled } from "./api.ts";

/** Who asks. */
export interface ProducerIdentity {
  readonly transactionalId: string;
  readonly producerId: number;
  readonly epoch: number;
}

/** Only the error, 0 = none. */
export interface ErrorAnswer extends Throttled {
  readonly error: number;
}

/** What became of each partition. */
export interface PartitionsAnswer extends Throttled {
  readonly results: readonly { readonly topic: string; readonly partition: number; readonly error: number }[];
}

/** Asks for a producer id. */
export interface InitProducerIdQuestion {
  /** Undefined = idempotent only. */
  readonly transactionalId: string | undefined;
  readonly timeoutMs: number;
  /** Who one has been so far: refused where somebody else has taken over. -1 = whoever had it is fenced. */
  readonly producerId: number;
  readonly epoch: number;
}

/** Version 3: since Kafka 2.5. */
export const initProducerId: Api<
  InitProducerIdQuestion,
  ErrorAnswer & { readonly producerId: number; readonly epoch: number }
> = {
  key: 22,
  name: "InitProducerId",
  version: 3,
  flexible: true,
  write: (to, { transactionalId, timeoutMs, producerId, epoch }) =>
    void to.compactNullableString(transactionalId).int32(timeoutMs).int64(producerId).int16(epoch).noTags(),
  read(from) {
    const answer = {
      throttleMs: from.int32(),
      error: from.int16(),
      producerId: from.int64(),
      epoch: from.int16(),
    };
    from.skipTags();
    return answer;
  },
};

/** Version 2: since Kafka 2.6. */
export const addPartitionsToTxn: Api<
  ProducerIdentity & {
    readonly partitions: readonly { readonly topic: string; readonly partition: number }[];
  },
  PartitionsAnswer
> = {
  key: 24,
  name: "AddPartitionsToTxn",
  version: 2,
  write(to, { transactionalId, producerId, epoch, partitions }) {
    to.string(transactionalId).int64(producerId).int16(epoch);
    to.array(byTopic(partitions), ([topic, ofTopic]) => {
      to.string(topic).array(ofTopic, ({ partition }) => to.int32(partition));
    });
  },
  read(from) {
    const throttleMs = from.int32();
    const results = from.array(() => {
      const topic = from.string();
      return from.array(() => ({ topic, partition: from.int32(), error: from.int16() }));
    }).flat();
    return { throttleMs, results };
  },
};

/** Version 2: since Kafka 2.6. */
export const addOffsetsToTxn: Api<ProducerIdentity & { readonly group: string }, ErrorAnswer> = {
  key: 25,
  name: "AddOffsetsToTxn",
  version: 2,
  write: (to, { transactionalId, producerId, epoch, group }) =>
    void to.string(transactionalId).int64(producerId).int16(epoch).string(group),
  read: (from) => ({ throttleMs: from.int32(), error: from.int16() }),
};

/** Version 2: since Kafka 2.6. */
export const endTxn: Api<ProducerIdentity & { readonly commit: boolean }, ErrorAnswer> = {
  key: 26,
  name: "EndTxn",
  version: 2,
  write: (to, { transactionalId, producerId, epoch, commit }) =>
    void to.string(transactionalId).int64(producerId).int16(epoch).bool(commit),
  read: (from) => ({ throttleMs: from.int32(), error: from.int16() }),
};

/** Offsets that become those of a group with the transaction. */
export interface TxnOffsetCommitQuestion extends ProducerIdentity {
  readonly group: string;
  /** -1 without a member. */
  readonly generation: number;
  /** Empty without a member. */
  readonly memberId: string;
  readonly offsets: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly offset: number;
  }[];
}

/** Version 3: since Kafka 2.5. Asked of the coordinator of the group. */
export const txnOffsetCommit: Api<TxnOffsetCommitQuestion, PartitionsAnswer> = {
  key: 28,
  name: "TxnOffsetCommit",
  version: 3,
  flexible: true,
  write(to, { transactionalId, group, producerId, epoch, generation, memberId, offsets }) {
    to.compactString(transactionalId).compactString(group).int64(producerId).int16(epoch);
    to.int32(generation).compactString(memberId).compactNullableString(undefined);
    to.compactArray(byTopic(offsets), ([topic, ofTopic]) => {
      to.compactString(topic).compactArray(ofTopic, ({ partition, offset }) => {
        to.int32(partition).int64(offset).int32(-1).compactNullableString("").noTags();
      }).noTags();
    }).noTags();
  },
  read(from) {
    const throttleMs = from.int32();
    const results = from.compactArray(() => {
      const topic = from.compactString();
      const ofTopic = from.compactArray(() => {
        const result = { topic, partition: from.int32(), error: from.int16() };
        from.skipTags();
        return result;
      });
      from.skipTags();
      return ofTopic;
    }).flat();
    from.skipTags();
    return { throttleMs, results };
  },
};

/** What one broker coordinates. */
export interface TransactionListing {
  readonly transactionalId: string;
  readonly producerId: number;
  readonly state: string;
}

/** Version 0: since Kafka 3.0. Each broker knows those it coordinates. */
export const listTransactions: Api<
  unknown,
  ErrorAnswer & { readonly transactions: readonly TransactionListing[] }
> = {
  key: 66,
  name: "ListTransactions",
  version: 0,
  flexible: true,
  write: (to) => void to.uvarint(1).uvarint(1).noTags(), // any state, any producer
  read(from) {
    const [throttleMs, error] = [from.int32(), from.int16()];
    from.compactArray(() => from.compactString()); // states it does not know
    const transactions = from.compactArray(() => {
      const listing = {
        transactionalId: from.compactString(),
        producerId: from.int64(),
        state: from.compactString(),
      };
      from.skipTags();
      return listing;
    });
    from.skipTags();
    return { throttleMs, error, transactions };
  },
};

/** One transaction. */
export interface TransactionDescription {
  readonly error: number;
  readonly transactionalId: string;
  readonly state: string;
  readonly timeoutMs: number;
  /** -1 = not begun. */
  readonly startedAt: number;
  readonly producerId: number;
  readonly epoch: number;
  readonly partitions: readonly { readonly topic: string; readonly partition: number }[];
}

/** Version 0: since Kafka 3.0. Asked of the coordinator. */
export const describeTransactions: Api<
  { readonly transactionalIds: readonly string[] },
  Throttled & { readonly transactions: readonly TransactionDescription[] }
> = {
  key: 65,
  name: "DescribeTransactions",
  version: 0,
  flexible: true,
  write: (to, { transactionalIds }) =>
    void to.compactArray(transactionalIds, (id) => to.compactString(id)).noTags(),
  read(from) {
    const throttleMs = from.int32();
    const transactions = from.compactArray(() => {
      const transaction = {
        error: from.int16(),
        transactionalId: from.compactString(),
        state: from.compactString(),
        timeoutMs: from.int32(),
        startedAt: from.time(),
        producerId: from.int64(),
        epoch: from.int16(),
        partitions: from.compactArray(() => {
          const topic = from.compactString();
          const partitions = from.compactArray(() => ({ topic, partition: from.int32() }));
          from.skipTags();
          return partitions;
        }).flat(),
      };
      from.skipTags();
      return transaction;
    });
    from.skipTags();
    return { throttleMs, transactions };
  },
};
