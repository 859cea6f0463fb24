/**
 * Values to Avro and back, A1 to A5 of `types.ts`. Right bytes are those of the Avro specification, or what avsc writes as it comes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import types from "avsc/lib/types.js";
import fc from "fast-check";
import { MailerError } from "../../../lib/errors.ts";
import { Decimal, parseJson } from "../../../lib/json.ts";
import { AvroSchema, Scratch } from "./schema.ts";

/** avsc as it comes. */
const plainAvsc = (schema: unknown) =>
  (types as unknown as {
    Type: {
      forSchema(schema: unknown): { toBuffer(value: unknown): Buffer; fromBuffer(bytes: Buffer): unknown };
    };
  }).Type.forSchema(schema);

const schemaOf = (schema: unknown) => AvroSchema.of(JSON.stringify(schema));

function bytes(schema: unknown, value: unknown): Uint8Array {
  const scratch = new Scratch(), end = schemaOf(schema).encode(value, scratch, 3);
  return new Uint8Array(scratch.bytes.subarray(3, end));
}

function value(schema: unknown, from: Uint8Array, reader?: unknown): unknown {
  const writer = schemaOf(schema), padded = Uint8Array.of(9, 9, 9, ...from);
  return (reader === undefined ? writer.reader() : schemaOf(reader).readerOf(writer))(padded, 3);
}

const hex = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));

