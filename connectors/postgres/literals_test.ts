import assert from "node:assert/strict";
import fc from "fast-check";
import { MailerError } from "../../lib/errors.ts";
import { type Literal, literalOf, NULL } from "./literals.ts";

const scalar = (base: string): Literal => literalOf({ base, isList: false });

Deno.test("times are those that Date writes", () => {
  const literal = scalar("timestamptz");
  const ms = fc.integer({ min: 0, max: 253_402_300_799_999 });
  fc.assert(fc.property(ms, (ms) => assert.equal(literal(ms), `"${new Date(ms).toISOString()}"`)));
  for (const ms of [0, 9, 10, 99, 100, 59_999, 86_399_999, 86_400_000, 951_782_400_000]) {
    assert.equal(literal(ms), `"${new Date(ms).toISOString()}"`);
    assert.equal(literal(new Date(-ms - 1)), `"${new Date(-ms - 1).toISOString()}"`);
  }
});

Deno.test("L1: what is missing is NULL, as is null outside of JSON", () => {
  for (const base of ["int8", "text", "jsonb", "bytea", "inet"]) assert.equal(scalar(base)(undefined), NULL);
  for (const base of ["int8", "text", "bytea", "inet"]) assert.equal(scalar(base)(null), NULL);
  assert.equal(scalar("jsonb")(null), '"null"');
  assert.equal(literalOf({ base: "jsonb", isList: true })([null, undefined]), '"{\\"null\\",NULL}"');
  assert.equal(literalOf({ base: "jsonb", isList: true })(null), NULL);
});

Deno.test("texts in quotes say what they said", () => {
  const literal = scalar("text");
  fc.assert(fc.property(fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")), (text) => {
    const written = literal(text);
    assert.match(written, /^"(?:[^"\\]|\\.)*"$/su);
    assert.equal(written.slice(1, -1).replace(/\\(.)/gsu, "$1"), text);
  }));
});

Deno.test("L4: what cannot be meant is refused, shown in part", () => {
  const cases: [Literal, unknown, RegExp][] = [
    [scalar("int2"), 40_000, /^40000 is not a whole number from -32768 to 32767$/],
    [scalar("bool"), "no", /^"no" is not true or false$/],
    [scalar("timestamptz"), "noon", /^"noon" is not a time: /],
    [scalar("uuid"), "x".repeat(100), /^"x{59}… is not a UUID$/],
    [scalar("int8"), NaN, /^NaN is not/],
    [scalar("numeric"), () => 1, /is not a number/],
    [literalOf({ base: "int4", isList: true }), 5, /^5 is not a list$/],
  ];
  for (const [literal, value, message] of cases) {
    assert.throws(() => literal(value), (error: MailerError) => {
      assert.equal(error.code, "invalid_value");
      assert.match(error.message, message);
      return true;
    });
  }
});
