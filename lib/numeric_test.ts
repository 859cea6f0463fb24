import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson } from "./json.ts";
import { canonicalNumber, compareNumbers, isNumeric, type Numeric, toDouble } from "./numeric.ts";

/** A number written in JSON, and a fraction of big integers that is its exact value. */
const written = fc.oneof(
  fc.tuple(fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }), fc.integer({ min: -30, max: 30 })),
  fc.tuple(fc.bigInt({ min: -50n, max: 50n }), fc.integer({ min: -3, max: 3 })),
  fc.tuple(fc.bigInt({ min: 9007199254740980n, max: 9007199254741010n }), fc.integer({ min: -2, max: 2 })),
);

function textOf([digits, exponent]: [bigint, number]): string {
  return exponent === 0 ? String(digits) : `${digits}e${exponent}`;
}

function exact([digits, exponent]: [bigint, number]): bigint {
  return digits * 10n ** BigInt(exponent + 40);
}

Deno.test("numbers of all kinds compare as the decimals they were written as", () => {
  fc.assert(
    fc.property(written, written, (a, b) => {
      const [x, y] = [parseJson(textOf(a)) as Numeric, parseJson(textOf(b)) as Numeric];
      const [p, q] = [exact(a), exact(b)];
      assert.equal(compareNumbers(x, y), p < q ? -1 : p > q ? 1 : 0, `${textOf(a)} and ${textOf(b)}`);
      assert.equal(compareNumbers(y, x), p < q ? 1 : p > q ? -1 : 0);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("canonical forms are equal exactly when the numbers are", () => {
  fc.assert(
    fc.property(written, written, (a, b) => {
      const [x, y] = [parseJson(textOf(a)) as Numeric, parseJson(textOf(b)) as Numeric];
      const same = canonicalNumber(x) === canonicalNumber(y);
      assert.equal(same, exact(a) === exact(b), `${textOf(a)} and ${textOf(b)}`);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("equal numbers of different kinds are equal", () => {
  const equal: [Numeric, Numeric][] = [
    [5, 5n],
    [0, -0],
    [1e20, 100000000000000000000n],
    [1e23, 100000000000000000000000n],
    [1.1, new Decimal("1.10")],
    [1100, new Decimal("1.1e3")],
    [12345678901234567890n, new Decimal("12345678901234567890.0")],
    [0, new Decimal("0.000")],
    [new Decimal("1e400"), new Decimal("10e399")],
  ];
  for (const [a, b] of equal) {
    assert.equal(compareNumbers(a, b), 0, `${a} and ${b}`);
    assert.equal(canonicalNumber(a) === canonicalNumber(b), true, `${a} and ${b}`);
  }
  assert.equal(compareNumbers(new Decimal("1e400"), Infinity), -1);
  assert.equal(compareNumbers(new Decimal("-1e400"), new Decimal("1e400")), -1);
  assert.equal(compareNumbers(new Decimal("1e400"), new Decimal("2e400")), -1);
  assert.equal(compareNumbers(new Decimal("-1e400"), new Decimal("-2e400")), 1);
  assert.equal(compareNumbers(new Decimal("-1e400"), -Infinity), 1);
});

Deno.test("what counts as a number", () => {
  for (const value of [0, -0, 1.5, Infinity, 5n, new Decimal("1")]) assert.equal(isNumeric(value), true);
  for (const value of [NaN, "5", null, undefined, true, {}, []]) assert.equal(isNumeric(value), false);
  assert.equal(toDouble(new Decimal("0.1000000000000000055")), 0.1);
  assert.equal(toDouble(9007199254740993n), 9007199254740992);
});
