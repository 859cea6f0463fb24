import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson, stringifyJson } from "../json.ts";
import {
  type AggregateFunction,
  aggregates,
  avg,
  collect,
  count,
  distinct,
  first,
  last,
  max,
  min,
  percentile,
  sum,
  topN,
} from "./mod.ts";

interface Item {
  readonly value: unknown;
  readonly timestamp: number;
  readonly sequence: number;
}

// deno-lint-ignore no-explicit-any -- functions of every kind go through the same tests
type AnyFunction = AggregateFunction<any, any, unknown>;

function itemsOf(values: readonly unknown[]): Item[] {
  return values.map((value, i) => ({ value: { v: value, i }, timestamp: i, sequence: i }));
}

function run(f: AnyFunction, items: readonly Item[]): unknown {
  let acc = f.create();
  for (const { value, timestamp, sequence } of items) acc = f.add(acc, value, timestamp, sequence);
  return f.result(acc);
}

function over(f: AnyFunction, ...values: unknown[]): unknown {
  return run(f, itemsOf(values));
}

/** All functions over field `v` that holds numbers. */
const FUNCTIONS: readonly AnyFunction[] = [
  count(),
  sum("v"),
  avg("v"),
  min("v"),
  max("v"),
  first("v"),
  last("v"),
  first(),
  distinct("v"),
  percentile("v", { p: 90 }),
  percentile("v", { p: 0 }),
  topN({ n: 3, by: "v" }),
  topN({ n: 2, by: "v", order: "asc", field: "i" }),
  collect({ limit: 4, field: "v" }),
  collect(),
  aggregates({
    n: count(),
    total: sum("v"),
    best: topN({ n: 2, by: "v" }),
    odd: distinct("v"),
    list: collect(),
  }),
];

const numbers = fc.oneof(
  fc.integer({ min: -5, max: 5 }),
  fc.constantFrom<unknown>(
    null,
    0.1,
    0.25,
    1e15,
    -0.3,
    2 ** 53 - 1,
    9007199254740993n,
    -12345678901234567890n,
    1e-7,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 }),
);
/** Records with times that repeat and arrive in any order. */
const items = fc.array(fc.tuple(numbers, fc.integer({ min: 0, max: 5 })), { minLength: 1, maxLength: 30 })
  .map((all) => all.map(([v, timestamp], i): Item => ({ value: { v, i }, timestamp, sequence: i })));

/** Folds the parts each for itself and merges them in a tree of any shape. */
function runInParts(f: AnyFunction, parts: readonly (readonly Item[])[], shape: readonly number[]): unknown {
  const accs: unknown[] = parts.map((part) => {
    let acc: unknown = f.create();
    for (const { value, timestamp, sequence } of part) acc = f.add(acc, value, timestamp, sequence);
    return acc;
  });
  for (let step = 0; accs.length > 1; step++) {
    const at = (shape[step % shape.length] ?? 0) % (accs.length - 1);
    const [a, b] = accs.splice(at, 2);
    const before = f.result(b);
    if (step % 2 === 0) f.result(a); // looking at it makes no difference
    const merged = f.merge(a, b);
    assert.deepEqual(f.result(b), before, `${f.name}: merging leaves the second one as it was`);
    accs.splice(at, 0, merged);
  }
  return f.result(accs[0] ?? f.create());
}

