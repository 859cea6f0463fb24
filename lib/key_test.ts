import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson, stringifyJson } from "./json.ts";
import { keyGroup, keyIdentity, partitionOf } from "./key.ts";

/** JSON values, many of them near each other, `__proto__` and U+0000 among them. */
const texts = fc.oneof(
  fc.constantFrom("", "a", "b", "1", "1:", "\0", "\0s", "\0[]", "__proto__", "s1:a"),
  fc.string(),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    texts,
    fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      1,
      -0,
      1.5,
      1e23,
      9007199254740993n,
      new Decimal("0.10000000000000000001"),
    ),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(texts, tie("value"), { maxKeys: 3 }),
  ),
})).value;

/** The same value with fields in another order and whole numbers as `bigint`. */
function respelt(value: unknown): unknown {
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? BigInt(value) : new Decimal(String(value));
  }
  if (Array.isArray(value)) return value.map(respelt);
  if (typeof value !== "object" || value === null || value instanceof Decimal) return value;
  return Object.fromEntries(Object.entries(value).reverse().map(([name, inner]) => [name, respelt(inner)]));
}

/** JSON with sorted fields: equal exactly for equal values. */
function sortedJson(value: unknown): string {
  const sorted = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(sorted);
    if (typeof inner !== "object" || inner === null || inner instanceof Decimal) return inner;
    return Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1).map(([name, field]) => ({
      name,
      field: sorted(field),
    }));
  };
  return stringifyJson([Array.isArray(value), shape(value), sorted(value)]);
}
function shape(value: unknown): unknown {
  if (typeof value !== "object" || value === null || value instanceof Decimal) return typeof value;
  return Array.isArray(value)
    ? value.map(shape)
    : { fields: Object.keys(value).sort().map((name) => shape((value as Record<string, unknown>)[name])) };
}

