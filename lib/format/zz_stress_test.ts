import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { codeOf } from "../errors.ts";
import { stringifyJson } from "../json.ts";
import { checkedTextOptions, type TextOptions, type TextPosition, textReader } from "./text_reader.ts";

/** One record or failure as a reader gave it. */
type Item = readonly [offset: number, what: string];

interface Reading {
  readonly items: Item[];
  /** Positions, and how many items lie before each. */
  readonly positions: { readonly position: TextPosition; readonly before: number }[];
}

/** Reads everything, the bytes coming in pieces of the sizes given (the last one repeats), `most` records a read. */
function readAll(
  bytes: Uint8Array,
  options: TextOptions,
  sizes: number[],
  most: number,
  start?: TextPosition,
): Reading {
  const reader = textReader(checkedTextOptions(options), start);
  const items: Item[] = [], positions: Reading["positions"] = [];
  const drain = () => {
    for (let read = reader.next(most); read !== undefined; read = reader.next(most)) {
      const failures = [...read.failures ?? []];
      assert.ok(read.values.length + failures.length > 0 && read.values.length + failures.length <= most);
      assert.equal(read.texts.length, read.values.length);
      for (let i = 0; i <= read.values.length; i++) {
        while (failures[0]?.before === i) {
          const { offset, text, error } = failures.shift()!;
          items.push([
            offset!,
            `${codeOf(error)} ${typeof text === "string" ? text : Buffer.from(text).toString("hex")}`,
          ]);
        }
        if (i === read.values.length) break;
        const offset = read.offsets?.[i] ?? read.firstOffset! + i;
        items.push([offset, `${stringifyJson(read.values[i])} of ${JSON.stringify(read.texts[i])}`]);
      }
      assert.equal(failures.length, 0);
      positions.push({ position: JSON.parse(JSON.stringify(read.position)), before: items.length });
    }
  };
  let at = start?.bytes ?? 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = Math.max(1, sizes[Math.min(i, sizes.length - 1)]!);
    const piece = bytes.slice(at, at + size);
    reader.push(piece);
    piece.fill(0); // the reader has its own
    drain();
    at += size;
  }
  reader.end();
  drain();
  return { items, positions };
}

const values = (text: string | Uint8Array, options: TextOptions): string[] =>
  readAll(Buffer.from(text), options, [1 << 20], 1000).items.map(([, what]) => what.split(" of ")[0]!);

const options: fc.Arbitrary<TextOptions> = fc.record({
  format: fc.constantFrom("ndjson", "csv", "lines"),
  maxLineBytes: fc.constantFrom(1 << 24, 40, 12, 5),
}) as fc.Arbitrary<TextOptions>;

const fragment = fc.oneof(
  fc.constantFrom(
    "\n",
    "\n",
    "\r\n",
    "\r",
    '"',
    '""',
    ",",
    '{"a":1}',
    '{"a":"é😀"}',
    "a,b,c",
    "\u0000",
    " ",
    "\ufeff",
    "{",
    "1,2,3",
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const content = fc.tuple(
  fc.constantFrom(Buffer.alloc(0), Buffer.from("\ufeff"), Buffer.from("a,b,c\n"), Buffer.from('{"a":1}\n')),
  fc.array(
    fc.oneof({
      arbitrary: fragment.map((text) => Buffer.from(text)),
      weight: 9,
    }, fc.uint8Array({ maxLength: 3 })),
    {
      maxLength: 30,
    },
  ),
).map(([head, parts]) => new Uint8Array(Buffer.concat([head, ...parts])));
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 });

/** What a run gives: its reading, or the error it ends with. */
function outcome(run: () => Reading): Reading | string {
  try {
    return run();
  } catch (error) {
    return codeOf(error);
  }
}

Deno.test("X1, X3: records, failures and offsets do not depend on how the bytes come in, nor on how many are asked for", () => {
  fc.assert(
    fc.property(content, options, sizes, fc.integer({ min: 1, max: 5 }), (bytes, settings, pieces, most) => {
      const whole = outcome(() => readAll(bytes, settings, [1 << 20], 1000));
      const parts = outcome(() => readAll(bytes, settings, pieces, most));
      if (typeof whole === "string") return assert.equal(parts, whole);
      assert.deepEqual((parts as Reading).items, whole.items);
      assert.deepEqual(whole.items.map(([offset]) => offset), [...whole.items.keys()]);
    }),
    { numRuns: 60000 },
  );
});