Deno.test("A1: records in any order, cut into any parts, merged in any order, give the same result", () => {
  const cuts = items.chain((all) =>
    fc.tuple(
      fc.constant(all),
      fc.shuffledSubarray(all, { minLength: all.length }),
      fc.array(fc.nat({ max: 4 }), { minLength: all.length, maxLength: all.length }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    )
  );
  fc.assert(
    fc.property(cuts, ([all, shuffled, part, shape]) => {
      const parts = [0, 1, 2, 3, 4].map((number) => shuffled.filter((_, i) => part[i] === number));
      for (const f of FUNCTIONS) {
        const expected = stringifyJson(run(f, all));
        assert.equal(stringifyJson(run(f, shuffled)), expected, `${f.name} shuffled`);
        assert.equal(stringifyJson(runInParts(f, parts, shape)), expected, `${f.name} merged`);
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("A3: adding to a merged accumulator leaves the one it took from as it was", () => {
  fc.assert(fc.property(items, items, (left, right) => {
    for (const f of FUNCTIONS) {
      const fold = (acc: unknown, all: readonly Item[]) =>
        all.reduce(
          (folded, { value, timestamp, sequence }) => f.add(folded, value, timestamp, sequence),
          acc,
        );
      const b = fold(f.create(), right);
      const before = stringifyJson(f.result(b));
      const merged = fold(f.merge(f.create(), b), left);
      f.merge(merged, b);
      assert.equal(stringifyJson(f.result(b)), before, f.name);
    }
  }));
});

Deno.test("A4: results are the caller's own: changing them changes no later result", () => {
  const record = () => ({ v: 1, tags: { list: ["a"] } });
  for (
    const f of [
      first(),
      last(),
      collect(),
      topN({ n: 2, by: "v" }),
      aggregates({ all: collect(), one: first("tags") }),
    ]
  ) {
    let acc: unknown = (f as AnyFunction).add(f.create(), record(), 0, 0);
    const before = JSON.stringify((f as AnyFunction).result(acc));
    spoil((f as AnyFunction).result(acc));
    assert.equal(JSON.stringify((f as AnyFunction).result(acc)), before);
    acc = (f as AnyFunction).merge(f.create(), acc);
    spoil((f as AnyFunction).result(acc));
    assert.equal(JSON.stringify((f as AnyFunction).result(acc)), before);
  }
});

/** Changes everything in a value. */
function spoil(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) spoil(inner);
  if (Array.isArray(value)) value.length = 0;
  else for (const key of Object.keys(value)) (value as Record<string, unknown>)[key] = "spoilt";
}

Deno.test("A2: an add that throws changed nothing, whichever of several functions refused the record", () => {
  const f: AnyFunction = aggregates({
    n: count(),
    list: collect(),
    total: sum("v"),
    mean: avg("v"),
    least: min("w"),
    best: topN({ n: 2, by: "w" }),
    kinds: distinct("w"),
    middle: percentile("v", { p: 50 }),
    end: last("w"),
  });
  let acc = f.create();
  acc = f.add(acc, { v: 1, w: "a" }, 0, 0);
  acc = f.add(acc, { v: 0.1, w: "b" }, 1, 1);
  const before = stringifyJson(f.result(acc));
  const refused: [unknown, string][] = [
    [{ v: "x", w: "c" }, "not_a_number"],
    [{ v: 2 }, "missing_field"],
    [{ v: 2, w: 5 }, "not_comparable"],
    [{ v: 2, w: true }, "not_a_number"],
    [{ v: new Decimal("1e400"), w: "c" }, "number_overflow"],
    [{}, "missing_field"],
    ["text", "missing_field"],
  ];
  for (const [value, code] of refused) {
    assert.throws(() => f.add(acc, value, 5, 5), { code });
    assert.equal(stringifyJson(f.result(acc)), before, code);
  }
  const other = f.add(f.create(), { v: 2, w: 5 }, 2, 2);
  assert.throws(() => f.merge(acc, other), { code: "not_comparable" });
  assert.equal(stringifyJson(f.result(acc)), before);
});

Deno.test("integer sums are exact, however large, in any order", () => {
  const whole = fc.array(fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -9, max: 9 }),
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map((n) =>
      Number.isSafeInteger(Number(n)) ? Number(n) : n
    ),
  ));
  fc.assert(fc.property(whole, (values) => {
    const expected = values.reduce((total: bigint, value) => total + BigInt(value), 0n);
    const actual = over(sum("v"), ...values);
    assert.equal(BigInt(actual as number | bigint), expected);
    assert.equal(typeof actual, Number.isSafeInteger(Number(expected)) ? "number" : "bigint");
    assert.equal(stringifyJson(actual), String(expected));
  }));
});

/** A double as a whole number of 2^-1074. */
function scaled(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn, fraction = bits & (2n ** 52n - 1n);
  const magnitude = exponent === 0n ? fraction : (fraction | 2n ** 52n) << (exponent - 1n);
  return bits >> 63n ? -magnitude : magnitude;
}

Deno.test("sums with fractions are the exact sum, rounded once to the nearest double", () => {
  const doubles = fc.array(
    fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1, max: 1 }),
      fc.integer({ min: -10_000, max: 10_000 }).map((cents) => cents / 100),
      fc.constantFrom(0.5, 1, 2 ** 52, 2 ** -1074, -(2 ** 52), 1 + 2 ** -52, 2 ** -53, -(2 ** -53)),
    ),
    { minLength: 1, maxLength: 20 },
  );
  fc.assert(
    fc.property(doubles, (values) => {
      const exact = values.reduce((total, value) => total + scaled(value), 0n);
      const actual = over(sum("v"), ...values);
      if (typeof actual === "bigint") return assert.equal(actual << 1074n, exact);
      const error = abs(scaled(actual as number) - exact);
      for (const neighbour of neighbours(actual as number)) {
        const other = abs(scaled(neighbour) - exact);
        assert.ok(error < other || (error === other && isEven(actual as number)), `${values}: ${actual}`);
      }
    }),
    { numRuns: 3000 },
  );
});

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}
function neighbours(value: number): number[] {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigInt64(0);
  if (value === 0) return [2 ** -1074, -(2 ** -1074)];
  return [bits + 1n, bits - 1n].map((near) => (view.setBigInt64(0, near), view.getFloat64(0)));
}
function isEven(value: number): boolean {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigInt64(0) % 2n === 0n;
}

