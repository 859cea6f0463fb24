import assert from "node:assert/strict";
import * as fc from "fast-check";
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  range,
  roundrobin,
  type Shares,
} from "./assignors.ts";

const plain = (shares: Shares) =>
  Object.fromEntries(
    [...shares].map(([id, all]) => [id, all.map(({ topic, partition }) => `${topic}${partition}`).join(" ")]),
  );

Deno.test("range: neighbouring partitions, topic by topic", () => {
  const members = [{ memberId: "m2", topics: ["a", "b"] }, { memberId: "m1", topics: ["b", "a"] }];
  assert.deepEqual(plain(range(members, new Map([["b", 2], ["a", 3]]))), { m1: "a0 a1 b0", m2: "a2 b1" });
  const three = [...members, { memberId: "m3", topics: ["b"] }];
  assert.deepEqual(plain(range(three, new Map([["a", 1], ["b", 2]]))), { m1: "a0 b0", m2: "b1", m3: "" });
});

Deno.test("roundrobin: in turn over all topics, to those who want them", () => {
  const members = [{ memberId: "m2", topics: ["a", "b"] }, { memberId: "m1", topics: ["a"] }];
  assert.deepEqual(plain(roundrobin(members, new Map([["b", 2], ["a", 3]]))), {
    m1: "a0 a2",
    m2: "a1 b0 b1",
  });
  assert.deepEqual(plain(roundrobin(members, new Map([["nobody's", 2]]))), { m1: "", m2: "" });
});

Deno.test("every partition that somebody wants is given to exactly one who does", () => {
  const topics = ["a", "b", "c"];
  const members = fc.array(fc.subarray(topics), { minLength: 1, maxLength: 6 })
    .map((all) => all.map((topics, i) => ({ memberId: `m${i}`, topics })));
  const counts = fc.tuple(fc.nat(7), fc.nat(7), fc.nat(7));
  for (const assignor of [range, roundrobin]) {
    fc.assert(fc.property(members, counts, (members, counts) => {
      const partitions = new Map(topics.map((topic, i) => [topic, counts[i]!]));
      const shares = assignor(members, partitions);
      const given = [...shares].flatMap(([memberId, all]) => all.map((share) => ({ memberId, ...share })));
      for (const { memberId, topic } of given) {
        assert.ok(members.find((member) => member.memberId === memberId)!.topics.includes(topic));
      }
      const wanted = topics.flatMap((topic) =>
        members.some((member) => member.topics.includes(topic))
          ? Array.from({ length: partitions.get(topic)! }, (_, i) => `${topic}${i}`)
          : []
      );
      assert.deepEqual(given.map(({ topic, partition }) => `${topic}${partition}`).sort(), wanted.sort());
    }));
  }
});

Deno.test("what members tell each other is read back; a later version, too", () => {
  assert.deepEqual(decodeSubscription(encodeSubscription(["a", "ü"])), ["a", "ü"]);
  const partitions = [{ topic: "a", partition: 3 }, { topic: "a", partition: 1 }, {
    topic: "b",
    partition: 0,
  }];
  assert.deepEqual(decodeAssignment(encodeAssignment(partitions)), partitions);
  assert.deepEqual(decodeAssignment(new Uint8Array(0)), []);
  // Version 1 of Java's consumer: user data, and partitions owned so far.
  const later = Uint8Array.of(0, 1, 0, 0, 0, 1, 0, 1, 97, 255, 255, 255, 255, 0, 0, 0, 0);
  assert.deepEqual(decodeSubscription(later), ["a"]);
});
