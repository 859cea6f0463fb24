import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson, stringifyJson } from "../json.ts";
import { nodeAt, valueOf } from "./reader.ts";
import { MAX_ALIASED, MAX_DEPTH, parseTree } from "./yaml.ts";

function valueIn(text: string): unknown {
  const { root, problems } = parseTree(text);
  assert.deepEqual(problems, []);
  return valueOf(root!);
}

function codesOf(text: string): string[] {
  return parseTree(text).problems.map(({ place, code }) => `${place.line}:${place.column} ${code}`);
}

Deno.test("T1: a scalar stands for what YAML 1.2 says, and numbers lose no digit", () => {
  const table: [text: string, value: unknown][] = [
    ["9007199254740993", 9007199254740993n],
    ["-9007199254740993", -9007199254740993n],
    ["1.00000000000000000001", new Decimal("1.00000000000000000001")],
    ["1e400", new Decimal("1e400")],
    ["1.10", 1.1],
    ["+5", 5],
    [".5", 0.5],
    ["-.5", -0.5],
    ["5.", 5],
    ["1e3", 1000],
    ["0x1F", 31],
    ["0xFFFFFFFFFFFFFFFF", 18446744073709551615n],
    ["0o17", 15],
    ["true", true],
    ["False", false],
    ["~", null],
    ["null", null],
    ["", null],
    ["yes", "yes"],
    ["No", "No"],
    ["on", "on"],
    ["1_000", "1_000"],
    ["12:30:45", "12:30:45"],
    ["2026-03-01", "2026-03-01"],
    ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"],
    ["1.2.3", "1.2.3"],
    ["--", "--"],
    ["'5'", "5"],
    ['"true"', "true"],
    ["|\n  5\n", "5\n"],
  ];
  for (const [text, value] of table) {
    assert.deepEqual(valueIn(`a: ${text}`), { a: value }, text);
  }
});

Deno.test("every key and value knows its line and column, with CRLF and behind a byte order mark too", () => {
  for (const [start, end] of [["", "\n"], ["\uFEFF", "\n"], ["", "\r\n"]]) {
    const { root } = parseTree(`${start}a:${end}  - b: { c: [1, 22] }${end}    d: |${end}      text${end}`);
    const at = (...path: (string | number)[]) => {
      const { line, column } = nodeAt(root, path)!.place;
      return `${line}:${column}`;
    };
    assert.equal(at("a"), "2:3");
    assert.equal(at("a", 0, "b"), "2:8");
    assert.equal(at("a", 0, "b", "c", 1), "2:17");
    assert.equal(at("a", 0, "d"), "3:8");
    assert.deepEqual(valueOf(root!), { a: [{ b: { c: [1, 22] }, d: "text\n" }] });
  }
});

Deno.test("what is odd in YAML is refused in words, where it stands", () => {
  const table: [text: string, problems: string[]][] = [
    ["a: 1\na: 2\n", ["2:1 duplicate_key"]],
    ["a: { b: 1, b: 2, b: 3 }\n", ["1:12 duplicate_key", "1:18 duplicate_key"]],
    ["a: 1\n---\nb: 2\n", ["2:1 several_documents"]],
    ["%YAML 1.1\n---\na: yes\n", ["1:1 yaml_version"]],
    ["a: !!int 5\n", ["1:10 yaml_tag"]],
    ["a: !!binary aGk=\n", ["1:13 yaml_tag"]],
    ["x: &x { a: 1 }\ny: { <<: *x }\n", ["2:6 merge_key"]],
    ["? [1, 2]\n: 3\n", ["1:3 bad_key"]],
    ["a: *nobody\n", ["1:4 unknown_alias"]],
    ["a: &a [ *a ]\n", ["1:9 endless_alias"]],
    ["a: .inf\n", ["1:4 not_json"]],
    ["a: -.NaN\n", ["1:4 not_json"]],
    ["zip: 01234\n", ["1:6 leading_zero"]],
    [`a: ${"9".repeat(1001)}\n`, ["1:4 long_number"]],
    [`a: 0x${"f".repeat(1001)}\n`, ["1:4 long_number"]],
    ["a:\n\tb: 1\n", ["2:1 syntax"]],
    ["a: b: c\n", ["1:4 syntax"]],
    ["a: 'x\n", ["2:1 syntax"]],
    ["a: [1, 2\nb: 3\n", ["2:1 syntax"]],
    ['a: "\\q"\n', ["1:5 syntax"]],
  ];
  for (const [text, problems] of table) assert.deepEqual(codesOf(text), problems, text);
  const tab = parseTree("a:\n\tb: 1\n").problems[0]!;
  assert.match(tab.message, /Tabs are not allowed as indentation/);
  assert.equal(tab.hint, "indent with spaces");
});