Deno.test("X5: reading on from any position gives what reading from the start gives behind it", () => {
  fc.assert(
    fc.property(content, options, sizes, fc.integer({ min: 1, max: 4 }), (bytes, settings, pieces, most) => {
      const whole = outcome(() => readAll(bytes, settings, pieces, most));
      if (typeof whole === "string") return;
      for (const { position, before } of whole.positions) {
        const rest = readAll(bytes, settings, pieces, 3, position);
        assert.deepEqual(rest.items, whole.items.slice(before), JSON.stringify(position));
      }
    }),
    { numRuns: 20000 },
  );
});

Deno.test("ndjson: blank lines, CRLF, a missing last line break, a byte order mark", () => {
  const ndjson = { format: "ndjson" } as const;
  assert.deepEqual(values('{"a":1}\n{"a":2}\n', ndjson), ['{"a":1}', '{"a":2}']);
  assert.deepEqual(values('\ufeff{"a":1}\r\n\r\n \t\n\n[2]\r\n"x"', ndjson), ['{"a":1}', "[2]", '"x"']);
  assert.deepEqual(values("", ndjson), []);
  assert.deepEqual(values("\ufeff", ndjson), []);
  assert.deepEqual(values("\n\n", ndjson), []);
  assert.deepEqual(values("1\n2", ndjson), ["1", "2"]);
  const odd = values('{"__proto__":{"x":1}}\n9007199254740993\n\ufeff1\n\u0000\n\u00a0\n"\u0000"\n', ndjson);
  assert.deepEqual(odd.slice(0, 2), ['{"__proto__":{"x":1}}', "9007199254740993"]);
  assert.ok(odd.slice(2).every((what) => what.startsWith("not_json ")) && odd.length === 6, odd.join());
});

Deno.test("ndjson: invalid UTF-8 is a failure with its bytes, and takes no other line with it", () => {
  const bytes = Buffer.concat([
    Buffer.from('{"a":"é"}\n{"b":"'),
    Buffer.of(0xff),
    Buffer.from('"}\n{"c":"€"}\n'),
  ]);
  const { items } = readAll(bytes, { format: "ndjson" }, [1 << 20], 100);
  assert.deepEqual(items, [
    [0, '{"a":"é"} of "{\\"a\\":\\"é\\"}"'],
    [1, "not_utf8 7b2262223a22ff227d"],
    [2, '{"c":"€"} of "{\\"c\\":\\"€\\"}"'],
  ]);
});

Deno.test("lines: every line is a record, empty ones too, and a closing line break makes none", () => {
  const lines = { format: "lines" } as const;
  assert.deepEqual(values("a\n\n b \r\nc", lines), ['"a"', '""', '" b "', '"c"']);
  assert.deepEqual(values("a\n", lines), ['"a"']);
  assert.deepEqual(values("\ufeffé\u0000\n\r\n", lines), ['"é\\u0000"', '""']);
});

Deno.test("csv: the header names the fields; quotes, line breaks, CRLF, empty lines, typed cells", () => {
  const csv = { format: "csv" } as const;
  assert.deepEqual(values('\ufeffa,b\r\n1,"x, ""y"""\r\n\r\n"two\r\nlines",\n', csv), [
    '{"a":"1","b":"x, \\"y\\""}',
    '{"a":"two\\r\\nlines","b":""}',
  ]);
  assert.deepEqual(values("a,b\n", csv), []);
  assert.deepEqual(values("", csv), []);
  assert.deepEqual(values('a\n""\nx', csv), ['{"a":""}', '{"a":"x"}']);
  assert.deepEqual(
    values("a;n\nx;1.5\ny;\nz;q\n", {
      format: "csv",
      csv: { delimiter: ";", types: { n: "number" }, nulls: [""] },
    }),
    [
      '{"a":"x","n":1.5}',
      '{"a":"y","n":null}',
      "bad_csv_cell z;q",
    ],
  );
  assert.deepEqual(values('__proto__,"b\n1"\nx,é\n', csv), ['{"__proto__":"x","b\\n1":"é"}']);
});

