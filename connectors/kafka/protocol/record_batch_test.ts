import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import type { Headers } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import { crc32c } from "./crc32c.ts";
import { type BatchStamp, PLAIN_STAMP, RecordBatchBuilder } from "./record_batch_builder.ts";
import { type AbortedTransaction, decodeRecordSet } from "./record_set.ts";
import type { Codec, KafkaRecord } from "./types.ts";

const CODECS: readonly Codec[] = ["none", "gzip", "snappy", "lz4", "zstd"];

const utf8 = (text: string) => new TextEncoder().encode(text);
const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));

/** What is in the batches below: null and empty, repeated headers, header names like numbers, times far apart. */
const SAMPLE: readonly KafkaRecord[] = [
  {
    key: utf8("key"),
    value: utf8("value"),
    timestamp: 1_700_000_000_000,
    headers: [["a", utf8("1")], ["7", utf8("")], ["a", utf8("2")], ["ü", utf8("")]],
  },
  { key: null, value: utf8(""), timestamp: 1_699_999_999_000 },
  { key: utf8(""), value: null, timestamp: 1_700_000_100_000 },
  { key: Uint8Array.of(0, 0, 0, 0), value: utf8("x".repeat(200)), timestamp: 1_700_000_100_001 },
  { key: utf8("past"), value: utf8("ü€😀"), timestamp: 3 },
];

/** Written by Kafka's own Java library, 4.4.0 (MemoryRecordsBuilder). */
const JAVA = {
  plain: hex(`
    000000000000000000000150ffffffff0281a1abf50000000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff000000053a000000066b65790a76616c756508026102310237000261023204c3bc000e00cf0f0201000010
    00c09a0c04000100aa0300c29a0c060800000000900378787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    78787878787878787878787878787878787878787878003000f99fabfef96208087061737412c3bce282acf09f988000
  `),
  transactional: hex(`
    000000000000000000000150ffffffff02d3245bd90010000000040000018bcfe568000000018bcfe6eea100000000ee6b28
    0000077ffffffe000000053a000000066b65790a76616c756508026102310237000261023204c3bc000e00cf0f0201000010
    00c09a0c04000100aa0300c29a0c060800000000900378787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    78787878787878787878787878787878787878787878003000f99fabfef96208087061737412c3bce282acf09f988000
  `),
  appendTime: hex(`
    0000083126e978d400000150ffffffff02d1e9caaf0008000000040000018bcfe56800000001a3185c5000ffffffffffffff
    ffffffffffffff000000053a000000066b65790a76616c756508026102310237000261023204c3bc000e00cf0f0201000010
    00c09a0c04000100aa0300c29a0c060800000000900378787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    78787878787878787878787878787878787878787878003000f99fabfef96208087061737412c3bce282acf09f988000
  `),
  nullHeader: hex(`
    000000000000000000000150ffffffff02511973560000000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff000000053a000000066b65790a76616c756508026102310237000261023204c3bc010e00cf0f0201000010
    00c09a0c04000100aa0300c29a0c060800000000900378787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    78787878787878787878787878787878787878787878003000f99fabfef96208087061737412c3bce282acf09f988000
  `),
  gzip: hex(`
    000000000000000a0000009fffffffff02f6cb2a170001000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff000000051f8b08000000000000ffb362606060cb4eade42a4bcc294de5604a64326432670052462c87f730
    f0319ce767626460106038308b87858191611533c3a1593c6c1c405d0c13982b8609603060f8397ff5bf9f491c1c0589c525
    4287f73c6a5af361fe8c060600bdbab1861f010000
  `),
  snappy: hex(`
    000000000000000a000000aeffffffff021aad8fa60002000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff0000000582534e41505059000000000100000001000000699f02f03e3a000000066b65790a76616c756508
    026102310237000261023204c3bc000e00cf0f020100001000c09a0c04000100aa0300c29a0c06080000000090037878fe02
    00fe0200fe0200090264003000f99fabfef96208087061737412c3bce282acf09f988000
  `),
  lz4: hex(`
    000000000000000a0000009fffffffff0241143c850003000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff0000000504224d186040825f000000ff2f3a000000066b65790a76616c7565080261023102370002610232
    04c3bc000e00cf0f020100001000c09a0c04000100aa0300c29a0c0608000000009003780100b4f00b003000f99fabfef962
    08087061737412c3bce282acf09f98800000000000
  `),
  zstd: hex(`
    000000000000000a0000009dffffffff023b48cc330004000000040000018bcfe568000000018bcfe6eea1ffffffffffffff
    ffffffffffffff0000000528b52ffd005804030084053a000000066b65790a76616c756508026102310237000261023204c3
    bc000e00cf0f020100001000c09a0c04000100aa0300c29a0c060800000000900378003000f99fabfef96208087061737412
    c3bce282acf09f98800001004ea40014010000
  `),
  abort: hex(`
    000000000000000b000000420000000002416619e00030000000000000018bcfe568000000018bcfe5680000000000000000
    050001ffffffff000000012000000008000000000c00000000000300
  `),
  commit: hex(`
    000000000000000b000000420000000002b558cfa80030000000000000018bcfe568000000018bcfe5680000000000000000
    050001ffffffff000000012000000008000000010c00000000000300
  `),
};