Deno.test("sums by example", () => {
  const cases: [unknown[], string][] = [
    [[], "0"],
    [[null, null], "0"],
    [[1, null, 2], "3"],
    [[0.1, 0.2, 0.3], "0.6"],
    [[9007199254740991, 1, 1], "9007199254740993"],
    [[9007199254740993n, -9007199254740993n], "0"],
    [[2e17, 28e15], "228000000000000000"],
    [[1.5, 1.5], "3"],
    [[0.5, 0.5, 9007199254740992n], "9007199254740993"],
    [[9007199254740992n, 0.5, 0.5], "9007199254740993"],
    [[9007199254740993n, 0.25], "9007199254740994"],
    [[1e300, 1, -1e300], "1"],
    [[1e300, 1e300], "2e+300"],
    [[new Decimal("0.1000000000000000055511151231257827"), 0.2], "0.30000000000000004"],
  ];
  for (const [values, expected] of cases) {
    assert.equal(stringifyJson(over(sum("v"), ...values)), expected, String(values));
  }
});

Deno.test("N2: sums of whole numbers beyond 2^53 are written without exponent", () => {
  const total = over(sum("v"), ...new Array<number>(1000).fill(9007199254740991));
  assert.equal(stringifyJson(total), "9007199254740991000");
});

Deno.test("a sum beyond the doubles is an error of the record that goes too far", () => {
  const f = sum("v");
  let acc = f.add(f.create(), { v: 1.7e308 }, 0, 0);
  assert.throws(() => f.add(acc, { v: 1.7e308 }, 1, 1), { code: "number_overflow" });
  assert.throws(() => f.merge(acc, acc), { code: "number_overflow" });
  acc = f.add(acc, { v: -1.7e308 }, 1, 1);
  assert.equal(f.result(acc), 0);
});

Deno.test("averages, minima and maxima by example", () => {
  assert.equal(over(avg("v"), 1, 2, null, 4), 7 / 3);
  assert.equal(over(avg("v"), 9007199254740993n, 9007199254740993n), 9007199254740992);
  assert.equal(over(avg("v"), null), null);
  assert.equal(over(avg("v")), null);
  assert.equal(over(min("v"), 3, -1, null, 2.5), -1);
  assert.equal(over(max("v"), 9007199254740992n, 9007199254740993n, 5), 9007199254740993n);
  assert.equal(over(min("v"), "pear", "apple", null), "apple");
  assert.equal(over(max("v"), "\u{1f600}", "\uffee"), "\u{1f600}");
  assert.equal(over(min("v"), null), null);
  assert.equal(String(over(max("v"), 0.1, new Decimal("0.10000000000000000001"))), "0.10000000000000000001");
});