Deno.test("csv: a bad record is a failure and the ones behind it are read", () => {
  const csv = { format: "csv" } as const;
  assert.deepEqual(values('a,b\n1\n1,2,3\n"x"y,1\n"open,1\n3,4\n', csv), [
    "wrong_cell_count 1",
    "wrong_cell_count 1,2,3",
    'bad_csv "x"y,1',
    'bad_csv "open,1',
    '{"a":"3","b":"4"}',
  ]);
  const bytes = Buffer.concat([Buffer.from("a\né\n"), Buffer.of(0xe9), Buffer.from("\n€\n")]);
  assert.deepEqual(values(bytes, csv), ['{"a":"é"}', "not_utf8 e9", '{"a":"€"}']);
});

Deno.test("csv: a header that cannot be read is an error of the file", () => {
  for (const text of ["a,a\n1,2\n", '"a\n1\n', '"a"b\n1\n']) {
    assert.throws(() => values(text, { format: "csv" }), { code: "bad_csv_header" }, text);
  }
  assert.throws(() => values("a\n1\n", { format: "csv", csv: { types: { b: "number" } } }), {
    code: "bad_csv_header",
  });
  assert.throws(() => values(Buffer.of(0xff, 10), { format: "csv" }), { code: "bad_csv_header" });
});

Deno.test("X4: a line longer than allowed is a failure with its beginning; one exactly as long as allowed is none", () => {
  for (const format of ["ndjson", "lines"] as const) {
    const found = values("1\n1234567\r\n123456\r\n1234567890\n2\n", { format, maxLineBytes: 6 });
    const written = (text: string) => format === "lines" ? JSON.stringify(text) : text;
    assert.deepEqual(found, [
      written("1"),
      "line_too_long 123456",
      written("123456"),
      "line_too_long 123456",
      written("2"),
    ]);
  }
  assert.deepEqual(values('"€€€"\n"€€"\n', { format: "ndjson", maxLineBytes: 8 }).length, 2);
  assert.deepEqual(values('"€€€"\n"€€"\n', { format: "ndjson", maxLineBytes: 8 })[1], '"€€"');
  assert.deepEqual(
    values('a,b\n"1\n2\n3",x\n4,5\n', { format: "csv", maxLineBytes: 5 }),
    [
      'line_too_long "1',
      "wrong_cell_count 2",
      'wrong_cell_count 3",x',
      '{"a":"4","b":"5"}',
    ].map((what) => what === 'wrong_cell_count 3",x' ? '{"a":"3\\"","b":"x"}' : what),
  );
});

Deno.test("X4: a line of 100 MB is skipped in bounded memory", () => {
  for (const format of ["ndjson", "lines", "csv"] as const) {
    const reader = textReader(checkedTextOptions({ format, maxLineBytes: 1 << 20 }));
    const chunk = new Uint8Array(1 << 18).fill(120);
    reader.push(Buffer.from("7\n"));
    let found = reader.next(10)?.values.length ?? 0;
    const before = Deno.memoryUsage();
    let most = 0;
    for (let i = 0; i < 400; i++) {
      reader.push(chunk);
      assert.equal(reader.next(10), undefined);
      const { external, heapUsed } = Deno.memoryUsage();
      most = Math.max(most, external + heapUsed - before.external - before.heapUsed);
    }
    reader.push(Buffer.from("\n8\n"));
    const items: string[] = [];
    for (let read = reader.next(10); read !== undefined; read = reader.next(10)) {
      found += read.values.length;
      for (const { error, text } of read.failures ?? []) items.push(`${codeOf(error)} ${text.length}`);
    }
    assert.deepEqual(items, ["line_too_long 65536"], format);
    assert.equal(found, format === "csv" ? 1 : 2);
    assert.ok(most < 50 << 20, `${format} held ${most} bytes`);
  }
});

Deno.test("settings that cannot work are refused", () => {
  assert.throws(() => checkedTextOptions({ format: "tsv" as "csv" }), { code: "invalid_text_options" });
  assert.throws(() => checkedTextOptions({ format: "lines", csv: {} }), { code: "invalid_text_options" });
  assert.throws(() => checkedTextOptions({ maxLineBytes: 0 }), { code: "invalid_text_options" });
});
