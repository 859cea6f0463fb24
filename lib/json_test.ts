import assert from "node:assert/strict";
import fc from "fast-check";
import { MailerError } from "./errors.ts";
import { Decimal, exactNumber, hasLongNumber, parseJson, stringifyJson } from "./json.ts";

/** A decimal number's value, without doubles: sign, digits without zeros around them, exponent. */
function exactly(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  assert.ok(match, `${text} is no JSON number`);
  const [, sign, whole, fraction = "", exponent = "0"] = match;
  let digits = whole! + fraction, scale = BigInt(exponent) - BigInt(fraction.length);
  while (digits.startsWith("0")) digits = digits.slice(1);
  while (digits.endsWith("0")) [digits, scale] = [digits.slice(0, -1), scale + 1n];
  return digits === "" ? "0" : `${sign}${digits}e${scale}`;
}

const digits = (max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: max }).map((list) => list.join(""));
const whole = fc.oneof(digits(40), digits(20), digits(17), digits(5)).map((text) =>
  text.replace(/^0+(?=\d)/, "")
);
const numberText = fc.tuple(
  fc.constantFrom("", "-"),
  whole,
  fc.option(fc.oneof(digits(30), digits(18), digits(4)), { nil: undefined }),
  fc.option(
    fc.tuple(fc.constantFrom("e", "E", "e+", "E-", "e-"), fc.oneof(digits(1), digits(2), digits(4))),
    { nil: undefined },
  ),
).map(([sign, head, fraction, exponent]) =>
  sign + head + (fraction === undefined ? "" : `.${fraction}`) +
  (exponent === undefined ? "" : exponent.join(""))
);
/** Texts around numbers: nested, spaced, beside strings full of digits. */
const wrapped = fc.tuple(
  numberText,
  fc.constantFrom(
    (n: string) => n,
    (n: string) => `[${n}]`,
    (n: string) => `{"a":${n}}`,
    (n: string) => `{"a": ${n} , "b":[1,2]}`,
    (n: string) => `[0,${n},"12345678901234567890e400"]`,
    (n: string) => `{"id":"3e512f0a-0000-4e99-8e12-000000000000","x":[{"y":\t${n}\n}]}`,
    (n: string) => `{"1234567890123456789":${n}}`,
  ),
).map(([n, wrap]) => ({ n, text: wrap(n) }));

/** The number texts of a JSON text, strings left out. */
function numbersIn(json: string): string[] {
  return json.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? [];
}

