import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { MailerError } from "../../errors.ts";
import { Decimal } from "../../json.ts";
import { ByteReader } from "./bytes.ts";
import { decodeValue, valueBytes } from "./codec.ts";

const roundTrip = (value: unknown): unknown => {
  const bytes = valueBytes(value), reader = new ByteReader(bytes);
  const decoded = decodeValue(reader);
  assert.equal(reader.at, bytes.length, "all bytes were read");
  return decoded;
};

Deno.test("C1: values come back as they were", () => {
  const sparse = [1, , undefined, 3, ,]; // deno-lint-ignore no-sparse-arrays
  const bare = Object.assign(Object.create(null), { a: 1 });
  const values: unknown[] = [
    null,
    undefined,
    true,
    false,
    0,
    -0,
    1,
    127,
    128,
    -1,
    -128,
    2 ** 31,
    2 ** 32 + 5,
    -(2 ** 40),
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    2 ** 53,
    1.5,
    -1e300,
    NaN,
    Infinity,
    -Infinity,
    Number.MIN_VALUE,
    0n,
    1n,
    -1n,
    255n,
    256n,
    -(2n ** 200n),
    "",
    "a",
    "x".repeat(63),
    "x".repeat(64),
    "é".repeat(70),
    "日本",
    "日".repeat(100),
    "\ud800",
    `${"a".repeat(99)}\udfff`,
    "😀",
    "\0",
    [],
    [[]],
    sparse,
    {},
    { a: { b: [] } },
    { a: undefined },
    bare,
    new Map(),
    new Map<unknown, unknown>([[1, "a"], [{ a: 1 }, new Set([1])]]),
    new Set([null, "x"]),
    new Date(0),
    new Date(NaN),
    new Uint8Array([1, 2]),
    new Uint8Array(70_000),
    new Float64Array([1, NaN, -0]),
    new BigInt64Array([-1n]),
    new DataView(new ArrayBuffer(3)),
    new ArrayBuffer(5),
    new Uint8ClampedArray([9]),
    new Decimal("1.10000000000000000000001"),
    { a: new Decimal("1e999") },
  ];
  for (const value of values) assert.deepEqual(roundTrip(value), value);
  assert.deepEqual(roundTrip(Buffer.from([1, 2])), new Uint8Array([1, 2]));
  assert.deepEqual(roundTrip(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)), new Uint8Array([2, 3]));
});

Deno.test("C1: a field named __proto__ is a field", () => {
  const value = JSON.parse('{"__proto__":{"a":1},"b":2}');
  const back = roundTrip(value) as object;
  assert(Object.hasOwn(back, "__proto__"));
  assert.deepEqual(Object.keys(back), ["__proto__", "b"]);
  assert.equal(Object.getPrototypeOf(back), Object.prototype);
});

const anyValue = (): fc.Arbitrary<unknown> =>
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withNullPrototype: true,
    withSparseArray: true,
    stringUnit: fc.oneof(
      fc.constantFrom("a", "é", "日", "\ud800", "__proto__"),
      fc.string({ unit: "binary", maxLength: 3 }),
    ),
  });

Deno.test("C1: any value comes back as it was", () => {
  fc.assert(fc.property(anyValue(), (value) => assert.deepEqual(roundTrip(value), value)), { numRuns: 2000 });
});

Deno.test("C2: no encoding is the beginning of another", () => {
  fc.assert(fc.property(anyValue(), anyValue(), (a, b) => {
    const [x, y] = [Buffer.from(valueBytes(a)), Buffer.from(valueBytes(b))];
    if (!x.equals(y)) assert(!y.subarray(0, x.length).equals(x));
  }));
});

Deno.test("C3: of texts and numbers, equal ones and only those have equal bytes", () => {
  const scalar = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.double({ noNaN: true }),
    fc.integer(),
    fc.boolean(),
  );
  fc.assert(fc.property(scalar, scalar, (a, b) => {
    assert.equal(Buffer.from(valueBytes(a)).equals(valueBytes(b)), Object.is(a, b));
  }));
});

Deno.test("C4: what cannot be stored is an error that says what it is", () => {
  class Order {}
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const cases: [unknown, RegExp][] = [
    [() => 1, /a function/],
    [{ a: [Symbol("x")] }, /a symbol/],
    [new Order(), /class Order/],
    [[/x/], /class RegExp/],
    [cyclic, /contains itself/],
    [new Map([["a", new Error("x")]]), /class Error/],
  ];
  for (const [value, message] of cases) {
    assert.throws(
      () => valueBytes(value),
      (error) => error instanceof MailerError && error.code === "not_storable" && message.test(error.message),
    );
  }
});

Deno.test("bytes that are cut short or garbled do not read past their end", () => {
  fc.assert(fc.property(anyValue(), fc.nat(), fc.nat(255), (value, place, byte) => {
    const bytes = valueBytes(value);
    const garbled = bytes.slice(0, Math.max(1, bytes.length - place % 5));
    garbled[place % garbled.length] = byte;
    const reader = new ByteReader(garbled);
    try {
      decodeValue(reader);
    } catch (error) {
      assert(
        error instanceof MailerError || error instanceof RangeError || error instanceof TypeError ||
          error instanceof SyntaxError,
        String(error),
      );
    }
    assert(reader.at <= garbled.length + 8);
  }));
});