function build(records: readonly KafkaRecord[], stamp: Partial<BatchStamp> = {}, baseOffset = 0): Uint8Array {
  const builder = new RecordBatchBuilder(64);
  for (const { key, value, timestamp, headers } of records) builder.append(key, value, timestamp, headers);
  return at(baseOffset, builder.encode({ ...PLAIN_STAMP, ...stamp }));
}

/** As a broker: the offset of a batch is its own. It is not under the checksum. */
function at(baseOffset: number, batch: Uint8Array): Uint8Array {
  const bytes = batch.slice();
  new DataView(bytes.buffer).setBigInt64(0, BigInt(baseOffset));
  return bytes;
}

/** Puts a checksum on that fits, after something was changed. */
function checked(batch: Uint8Array): Uint8Array {
  new DataView(batch.buffer, batch.byteOffset).setUint32(17, crc32c(batch, 21));
  return batch;
}

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

const plain = (bytes: Uint8Array | null) => bytes === null ? null : [...bytes];
const plainHeaders = (headers: Headers | undefined) =>
  headers?.map(([name, value]) => [name, [...value]]) ?? [];
const comparable = ({ key, value, timestamp, headers }: KafkaRecord) => ({
  key: plain(key),
  value: plain(value),
  timestamp,
  headers: plainHeaders(headers),
});

function read(
  bytes: Uint8Array,
  fetchOffset: number = 0,
  aborted: readonly AbortedTransaction[] | undefined = undefined,
) {
  const { records, nextOffset } = decodeRecordSet(bytes, { fetchOffset, aborted });
  const all = records.flatMap((run) => Array.from({ length: run.length }, (_, i) => run.record(i)));
  return { all, nextOffset, offsets: all.map(({ offset }) => offset), runs: records.length };
}

Deno.test("encoder: byte for byte what Java writes", () => {
  assert.deepEqual(build(SAMPLE), JAVA.plain);
  const stamp = { producerId: 4_000_000_000, epoch: 7, sequence: 2_147_483_646, transactional: true };
  assert.deepEqual(build(SAMPLE, stamp), JAVA.transactional);
});

Deno.test("encoder: texts are written as their UTF-8", () => {
  const builder = new RecordBatchBuilder();
  builder.append("key", "value", 1_700_000_000_000, SAMPLE[0]!.headers);
  builder.append(null, "", 1_699_999_999_000);
  builder.append("", null, 1_700_000_100_000);
  builder.append("\0\0\0\0", "x".repeat(200), 1_700_000_100_001);
  builder.append("past", "ü€😀", 3.9);
  assert.deepEqual(builder.encode(PLAIN_STAMP), JAVA.plain);
});

Deno.test("encoder: a retry gives the same bytes, whatever was read in between", () => {
  const builder = new RecordBatchBuilder();
  for (const { key, value, timestamp } of SAMPLE) builder.append(key, value, timestamp);
  for (const codec of CODECS) {
    const stamp = { ...PLAIN_STAMP, producerId: 9, epoch: 1, sequence: 5, codec };
    const first = builder.encode(stamp).slice();
    assert.deepEqual(builder.encode(stamp), first);
  }
});

Deno.test("encoder: a batch that grows after it was encoded is encoded with all of it", () => {
  for (const codec of CODECS) {
    const builder = new RecordBatchBuilder();
    for (const count of [1, 2, 3]) {
      builder.append(null, String(count), count);
      const { all } = read(builder.encode({ ...PLAIN_STAMP, codec }));
      assert.deepEqual(all.map(({ timestamp }) => timestamp), [1, 2, 3].slice(0, count), codec);
    }
  }
});

Deno.test("encoder: mostBytes is never too small", () => {
  fc.assert(fc.property(anyRecord, ({ key, value, timestamp, headers }) => {
    const builder = new RecordBatchBuilder();
    builder.append("first", "one", 0);
    const before = builder.size;
    builder.append(key, value, timestamp, headers);
    assert.ok(builder.size - before <= RecordBatchBuilder.mostBytes(key, value, headers));
    assert.equal(builder.size, builder.encode(PLAIN_STAMP).length);
  }));
});

