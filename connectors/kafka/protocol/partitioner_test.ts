import assert from "node:assert/strict";
import { murmur2, Partitioner, partitionOfKey } from "./partitioner.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

// Computed by Kafka's own Java library, 4.4.0: Utils.murmur2, and toPositive(…) % 7.
const JAVA: readonly (readonly [key: string, hash: number, ofSeven: number])[] = [
  ["", 275646681, 2],
  ["a", -1563381124, 5],
  ["ab", 316155434, 0],
  ["abc", 479470107, 4],
  ["21", -973932308, 3],
  ["foobar", -790332482, 0],
  ["a-little-bit-long-string", -985981536, 1],
  ["a-little-bit-longer-string", -1486304829, 0],
  ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, 3],
  ["ü€😀", -1727201672, 2],
];

Deno.test("murmur2 and partitions are those of Java", () => {
  for (const [key, hash, ofSeven] of JAVA) {
    assert.equal(murmur2(utf8(key)), hash, key);
    assert.equal(partitionOfKey(utf8(key), 7), ofSeven, key);
    assert.equal(new Partitioner(7).partition(utf8(key)), ofSeven, key);
  }
  assert.equal(murmur2(Uint8Array.of(0x80, 0xff, 0, 1, 0xfe)), -1075157062);
});

Deno.test("records without a key stay with one partition for a batch, then go to the next", () => {
  const partitioner = new Partitioner(3, 2);
  assert.deepEqual([partitioner.partition(null), partitioner.partition(null)], [2, 2]);
  partitioner.nextBatch();
  assert.equal(partitioner.partition(null), 0);
  partitioner.nextBatch();
  assert.equal(partitioner.partition(null), 1);
});
