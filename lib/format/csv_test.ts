import assert from "node:assert/strict";
import fc from "fast-check";
import { stringifyJson } from "../json.ts";
import { csvFormat } from "./csv.ts";
import { csvCells, CsvScanner, writeCsvRecord } from "./csv_cells.ts";
import { checkedCsvOptions, type CsvRow, CsvRows } from "./csv_rows.ts";
import type { Decoded } from "./format.ts";

const cell = fc.oneof(
  fc.string(),
  fc.array(fc.constantFrom('"', ",", ";", "\n", "\r", "\r\n", " ", "a", "é", "😀"), { maxLength: 6 }).map((
    p,
  ) => p.join("")),
);
const delimiter = fc.constantFrom(",", ";", "\t", "|");

Deno.test("C1–C3: cells written and cut again are the same cells, and records end where they were ended", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(cell, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 }),
      delimiter,
      fc.constantFrom("\n", "\r\n"),
      (rows, by, lineBreak) => {
        const text = rows.map((cells) => writeCsvRecord(cells, by) + lineBreak).join("");
        const scanner = new CsvScanner(text, by), found: string[][] = [];
        for (let at = 0; at < text.length;) {
          const scan = scanner.scan(at);
          assert.ok(scan.kind === "record");
          found.push(csvCells(text.slice(at, scan.end), by));
          at = scan.next;
        }
        assert.deepEqual(found, rows);
      },
    ),
    { numRuns: 2000 },
  );
});

Deno.test("C1–C3: what lines are cut into", () => {
  const table: [string, string[]][] = [
    ["a,b,c", ["a", "b", "c"]],
    ["", [""]],
    [",", ["", ""]],
    ['"",""', ["", ""]],
    ['"a ""quoted"", cell",x', ['a "quoted", cell', "x"]],
    ['"two\nlines",x', ["two\nlines", "x"]],
    ['"two\r\nlines"', ["two\r\nlines"]],
    ['5" pipe,x', ['5" pipe', "x"]],
    ['a, "b"', ["a", ' "b"']],
    ['"a","b",', ["a", "b", ""]],
    ['x,""""', ["x", '"']],
  ];
  for (const [text, cells] of table) assert.deepEqual(csvCells(text, ","), cells, text);
  for (const bad of ['"a"b', '"a" ,b', '"a', 'x,"', '"""', '"a"\n"b"']) {
    assert.throws(() => csvCells(bad, ","), { code: "bad_csv" }, bad);
  }
});

Deno.test("typed cells: numbers without losing a digit, booleans, json, nulls; text stays text", () => {
  const options = checkedCsvOptions({ types: { n: "number", b: "boolean", j: "json" }, nulls: ["", "NA"] });
  const rows = new CsvRows(["n", "b", "j", "t"], options);
  const table: [string[], string][] = [
    [["1.50", "TRUE", '{"a":[1]}', "NA"], '{"n":1.5,"b":true,"j":{"a":[1]},"t":"NA"}'],
    [
      ["9007199254740993", "false", "12345678901234567890", ""],
      '{"n":9007199254740993,"b":false,"j":12345678901234567890,"t":""}',
    ],
    [["", "NA", "", "x"], '{"n":null,"b":null,"j":null,"t":"x"}'],
    [["-007", "true", "null", "007"], '{"n":-7,"b":true,"j":null,"t":"007"}'],
    [[" +.5e3 ", "true", "1", "1"], '{"n":500,"b":true,"j":1,"t":"1"}'],
    [["1e400", "true", "1", "1"], '{"n":1e400,"b":true,"j":1,"t":"1"}'],
    [["0.1000000000000000055511", "true", "1", "1"], '{"n":0.1000000000000000055511,"b":true,"j":1,"t":"1"}'],
    [["5.", "true", "1", "1"], '{"n":5,"b":true,"j":1,"t":"1"}'],
  ];
  for (const [cells, json] of table) assert.equal(stringifyJson(rows.row(cells)), json);
  for (const bad of ["x", "1,5", "1 2", ".", "0x10", "e5", "Infinity", "NaN", "1_000", "+", "--1"]) {
    assert.throws(() => rows.row([bad, "true", "1", ""]), {
      code: "bad_csv_cell",
      message: /column "n": expected a number/,
    }, bad);
  }
  assert.throws(() => rows.row(["1", "yes", "1", ""]), { code: "bad_csv_cell", message: /column "b"/ });
  assert.throws(() => rows.row(["1", "true", "{", ""]), { code: "bad_csv_cell", message: /column "j"/ });
  assert.throws(() => rows.row(["1", "true", "1"]), {
    code: "wrong_cell_count",
    message: /3 cells, but the header has 4/,
  });
});

Deno.test("typed number cells mean the number that is written", () => {
  const rows = new CsvRows(["n"], checkedCsvOptions({ types: { n: "number" } }));
  fc.assert(fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
    assert.equal(Number(rows.row([String(value)]).n), Number(String(value)));
  }));
});

Deno.test("odd columns: `__proto__` is one like any other; a name twice or a type without column is an error", () => {
  const row = new CsvRows(["__proto__", "a"], checkedCsvOptions()).row(["x", "y"]);
  assert.equal(stringifyJson(row), '{"__proto__":"x","a":"y"}');
  assert.throws(() => new CsvRows(["a", "b", "a"], checkedCsvOptions()), { code: "bad_csv_header" });
  assert.throws(() => new CsvRows(["a"], checkedCsvOptions({ types: { b: "number" } })), {
    code: "bad_csv_header",
    message: /no column "b"/,
  });
});

Deno.test("settings that cannot work are refused", () => {
  for (const bad of ["", ",,", '"', "\n", "é"]) {
    assert.throws(
      () => checkedCsvOptions({ delimiter: bad }),
      { code: "invalid_csv_options" },
      JSON.stringify(bad),
    );
  }
  assert.throws(() => checkedCsvOptions({ types: { a: "int" as "number" } }), {
    code: "invalid_csv_options",
  });
  assert.throws(() => csvFormat().decoder(), { code: "invalid_csv_options" });
});

Deno.test("the format csv: rows there and back, and nothing lost on the way", () => {
  const columns = ["a", "b", "n"];
  const format = csvFormat({ columns, types: { n: "number" }, nulls: ["-"] });
  const encoder = format.encoder();
  const rows = [{ a: "x", b: 'q"\n,', n: 1 }, { a: "", b: " ", n: null }, {
    a: "é",
    b: "",
    n: 9007199254740993n,
  }];
  const texts = rows.map((row) => encoder.encode(row));
  assert.equal(encoder.head!(), "a,b,n");
  const into: Decoded<CsvRow> = { values: [], failures: [] };
  format.decoder().decode([
    ...texts,
    "1,2",
    new TextEncoder().encode("p,q,5"),
    Uint8Array.of(0xff),
    "a,b,1\na,b,2",
  ], into);
  assert.deepEqual(into.values, [...rows, { a: "p", b: "q", n: 5 }]);
  assert.deepEqual(into.failures.map(({ index }) => index), [3, 5, 6]);
  assert.throws(() => encoder.encode({ a: "1", z: 2 }), { code: "no_column" });
  assert.throws(() => encoder.encode("text"), { code: "not_a_row" });
  assert.throws(() => encoder.encode({ a: [NaN] }), { code: "not_json_number" });
  const first = csvFormat().encoder();
  assert.equal(first.encode({ x: 1, y: { z: true } }), '1,"{""z"":true}"');
  assert.equal(first.head!(), "x,y");
});