function failsWith(code: string, message: RegExp, run: () => unknown): void {
  assert.throws(run, (error) => {
    assert.ok(error instanceof MailerError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

const record = (...fields: unknown[]) => ({ type: "record", name: "R", namespace: "com.example", fields });

Deno.test("bytes are those of the specification", () => {
  const cases: [schema: unknown, value: unknown, bytes: string][] = [
    ["long", 0, "00"],
    ["long", -1, "01"],
    ["long", 1, "02"],
    ["long", -64, "7f"],
    ["long", 64, "80 01"],
    ["string", "foo", "06 66 6f 6f"],
    [
      record({ name: "a", type: "long" }, { name: "b", type: "string" }),
      { a: 27, b: "foo" },
      "36 06 66 6f 6f",
    ],
    [{ type: "array", items: "long" }, [3, 27], "04 06 36 00"],
    [["null", "string"], null, "00"],
    [["null", "string"], "a", "02 02 61"],
    [{ type: "map", values: "boolean" }, { a: true }, "02 02 61 01 00"],
    [{ type: "enum", name: "E", symbols: ["A", "B", "C", "D"] }, "D", "06"],
    [{ type: "fixed", name: "F", size: 2 }, Uint8Array.of(1, 2), "01 02"],
    ["bytes", Uint8Array.of(255), "02 ff"],
    ["double", 1, "00 00 00 00 00 00 f0 3f"],
  ];
  for (const [schema, given, expected] of cases) {
    assert.deepEqual(bytes(schema, given), hex(expected), JSON.stringify(schema));
    assert.deepEqual(value(schema, hex(expected)), given);
  }
});

Deno.test("A1: all 64 bits of a long", () => {
  const known: [number | bigint, string][] = [
    [2n ** 63n - 1n, "fe ff ff ff ff ff ff ff ff 01"],
    [-(2n ** 63n), "ff ff ff ff ff ff ff ff ff 01"],
  ];
  for (const [long, expected] of known) {
    assert.deepEqual(bytes("long", long), hex(expected));
    assert.equal(value("long", hex(expected)), long);
  }
  const edges = [2n ** 52n, 2n ** 53n, 2n ** 62n].flatMap((edge) => [edge - 1n, edge, edge + 1n]);
  const around = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constantFrom(...edges));
  fc.assert(fc.property(around, fc.boolean(), (magnitude, isNegative) => {
    const long = isNegative && magnitude > 0n ? -magnitude : magnitude;
    const given = Number.isSafeInteger(Number(long)) ? Number(long) : long;
    const written = bytes("long", given);
    let zigzag = 0n; // read independently: seven bits a byte
    written.forEach((byte, i) => zigzag |= BigInt(byte & 0x7f) << BigInt(7 * i));
    assert.equal(zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n, long);
    assert.deepEqual(bytes("long", long), written, "a bigint in the safe range is written the same");
    assert.equal(value("long", written), given);
    assert.equal(value(["null", "long"], Uint8Array.of(2, ...written)), given);
    assert.deepEqual(bytes(["null", "long"], given), Uint8Array.of(2, ...written));
  }));
  for (
    const wrong of [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, 1.5, NaN, "1", null, undefined, new Decimal("1.5")]
  ) {
    failsWith("not_avro_value", /not a long/, () => bytes("long", wrong));
  }
  failsWith("not_avro", /64 bits/, () => value("long", hex("ff ff ff ff ff ff ff ff ff 03")));
  failsWith("not_avro", /64 bits/, () => value("long", hex("80 80 80 80 80 80 80 80 80 80 01")));
  assert.deepEqual(
    value(record({ name: "a", type: "int" }), hex("04"), record({ name: "a", type: "long" })),
    { a: 2 },
    "an int is read as a long",
  );
  const fromLong = value(
    record({ name: "a", type: "long" }),
    hex("04"),
    record({ name: "a", type: "double" }),
  );
  assert.deepEqual(fromLong, { a: 2 });
});

/** Schemas with what makes values of them: values stand for themselves in every union. */
interface Pair {
  readonly schema: unknown;
  readonly values: fc.Arbitrary<unknown>;
}

const text = fc.string({ unit: "grapheme" });
const leaves: readonly Pair[] = [
  { schema: "null", values: fc.constant(null) },
  { schema: "boolean", values: fc.boolean() },
  { schema: "int", values: fc.integer() },
  { schema: "long", values: fc.maxSafeInteger().filter((long) => Math.abs(long) < 2 ** 52) },
  { schema: "double", values: fc.double({ noNaN: true }) },
  { schema: "float", values: fc.float({ noNaN: true }) },
  { schema: "string", values: text },
  { schema: "bytes", values: fc.uint8Array() },
];

function pairs(depth: number, name: string): fc.Arbitrary<Pair> {
  const leaf = fc.constantFrom(...leaves);
  if (depth === 0) return leaf;
  const inner = (i: number) => pairs(depth - 1, `${name}_${i}`);
  return fc.oneof(
    leaf,
    inner(0).map(({ schema, values }) => ({
      schema: { type: "array", items: schema },
      values: fc.array(values),
    })),
    inner(0).map(({ schema, values }) => ({
      schema: { type: "map", values: schema },
      values: fc.dictionary(text, values),
    })),
    fc.tuple(inner(0), inner(1), inner(2)).map((fields) => ({
      schema: {
        type: "record",
        name,
        fields: fields.map(({ schema }, i) => ({ name: `f${i}`, type: schema })),
      },
      values: fc.record(Object.fromEntries(fields.map(({ values }, i) => [`f${i}`, values]))),
    })),
    leaf.filter(({ schema }) => schema !== "null").map(({ schema, values }) => ({
      schema: ["null", schema],
      values: fc.option(values),
    })),
  );
}

/** The value as avsc has it: buffers. */
function buffers(part: unknown): unknown {
  if (part instanceof Uint8Array) return Buffer.from(part);
  if (Array.isArray(part)) return part.map(buffers);
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, buffers(inner)]));
}

Deno.test("what is written is what avsc writes, and is read as it was", () => {
  const cases = pairs(2, "R").chain(({ schema, values }) =>
    fc.record({ schema: fc.constant(schema), given: values })
  );
  fc.assert(
    fc.property(cases, ({ schema, given }) => {
      const written = bytes(schema, given);
      assert.deepEqual(written, new Uint8Array(plainAvsc(schema).toBuffer(buffers(given))));
      // -0 is one value with 0 in Avro's whole numbers, and fast-check makes objects without a prototype.
      assert.deepEqual(plainOf(value(schema, written)), plainOf(given));
      const read = schemaOf(schema).reader(), step = Math.ceil(written.length / 20);
      for (let cut = 0; cut < written.length; cut += step) {
        assert.throws(() => read(written.subarray(0, cut), 0), MailerError);
      }
      failsWith("not_avro", /1 bytes are left over/, () => read(Uint8Array.of(...written, 0), 0));
    }),
    { numRuns: 100 },
  );
});

