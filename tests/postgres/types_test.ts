/**
 * Every common type of Postgres: what is written is what the server's own program reads back.
 *
 * @module
 */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { postgresSink } from "../../connectors/postgres/mod.ts";
import { parseJson } from "../../lib/json.ts";
import { type Postgres, postgresService, serviceTest } from "../services/mod.ts";
import { schemaWith, writeAll } from "./kit.ts";

type Case = readonly [value: unknown, text: string | null];

/** Values, and the text that Postgres prints for them. */
const TAKEN: Readonly<Record<string, readonly Case[]>> = {
  smallint: [[-32768, "-32768"], ["7", "7"]],
  integer: [[2147483647, "2147483647"], [-0, "0"], [" 12 ", "12"]],
  bigint: [
    [9007199254740993n, "9007199254740993"],
    ["9223372036854775807", "9223372036854775807"],
    [parseJson("-9223372036854775808"), "-9223372036854775808"],
    [1e15, "1000000000000000"],
  ],
  numeric: [
    [parseJson("123456789012345678901234567890.123456789"), "123456789012345678901234567890.123456789"],
    ["0.10", "0.10"],
    [1e21, "1000000000000000000000"],
    [NaN, "NaN"],
    [18446744073709551616n, "18446744073709551616"],
  ],
  "numeric(10,2)": [[1.005, "1.01"], ["12345678.9", "12345678.90"]],
  real: [[1.5, "1.5"], ["-Infinity", "-Infinity"]],
  "double precision": [[0.1, "0.1"], [5e-324, "5e-324"], [Infinity, "Infinity"], ["1e3", "1000"]],
  boolean: [[true, "t"], [false, "f"], ["t", "t"]],
  text: [
    ['a "b" \\ {c},\n\t\'é😀', 'a "b" \\ {c},\n\t\'é😀'],
    ["", ""],
    ["NULL", "NULL"],
    [12, "12"],
    [true, "true"],
    [{ a: [1n] }, '{"a":[1]}'],
    [9007199254740993n, "9007199254740993"],
  ],
  "varchar(3)": [["abc", "abc"]],
  "char(4)": [["ab", "ab  "]],
  uuid: [["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]],
  timestamptz: [
    [1772359205123, "2026-03-01 10:00:05.123+00"],
    [new Date(0), "1970-01-01 00:00:00+00"],
    ["2026-03-01T10:00:05.123456+02:00", "2026-03-01 08:00:05.123456+00"],
    ["2026-03-01 10:00:05", "2026-03-01 10:00:05+00"],
    [0.25, "1970-01-01 00:00:00.00025+00"],
    [-62167219200000, "0001-01-01 00:00:00+00 BC"],
    [-62198755200000.5, "0003-12-31 23:59:59.9995+00 BC"],
    [253402300800000, "10000-01-01 00:00:00+00"],
    ["+010000-01-01T00:00:00Z", "10000-01-01 00:00:00+00"],
    [-Infinity, "-infinity"],
  ],
  timestamp: [
    [1772359205123, "2026-03-01 10:00:05.123"],
    ["2026-03-01T10:00:05.5+02:00", "2026-03-01 08:00:05.5"],
    ["2026-03-01T10:00:05", "2026-03-01 10:00:05"],
  ],
  date: [
    [1772359205123, "2026-03-01"],
    ["2026-03-01", "2026-03-01"],
    ["2026-03-01T23:30:00-05:00", "2026-03-02"],
    [new Date(-1), "1969-12-31"],
  ],
  time: [["10:00:05.25", "10:00:05.25"]],
  interval: [["1 day 2 hours", "1 day 02:00:00"]],
  jsonb: [
    [null, "null"],
    ["NULL", '"NULL"'],
    [{ b: 9007199254740993n, a: ["\\", '"', {}] }, '{"a": ["\\\\", "\\"", {}], "b": 9007199254740993}'],
    [parseJson("1.10"), "1.1"],
    [[], "[]"],
    [false, "false"],
  ],
  json: [[{ b: 1, a: 2 }, '{"b":1,"a":2}']],
  bytea: [
    [Uint8Array.of(0, 1, 255, 92, 34), "\\x0001ff5c22"],
    ["\\xCAFE", "\\xcafe"],
    [{ base64: "aGk=" }, "\\x6869"],
    [new Uint8Array(), "\\x"],
  ],
  mood: [["sad", "sad"], ['so, "so"', 'so, "so"']],
  positive: [[3, "3"]],
  "positive[]": [[[3, 4], "{3,4}"]],
  "bigint[]": [[[1, "9007199254740993", null], "{1,9007199254740993,NULL}"], [[], "{}"], [
    [[1, 2], [3, 4]],
    "{{1,2},{3,4}}",
  ]],
  "text[]": [
    [["a", 'b "c"', "", null, "NULL", "{}", "d\\e"], '{a,"b \\"c\\"","",NULL,"NULL","{}","d\\\\e"}'],
    ["{x,y}", "{x,y}"],
  ],
  "jsonb[]": [[[{ a: 1 }, null], '{"{\\"a\\": 1}","null"}']],
  "timestamptz[]": [[[0], '{"1970-01-01 00:00:00+00"}']],
  "bytea[]": [[[Uint8Array.of(1)], '{"\\\\x01"}']],
  "boolean[]": [[[true, false], "{t,f}"]],
  "mood[]": [[["sad"], "{sad}"]],
  inet: [["10.0.0.1/8", "10.0.0.1/8"]],
  int4range: [["[1,5)", "[1,5)"]],
  "bit(3)": [["101", "101"]],
  '"char"': [["x", "x"]],
  point: [["(1,2)", "(1,2)"]],
};

/** Values that are none of the type. The server's own judgement comes as `invalid_value` or `constraint_violation`, too. */
const REFUSED: Readonly<Record<string, readonly unknown[]>> = {
  smallint: [32768, 1.5, "x", true, "", NaN],
  bigint: [9223372036854775808n, 2 ** 63, "1.0"],
  numeric: ["1,5", {}, true, ""],
  boolean: [1, "yes", ""],
  text: ["a\0b"],
  "varchar(3)": ["abcd"],
  uuid: ["a0eebc99", 1],
  timestamptz: ["now", "yesterday", "2026-02-30T00:00:00Z", NaN, 1e300, {}],
  date: ["tomorrow", ""],
  jsonb: ["a\0b", { a: "\u0000" }],
  bytea: ["text", 1, "\\x0"],
  mood: ["angry"],
  positive: [-1],
  "bigint[]": [1, ["x"], [[1], [2, 3]]],
};

const TYPES =
  "create type mood as enum ('sad', 'so, \"so\"'); create domain positive as int check (value > 0);";

async function sinkFor(postgres: Postgres, type: string): Promise<[ReturnType<typeof postgresSink>, string]> {
  const schema = await schemaWith(
    postgres,
    `${TYPES} create table t (n int generated always as identity, v ${type})`,
  );
  const dsn = `${postgres.url}?options=${encodeURIComponent(`-c search_path=${schema}`)}`;
  return [postgresSink({ dsn, table: "t", mapping: { "at.v": "v" } }), schema];
}

serviceTest("postgres: values of every type are written as they are", ["postgres"], async (context) => {
  await using postgres = await postgresService();
  for (const [type, cases] of Object.entries(TAKEN)) {
    await context.step(type, async () => {
      const [sink, schema] = await sinkFor(postgres, type);
      const values = [...cases.map(([value]) => ({ at: { v: value } })), { at: {} }, {}];
      assert.deepEqual(await writeAll(sink, values), []);
      const rows = await postgres.rows(
        `select format('%s', v) as text, v is null as "isNull" from ${schema}.t, set_config('timezone', 'UTC', false) order by n`,
      );
      assert.deepEqual(
        rows.map(({ text, isNull }) => isNull === true ? null : text),
        [...cases.map(([, text]) => text), null, null],
      );
    });
  }
});

serviceTest("postgres: null is NULL, but JSON null in JSON", ["postgres"], async () => {
  await using postgres = await postgresService();
  const schema = await schemaWith(postgres, "create table t (n int, a text, b jsonb, c jsonb, d int[])");
  const sink = postgresSink({
    dsn: postgres.url,
    table: `${schema}.t`,
    mapping: { n: "n", a: "a", b: "b", c: "c", d: "d" },
  });
  assert.deepEqual(await writeAll(sink, [{ n: 1, a: null, b: null, d: null }]), []);
  assert.deepEqual(
    await postgres.rows(
      `select a is null a, b is null b, b::text as text, c is null c, d is null d from ${schema}.t`,
    ),
    [{ a: true, b: false, text: "null", c: true, d: true }],
  );
});

serviceTest(
  "postgres: values that are none of the type go to the failure policy, alone",
  ["postgres"],
  async (context) => {
    await using postgres = await postgresService();
    for (const [type, bad] of Object.entries(REFUSED)) {
      await context.step(type, async () => {
        const [sink, schema] = await sinkFor(postgres, type);
        const good = { at: { v: TAKEN[type]![0]![0] } };
        const values = [good, ...bad.flatMap((value) => [{ at: { v: value } }, good])];
        const rejected = await writeAll(sink, values);
        const found = rejected.map(({ value }) => inspect(value));
        assert.deepEqual(found.toSorted(), bad.map((value) => inspect({ at: { v: value } })).toSorted());
        for (const { code, message } of rejected) {
          assert.ok(["invalid_value", "constraint_violation"].includes(code), `${code} ${message}`);
        }
        assert.deepEqual(await postgres.rows(`select count(*)::int from ${schema}.t`), [{
          count: bad.length + 1,
        }]);
      });
    }
  },
);
