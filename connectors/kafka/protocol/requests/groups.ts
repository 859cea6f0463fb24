/**
 * What members of a group, and those who look at its offsets, ask its coordinator.
 *
 * @module
 */
import { type Api, byTopic, type Throttled } from "./api.ts";
import type { ErrorAnswer, PartitionsAnswer } from "./transactions.ts";

/** Who asks. */
export interface MemberIdentity {
  readonly group: string;
  readonly generation: number;
  readonly memberId: string;
  readonly instanceId: string | undefined;
}

/** Asks to be let in. */
export interface JoinQuestion {
  readonly group: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  /** Empty at first. */
  readonly memberId: string;
  readonly instanceId: string | undefined;
  /** Ways to share out that this member knows, the best first. */
  readonly protocols: readonly { readonly name: string; readonly metadata: Uint8Array }[];
}

/** Let in. */
export interface JoinAnswer extends ErrorAnswer {
  readonly generation: number;
  /** The way to share out that all know. */
  readonly protocol: string;
  readonly leader: string;
  readonly memberId: string;
  /** All members; empty unless this one is the leader. */
  readonly members: readonly { readonly memberId: string; readonly metadata: Uint8Array }[];
}

/** Version 5: since Kafka 2.3. */
export const joinGroup: Api<JoinQuestion, JoinAnswer> = {
  key: 11,
  name: "JoinGroup",
  version: 5,
  write(to, { group, sessionTimeoutMs, rebalanceTimeoutMs, memberId, instanceId, protocols }) {
    to.string(group).int32(sessionTimeoutMs).int32(rebalanceTimeoutMs).string(memberId).nullableString(
      instanceId,
    );
    to.string("consumer").array(protocols, ({ name, metadata }) => to.string(name).bytes(metadata));
  },
  read: (from) => ({
    throttleMs: from.int32(),
    error: from.int16(),
    generation: from.int32(),
    protocol: from.string(),
    leader: from.string(),
    memberId: from.string(),
    members: from.array(() => {
      const memberId = from.string();
      from.nullableString(); // instance id
      return { memberId, metadata: from.bytes() };
    }),
  }),
};

/** Version 3: since Kafka 2.3. Assignments come from the leader only. */
export const syncGroup: Api<
  MemberIdentity & {
    readonly assignments: readonly { readonly memberId: string; readonly bytes: Uint8Array }[];
  },
  ErrorAnswer & { readonly assignment: Uint8Array }
> = {
  key: 14,
  name: "SyncGroup",
  version: 3,
  write(to, { group, generation, memberId, instanceId, assignments }) {
    to.string(group).int32(generation).string(memberId).nullableString(instanceId);
    to.array(assignments, ({ memberId, bytes }) => to.string(memberId).bytes(bytes));
  },
  read: (from) => ({ throttleMs: from.int32(), error: from.int16(), assignment: from.bytes() }),
};

/** Version 3: since Kafka 2.3. */
export const heartbeat: Api<MemberIdentity, ErrorAnswer> = {
  key: 12,
  name: "Heartbeat",
  version: 3,
  write: (to, { group, generation, memberId, instanceId }) =>
    void to.string(group).int32(generation).string(memberId).nullableString(instanceId),
  read: (from) => ({ throttleMs: from.int32(), error: from.int16() }),
};

/** Version 3: since Kafka 2.4. */
export const leaveGroup: Api<Omit<MemberIdentity, "generation">, ErrorAnswer> = {
  key: 13,
  name: "LeaveGroup",
  version: 3,
  write: (to, { group, memberId, instanceId }) =>
    void to.string(group).int32(1).string(memberId).nullableString(instanceId),
  read(from) {
    const [throttleMs, error] = [from.int32(), from.int16()];
    const [ofMember] = from.array(() => [from.string(), from.nullableString(), from.int16()] as const);
    return { throttleMs, error: error === 0 ? ofMember?.[2] ?? 0 : error };
  },
};

/** Version 7: since Kafka 2.3. Generation -1 and no member id: from outside of the group. */
export const offsetCommit: Api<
  MemberIdentity & {
    readonly offsets: readonly {
      readonly topic: string;
      readonly partition: number;
      readonly offset: number;
    }[];
  },
  PartitionsAnswer
> = {
  key: 8,
  name: "OffsetCommit",
  version: 7,
  write(to, { group, generation, memberId, instanceId, offsets }) {
    to.string(group).int32(generation).string(memberId).nullableString(instanceId);
    to.array(byTopic(offsets), ([topic, ofTopic]) => {
      to.string(topic).array(ofTopic, ({ partition, offset }) => {
        to.int32(partition).int64(offset).int32(-1).nullableString("");
      });
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

/** What a group has committed; offset -1 = nothing. */
export interface OffsetFetchAnswer extends Throttled {
  readonly error: number;
  readonly results: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly offset: number;
    readonly error: number;
  }[];
}

/** Version 7: since Kafka 2.5. Offsets of a transaction that is about to be completed make it answer UNSTABLE_OFFSET_COMMIT. */
export const offsetFetch: Api<
  {
    readonly group: string;
    readonly partitions: readonly { readonly topic: string; readonly partition: number }[];
  },
  OffsetFetchAnswer
> = {
  key: 9,
  name: "OffsetFetch",
  version: 7,
  flexible: true,
  write(to, { group, partitions }) {
    to.compactString(group);
    to.compactArray(byTopic(partitions), ([topic, ofTopic]) => {
      to.compactString(topic).compactArray(ofTopic, ({ partition }) => to.int32(partition)).noTags();
    });
    to.bool(true).noTags();
  },
  read(from) {
    const throttleMs = from.int32();
    const results = from.compactArray(() => {
      const topic = from.compactString();
      const ofTopic = from.compactArray(() => {
        const [partition, offset] = [from.int32(), from.int64()];
        from.int32(); // leader epoch
        from.compactNullableString(); // metadata
        const result = { topic, partition, offset, error: from.int16() };
        from.skipTags();
        return result;
      });
      from.skipTags();
      return ofTopic;
    }).flat();
    const error = from.int16();
    from.skipTags();
    return { throttleMs, error, results };
  },
};
