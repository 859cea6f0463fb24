import assert from "node:assert/strict";
import fc from "fast-check";
import { MailerError } from "../errors.ts";
import { Decimal, parseJson, stringifyJson } from "../json.ts";
import { compileExpression } from "./mod.ts";

const evaluate = (text: string, value: unknown = {}): unknown =>
  compileExpression(text, { dialect: "streams", variables: ["value"] }).evaluate({ value });
/** The result in one line of JSON, or the message of the failure. */
function outcome(text: string, value: unknown): string {
  try {
    return stringifyJson(evaluate(text, value));
  } catch (error) {
    if (error instanceof MailerError && error.code === "expression_failed") return `fails: ${error.message}`;
    throw error;
  }
}

Deno.test("the numbers of a record", () => {
  const table: readonly (readonly [record: string, expression: string, result: string])[] = [
    // Whole and within 64 bits is an int, however spelt.
    ['{"a":5}', "type(value.a)", '"int"'],
    ['{"a":5.0}', "type(value.a)", '"int"'],
    ['{"a":5e0}', "type(value.a)", '"int"'],
    ['{"a":5.5}', "type(value.a)", '"double"'],
    ['{"a":-0}', "type(value.a)", '"int"'],
    ['{"a":9007199254740993}', "type(value.a)", '"int"'],
    ['{"a":9007199254740993.0}', "type(value.a)", '"int"'],
    ['{"a":1e18}', "type(value.a)", '"int"'],
    ['{"a":1e19}', "type(value.a)", '"double"'],
    ['{"a":9223372036854775807}', "type(value.a)", '"int"'],
    ['{"a":9223372036854775808}', "type(value.a)", '"double"'],
    ['{"a":-9223372036854775808}', "type(value.a)", '"int"'],
    ['{"a":0.1000000000000000055511151231257827}', "type(value.a)", '"double"'],
    ['{"a":1e400}', "type(value.a)", '"double"'],
    // An int beside a double is done in doubles.
    ['{"a":3,"b":2.5}', "value.a + value.b", "5.5"],
    ['{"a":2,"b":2.5}', "value.a * value.b", "5"],
    ['{"a":2,"b":2.5}', "type(value.a * value.b)", '"double"'],
    ['{"a":0.5}', "value.a + value.a", "1"],
    [
      '{"a":0.5}',
      "(value.a + value.a) % 2",
      "fails: cannot take the remainder of double by int in (value.a + value.a) % 2",
    ],
    ['{"a":9007199254740993}', "value.a + 0.5", "9007199254740992"],
    ['{"a":0.1000000000000000055511151231257827}', "value.a + 1", "1.1"],
    ['{"a":1}', "value.a / 0.0", "null"],
    // Division of ints is exact.
    ['{"a":7,"b":2}', "value.a / value.b", "3.5"],
    ['{"a":-7,"b":2}', "value.a / value.b", "-3.5"],
    ['{"a":6,"b":2}', "value.a / value.b", "3"],
    ['{"a":6,"b":2}', "type(value.a / value.b)", '"int"'],
    ['{"a":0,"b":-5}', "value.a / value.b", "0"],
    ['{"a":9007199254740993,"b":3}', "value.a / value.b", "3002399751580331"],
    ['{"a":9007199254740995,"b":-2}', "value.a / value.b", "-4503599627370498"],
    ['{"a":9007199254740995,"b":-2}', "type(value.a / value.b)", '"double"'],
    ['{"a":9007199254740991,"b":2}', "value.a / value.b", "4503599627370495.5"],
    ['{"a":1,"b":0}', "value.a / value.b", "fails: division by zero in value.a / value.b"],
    [
      '{"a":-9223372036854775808,"b":-1}',
      "value.a / value.b",
      "fails: value.a / value.b does not fit 64 bits",
    ],
    ['{"a":-7,"b":2}', "value.a % value.b", "-1"],
    ['{"a":-6,"b":2}', "value.a % value.b", "0"],
    // Ints are exact and never wrap.
    ['{"a":9007199254740991}', "value.a + 2", "9007199254740993"],
    ['{"a":9007199254740993}', "value.a - 2", "9007199254740991"],
    ['{"a":9007199254740993}', "value.a + value.a", "18014398509481986"],
    ['{"a":94906267}', "value.a * value.a", "9007199515875289"],
    ['{"a":9007199254740993.0}', "value.a + 1", "9007199254740994"],
    ['{"a":1e17}', "value.a + 1", "100000000000000001"],
    ['{"a":1e17}', "value.a - 1e17", "0"],
    ['{"a":9223372036854775807}', "value.a + 1", "fails: value.a + 1 does not fit 64 bits"],
    ['{"a":-9223372036854775808}', "-value.a", "fails: -value.a does not fit 64 bits"],
    ['{"a":3037000500}', "value.a * value.a", "fails: value.a * value.a does not fit 64 bits"],
    ['{"a":-3}', "value.a * 0", "0"],
    // Beyond 64 bits it is a double.
    ['{"a":123456789012345678901234567890}', "value.a", "123456789012345678901234567890"],
    ['{"a":123456789012345678901234567890}', "value.a + 1", "1.2345678901234568e+29"],
    // Order and equality are exact.
    ['{"a":9007199254740993}', "value.a == 9007199254740992.0", "false"],
    ['{"a":9007199254740993}', "value.a > 9007199254740992.0", "true"],
    ['{"a":9007199254740993.0,"b":9007199254740993}', "value.a == value.b", "true"],
    ['{"a":9007199254740992.5}', "value.a > 9007199254740992 && value.a < 9007199254740993", "true"],
    ['{"a":-9007199254740992.5}', "value.a < -9007199254740992 && value.a > -9007199254740993", "true"],
    ['{"a":9007199254740992.5}', "value.a == 9007199254740992 || value.a != value.a", "false"],
    ['{"a":1e400}', "value.a > 9223372036854775807", "true"],
    ['{"a":-1e400}', "value.a < -9223372036854775808", "true"],
    ['{"a":1e-400}', "value.a > 0 && value.a < 1", "true"],
    ['{"a":0.1000000000000000055511151231257827}', "value.a == 0.1", "true"],
    ['{"a":123456789012345678901234567890}', "value.a > 9223372036854775807", "true"],
    ['{"a":5.0}', "value.a == 5 && value.a == 5.0 && value.a == 5u", "true"],
    ['{"a":[1,2.0],"b":[1.0,2]}', "value.a == value.b", "true"],
    ['{"a":9007199254740993,"b":[9007199254740993.0]}', "value.a in value.b", "true"],
    ['{"a":2.5}', "value.a > 2", "true"],
    // Between kinds.
    ['{"a":5}', "value.a + 1u", "fails: cannot add int and uint in value.a + 1u"],
    ['{"a":2.9}', "int(value.a)", "2"],
    ['{"a":1e19}', "int(value.a)", "fails: this double cannot become an int: int(value.a)"],
    ['{"a":7}', "[1, 2, 3][value.a - 6]", "2"],
    [
      '{"a":1.5}',
      "[1, 2, 3][value.a]",
      "fails: a list has no element at a position that is double in [1, 2, 3][value.a]",
    ],
    ['{"a":5.0}', 'string(value.a) + "/" + string(value.a / 2)', '"5/2.5"'],
    ['{"a":12345678901234567890123}', "string(value.a)", '"12345678901234567890123"'],
  ];
  for (const [record, expression, result] of table) {
    const found = outcome(expression, parseJson(record));
    assert.equal(found, result, `${expression} of ${record}`);
  }
});