Deno.test("a missing field is an error, and so is one of the wrong kind; null is neither", () => {
  const numeric: AnyFunction[] = [sum("v"), avg("v"), percentile("v", { p: 50 })];
  const ordered: AnyFunction[] = [min("v"), max("v"), topN({ n: 1, by: "v" })];
  const any: AnyFunction[] = [
    first("v"),
    last("v"),
    distinct("v"),
    collect({ field: "v" }),
    topN({ n: 1, by: "i", field: "v" }),
  ];
  for (const f of [...numeric, ...ordered, ...any]) {
    assert.throws(() => f.add(f.create(), { i: 1 }, 0, 0), {
      code: "missing_field",
      message: `${f.name}: "v" is missing`,
    });
    f.add(f.create(), { v: null, i: 1 }, 0, 0);
  }
  for (const f of [...numeric, ...ordered]) {
    for (const wrong of [true, {}, [], NaN, Infinity]) {
      assert.throws(
        () => f.add(f.create(), { v: wrong }, 0, 0),
        { code: "not_a_number" },
        `${f.name} ${wrong}`,
      );
    }
  }
  for (const f of numeric) {
    assert.throws(() => f.add(f.create(), { v: "5" }, 0, 0), {
      message: `${f.name}: "v" is not a number: "5"`,
    });
  }
  for (const f of ordered) {
    const acc = f.add(f.create(), { v: "5" }, 0, 0);
    assert.throws(() => f.add(acc, { v: 5 }, 1, 1), { code: "not_comparable" });
    assert.throws(() => f.merge(acc, f.add(f.create(), { v: 5 }, 1, 1)), { code: "not_comparable" });
  }
});

Deno.test("first and last go by event time, then by arrival, not by the order of calls", () => {
  const all: Item[] = [
    { value: { v: "late" }, timestamp: 9, sequence: 0 },
    { value: { v: "early-2" }, timestamp: 1, sequence: 2 },
    { value: { v: "early-1" }, timestamp: 1, sequence: 1 },
    { value: { v: null }, timestamp: 0, sequence: 3 },
    { value: { v: "late-2" }, timestamp: 9, sequence: 4 },
  ];
  assert.equal(run(first("v"), all), "early-1");
  assert.equal(run(last("v"), all), "late-2");
  assert.equal(over(first("v"), null), null);
  assert.deepEqual(run(first(), all), { v: null });
});

Deno.test("collect keeps the first by event time, topN the best with ties to the earlier", () => {
  const all: Item[] = [[5, "d"], [1, "b"], [1, "c"], [0, "a"], [7, "e"]].map(([timestamp, id], sequence) => ({
    value: { id, score: id === "e" ? 1 : 2 },
    timestamp: timestamp as number,
    sequence,
  }));
  assert.deepEqual(run(collect({ limit: 3, field: "id" }), all), ["a", "b", "c"]);
  assert.deepEqual(run(topN({ n: 2, by: "score", field: "id" }), all), ["a", "b"]);
  assert.deepEqual(run(topN({ n: 2, by: "score", order: "asc", field: "id" }), all), ["e", "a"]);
  assert.deepEqual(run(topN({ n: 1, by: "score" }), all), [{ id: "a", score: 2 }]);
  assert.deepEqual(over(topN({ n: 3, by: "v", field: "v" }), "b", null, "c"), ["c", "b"]);
  assert.deepEqual(over(collect({ field: "v" }), null, 1), [null, 1]);
});

Deno.test("percentiles are the nearest rank, also when asked for after every record", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 0, max: 100 }),
      (values, p) => {
        const f = percentile<{ v: number }>("v", { p });
        let acc = f.create();
        values.forEach((v, i) => {
          acc = f.add(acc, { v }, i, i);
          const seen = values.slice(0, i + 1);
          // the smallest number that at least p percent do not exceed
          const expected = seen.toSorted((a, b) => a - b).find((x) =>
            seen.filter((y) => y <= x).length * 100 >= p * seen.length
          );
          assert.equal(f.result(acc), expected);
        });
        assert.equal(over(percentile("v", { p }), ...values), f.result(acc));
      },
    ),
  );
  assert.equal(over(percentile("v", { p: 99.9 }), ...Array.from({ length: 1000 }, (_, i) => i + 1)), 999);
  assert.equal(over(percentile("v", { p: 100 }), 3, 9007199254740993n, 4), 9007199254740993n);
  assert.equal(over(percentile("v", { p: 50 }), null), null);
});

