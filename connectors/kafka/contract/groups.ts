/**
 * What a client must do in consumer groups: on a broker that others may use too.
 *
 * @module
 */
import assert from "node:assert/strict";
import { kafkaService, serviceTest } from "../../../tests/services/mod.ts";
import type {
  GroupMembership,
  GroupOptions,
  KafkaClient,
  KafkaClientFactory,
  KafkaGroup,
} from "../client.ts";
import { GenerationLostError } from "../errors.ts";
import { pause, timed, unique, until, withClient } from "./kit.ts";

/** A member that writes down what happens to it. */
class Watched {
  readonly log: string[] = [];
  readonly group: KafkaGroup;
  owned: readonly string[] = [];
  membership: GroupMembership | undefined;
  failure: Error | undefined;

  constructor(client: KafkaClient, options: Pick<GroupOptions, "group" | "topics"> & Partial<GroupOptions>) {
    this.group = client.group({
      heartbeatMs: 100,
      sessionTimeoutMs: 10_000,
      ...options,
      assigned: async (partitions, member, signal) => {
        this.owned = partitions.map(({ topic, partition }) => `${topic}/${partition}`).sort();
        this.membership = member;
        this.log.push(`assigned ${partitions.length}`);
        await options.assigned?.(partitions, member, signal);
      },
      revoked: async (partitions, lost) => {
        this.owned = [];
        this.log.push(`${lost ? "lost" : "revoked"} ${partitions.length}`);
        await options.revoked?.(partitions, lost);
      },
      failed: (error) => {
        this.log.push("failed");
        this.failure = error;
      },
    });
  }
}