Deno.test("an int result is never -0 and never a bigint where a number holds it", () => {
  const table: readonly (readonly [string, unknown])[] = [
    ["value.z * -1", 0],
    ["-value.z", 0],
    ["value.z / -5", 0],
    ["-6 % 3", 0],
    ["value.big - value.big", 0],
    ["value.big - 1", 9007199254740992n],
    ["value.big - 2", Number.MAX_SAFE_INTEGER],
    ["int('12')", 12],
  ];
  for (const [text, expected] of table) {
    const result = evaluate(text, { z: 0, big: 9007199254740993n });
    assert.ok(Object.is(result, expected), `${text} gave ${String(result)}`);
  }
});

type Tree = bigint | readonly [operator: string, left: Tree, right: Tree];

const ints = (): fc.Arbitrary<bigint> =>
  fc.oneof(
    fc.bigInt({ min: -100n, max: 100n }),
    fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.constantFrom(
      2n ** 53n - 1n,
      2n ** 53n,
      -(2n ** 53n),
      2n ** 63n - 1n,
      -(2n ** 63n),
      2n ** 31n,
      0n,
      -1n,
    ),
  );
const trees = (): fc.Arbitrary<Tree> =>
  fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      ints(),
      fc.tuple(fc.constantFrom("+", "-", "*", "%"), tie("tree"), tie("tree")) as fc.Arbitrary<Tree>,
    ),
  })).tree;