Deno.test("T2: deep nesting is refused at once, however it is written", () => {
  const deep = 10_000;
  const texts = [
    "[".repeat(deep),
    "[".repeat(deep) + "]".repeat(deep),
    "{a: ".repeat(deep) + "}".repeat(deep),
    "- ".repeat(deep) + "a",
    "? ".repeat(deep) + "a",
    Array.from({ length: 3000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
  ];
  for (const text of texts) assert.deepEqual(parseTree(text).problems.map(({ code }) => code), ["too_deep"]);
  const nested = "[".repeat(MAX_DEPTH) + "]".repeat(MAX_DEPTH);
  assert.deepEqual(parseTree(nested).problems, []);
  assert.deepEqual(codesOf(`[${nested}]`), ["1:101 too_deep"]);
});

Deno.test("T2: aliases repeat what they name, up to a bound", () => {
  assert.deepEqual(valueIn("a: &x { b: [1] }\nc: [*x, *x]\n"), {
    a: { b: [1] },
    c: [{ b: [1] }, { b: [1] }],
  });
  const levels = Array.from({ length: 30 }, (_, i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}]`);
  const bomb = ["l0: &l0 lol", ...levels].join("\n");
  assert.deepEqual(parseTree(bomb).problems.map(({ code }) => code), ["too_many_aliases"]);
  const wide = `a: &a [${"1, ".repeat(1000)}]\nb: [${"*a, ".repeat(MAX_ALIASED / 1000 + 1)}]\n`;
  assert.deepEqual(parseTree(wide).problems.map(({ code }) => code), ["too_many_aliases"]);
  const chain = Array.from({ length: 200 }, (_, i) => `c${i + 1}: &c${i + 1} [*c${i}]`);
  assert.deepEqual(codesOf(["c0: &c0 x", ...chain].join("\n")).at(0)?.split(" ")[1], "too_deep");
});

Deno.test("T4: __proto__ and other names of Object are keys like any other", () => {
  const value = valueIn("__proto__: { polluted: 1 }\nconstructor: 2\ntoString: 3\n") as Record<
    string,
    unknown
  >;
  assert.deepEqual(Object.keys(value), ["__proto__", "constructor", "toString"]);
  assert.deepEqual(Object.getOwnPropertyDescriptor(value, "__proto__")?.value, { polluted: 1 });
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

Deno.test("T3: no message quotes the document", () => {
  const texts = [
    "a: hunter2\n hunter2: x\n",
    "hunter2: [a\n",
    "a: 'hunter2\n",
    "a: hunter2: b\n",
    "- hunter2\nb: 1\n",
    "a: *hunter2\n",
    "%TAG hunter2\n---\n",
    "a: @hunter2\n",
    "a: !<hunter2> b\n",
    "}hunter2\n",
    "a: {}} hunter2\n",
    'a: "x" hunter2\n',
  ];
  for (const text of texts) {
    const { problems } = parseTree(text);
    assert.ok(problems.length > 0, text);
    for (const { message, hint } of problems) assert.doesNotMatch(`${message} ${hint}`, /hunter2/, text);
  }
});

Deno.test("any JSON is read as the value it has", () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 6 }), (json) => {
    for (const indent of [undefined, 2, "\t"]) {
      const text = JSON.stringify({ json }, null, indent);
      assert.equal(stringifyJson(valueIn(text)), stringifyJson(parseJson(text)));
    }
  }));
});

Deno.test("any text at all is read or refused, never thrown at", () => {
  const piece = fc.constantFrom(
    "a",
    ": ",
    "- ",
    "\n",
    "  ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&x ",
    "*x",
    "'",
    '"',
    "|",
    "#",
    "!",
    "%",
    "\t",
    "\u0000",
    "\ud800",
    "---\n",
    "? ",
    "<<",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }).map((parts) => parts.join("")), (text) => {
      const { root, problems } = parseTree(text);
      for (const { place } of problems) assert.ok(place.line >= 1 && place.column >= 1);
      if (problems.length === 0 && root !== undefined) valueOf(root);
    }),
    { numRuns: 2000 },
  );
});