Deno.test("K1: equal values have equal identities, however they are spelt", () => {
  fc.assert(
    fc.property(json, (value) => {
      const identity = keyIdentity(value);
      assert.ok(new Set([identity]).has(keyIdentity(respelt(value))));
      assert.ok(new Set([identity]).has(keyIdentity(parseJson(stringifyJson(value)))), stringifyJson(value));
      assert.equal(keyGroup(identity, 128), keyGroup(keyIdentity(respelt(value)), 128));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("K2: values have equal identities only when they are equal", () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      assert.equal(new Set([keyIdentity(a)]).has(keyIdentity(b)), sortedJson(a) === sortedJson(b));
    }),
    { numRuns: 5000 },
  );
});

Deno.test("K2: values that look alike are different keys", () => {
  const bytes = (...all: number[]) => new Uint8Array(all);
  const values: unknown[] = [
    undefined,
    null,
    "null",
    true,
    "true",
    false,
    0,
    "0",
    1,
    "1",
    "",
    [],
    {},
    [[]],
    [{}],
    [null],
    [[], []],
    [1, 2],
    ["1", 2],
    ["1,2"],
    ["12"],
    [12],
    "\0",
    "\0s\0",
    "\0[]",
    "\0{}",
    "\0n9007199254740993e0",
    9007199254740993n,
    9007199254740992n,
    [9007199254740993n],
    [9007199254740992],
    bytes(),
    bytes(0),
    bytes(0, 0),
    [bytes(0)],
    "\0b1:\0",
    { a: 1 },
    { a: "1" },
    { a: { b: 1 } },
    { "a": 1, "b": 2 },
    { "1:a": 1 },
    ["a", 1],
    NaN,
    [NaN],
    Infinity,
    parseJson('{"__proto__":1}'),
    0.1,
    new Decimal("0.10000000000000000001"),
    "2026-03-01T10:00:00.000Z ",
    [true],
    ["t"],
    ["z"],
  ];
  const seen = new Map(values.map((value) => [keyIdentity(value), value]));
  assert.equal(seen.size, values.length);
});

Deno.test("usual keys are their own identities", () => {
  for (const key of ["", "key-000000042", "ключ", 0, 1.5, -7, true, false, null, undefined]) {
    assert.equal(keyIdentity(key), key);
  }
  assert.equal(keyIdentity(5n), 5);
  assert.equal(keyIdentity(new Decimal("1.0")), 1);
  assert.equal(keyIdentity(new Date(0)), "1970-01-01T00:00:00.000Z");
  assert.equal(keyIdentity({ a: 1, b: undefined }), keyIdentity({ a: 1 }));
  assert.equal(keyIdentity([undefined]), keyIdentity([null]));
  assert.equal(keyIdentity({ toJSON: 5 }), keyIdentity(parseJson('{"toJSON":5}')));
});

Deno.test("N2: a whole number is one key with or without an exponent, and its digits are never lost", () => {
  assert.equal(keyIdentity(2.28e17), keyIdentity(228000000000000000n));
  assert.equal(keyIdentity(228000000000000001n), "\0n228000000000000001e0");
  assert.notEqual(keyIdentity(228000000000000001n), keyIdentity(228000000000000002n));
});

Deno.test("what cannot be a key is refused", () => {
  const loop: unknown[] = [];
  loop.push(loop);
  for (const key of [() => 1, Symbol("x"), [() => 1], { a: Symbol("x") }, loop]) {
    assert.throws(() => keyIdentity(key), { code: "invalid_key" });
  }
});

Deno.test("K3: identities and key groups are what they were", () => {
  const groups = [
    "",
    "a",
    "key-000000042",
    "c76852",
    "ключ",
    0,
    1,
    -1,
    42,
    0.25,
    9007199254740991,
    true,
    false,
    null,
    undefined,
  ]
    .map((key) => keyGroup(key, 128));
  assert.deepEqual(groups, KNOWN_GROUPS);
  assert.equal(keyIdentity(["eu", 7, null]), "\0[s2:eun7;z]");
  assert.equal(keyIdentity({ b: true, a: "x" }), "\0{1:as1:x1:bt}");
  assert.equal(keyIdentity(new Uint8Array([1, 255])), "\0b2:\x01\xff");
});
const KNOWN_GROUPS = [11, 51, 75, 38, 120, 122, 4, 58, 39, 114, 110, 110, 55, 70, 41];

Deno.test("similar keys spread evenly over the key groups", () => {
  const kinds: [string, (i: number) => string | number][] = [
    ["key-000000042", (i) => `key-${String(i).padStart(9, "0")}`],
    ["c42", (i) => `c${i}`],
    ["whole numbers", (i) => i],
    ["multiples of 1024", (i) => i * 1024],
    ["quarters", (i) => i / 4],
    ["large numbers", (i) => 1760000000000 + i],
  ];
  for (const [name, make] of kinds) {
    for (const groups of [128, 100, 7]) {
      const counts = new Array<number>(groups).fill(0);
      const n = groups * 400;
      for (let i = 0; i < n; i++) counts[keyGroup(make(i), groups)]!++;
      // Chi-squared of a fair spread is about `groups`, give or take some √(2·groups).
      const chi = counts.reduce((sum, count) => sum + (count - 400) ** 2 / 400, 0);
      assert.ok(chi < groups + 6 * Math.sqrt(2 * groups), `${name} over ${groups}: ${chi}`);
    }
  }
});

Deno.test("every partition owns a range of key groups, as even as can be, and every group has an owner", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 512 }),
      fc.integer({ min: 1, max: 64 }),
      (maxKeyGroups, partitions) => {
        fc.pre(partitions <= maxKeyGroups);
        const owners = Array.from(
          { length: maxKeyGroups },
          (_, group) => partitionOf(group, partitions, maxKeyGroups),
        );
        assert.deepEqual(owners, owners.toSorted((a, b) => a - b));
        const sizes = Array.from(
          { length: partitions },
          (_, partition) => owners.filter((owner) => owner === partition).length,
        );
        assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1);
        assert.equal(
          sizes.reduce((a, b) => a + b, 0),
          maxKeyGroups,
        );
      },
    ),
  );
});
