/**
 * How the leader of a group shares partitions out, and how members tell each other: as Java's consumers do, so that both can be in
 * one group.
 *
 * @module
 */
import type { TopicPartition } from "../client.ts";
import { byTopic } from "../protocol/requests/api.ts";
import { WireReader, WireWriter } from "../protocol/wire.ts";

/** A member with what it wants to read. */
export interface Subscriber {
  readonly memberId: string;
  readonly topics: readonly string[];
}

/** What each member gets, by its id. */
export type Shares = ReadonlyMap<string, readonly TopicPartition[]>;

/** Shares partitions of topics out among those who want them. */
export type Assignor = (members: readonly Subscriber[], partitions: ReadonlyMap<string, number>) => Shares;

const byId = (a: Subscriber, b: Subscriber) => a.memberId < b.memberId ? -1 : a.memberId > b.memberId ? 1 : 0;

/** Topic by topic: each member gets neighbouring partitions; the same ones of topics with as many partitions. */
export const range: Assignor = (members, partitions) => {
  const shares = new Map<string, TopicPartition[]>(members.map(({ memberId }) => [memberId, []]));
  for (const [topic, count] of [...partitions].sort(([a], [b]) => a < b ? -1 : 1)) {
    const takers = members.filter(({ topics }) => topics.includes(topic)).sort(byId);
    const each = Math.floor(count / takers.length);
    const oneMore = count % takers.length;
    let partition = 0;
    takers.forEach(({ memberId }, i) => {
      for (let n = each + (i < oneMore ? 1 : 0); n > 0; n--) {
        shares.get(memberId)!.push({ topic, partition: partition++ });
      }
    });
  }
  return shares;
};

/** Partition by partition, in turn. */
export const roundrobin: Assignor = (members, partitions) => {
  const shares = new Map<string, TopicPartition[]>(members.map(({ memberId }) => [memberId, []]));
  const inTurn = [...members].sort(byId);
  let turn = 0;
  for (const [topic, count] of [...partitions].sort(([a], [b]) => a < b ? -1 : 1)) {
    if (!inTurn.some(({ topics }) => topics.includes(topic))) continue;
    for (let partition = 0; partition < count; partition++) {
      while (!inTurn[turn % inTurn.length]!.topics.includes(topic)) turn++;
      shares.get(inTurn[turn++ % inTurn.length]!.memberId)!.push({ topic, partition });
    }
  }
  return shares;
};

/** What a member says when it joins. */
export function encodeSubscription(topics: readonly string[]): Uint8Array {
  const to = new WireWriter();
  to.int16(0).array(topics, (topic) => to.string(topic)).int32(-1);
  return to.finish();
}

/** Topics a member wants to read. */
export function decodeSubscription(bytes: Uint8Array): string[] {
  const from = new WireReader(bytes);
  from.int16(); // later versions only add at the end
  return from.array(() => from.string());
}

/** What a member is given. */
export function encodeAssignment(partitions: readonly TopicPartition[]): Uint8Array {
  const to = new WireWriter();
  to.int16(0);
  to.array(byTopic(partitions), ([topic, ofTopic]) => {
    to.string(topic).array(ofTopic, ({ partition }) => to.int32(partition));
  });
  to.int32(-1);
  return to.finish();
}

/** Partitions a member was given; none where it was given nothing at all. */
export function decodeAssignment(bytes: Uint8Array): TopicPartition[] {
  if (bytes.length === 0) return [];
  const from = new WireReader(bytes);
  from.int16();
  return from.array(() => {
    const topic = from.string();
    return from.array(() => ({ topic, partition: from.int32() }));
  }).flat();
}