function plainOf(part: unknown): unknown {
  if (Object.is(part, -0)) return 0;
  if (part instanceof Uint8Array || typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(plainOf);
  return new Map(Object.entries(part).map(([name, inner]) => [name, plainOf(inner)]));
}

Deno.test("A2: objects are plain, bytes are their own, __proto__ is a key", () => {
  const schema = record({ name: "inner", type: { type: "map", values: "bytes" } });
  const read = value(schema, bytes(schema, { inner: parseJson("{}") })) as object;
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  const map = value({ type: "map", values: "string" }, hex("02 12 5f5f70726f746f5f5f 02 78 00")) as object;
  assert.deepEqual(Object.entries(map), [["__proto__", "x"]]);
  assert.deepEqual(bytes({ type: "map", values: "string" }, map), hex("02 12 5f5f70726f746f5f5f 02 78 00"));
  const payload = hex("02 ff"), found = AvroSchema.of('"bytes"').reader()(payload, 0) as Uint8Array;
  assert.equal(found.constructor, Uint8Array);
  payload[1] = 0;
  assert.deepEqual(found, Uint8Array.of(255));
  assert.deepEqual(bytes(["null", "bytes"], Buffer.from("a")), hex("02 02 61"));
  failsWith("avro_schema", /__proto__/, () => schemaOf(record({ name: "__proto__", type: "int" })));
});

Deno.test("A3: what claims to be large is refused at once", () => {
  const list = { type: "array", items: "int" }, nulls = { type: "array", items: "null" };
  const huge = "fe ff ff ff ff ff ff ff ff 01";
  failsWith("not_avro", /too early/, () => value(list, hex(huge)));
  failsWith("not_avro", /too early/, () => value(nulls, hex(huge)));
  failsWith("not_avro", /too early/, () => value({ type: "map", values: "null" }, hex(huge)));
  failsWith("not_avro", /too early/, () => value("bytes", hex(huge)));
  failsWith("not_avro", /too early/, () => value("string", hex(huge)));
  failsWith("not_avro", /too early/, () => value("string", hex("01")));
  // In a field that the reader passes over.
  for (const skipped of [list, nulls, { type: "map", values: "null" }]) {
    const writer = record({ name: "gone", type: skipped }, { name: "kept", type: "int" });
    const reader = record({ name: "kept", type: "int" });
    for (const block of [huge, "01 fd ff ff ff ff ff ff ff ff 01"]) {
      failsWith("not_avro", /too early/, () => value(writer, hex(`${block} 00 02`), reader));
    }
  }
  assert.deepEqual(value(nulls, hex("06 00")), [null, null, null]);
  assert.deepEqual(value(list, hex("03 04 02 04 02 06 00")), [1, 2, 3], "blocks with and without a size");
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (noise) => {
    const schema = record(
      { name: "a", type: { type: "array", items: ["null", "long", { type: "map", values: "string" }] } },
      { name: "b", type: { type: "bytes", logicalType: "decimal", precision: 9, scale: 2 } },
      { name: "c", type: { type: "int", logicalType: "date" } },
    );
    try {
      value(schema, noise);
    } catch (error) {
      assert.ok(error instanceof MailerError, String(error));
    }
  }));
});

Deno.test("A4: texts are UTF-8 on both sides", () => {
  failsWith("not_utf8", /not UTF-8/, () => value("string", hex("02 ff")));
  failsWith("not_utf8", /not UTF-8/, () => value({ type: "map", values: "null" }, hex("02 02 ff 00")));
  assert.equal(value("string", hex("06 ef bf bd")), "\ufffd");
  failsWith("not_avro_value", /not a string/, () => bytes("string", "\ud800"));
  failsWith("not_avro_value", /not a string/, () => bytes("string", "x".repeat(100) + "\ud800"));
  const long = "ö".repeat(40_000);
  assert.equal(value("string", bytes("string", long)), long, "longer than what there is room for at first");
});