Deno.test("encoder: what is no time is refused", () => {
  for (const timestamp of [NaN, Infinity, -Infinity, 2 ** 60]) {
    const builder = new RecordBatchBuilder();
    assert.throws(() => builder.append(null, null, timestamp), { code: "kafka_invalid_record" });
    assert.equal(builder.count, 0);
  }
});

Deno.test("decoder: reads what Java writes, with every codec", () => {
  for (const name of ["plain", "transactional", "nullHeader", "gzip", "snappy", "lz4", "zstd"] as const) {
    const { all, nextOffset, offsets } = read(JAVA[name]);
    assert.deepEqual(all.map(comparable), SAMPLE.map(comparable), name);
    const first = ["gzip", "snappy", "lz4", "zstd"].includes(name) ? 10 : 0;
    assert.deepEqual(offsets, [0, 1, 2, 3, 4].map((i) => first + i), name);
    assert.equal(nextOffset, first + 5, name);
  }
});

Deno.test("decoder: with append time all records have that of the batch", () => {
  const { all, offsets } = read(JAVA.appendTime);
  assert.deepEqual(all.map(({ timestamp }) => timestamp), SAMPLE.map(() => 1_800_000_000_000));
  assert.deepEqual(offsets, [0, 1, 2, 3, 4].map((i) => 9_007_199_254_740 + i));
});

Deno.test("decoder: neighbouring plain batches are one run of records, others are runs of their own", () => {
  const set = concat(JAVA.plain, at(5, JAVA.plain), JAVA.lz4, at(15, JAVA.plain));
  const { offsets, runs, nextOffset } = read(set);
  assert.deepEqual(offsets, Array.from({ length: 20 }, (_, i) => i));
  assert.equal(runs, 3);
  assert.equal(nextOffset, 20);
});

Deno.test("decoder: what is in front of the fetch offset is left out", () => {
  for (const name of ["plain", "gzip"] as const) {
    const first = name === "plain" ? 0 : 10;
    const { all, offsets } = read(JAVA[name], first + 3);
    assert.deepEqual(offsets, [first + 3, first + 4]);
    assert.deepEqual(all.map(comparable), SAMPLE.slice(3).map(comparable));
    assert.deepEqual(read(JAVA[name], first + 5).offsets, []);
    assert.equal(read(JAVA[name], first + 9).nextOffset, first + 9);
  }
});

Deno.test("decoder: headers stay with their records when others are left out", () => {
  const records = SAMPLE.map((record, i): KafkaRecord => ({
    ...record,
    headers: [[`h${i}`, utf8(String(i))]],
  }));
  const { all } = read(build(records), 2);
  assert.deepEqual(all.map(({ headers }) => headers?.[0]?.[0]), ["h2", "h3", "h4"]);
});

Deno.test("decoder: a batch that is cut off comes again with the next fetch", () => {
  const set = concat(JAVA.plain, at(5, JAVA.plain));
  for (let end = JAVA.plain.length; end < set.length; end++) {
    const { offsets, nextOffset } = read(set.subarray(0, end));
    assert.deepEqual(offsets, [0, 1, 2, 3, 4]);
    assert.equal(nextOffset, 5);
  }
});

Deno.test("decoder: where compaction has taken records away, it goes on behind the whole batch", () => {
  const holed = build(SAMPLE.slice(0, 2));
  new DataView(holed.buffer).setInt32(23, 9); // last offset delta
  const empty = build([SAMPLE[0]!]).subarray(0, 61).slice();
  const view = new DataView(empty.buffer);
  view.setInt32(8, 49);
  view.setInt32(57, 0);
  const { offsets, nextOffset } = read(concat(checked(holed), checked(at(10, empty))));
  assert.deepEqual(offsets, [0, 1]);
  assert.equal(nextOffset, 11);
});

Deno.test("decoder: markers of transactions are hidden and passed", () => {
  for (const aborted of [undefined, []]) {
    const { offsets, nextOffset } = read(concat(JAVA.commit, at(12, JAVA.abort)), 11, aborted);
    assert.deepEqual(offsets, []);
    assert.equal(nextOffset, 13);
  }
});

/** Marker of a transaction as the broker writes it, of any producer. */
function marker(offset: number, producerId: number, type: "abort" | "commit"): Uint8Array {
  const bytes = at(offset, JAVA[type]);
  new DataView(bytes.buffer).setBigInt64(43, BigInt(producerId));
  return checked(bytes);
}

