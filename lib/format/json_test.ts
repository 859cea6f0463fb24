import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { MailerError } from "../errors.ts";
import { Decimal, parseJson, stringifyJson } from "../json.ts";
import type { Decoded, Payload } from "./format.ts";
import { encodeJson, jsonFormat } from "./json.ts";
import { parseJoined } from "./json_batch.ts";

function decode(payloads: readonly Payload[]): Decoded {
  const into: Decoded = { values: [], failures: [] };
  jsonFormat().decoder().decode(payloads, into);
  return into;
}

/** The outcome of each payload alone: its value as text, or a mark. */
function alone(payloads: readonly string[]): string[] {
  return payloads.map((payload) => {
    try {
      return stringifyJson(parseJson(payload));
    } catch {
      return "failure";
    }
  });
}

function outcomes(count: number, { values, failures }: Decoded): string[] {
  const failed = new Set(failures.map(({ index }) => index));
  const rest = values.map(stringifyJson);
  return Array.from({ length: count }, (_, i) => failed.has(i) ? "failure" : rest.shift()!);
}

/** Pieces that, put together in the wrong way, could be taken for something else. */
const piece = fc.constantFrom(
  ...'{}[]",:'.split(""),
  '{"a":1}',
  "{}",
  '{"a":[{}',
  "{}]}",
  '{"a":{"b":1}',
  '"a":1',
  "},{",
  "} , {",
  "},\n\t{",
  "{},{}",
  "],[",
  "[1",
  "2]",
  '"}',
  '{"',
  '","',
  "\\",
  '\\"',
  "1",
  "1,2",
  "9007199254740993",
  "1e999",
  "null",
  "\x7f",
  "\\u007f",
  " ",
  "\n",
  "é",
  '{"__proto__":1}',
);
const hostile = fc.array(piece, { minLength: 0, maxLength: 6 }).map((parts) => parts.join(""));
/** Always begins and ends like an object, so that joining is tried. */
const objectLike = fc.array(piece, { maxLength: 5 }).map((parts) => `{${parts.join("")}}`);
/** Halves and doubles that make up for each other when they meet. */
const trick = fc.constantFrom(
  '{"a":[{}',
  "{}]}",
  "{},{}",
  "{},1",
  '{},"}',
  '{"a":"}',
  '{","b":1}',
  "{} ,{}",
  "{},[{}",
);
const payload = fc.oneof(
  hostile,
  objectLike,
  objectLike,
  fc.object({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
);
const batch = fc.oneof(
  fc.array(payload, { minLength: 2, maxLength: 6 }),
  fc.array(trick, { minLength: 2, maxLength: 4 }),
);

Deno.test("a batch gives what its payloads give one by one, whatever they are made of", () => {
  fc.assert(
    fc.property(batch, (payloads) => {
      const expected = alone(payloads);
      assert.deepEqual(outcomes(payloads.length, decode(payloads)), expected);
      assert.deepEqual(
        outcomes(payloads.length, decode(payloads.map((text) => Buffer.from(text)))),
        expected,
      );
    }),
    { numRuns: 5000 },
  );
});

Deno.test("payloads that only together look like as many records are not joined", () => {
  const tricks = [
    ["1,2", "3"],
    ["[1", "2]", "3,4"],
    ['{"a":[{}', "{}]}", "{},{}"],
    ['{"a":[{}', "{}]}", "{},1"],
    ['{"a":[{}', "{}]}", "{} ,\r\n\t{}"],
    ['{"a":"}', '{","b":1}', "{},{}"],
    ['{"a":{"b":1}', "{}", "{}}"],
    ["{},[{}", "{}]}"],
    ['{},"}', '{"}'],
    ["{}],[{}", "{}"],
    ["{", "}"],
    ["]", "["],
  ];
  for (const texts of tricks) {
    assert.equal(parseJoined(texts), undefined, texts.join(" | "));
    assert.deepEqual(outcomes(texts.length, decode(texts)), alone(texts), texts.join(" | "));
  }
});

Deno.test("usual records are joined: flat ones, nested ones, with lists, blanks and long numbers", () => {
  const usual = [
    ['{"a":1}', '{"a":2,"b":{"c":[1,2,[{"d":null}]]}}'],
    ['{"a": {"b": [1, 2]}, "c": "x {, }"}', '{"big":9007199254740993}'],
    ["{}", "{}", "{}"],
  ];
  for (const texts of usual) {
    assert.deepEqual(parseJoined(texts)?.map(stringifyJson), alone(texts), texts.join(" | "));
  }
});

Deno.test("many records in one batch come out in order, with a bad one among them", () => {
  const good = Array.from(
    { length: 500 },
    (_, i) => `{"id":${i},"big":${i % 7 === 0 ? "12345678901234567890" : i}}`,
  );
  const forms: ((text: string) => Payload)[] = [(text) => text, (text) => Buffer.from(text)];
  for (const form of forms) {
    const payloads = good.map(form);
    assert.deepEqual(decode(payloads).values.map(stringifyJson), good);
    const mixed = payloads.with(130, form('{"id":130')).with(131, form("")).with(499, form("{}{}"));
    const { values, failures } = decode(mixed);
    assert.deepEqual(failures.map(({ index }) => index), [130, 131, 499]);
    assert.ok(failures.every(({ error }) => error instanceof MailerError && error.code === "not_json"));
    assert.deepEqual(values.map(stringifyJson), good.filter((_, i) => ![130, 131, 499].includes(i)));
  }
});

Deno.test("bytes that are not UTF-8 are a failure of their payload alone, and the message names the byte", () => {
  const payloads = ['{"a":"é"}', '{"a":"x"}', '{"a":"\ufffd€"}'].map((text) => Buffer.from(text));
  payloads.splice(1, 0, Buffer.concat([Buffer.from('{"a":"\ufffd'), Buffer.of(0xe9), Buffer.from('"}')]));
  const { values, failures } = decode(payloads);
  assert.deepEqual(values, [{ a: "é" }, { a: "x" }, { a: "\ufffd€" }]);
  assert.deepEqual(failures.map(({ index }) => index), [1]);
  assert.match(failures[0]!.error.message, /not UTF-8: wrong at byte 9 of 12/);
  assert.equal(decode([Buffer.of(34, 0xc3, 34)]).failures.length, 1);
});

Deno.test("decoded bytes are not changed and not kept", () => {
  const bytes = Buffer.from('{"a":"text of some length"}');
  const [first, second] = decode([bytes, bytes]).values as { a: string }[];
  assert.equal(bytes.toString(), '{"a":"text of some length"}');
  bytes.fill(0);
  assert.deepEqual([first, second], [{ a: "text of some length" }, { a: "text of some length" }]);
});

Deno.test("NaN and infinities are errors wherever they hide, null is not", () => {
  for (
    const bad of [NaN, Infinity, [1, -Infinity], { a: { b: [NaN] } }, { a: null, b: NaN }, {
      toJSON: () => NaN,
    }, new Number(NaN)]
  ) {
    assert.throws(() => encodeJson(bad), { code: "not_json_number" });
  }
  assert.throws(() => encodeJson({ big: 1n, bad: NaN }), { code: "not_json_number" });
  const good: [unknown, string][] = [
    [null, "null"],
    [{ a: null, b: "null", c: [1n, new Decimal("1e400")] }, '{"a":null,"b":"null","c":[1,1e400]}'],
    [-0, "0"],
    [{ a: -0, b: undefined, c: new Date(0) }, '{"a":0,"c":"1970-01-01T00:00:00.000Z"}'],
    [undefined, "null"],
    ["a\nb", '"a\\nb"'],
    [JSON.parse('{"__proto__":{"x":null}}'), '{"__proto__":{"x":null}}'],
  ];
  for (const [value, text] of good) assert.equal(encodeJson(value), text);
});

Deno.test("a number that JSON cannot hold is named with the way to it", () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [NaN, "NaN cannot be written as JSON"],
    [{ a: { r: [1, Infinity] } }, "Infinity at a.r[1] cannot be written as JSON"],
    [[{ "b.c": -Infinity }], '-Infinity at [0]."b.c" cannot be written as JSON'],
    [{ a: null, d: { toJSON: () => ({ n: NaN }) } }, "NaN at d.n cannot be written as JSON"],
  ];
  for (const [value, message] of cases) {
    assert.throws(() => encodeJson(value), { code: "not_json_number", message });
  }
});