Deno.test("A5: unions", () => {
  const named = ["null", "int", "double"];
  assert.deepEqual(value(named, hex("02 06")), { int: 3 });
  assert.deepEqual(bytes(named, { int: 3 }), hex("02 06"));
  assert.equal(value(named, hex("00")), null);
  assert.deepEqual(bytes(named, undefined), hex("00"));
  assert.equal(Object.getPrototypeOf(value(named, hex("02 06"))), Object.prototype);
  failsWith("not_avro_value", /3, not of any branch/, () => bytes(named, 3));
  failsWith("not_avro_value", /not of any branch/, () => bytes(named, { long: 3 }));
  const dates = ["null", "string", { type: "int", logicalType: "date" }];
  assert.deepEqual(value(dates, hex("04 02")), { int: "1970-01-02" }, "two texts have to be told apart");
  const amount = ["null", { type: "bytes", logicalType: "decimal", precision: 5, scale: 2 }, "string"];
  assert.equal(value(amount, hex("02 02 7b")), 1.23);
  assert.deepEqual(bytes(amount, 1.23), hex("02 02 7b"));
  assert.deepEqual(bytes(amount, new Decimal("1.230")), hex("02 02 7b"));
  assert.deepEqual(bytes(amount, "a"), hex("04 02 61"));
  const missing = record({ name: "a", type: ["null", "string"] }, { name: "b", type: "int" });
  assert.deepEqual(bytes(missing, { b: 1, more: 2 }), hex("00 02"));
  failsWith("not_avro_value", /^does not fit the schema "com.example.R": b is missing, not a int$/, () => {
    bytes(missing, { a: "x" });
  });
  failsWith("not_avro", /union index/, () => value(named, hex("08")));
});

Deno.test("logical types", () => {
  const decimal = (more: object = {}) => ({
    type: "bytes",
    logicalType: "decimal",
    precision: 30,
    scale: 3,
    ...more,
  });
  const cases: [schema: unknown, value: unknown, bytes: string][] = [
    [decimal(), 0, "02 00"],
    [decimal(), -0.001, "02 ff"],
    [decimal(), 0.128, "04 00 80"],
    [decimal(), 1.5, "04 05 dc"],
    [decimal({ scale: 0 }), 2n ** 64n, "12 01 00 00 00 00 00 00 00 00"],
    [decimal({ type: "fixed", name: "D", size: 4 }), -1.5, "ff ff fa 24"],
    [{ type: "int", logicalType: "date" }, "1969-12-31", "01"],
    [{ type: "int", logicalType: "date" }, "2026-11-30", "e6 c4 02"],
    [
      { type: "string", logicalType: "uuid" },
      "00112233-4455-6677-8899-aabbccddeeff",
      "48" + [
        ..."00112233-4455-6677-8899-aabbccddeeff",
      ].map((c) => c.charCodeAt(0).toString(16)).join(""),
    ],
    [
      { type: "fixed", name: "U", size: 16, logicalType: "uuid" },
      "00112233-4455-6677-8899-aabbccddeeff",
      "00112233445566778899aabbccddeeff",
    ],
    [{ type: "long", logicalType: "timestamp-millis" }, 1_000, "d0 0f"],
    [{ type: "long", logicalType: "timestamp-micros" }, 2n ** 62n, "80 80 80 80 80 80 80 80 80 01"],
    [{ type: "int", logicalType: "time-millis" }, 5, "0a"],
  ];
  for (const [schema, given, expected] of cases) {
    assert.deepEqual(bytes(schema, given), hex(expected), JSON.stringify(schema));
    assert.deepEqual(value(schema, hex(expected)), given, JSON.stringify(schema));
  }
  const many = value(decimal(), bytes(decimal(), new Decimal("123456789012345678901.234")));
  assert.deepEqual(many, new Decimal("123456789012345678901.234"), "every digit");
  const short = decimal({ precision: 4, scale: 2 });
  for (const wrong of [1.234, 123.45, NaN, "1.2", 1e300, new Decimal("1e-99999999")]) {
    failsWith("not_avro_value", /not a decimal/, () => bytes(short, wrong));
  }
  for (const wrong of ["2026-02-30", "2026-1-1", 5, "2026-11-30T00:00:00Z"]) {
    failsWith("not_avro_value", /not a date/, () => bytes({ type: "int", logicalType: "date" }, wrong));
  }
  failsWith("not_avro_value", /not a uuid/, () => bytes({ type: "string", logicalType: "uuid" }, "x"));
  failsWith(
    "not_avro",
    /out of range/,
    () => value({ type: "int", logicalType: "date" }, hex("fe ff ff ff 0f")),
  );
  assert.deepEqual(
    value(decimal({ scale: 40 }), hex("02 ff")),
    Uint8Array.of(255),
    "a decimal that is none is bytes",
  );
  fc.assert(fc.property(fc.bigInt({ min: -(10n ** 30n) + 1n, max: 10n ** 30n - 1n }), (unscaled) => {
    const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(4, "0");
    const text = `${unscaled < 0n ? "-" : ""}${digits.slice(0, -3)}.${digits.slice(-3)}`;
    const read = value(decimal(), bytes(decimal(), parseJson(text)));
    assert.equal(String(read), String(parseJson(text)));
  }));
});

