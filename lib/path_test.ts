import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson } from "./json.ts";
import { deletePath, formatPath, getPath, getter, parsePath, type Path, pick, setPath } from "./path.ts";

const path = parsePath;

Deno.test("paths are read as they are written", () => {
  const cases: [string, Path][] = [
    ["a", ["a"]],
    ["customer.id", ["customer", "id"]],
    ["a.b[0].c", ["a", "b", 0, "c"]],
    ["[2].x", [2, "x"]],
    ["a[0][12]", ["a", 0, 12]],
    ['a."b.c"', ["a", "b.c"]],
    ['a["b.c"].d', ["a", "b.c", "d"]],
    ["a['b.c']", ["a", "b.c"]],
    ["'x y'.z", ["x y", "z"]],
    ['"say \\"hi\\" \\\\"', ['say "hi" \\']],
    ['""', [""]],
    ["first name.x", ["first name", "x"]],
    ["@type.$id.a-b_c", ["@type", "$id", "a-b_c"]],
    ["naïve.ключ.😀", ["naïve", "ключ", "😀"]],
    ["items.0", ["items", "0"]],
    ["__proto__.x", ["__proto__", "x"]],
  ];
  for (const [text, parts] of cases) assert.deepEqual(path(text), parts, text);
});

Deno.test("a text that is no path is refused with the place", () => {
  const cases: [string, number][] = [
    ["", 1],
    [".a", 1],
    ["a.", 3],
    ["a..b", 3],
    ["a[", 3],
    ["a[x]", 3],
    ["a[-1]", 3],
    ["a[01]", 3],
    ["a[1", 3],
    ["a[4294967295]", 2],
    ["a]", 2],
    ['a"b"', 2],
    ['"a', 1],
    ['a["b"', 6],
    ['a["b"x]', 6],
    [" a", 1],
    ["a. b", 3],
    ['"a"b', 4],
    ["a[0]b", 5],
  ];
  for (const [text, position] of cases) {
    assert.throws(() => path(text), {
      code: "invalid_path",
      message: new RegExp(` at position ${position}$`),
    }, text);
  }
});

const names = fc.oneof(
  fc.constantFrom("a", "b", "__proto__", "constructor", "length", "value", "0", " x", "a.b"),
  fc.string(),
);
const paths = fc.array(fc.oneof(names, fc.nat({ max: 3 })), { minLength: 1, maxLength: 4 }).map((parts) =>
  parts as unknown as Path
);