Deno.test("J1–J3: parse and stringify keep every number's exact decimal value, wherever it stands", () => {
  fc.assert(
    fc.property(wrapped, ({ text }) => {
      const out = stringifyJson(parseJson(text));
      assert.deepEqual(numbersIn(out).map(exactly), numbersIn(text).map(exactly), `${text} became ${out}`);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("J4: a text said to hold no long number is parsed exactly by JSON.parse alone", () => {
  fc.assert(
    fc.property(wrapped, ({ text }) => {
      if (hasLongNumber(text)) return;
      JSON.parse(
        text,
        function (_key, value, context?: { source: string }) {
          if (typeof value === "number") assert.ok(Object.is(exactNumber(context!.source), value), text);
          return value;
        } as (key: string, value: unknown) => unknown,
      );
    }),
    { numRuns: 3000 },
  );
});

Deno.test("J1–J3: what a number text becomes", () => {
  const table: [string, unknown][] = [
    ["0", 0],
    ["-0", -0],
    ["-0.0", -0],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n],
    ["9007199254740993", 9007199254740993n],
    ["-9223372036854775808", -9223372036854775808n],
    ["18446744073709551615", 18446744073709551615n],
    ["100000000000000000000", 100000000000000000000n],
    ["1e20", 1e20],
    ["1760000000000000", 1760000000000000],
    ["0.30000000000000004", 0.30000000000000004],
    ["51.50735091234567", 51.50735091234567],
    ["1.10000000000000000000", 1.1],
    ["0.1000000000000000055511151231257827", new Decimal("0.1000000000000000055511151231257827")],
    ["1e400", new Decimal("1e400")],
    ["1e-400", new Decimal("1e-400")],
    ["1e308", 1e308],
    ["1E+0000000000000000003", 1000],
    ["0e999", 0],
    ["123456789012345678e-3", new Decimal("123456789012345678e-3")],
  ];
  for (const [text, value] of table) {
    for (const wrap of [text, `[${text}]`, `{"a":{"b": ${text} }}`]) {
      const parsed = JSON.stringify(
        wrap === text ? parseJson(wrap) : Object.values(parseJson(wrap) as object)[0],
        keep,
      );
      assert.equal(parsed, JSON.stringify(wrap.startsWith("{") ? { b: value } : value, keep), wrap);
    }
    assert.ok(Object.is(typeof exactNumber(text), typeof value), text);
  }
});

/** Makes the kinds of numbers tell apart in a comparison of texts. */
function keep(this: unknown, key: string, value: unknown): unknown {
  const raw = (this as Record<string, unknown>)[key];
  if (raw instanceof Decimal) return `decimal ${raw.text}`;
  return typeof value === "bigint" ? `bigint ${value}` : value;
}

Deno.test("digits in strings do not send a text down the slow road, numbers that change do", () => {
  const fast = [
    `{"id":"3e512f0a-0000-4e99-8e12-000000000000"}`,
    `{"sha":"1234567890123456e1234567890123456789"}`,
    `{"v":"1.2.3.4.5.6.7.8.9.10"}`,
    `{"at":1760000000000,"micros":1760000000000000,"lat":51.50735091234567}`,
    `{"x":0.30000000000000004,"y":[-12.345678901234567,1e+100]}`,
    `[1e100,-2.5E-200]`,
    "",
    "1",
  ];
  for (const text of fast) assert.equal(hasLongNumber(text), false, text);
  const slow = [
    "9007199254740993",
    `[9007199254740992]`,
    `{"a":-0.12345678901234567890}`,
    "[1e999]",
    "1E-999",
    "[0,1e+400]",
  ];
  for (const text of slow) assert.equal(hasLongNumber(text), true, text);
});

Deno.test("every place of a long number in a text is seen", () => {
  for (let before = 0; before < 70; before++) {
    const text = `["${"x".repeat(before)}",9007199254740993]`;
    assert.equal(hasLongNumber(text), true, text);
    assert.equal(stringifyJson(parseJson(text)), text);
  }
});

Deno.test("strings that look like marked or long numbers stay strings beside long numbers", () => {
  const big = "9007199254740993";
  const texts = [
    `["\x7f${big}",${big}]`,
    `["\\u007f${big}",${big}]`,
    `["\\u007F1",${big}]`,
    `[" ${big} ",${big}]`,
    `[", ${big}, \\", ${big}",${big}]`,
    `{"a":"x:${big}","b":{"${big}":"1e999"},"c":[1e999,"1e999","1e999 "]}`,
    `{"a":" 1e999 ,","b":-1e999}`,
  ];
  for (const text of texts) {
    assert.equal(stringifyJson(parseJson(text)), stringifyJson(withoutFastPath(text)), text);
  }
  fc.assert(
    fc.property(fc.json(), wrapped, fc.constantFrom(...texts), (json, { text }, more) => {
      const whole = `[${json},${text},${more}]`;
      assert.equal(stringifyJson(parseJson(whole)), stringifyJson(withoutFastPath(whole)));
    }),
    { numRuns: 2000 },
  );
});

/** Every number by its source text, through a reviver. */
function withoutFastPath(text: string): unknown {
  return JSON.parse(
    text,
    function (_key, value, context?: { source: string }) {
      return typeof value === "number" ? exactNumber(context!.source) : value;
    } as (key: string, value: unknown) => unknown,
  );
}

Deno.test("J5: `__proto__` is a key like any other, beside long numbers too", () => {
  const big = "9007199254740993";
  for (
    const text of [
      `{"__proto__":{"x":1}}`,
      `{"__proto__":{"x":${big}}}`,
      `{"a":[{"__proto__":${big},"b":1}]}`,
    ]
  ) {
    assert.equal(stringifyJson(parseJson(text)), text);
  }
});

Deno.test("what is not JSON is an error of that name", () => {
  for (const text of ["", "{", "nul", "1 2", "01", "[1,]", "\u0000", '"\n"', "1e", "9007199254740993x"]) {
    assert.throws(
      () => parseJson(text),
      (error) => error instanceof MailerError && error.code === "not_json",
      text,
    );
  }
});

Deno.test("bigints are written as digits, at any depth; a cycle is an error", () => {
  assert.equal(
    stringifyJson({ a: [1n, { b: -9223372036854775808n }] }),
    `{"a":[1,{"b":-9223372036854775808}]}`,
  );
  const cycle: Record<string, unknown> = { big: 1n };
  cycle.self = cycle;
  assert.throws(() => stringifyJson(cycle), TypeError);
});