Deno.test("distinct counts equal values once, however they are spelt", () => {
  assert.equal(
    over(distinct("v"), 1, 1.0, 1n, "1", true, null, { a: 1, b: 2 }, parseJson('{"b":2,"a":1}'), [1], [1, 2]),
    6,
  );
  assert.equal(over(distinct("v"), null), 0);
});

Deno.test("one function of numbers as several: its accumulator is the number, its row has the one column", () => {
  const f = aggregates({ ["__proto__"]: sum<{ v: unknown }>("v") });
  let acc = f.create();
  for (const v of [3, 0.5]) acc = f.add(acc, { v }, v, v);
  assert.equal(acc, 3.5);
  assert.throws(() => f.add(acc, { v: "x" }, 1, 1), { code: "not_a_number" });
  assert.equal(JSON.stringify(f.result(f.merge(f.create(), acc))), '{"__proto__":3.5}');
  const least = aggregates({ first: min<{ v: string }>("v") });
  assert.deepEqual(least.result(least.create()), { first: null });
  assert.deepEqual(least.result(least.add(least.create(), { v: "b" }, 0, 0)), { first: "b" });
});

Deno.test("several functions make one row, in their order, whatever they are called", () => {
  const f = aggregates({
    n: count(),
    total: sum((value: { v: number }) => value.v),
    ["__proto__"]: max("v"),
  });
  let acc = f.create();
  for (const v of [3, 4]) acc = f.add(acc, { v }, v, v);
  assert.equal(JSON.stringify(f.result(acc)), '{"n":2,"total":7,"__proto__":4}');
});

Deno.test("a function of the user's own that keeps a list is not told of a record another one refuses", () => {
  const all: AggregateFunction<{ v: unknown }, unknown[], number> = {
    name: "all",
    create: () => [],
    add: (acc, { v }) => (acc.push(v), acc),
    merge: (a, b) => [...a, ...b],
    result: (acc) => acc.length,
  };
  const f = aggregates({ all, total: sum("v") });
  const acc = f.add(f.create(), { v: 1 }, 0, 0);
  assert.throws(() => f.add(acc, { v: "x" }, 1, 1), { code: "not_a_number" });
  assert.deepEqual(f.result(acc), { all: 1, total: 1 });
});

Deno.test("a function of the user's own takes part", () => {
  const longest: AggregateFunction<{ v: string }, string, number> = {
    name: "longest",
    create: () => "",
    add: (acc, { v }) => v.length > acc.length ? v : acc,
    merge: (a, b) => a.length >= b.length ? a : b,
    result: (acc) => acc.length,
  };
  const f = aggregates({ longest, n: count() });
  const one = f.add(f.create(), { v: "abc" }, 0, 0), two = f.add(f.create(), { v: "abcdef" }, 1, 1);
  assert.deepEqual(f.result(f.merge(one, two)), { longest: 6, n: 2 });
});

Deno.test("sums and counts that are exact in a double are plain numbers", () => {
  const f = sum("v");
  let acc = f.create();
  for (let i = 0; i < 100; i++) acc = f.add(acc, { v: i / 4 }, i, i);
  assert.equal(typeof acc, "number");
  assert.equal(typeof count().add(count().create(), {}, 0, 0), "number");
});

Deno.test("settings that cannot be are refused at once", () => {
  for (
    const build of [
      () => topN({ n: 0, by: "v" }),
      () => topN({ n: 1.5, by: "v" }),
      () => collect({ limit: 0 }),
      () => percentile("v", { p: 101 }),
      () => percentile("v", { p: NaN }),
    ]
  ) assert.throws(build, { code: "invalid_aggregate" });
  assert.throws(() => sum("a..b"), { code: "invalid_path" });
});