const one = (offset: number, producerId: number, key: Uint8Array | null = null) =>
  build([{ key, value: utf8(`${producerId}@${offset}`), timestamp: 1 }], {
    producerId,
    epoch: 0,
    sequence: 0,
    transactional: true,
  }, offset);

Deno.test("hazard 4a: a record with the key of an abort marker ends nothing", () => {
  const set = concat(
    one(0, 5),
    one(1, 5, Uint8Array.of(0, 0, 0, 0)),
    one(2, 5),
    marker(3, 5, "abort"),
    one(4, 5),
  );
  assert.deepEqual(read(set, 0, [{ producerId: 5, firstOffset: 0 }]).offsets, [4]);
});

Deno.test("hazard 4b: aborted transactions of two producers overlap", () => {
  const set = concat(
    one(0, 1),
    one(1, 2),
    one(2, 1),
    marker(3, 1, "abort"),
    one(4, 2),
    one(5, 1),
    marker(6, 2, "abort"),
    one(7, 2),
    marker(8, 1, "commit"),
    marker(9, 2, "commit"),
  );
  const aborted = [{ producerId: 2, firstOffset: 1 }, { producerId: 1, firstOffset: 0 }];
  assert.deepEqual(read(set, 0, aborted).offsets, [5, 7]);
  assert.deepEqual(read(set, 0, undefined).offsets, [0, 1, 2, 4, 5, 7]);
});

Deno.test("hazard 4c: a fetch begins inside two aborted transactions", () => {
  const set = concat(
    one(10, 1),
    one(11, 2),
    marker(12, 2, "abort"),
    one(13, 2),
    one(14, 1),
    marker(15, 1, "abort"),
  );
  const aborted = [{ producerId: 1, firstOffset: 3 }, { producerId: 2, firstOffset: 4 }];
  const { offsets, nextOffset } = read(set, 10, aborted);
  assert.deepEqual(offsets, [13]);
  assert.equal(nextOffset, 16);
});

Deno.test("decoder: back-to-back commit, abort, commit, abort of one producer", () => {
  const set = concat(
    one(0, 1),
    marker(1, 1, "commit"),
    one(2, 1),
    marker(3, 1, "abort"),
    one(4, 1),
    marker(5, 1, "commit"),
    one(6, 1),
    marker(7, 1, "abort"),
    one(8, 1),
  );
  const aborted = [{ producerId: 1, firstOffset: 2 }, { producerId: 1, firstOffset: 6 }];
  assert.deepEqual(read(set, 0, aborted).offsets, [0, 4, 8]);
});

Deno.test("decoder: records without a transaction are shown while their producer has an aborted one open", () => {
  const loose = build([SAMPLE[1]!], { producerId: 1, epoch: 0, sequence: 0 }, 1);
  assert.deepEqual(read(concat(one(0, 1), loose), 0, [{ producerId: 1, firstOffset: 0 }]).offsets, [1]);
});

Deno.test("decoder: read_committed agrees with the plain rule, for any transactions of any producers", () => {
  const step = fc.record({
    producer: fc.integer({ min: 1, max: 3 }),
    end: fc.constantFrom("no", "no", "commit", "abort"),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), (steps, from) => {
    const log: Uint8Array[] = [];
    const open = new Map<number, number[]>(); // producer -> offsets of its open transaction
    const aborted: AbortedTransaction[] = [];
    const visible: number[] = [];
    for (const [offset, { producer, end }] of steps.entries()) {
      const own = open.get(producer);
      if (end === "no" || own === undefined) {
        log.push(one(offset, producer, Uint8Array.of(0, 0, 0, 0)));
        open.set(producer, [...own ?? [], offset]);
        continue;
      }
      log.push(marker(offset, producer, end === "abort" ? "abort" : "commit"));
      open.delete(producer);
      if (end === "commit") visible.push(...own);
      else aborted.push({ producerId: producer, firstOffset: own[0]! });
    }
    const stable = Math.min(steps.length, ...[...open.values()].map(([first]) => first!));
    const start = Math.min(from, stable);
    // As a broker: up to the last stable offset, with the aborted transactions that reach into what is sent.
    const sent = log.slice(start, stable);
    const result = read(
      concat(...sent),
      start,
      aborted.filter(({ producerId, firstOffset }) => {
        const endsAt = log.findIndex((_, i) =>
          i > firstOffset && steps[i]!.producer === producerId && steps[i]!.end === "abort"
        );
        return firstOffset < stable && endsAt >= start;
      }),
    );
    assert.deepEqual(
      result.offsets,
      visible.filter((offset) => offset >= start && offset < stable).sort((a, b) => a - b),
    );
    assert.equal(result.nextOffset, stable);
  }));
});