/** The exact result, or nothing where a step leaves 64 bits or divides by zero. */
function exact(tree: Tree): bigint | undefined {
  if (typeof tree === "bigint") return tree;
  const [operator, left, right] = tree;
  const a = exact(left), b = exact(right);
  if (a === undefined || b === undefined || (operator === "%" && b === 0n)) return undefined;
  const result = operator === "+" ? a + b : operator === "-" ? a - b : operator === "*" ? a * b : a % b;
  return BigInt.asIntN(64, result) === result ? result : undefined;
}

/** The tree as an expression, its leaves through `leaf`. */
function textOf(tree: Tree, leaf: (value: bigint) => string): string {
  if (typeof tree === "bigint") return leaf(tree);
  return `(${textOf(tree[1], leaf)} ${tree[0]} ${textOf(tree[2], leaf)})`;
}

Deno.test("int arithmetic agrees with exact arithmetic, written out, read from records, and inside other results", () => {
  fc.assert(
    fc.property(trees(), fc.boolean(), (tree, asDecimal) => {
      const expected = exact(tree);
      const wanted = expected === undefined ? "fails" : String(expected);
      const found = (text: string, value: unknown): string =>
        outcome(text, value).replace(/^fails.*/, "fails");
      assert.equal(found(textOf(tree, String), {}), wanted);

      const value: Record<string, unknown> = {};
      const text = textOf(tree, (leaf) => {
        const name = `v${Object.keys(value).length}`;
        const safe = Number.isSafeInteger(Number(leaf));
        value[name] = safe ? Number(leaf) : asDecimal ? new Decimal(`${leaf}.0`) : leaf;
        return `value.${name}`;
      });
      assert.equal(found(`${text} + 0`, value), wanted); // a leaf alone would keep its spelling
      assert.equal(found(`[${text} + 0][0]`, value), wanted);
      assert.equal(found(`string(${text} + 0)`, value).replaceAll('"', ""), wanted);
    }),
    { numRuns: 500 },
  );
});

Deno.test("order is that of the exact values, whatever the numbers are held as", () => {
  /** A number as JSON text, and four times its exact value. */
  const numbers = fc.oneof(
    ints().map((n) => [String(n), n * 4n] as const),
    ints().map((n) => [`${n}.0`, n * 4n] as const),
    fc.tuple(ints(), fc.constantFrom([".25", 1n] as const, [".5", 2n] as const, [".75", 3n] as const))
      .filter(([n]) => n > 0n)
      .map(([n, [fraction, quarters]]) => [`${n}${fraction}`, n * 4n + quarters] as const),
  );
  const whole = ([, quarters]: readonly [string, bigint]): boolean => quarters % 4n === 0n;
  fc.assert(
    fc.property(numbers, numbers, (x, y) => {
      fc.pre(whole(x) || whole(y)); // two long decimals compare as doubles
      const value = parseJson(`{"x":${x[0]},"y":${y[0]}}`);
      assert.equal(evaluate("value.x < value.y", value), x[1] < y[1]);
      assert.equal(evaluate("value.x <= value.y", value), x[1] <= y[1]);
      assert.equal(evaluate("value.x > value.y", value), x[1] > y[1]);
      assert.equal(evaluate("value.x >= value.y", value), x[1] >= y[1]);
      assert.equal(evaluate("value.x == value.y", value), x[1] === y[1]);
      assert.equal(evaluate("value.x != value.y", value), x[1] !== y[1]);
    }),
    { numRuns: 500 },
  );
});

Deno.test("division of ints gives the int where there is one, else the nearest double", () => {
  fc.assert(
    fc.property(ints(), ints().filter((n) => n !== 0n), (a, b) => {
      const found = outcome("value.a / value.b", { a, b });
      if (a % b === 0n) {
        const fits = BigInt.asIntN(64, a / b) === a / b;
        assert.equal(found.replace(/^fails.*/, "fails"), fits ? String(a / b) : "fails");
      } else {
        const near = Number(a) / Number(b), got = Number(found);
        assert.ok(Math.abs(got - near) <= Math.abs(near) * 2 ** -51, `${a} / ${b} gave ${found}`);
      }
    }),
  );
});