Deno.test("read as another schema", () => {
  const first = record({ name: "id", type: "int" }, { name: "old", type: "string" });
  const second = record(
    { name: "key", type: "long", aliases: ["id"] },
    { name: "tags", type: { type: "array", items: "string" }, default: ["new"] },
    { name: "big", type: "long", default: 1 },
    { name: "raw", type: "bytes", default: "\u00ff" },
    { name: "note", type: ["null", "string"], default: null },
  );
  const read = value(first, bytes(first, { id: 5, old: "x" }), second);
  assert.deepEqual(read, { key: 5, tags: ["new"], big: 1, raw: Uint8Array.of(255), note: null });
  assert.deepEqual(value("long", hex("02"), ["null", "long"]), 1);
  failsWith("avro_not_readable", /"null" as "long"/, () => value(["null", "long"], hex("02 02"), "long"));
  const money = { type: "bytes", logicalType: "decimal", precision: 5, scale: 2 };
  assert.equal(value("bytes", hex("02 7b"), money), 1.23);
  assert.equal(value(money, hex("02 7b"), { ...money, precision: 6 }), 1.23);
  failsWith("avro_not_readable", /cannot be read/, () => value(money, hex("02 7b"), { ...money, scale: 1 }));
  failsWith("avro_not_readable", /"com.example.R".*default-less/, () => {
    value(first, hex("02 00"), record({ name: "other", type: "int" }));
  });
});

Deno.test("schemas that refer to themselves and to others", () => {
  const tree = record({ name: "next", type: ["null", "R"], default: null }, { name: "n", type: "int" });
  const given = { next: { next: null, n: 2 }, n: 1 };
  assert.deepEqual(value(tree, bytes(tree, given)), given);
  const inner = JSON.stringify({ type: "record", name: "x.Inner", fields: [{ name: "a", type: "int" }] });
  const outer = JSON.stringify({ type: "record", name: "Outer", fields: [{ name: "in", type: "x.Inner" }] });
  assert.deepEqual(AvroSchema.of(outer, [inner]).reader()(hex("02"), 0), { in: { a: 1 } });
  failsWith("avro_schema", /undefined type name: x.Inner/, () => AvroSchema.of(outer));
  failsWith("avro_schema", /not JSON/, () => AvroSchema.of("{"));
  failsWith("avro_schema", /unknown type/, () => AvroSchema.of('{"type":"strange"}'));
  failsWith("avro_schema", /./, () => AvroSchema.of("[".repeat(50_000) + "]".repeat(50_000)));
});