Deno.test("a path's text parses to the path", () => {
  fc.assert(
    fc.property(paths, (parts) => {
      assert.deepEqual(path(formatPath(parts)), parts);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("a getter finds own fields and elements, and nothing else", () => {
  const value = parseJson(
    '{"a":{"b":[{"c":1},2],"n":null,"value":3},"at":5,"__proto__":{"x":1},"text":"abc","0":"zero"}',
  );
  const cases: [string, unknown][] = [
    ["a.b[0].c", 1],
    ["a.b[1]", 2],
    ["a.n", null],
    ["a.value", 3],
    ["at", 5],
    ["__proto__.x", 1],
    ["0", "zero"],
    ["a.b[2]", undefined],
    ["a.b.length", undefined],
    ["a.b.0", undefined],
    ["a.b.map", undefined],
    ["a.n.x", undefined],
    ["a[0]", undefined],
    ["text.length", undefined],
    ["text[0]", undefined],
    ["toString", undefined],
    ["constructor", undefined],
    ["a.constructor", undefined],
    ["a.__proto__", undefined],
    ["missing.x.y", undefined],
  ];
  for (const [text, expected] of cases) {
    assert.deepEqual(getter(path(text))(value), expected, text);
    assert.deepEqual(getPath(value, path(text)), expected, text);
  }
  for (const other of [null, undefined, "text", 5, 5n, true, [1], new Uint8Array(3), new Decimal("1.5")]) {
    for (const text of ["a", "a.b", "length", "value", "text", "byteLength", "a[0].b"]) {
      assert.equal(getPath(other, path(text)), undefined, `${text} of ${other}`);
    }
  }
  assert.equal(getPath({ price: new Decimal("1.10") }, path("price.text")), undefined);
  assert.equal(getPath([7, [8]], path("[1][0]")), 8);
});

const json = fc.jsonValue({ maxDepth: 3 });

/** Freezes all the way down, so that a change in place throws. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

Deno.test("what was set is found, the rest is as before, and the original is untouched", () => {
  fc.assert(
    fc.property(json, paths, (value, parts) => {
      frozen(value);
      let changed: unknown;
      try {
        changed = setPath(value, parts, "new");
      } catch (error) {
        assert.equal((error as { code: string }).code, "not_an_object");
        return;
      }
      assert.equal(getPath(changed, parts), "new");
      const before = getPath(value, parts);
      if (before !== undefined) assert.deepEqual(setPath(changed, parts, before), value);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("setting creates missing parents and shares what it does not touch", () => {
  const value = frozen({ a: { b: 1 }, other: { x: 1 } });
  const changed = setPath(value, path("a.c.d[0]"), 2) as typeof value;
  assert.deepEqual(changed, { a: { b: 1, c: { d: [2] } }, other: { x: 1 } });
  assert.equal(changed.other, value.other);
  assert.deepEqual(setPath({ l: [1, 2] }, path("l[2]"), 3), { l: [1, 2, 3] });
  assert.deepEqual(setPath(undefined, path("a"), 1), { a: 1 });
  const odd = setPath({}, path("__proto__.polluted"), true) as Record<string, unknown>;
  assert.equal(JSON.stringify(odd), '{"__proto__":{"polluted":true}}');
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

Deno.test("setting through what is no object is an error that says where", () => {
  const cases: [unknown, string, RegExp][] = [
    [{ a: 5 }, "a.b", /"a" is a number, not an object/],
    [{ a: null }, "a.b", /"a" is null, not an object/],
    [{ a: { b: "x" } }, "a.b.c", /"a\.b" is a string/],
    [{ a: [1] }, "a.b", /"a" is a list, not an object/],
    [{ a: {} }, "a[0]", /"a" is an object, not a list/],
    [{ a: [1] }, "a[3]", /"a" has 1 elements, and \[3\] would leave a hole/],
    [{}, "a[1]", /hole/],
    ["text", "a", /the value is a string/],
    [null, "a", /the value is null/],
  ];
  for (const [value, text, message] of cases) {
    assert.throws(() => setPath(value, path(text), 1), { code: "not_an_object", message }, text);
  }
});

Deno.test("deleting takes away what is there and nothing else", () => {
  const value = frozen(parseJson('{"a":{"b":[1,2,3],"c":{"d":null}},"__proto__":{"x":1}}'));
  const cases: [string, string][] = [
    ["a.b", '{"a":{"c":{"d":null}},"__proto__":{"x":1}}'],
    ["a.b[1]", '{"a":{"b":[1,3],"c":{"d":null}},"__proto__":{"x":1}}'],
    ["a.c.d", '{"a":{"b":[1,2,3],"c":{}},"__proto__":{"x":1}}'],
    ["__proto__", '{"a":{"b":[1,2,3],"c":{"d":null}}}'],
    ["__proto__.x", '{"a":{"b":[1,2,3],"c":{"d":null}},"__proto__":{}}'],
  ];
  for (const [text, expected] of cases) {
    assert.equal(JSON.stringify(deletePath(value, path(text))), expected, text);
  }
  for (const text of ["x", "a.x.y", "a.b[3]", "a.b.length", "a.c.d.e", "toString"]) {
    assert.equal(deletePath(value, path(text)), value, text);
  }
  assert.equal(deletePath("text", path("a")), "text");
});

Deno.test("pick keeps the nesting and the order of its paths, and leaves out what is missing", () => {
  const value = frozen(parseJson(
    '{"id":1,"visitor":{"id":"v","ip":"x"},"items":[{"sku":"a","n":1},{"sku":"b","n":2}],"gone":null,"__proto__":{"x":1,"y":2}}',
  ));
  const cases: [string[], string][] = [
    [["visitor.id", "id"], '{"visitor":{"id":"v"},"id":1}'],
    [["id", "visitor", "visitor.id"], '{"id":1,"visitor":{"id":"v","ip":"x"}}'],
    [["visitor.id", "visitor.ip"], '{"visitor":{"id":"v","ip":"x"}}'],
    [["items[1].sku", "items[0].n"], '{"items":[{"n":1},{"sku":"b"}]}'],
    [["items[1].sku", "items[1].n"], '{"items":[{"sku":"b","n":2}]}'],
    [["gone", "nope", "visitor.nope.x", "items[7]"], '{"gone":null}'],
    [["__proto__.x"], '{"__proto__":{"x":1}}'],
    [["nope"], "{}"],
  ];
  for (const [texts, expected] of cases) {
    assert.equal(JSON.stringify(pick(value, texts.map(path))), expected, texts.join());
  }
  assert.equal(pick("text", [path("a")]), "text");
  assert.equal(pick(null, [path("a")]), null);
});
