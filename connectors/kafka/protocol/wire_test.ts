import assert from "node:assert/strict";
import * as fc from "fast-check";
import { WireReader, WireWriter } from "./wire.ts";

Deno.test("values are written big endian, with the lengths of the protocol", () => {
  const bytes = (write: (to: WireWriter) => void) => {
    const to = new WireWriter(1);
    write(to);
    return [...to.finish()];
  };
  assert.deepEqual(bytes((to) => to.int8(-1).int16(-2).int32(-3)), [255, 255, 254, 255, 255, 255, 253]);
  assert.deepEqual(bytes((to) => to.int64(2 ** 40 + 5)), [0, 0, 1, 0, 0, 0, 0, 5]);
  assert.deepEqual(bytes((to) => to.string("ü").nullableString(undefined)), [0, 2, 0xc3, 0xbc, 255, 255]);
  assert.deepEqual(bytes((to) => to.compactString("a").compactNullableString(undefined)), [2, 97, 0]);
  assert.deepEqual(bytes((to) => to.uvarint(127).uvarint(128).uvarint(300)), [127, 128, 1, 172, 2]);
  assert.deepEqual(bytes((to) => to.uvarint(2 ** 32 - 1)), [255, 255, 255, 255, 15]);
  assert.deepEqual(bytes((to) => to.compactArray([1], (n) => to.int8(n)).noTags()), [2, 1, 0]);
});

Deno.test("what was written is read", () => {
  const int64 = fc.maxSafeInteger();
  const text = fc.string({ unit: "binary", maxLength: 200 });
  fc.assert(
    fc.property(
      fc.integer(),
      int64,
      fc.nat(0xffffffff),
      text,
      fc.option(text, { nil: undefined }),
      fc.uint8Array(),
      (
        int32,
        long,
        uvarint,
        string,
        nullable,
        bytes,
      ) => {
        const to = new WireWriter(1);
        to.int32(int32).int64(long).uvarint(uvarint).string(string).nullableString(nullable).compactString(
          string,
        );
        to.compactNullableString(nullable).bytes(bytes).array([1, 2], (n) => to.int16(n)).compactArray(
          [3],
          (n) => to.int16(n),
        );
        to.bool(true).uvarint(1).uvarint(9).uvarint(3).raw(Uint8Array.of(1, 2, 3)).int8(7);
        const from = new WireReader(to.finish());
        assert.deepEqual([from.int32(), from.int64(), from.uvarint()], [int32, long, uvarint]);
        assert.deepEqual([from.string(), from.nullableString(), from.compactString()], [
          string,
          nullable,
          string,
        ]);
        assert.deepEqual([from.compactNullableString(), from.bytes()], [nullable, bytes]);
        assert.deepEqual([from.array(() => from.int16()), from.compactArray(() => from.int16())], [[1, 2], [
          3,
        ]]);
        assert.equal(from.bool(), true);
        from.skipTags();
        assert.deepEqual([from.int8(), from.left], [7, 0]);
      },
    ),
  );
});

Deno.test("what ends too early, or is too large for a number, is an error", () => {
  const corrupt = { code: "kafka_corrupt" };
  const read = (bytes: number[], what: (from: WireReader) => unknown) => () =>
    what(new WireReader(Uint8Array.from(bytes)));
  assert.throws(read([0, 1], (from) => from.int32()), corrupt);
  assert.throws(read([0, 9, 97], (from) => from.string()), corrupt);
  assert.throws(read([0x7f, 0xff, 0xff, 0xff], (from) => from.array(() => from.int8())), corrupt);
  assert.throws(read([0x80, 0x80, 0x80, 0x80, 0x80, 1], (from) => from.uvarint()), corrupt);
  assert.throws(read([0x7f, 0, 0, 0, 0, 0, 0, 0], (from) => from.int64()), corrupt);
  assert.equal(read([0x7f, 0, 0, 0, 0, 0, 0, 0], (from) => from.time())(), Number(0x7f00000000000000n));
});
