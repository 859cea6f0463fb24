import assert from "node:assert/strict";
import fc from "fast-check";
import { crc32c } from "./crc32c.ts";

/** Bit by bit, as it is defined. */
function plainly(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

Deno.test("CRC-32C: the known values of RFC 3720", () => {
  assert.equal(crc32c(new TextEncoder().encode("123456789")), 0xe3069283);
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(crc32c(new Uint8Array(32).fill(255)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
});

Deno.test("CRC-32C: wherever the bytes lie, and whatever part of them", () => {
  const size = fc.uint8Array({ maxLength: 80 }), shift = fc.nat(9);
  fc.assert(fc.property(size, shift, fc.nat(80), fc.nat(80), (content, offset, a, b) => {
    const bytes = new Uint8Array(content.length + offset).subarray(offset);
    bytes.set(content);
    const start = Math.min(a, b, content.length), end = Math.min(Math.max(a, b), content.length);
    assert.equal(crc32c(bytes, start, end), plainly(content.subarray(start, end)));
    assert.equal(crc32c(bytes), plainly(content));
  }));
});