const bytes = fc.uint8Array({ maxLength: 300 });
const anyRecord: fc.Arbitrary<KafkaRecord> = fc.record({
  key: fc.option(bytes),
  value: fc.option(bytes),
  timestamp: fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.constantFrom(0, -1, 8.64e15, -8.64e15)),
  headers: fc.option(
    fc.array(fc.tuple(fc.string({ unit: "binary" }), bytes), { minLength: 1, maxLength: 4 }),
    {
      nil: undefined,
    },
  ),
});

Deno.test("encoder and decoder: whatever goes in comes out, with every codec", () => {
  const anyBatch = fc.array(anyRecord, { minLength: 1, maxLength: 30 });
  fc.assert(fc.property(anyBatch, fc.constantFrom(...CODECS), fc.nat(2 ** 40), (records, codec, offset) => {
    const near = records.map((record) => ({ ...record, timestamp: Math.trunc(record.timestamp / 2) + 0 })); // sums stay exact
    const { all, nextOffset } = read(build(near, { codec }, offset), offset);
    assert.deepEqual(all.map(comparable), near.map(comparable));
    assert.equal(nextOffset, offset + records.length);
  }));
});

Deno.test("encoder and decoder: a large batch survives every codec", () => {
  const noise = new Uint8Array(300_000);
  for (let i = 0, x = 1; i < noise.length; i++) noise[i] = x = (Math.imul(x, 1_103_515_245) + 12_345) >>> 16;
  const records = Array.from({ length: 50 }, (_, i): KafkaRecord => ({
    key: utf8(`k${i}`),
    value: i % 10 === 0 ? noise.subarray(0, 6000 * i) : utf8(`{"n":${i}}`.repeat(i * 20)),
    timestamp: i,
  }));
  for (const codec of CODECS) {
    const encoded = build(records, { codec });
    assert.deepEqual(read(encoded).all.map(comparable), records.map(comparable), codec);
    if (codec !== "none") assert.ok(encoded.length < build(records).length, codec);
  }
});

Deno.test("decoder: a bit that was flipped is an error, never another record", () => {
  for (const name of ["plain", "gzip", "snappy", "lz4", "zstd"] as const) {
    const batch = JAVA[name];
    for (let bit = 16 * 8; bit < batch.length * 8; bit += 5) {
      const damaged = batch.slice();
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      assert.throws(() => read(damaged), KafkaError, `${name}, bit ${bit}`);
    }
  }
});

Deno.test("decoder: damage that the checksum covers up is an error too, or gives as many records", () => {
  for (const name of ["plain", "gzip", "snappy", "lz4", "zstd"] as const) {
    const batch = JAVA[name];
    for (let byte = 61; byte < batch.length; byte++) {
      for (const flip of [0xff, 0x01, 0x80]) {
        const damaged = batch.slice();
        damaged[byte]! ^= flip;
        let count = 5;
        try {
          count = read(checked(damaged)).all.length;
        } catch (error) {
          assert.ok(
            error instanceof KafkaError && error.code === "kafka_corrupt",
            `${name}, byte ${byte}: ${error}`,
          );
        }
        assert.ok(count <= 5, `${name}, byte ${byte}: ${count}`);
      }
    }
  }
});

Deno.test("decoder: old formats and unknown codecs are named", () => {
  const old = JAVA.plain.slice();
  old[16] = 1;
  assert.throws(() => read(old), { code: "kafka_unsupported", message: /format 1/ });
  const unknown = JAVA.plain.slice();
  unknown[22] = 6;
  assert.throws(() => read(checked(unknown)), { code: "kafka_unsupported", message: /codec 6/ });
});

Deno.test("decoder: a count that cannot be is an error before anything is allocated", () => {
  const lying = JAVA.plain.slice();
  new DataView(lying.buffer).setInt32(57, 2_000_000_000);
  assert.throws(() => read(checked(lying)), { code: "kafka_corrupt", message: /2000000000 records/ });
});

Deno.test("crc32c: known values, at any length and place", () => {
  assert.equal(crc32c(utf8("123456789")), 0xe3069283);
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa); // RFC 3720, B.4
  assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
  assert.equal(crc32c(utf8("..123456789."), 2, 11), 0xe3069283);
  const bitwise = (bytes: Uint8Array) => {
    let crc = 0xffffffff;
    for (const byte of bytes) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc >>> 0;
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => assert.equal(crc32c(bytes), bitwise(bytes))),
  );
});
