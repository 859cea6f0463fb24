/**
 * Metadata, FindCoordinator, and what looks after topics.
 *
 * @module
 */
import { type Api, byTopic, type Throttled } from "./api.ts";

/** The cluster as one broker knows it. */
export interface MetadataAnswer extends Throttled {
  readonly brokers: readonly { readonly id: number; readonly host: string; readonly port: number }[];
  readonly controller: number;
  readonly topics: readonly {
    readonly error: number;
    readonly name: string;
    readonly internal: boolean;
    readonly partitions: readonly {
      readonly error: number;
      readonly partition: number;
      /** -1 = none. */
      readonly leader: number;
      readonly replicas: readonly number[];
      readonly inSync: readonly number[];
    }[];
  }[];
}

/** Version 7: since Kafka 2.1. Topics: undefined = all; none are ever made by asking. */
export const metadata: Api<{ readonly topics: readonly string[] | undefined }, MetadataAnswer> = {
  key: 3,
  name: "Metadata",
  version: 7,
  write(to, { topics }) {
    if (topics === undefined) to.nullArray();
    else to.array(topics, (topic) => to.string(topic));
    to.bool(false);
  },
  read(from) {
    const throttleMs = from.int32();
    const brokers = from.array(() => {
      const broker = { id: from.int32(), host: from.string(), port: from.int32() };
      from.nullableString(); // rack
      return broker;
    });
    from.nullableString(); // cluster id
    const controller = from.int32();
    const topics = from.array(() => ({
      error: from.int16(),
      name: from.string(),
      internal: from.bool(),
      partitions: from.array(() => {
        const [error, partition, leader] = [from.int16(), from.int32(), from.int32()];
        from.int32(); // leader epoch
        const [replicas, inSync] = [from.array(() => from.int32()), from.array(() => from.int32())];
        from.array(() => from.int32()); // offline
        return { error, partition, leader, replicas, inSync };
      }),
    }));
    return { throttleMs, brokers, controller, topics };
  },
};

/** What has a coordinator. */
export type CoordinatorOf = "group" | "transaction";

/** Where a coordinator is. */
export interface CoordinatorAnswer extends Throttled {
  readonly error: number;
  readonly detail: string | undefined;
  readonly id: number;
  readonly host: string;
  readonly port: number;
}

/** Version 2: since Kafka 2.0. */
export const findCoordinator: Api<{ readonly of: CoordinatorOf; readonly name: string }, CoordinatorAnswer> =
  {
    key: 10,
    name: "FindCoordinator",
    version: 2,
    write: (to, { of, name }) => void to.string(name).int8(of === "group" ? 0 : 1),
    read: (from) => ({
      throttleMs: from.int32(),
      error: from.int16(),
      detail: from.nullableString(),
      id: from.int32(),
      host: from.string(),
      port: from.int32(),
    }),
  };

/** What became of one topic. */
export interface TopicResult {
  readonly topic: string;
  readonly error: number;
  readonly detail?: string | undefined;
}

/** A topic to be made; -1 = as the broker is set. */
export interface TopicToCreate {
  readonly name: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly config: Readonly<Record<string, string>>;
}

/** Version 4: since Kafka 2.4. */
export const createTopics: Api<
  { readonly topics: readonly TopicToCreate[]; readonly timeoutMs: number },
  Throttled & { readonly results: readonly TopicResult[] }
> = {
  key: 19,
  name: "CreateTopics",
  version: 4,
  write(to, { topics, timeoutMs }) {
    to.array(topics, ({ name, partitions, replicas, config }) => {
      to.string(name).int32(partitions).int16(replicas).int32(0);
      to.array(Object.entries(config), ([key, value]) => to.string(key).nullableString(value));
    });
    to.int32(timeoutMs).bool(false);
  },
  read: (from) => ({
    throttleMs: from.int32(),
    results: from.array(() => ({ topic: from.string(), error: from.int16(), detail: from.nullableString() })),
  }),
};

/** Version 1: since Kafka 2.0. */
export const createPartitions: Api<
  { readonly topic: string; readonly partitions: number; readonly timeoutMs: number },
  Throttled & { readonly results: readonly TopicResult[] }
> = {
  key: 37,
  name: "CreatePartitions",
  version: 1,
  write: (to, { topic, partitions, timeoutMs }) =>
    void to.int32(1).string(topic).int32(partitions).nullArray().int32(timeoutMs).bool(false),
  read: (from) => ({
    throttleMs: from.int32(),
    results: from.array(() => ({ topic: from.string(), error: from.int16(), detail: from.nullableString() })),
  }),
};

/** Version 3: since Kafka 2.1. */
export const deleteTopics: Api<
  { readonly topics: readonly string[]; readonly timeoutMs: number },
  Throttled & { readonly results: readonly TopicResult[] }
> = {
  key: 20,
  name: "DeleteTopics",
  version: 3,
  write: (to, { topics, timeoutMs }) => void to.array(topics, (topic) => to.string(topic)).int32(timeoutMs),
  read: (from) => ({
    throttleMs: from.int32(),
    results: from.array(() => ({ topic: from.string(), error: from.int16() })),
  }),
};

/** Version 1: since Kafka 2.0. Asked of the leaders. */
export const deleteRecords: Api<
  {
    readonly before: readonly {
      readonly topic: string;
      readonly partition: number;
      readonly offset: number;
    }[];
    readonly timeoutMs: number;
  },
  Throttled & { readonly results: readonly { topic: string; partition: number; error: number }[] }
> = {
  key: 21,
  name: "DeleteRecords",
  version: 1,
  write(to, { before, timeoutMs }) {
    to.array(byTopic(before), ([topic, ofTopic]) => {
      to.string(topic).array(ofTopic, ({ partition, offset }) => to.int32(partition).int64(offset));
    });
    to.int32(timeoutMs);
  },
  read(from) {
    const throttleMs = from.int32();
    const results = from.array(() => {
      const topic = from.string();
      return from.array(() => {
        const partition = from.int32();
        from.int64(); // low watermark
        return { topic, partition, error: from.int16() };
      });
    }).flat();
    return { throttleMs, results };
  },
};

/** Number of a kind of thing that has settings. */
export const SETTINGS_OF = { topic: 2, broker: 4 } as const;

/** Settings of one thing. */
export interface SettingsAnswer extends Throttled {
  readonly error: number;
  readonly detail: string | undefined;
  /** Undefined = hidden. */
  readonly settings: readonly { readonly name: string; readonly value: string | undefined }[];
}

/** Version 2: since Kafka 2.0. */
export const describeConfigs: Api<
  { readonly type: number; readonly name: string; readonly settings: readonly string[] },
  SettingsAnswer
> = {
  key: 32,
  name: "DescribeConfigs",
  version: 2,
  write(to, { type, name, settings }) {
    to.int32(1).int8(type).string(name).array(settings, (setting) => to.string(setting));
    to.bool(false);
  },
  read(from) {
    const throttleMs = from.int32();
    const [first] = from.array(() => {
      const [error, detail] = [from.int16(), from.nullableString()];
      from.int8();
      from.string();
      const settings = from.array(() => {
        const setting = { name: from.string(), value: from.nullableString() };
        from.bool(); // read only
        from.int8(); // where it comes from
        from.bool(); // secret
        from.array(() => [from.string(), from.nullableString(), from.int8()]);
        return setting;
      });
      return { error, detail, settings };
    });
    return { throttleMs, ...(first ?? { error: -1, detail: "no answer", settings: [] }) };
  },
};