/** The suite. */
export function groupsContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(`${name}: members share partitions out, again when one comes or goes`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("shared", { partitions: 4 });
      const all = [0, 1, 2, 3].map((partition) => `${topic}/${partition}`);
      const options = { group: unique("g"), topics: [topic] };
      const first = new Watched(client, options);
      await until("all for one", () => first.owned.length === 4);
      assert.deepEqual(first.owned, all);
      const second = new Watched(client, options);
      await until("half each", () => first.owned.length === 2 && second.owned.length === 2);
      assert.deepEqual([...first.owned, ...second.owned].sort(), all);
      await first.group.close();
      assert.equal(first.log.at(-1), "revoked 2");
      await until("all for the other", () => second.owned.length === 4);
      await second.group.close();
      assert.deepEqual([first.failure, second.failure], [undefined, undefined]);
    });
  });

  serviceTest(
    `${name}: hazard 6: what a group has committed moves nobody; commits of a former round are refused`,
    [
      "kafka",
    ],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("rounds", { partitions: 2 });
        const options = { group: unique("g"), topics: [topic] };
        const partitions = [{ topic, partition: 0 }, { topic, partition: 1 }];
        const first = new Watched(client, {
          ...options,
          // Still its own while they are given up: what was worked on can be committed.
          revoked: async (_, lost) => {
            if (!lost) await first.group.commit([{ topic, partition: 0, offset: 50 }]);
          },
        });
        await until("all for one", () => first.owned.length === 2);
        await first.group.commit([{ topic, partition: 0, offset: 5 }, { topic, partition: 1, offset: 6 }]);
        assert.deepEqual(await client.committedOffsets(options.group, partitions), [5, 6]);
        const former = first.membership!;
        const second = new Watched(client, options);
        await until("one each", () => first.owned.length === 1 && second.owned.length === 1);
        assert.deepEqual(await client.committedOffsets(options.group, partitions), [50, 6]);
        assert.ok(first.group.member!.generation > former.generation);
        // From outside a group with members is closed.
        const outside = client.commitOffsets(options.group, [{ topic, partition: 0, offset: 1 }]);
        await assert.rejects(outside, GenerationLostError);
        await Promise.all([first.group.close(), second.group.close()]);
        await assert.rejects(first.group.commit([{ topic, partition: 0, offset: 1 }]), GenerationLostError);
        await client.commitOffsets(options.group, [{ topic, partition: 1, offset: 60 }]);
        assert.deepEqual(await client.committedOffsets(options.group, partitions), [50, 60]);
      });
    },
  );

  serviceTest(`${name}: hazard 6: partitions that are added are shared out`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("growing");
      const member = new Watched(client, { group: unique("g"), topics: [topic], discoverMs: 100 });
      await until("one", () => member.owned.length === 1);
      await kafka.java.addPartitions(topic, 3);
      await until("three", () => member.owned.length === 3);
      assert.deepEqual(member.log, ["assigned 1", "revoked 1", "assigned 3"]);
      await member.group.close();
    });
  });

  serviceTest(`${name}: heartbeats do not depend on how long a callback takes`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("slow");
      let restore = () => {};
      const member = new Watched(client, {
        group: unique("g"),
        topics: [topic],
        sessionTimeoutMs: 6000, // the least a broker takes
        heartbeatMs: 500,
        assigned: () => new Promise<void>((resolve) => restore = resolve),
      });
      await until("assigned", () => member.log.length === 1);
      await pause(8000);
      assert.deepEqual(member.log, ["assigned 1"]);
      await member.group.commit([{ topic, partition: 0, offset: 1 }]);
      restore();
      await member.group.close();
      assert.deepEqual(member.log, ["assigned 1", "revoked 1"]);
    });
  });

  serviceTest(`${name}: a callback under way is told when its partitions go`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("told", { partitions: 2 });
      const options = { group: unique("g"), topics: [topic] };
      let told = false;
      const first = new Watched(client, {
        ...options,
        assigned: (partitions, _, signal) =>
          partitions.length < 2
            ? undefined
            : new Promise<void>((resolve) =>
              signal.addEventListener("abort", () => {
                told = true;
                resolve();
              })
            ),
      });
      await until("both", () => first.owned.length === 2);
      const second = new Watched(client, options);
      await until("one each", () => first.owned.length === 1 && second.owned.length === 1);
      assert.ok(told);
      await Promise.all([first.group.close(), second.group.close()]);
    });
  });

  serviceTest(`${name}: hazard 16: a callback that throws ends the member, once`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("throws");
      const options = { group: unique("g"), topics: [topic] };
      const member = new Watched(client, {
        ...options,
        assigned() {
          throw new Error("no good");
        },
      });
      await until("the failure", () => member.failure !== undefined);
      assert.equal(member.failure!.message, "no good");
      assert.deepEqual(member.log, ["assigned 1", "revoked 1", "failed"]);
      const other = new Watched(client, options); // it has left: the other need not wait for its session
      const took = await timed(() => until("the other", () => other.owned.length === 1));
      assert.ok(took < 5000, `${took} ms`);
      await Promise.all([member.group.close(), other.group.close()]);
    });
  });

  serviceTest(`${name}: a member with a name of its own gets its partitions back`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("static", { partitions: 4 });
      const options = { group: unique("g"), topics: [topic] };
      const first = new Watched(client, { ...options, instanceId: "one" });
      const second = new Watched(client, { ...options, instanceId: "two" });
      await until("half each", () => first.owned.length === 2 && second.owned.length === 2);
      const [owned, rounds] = [first.owned, second.log.length];
      await first.group.close();
      const again = new Watched(client, { ...options, instanceId: "one" });
      await until("back", () => again.owned.length === 2);
      assert.deepEqual(again.owned, owned);
      assert.equal(second.log.length, rounds); // nobody else noticed
      await Promise.all([again.group.close(), second.group.close()]);
    });
  });

  serviceTest(`${name}: a group can be closed while it waits for others`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("waiting");
      const options = { group: unique("g"), topics: [topic] };
      let give = () => {};
      const first = new Watched(client, {
        ...options,
        revoked: () => new Promise<void>((resolve) => give = resolve),
      });
      await until("one", () => first.owned.length === 1);
      const second = new Watched(client, options);
      await until("the first gives up", () => first.log.includes("revoked 1"));
      const took = await timed(() => second.group.close());
      assert.ok(took < 5000, `${took} ms`);
      give();
      await until("again", () => first.owned.length === 1);
      const closing = first.group.close();
      await until("the last", () => first.log.filter((line) => line === "revoked 1").length === 2);
      give();
      await closing;
    });
  });

  serviceTest(`${name}: hazard 18: offsets are committed from outside at once`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("outside");
      const group = unique("g");
      assert.deepEqual(await client.committedOffsets(group, [{ topic, partition: 0 }]), [undefined]);
      const took = await timed(() => client.commitOffsets(group, [{ topic, partition: 0, offset: 7 }]));
      assert.ok(took < 2000, `${took} ms`);
      assert.deepEqual(await client.committedOffsets(group, [{ topic, partition: 0 }]), [7]);
    });
  });
}
