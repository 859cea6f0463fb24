import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import type { Position, SourceContext, SourceRead } from "../../lib/connector.ts";
import { codeOf } from "../../lib/errors.ts";
import { silentLogger } from "../../lib/log.ts";
import { failure, sourceContract } from "../../lib/testing/source_contract.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { fileSource, type FileSourceOptions } from "./mod.ts";
import { ZstdFrames } from "./zstd_frames.ts";

/** A folder with these files in it, gone after the run. */
async function withFiles<R>(
  files: Readonly<Record<string, string | Uint8Array>>,
  run: (folder: string) => Promise<R>,
): Promise<R> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [name, content] of Object.entries(files)) {
      const slash = name.lastIndexOf("/");
      if (slash > 0) await Deno.mkdir(`${folder}/${name.slice(0, slash)}`, { recursive: true });
      await Deno.writeFile(`${folder}/${name}`, Buffer.from(content));
    }
    return await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function context(options: Partial<SourceContext> = {}): SourceContext {
  return {
    id: "source",
    batchSize: 100,
    clock: new VirtualClock(),
    logger: silentLogger,
    signal: new AbortController().signal,
    restored: undefined,
    keepsState: false,
    ...options,
  };
}

/** Everything a source gives, as short texts. */
async function readAll(options: FileSourceOptions, with_: Partial<SourceContext> = {}): Promise<string[]> {
  const reader = await fileSource(options).open(context(with_));
  const log: string[] = [`splits ${reader.splits.join(" ")}`];
  try {
    for (;;) {
      const read = await reader.read();
      log.push(...shown(read));
      if (read.kind === "end") return log;
    }
  } finally {
    await reader.close("done");
  }
}

function shown(read: SourceRead): string[] {
  if (read.kind === "records") {
    const { split, failures = [], values } = read;
    return [
      ...values.map((value) => `${split}: ${JSON.stringify(value)}`),
      ...failures.map(({ error }) => `${split}: ${codeOf(error)}`),
    ];
  }
  return [`${read.kind}${"split" in read ? ` ${read.split}` : ""}`];
}

const NDJSON = '\ufeff{"a":1}\r\n\n{"a":2}\nx\n{"a":3}';
const RECORDS = [{ a: 1 }, { a: 2 }, failure("not_json"), { a: 3 }];

function inFolder(files: Readonly<Record<string, string | Uint8Array>>, options: FileSourceOptions) {
  return async () => {
    const folder = await Deno.makeTempDir();
    for (const [name, content] of Object.entries(files)) {
      await Deno.writeFile(`${folder}/${name}`, Buffer.from(content));
    }
    return {
      source: fileSource({ ...options, baseDirectory: folder }),
      tearDown: () => Deno.remove(folder, { recursive: true }),
    };
  };
}

sourceContract({
  name: "file source",
  setUp: inFolder({ "in.ndjson": NDJSON }, { path: "in.ndjson" }),
  expected: [{ split: "in.ndjson", records: RECORDS }],
  positions: "replays",
  waiting: inFolder({ "in.ndjson": "" }, { path: "in.ndjson", follow: true }),
});

sourceContract({
  name: "file source with several files",
  setUp: inFolder(
    {
      "b.ndjson": "1\n2",
      "a.ndjson": NDJSON,
      "c.ndjson": "",
      "d.ndjson.gz": gzipSync("3\n4\n"),
      "x.txt": "no",
    },
    { path: "*.ndjson*" },
  ),
  expected: [
    { split: "a.ndjson", records: RECORDS },
    { split: "b.ndjson", records: [1, 2] },
    { split: "c.ndjson", records: [] },
    { split: "d.ndjson.gz", records: [3, 4] },
  ],
  positions: "replays",
});

sourceContract({
  name: "file source with compressed csv",
  setUp: inFolder(
    { "a.csv.gz": gzipSync('k,n\nx,1\n"y\nz",q\nw,3\n'), "b.csv.zst": zstdCompressSync("n,k\n4,v\n") },
    { path: "*.csv.*", format: "csv", csv: { types: { n: "number" } } },
  ),
  expected: [
    { split: "a.csv.gz", records: [{ k: "x", n: 1 }, failure("bad_csv_cell"), { k: "w", n: 3 }] },
    { split: "b.csv.zst", records: [{ n: 4, k: "v" }] },
  ],
  positions: "replays",
});

sourceContract({
  name: "file source with lines",
  setUp: inFolder({ "in.txt": "one\r\n\nthree" }, { path: "in.txt", format: "lines" }),
  expected: [{ split: "in.txt", records: ["one", "", "three"] }],
  positions: "replays",
});

Deno.test("F1: the files of a pattern come in the order of their names, and are called as the pattern is written", async () => {
  const files = {
    "b/1.x": "1",
    "a/2.x": "2",
    "a/10.x": "3",
    "a/c/B.x": "4",
    "a/c/é.x": "5",
    "a/.h.x": "6",
    "Z.x": "7",
    "a/n.y": "8",
  };
  await withFiles(files, async (folder) => {
    const splits = async (path: string) =>
      (await fileSource({ path, baseDirectory: folder }).open(context())).splits;
    assert.deepEqual(await splits("**/*.x"), ["Z.x", "a/10.x", "a/2.x", "a/c/B.x", "a/c/é.x", "b/1.x"]);
    assert.deepEqual(await splits("a/*.x"), ["a/10.x", "a/2.x"]);
    assert.deepEqual(await splits("a/**"), ["a/10.x", "a/2.x", "a/c/B.x", "a/c/é.x", "a/n.y"]);
    assert.deepEqual(await splits("./a/?.x"), ["./a/2.x"]);
    assert.deepEqual(await splits("{b,a}/{1,2}.x"), ["a/2.x", "b/1.x"]);
    assert.deepEqual(await splits("a/[0-9]*.[!y]"), ["a/10.x", "a/2.x"]);
    assert.deepEqual(await splits("*/c/[!A-Z].x"), ["a/c/é.x"]);
    assert.deepEqual(await splits("a/.*.x"), ["a/.h.x"]);
    assert.deepEqual(await splits(`${folder}/b/*`), [`${folder}/b/1.x`]);
    await Deno.writeTextFile(`${folder}/a[1].x`, "");
    assert.deepEqual(await splits("a[1].x"), ["a[1].x"], "a path that exists is no pattern");
    await Deno.symlink(folder, `${folder}/a/loop`);
    assert.deepEqual(await splits("a/**/*.y"), ["a/n.y"]);
  });
});

Deno.test("nothing that matches is an error that names pattern and folder; a folder is no file", async () => {
  await withFiles({ "a/1.x": "" }, async (folder) => {
    const open = async (path: string) => await fileSource({ path, baseDirectory: folder }).open(context());
    await assert.rejects(open("*.csv"), (error: Error) => {
      assert.equal(codeOf(error), "file_not_found");
      assert.match(error.message, /"\*\.csv"/);
      return error.message.includes(folder);
    });
    await assert.rejects(open("missing/x.csv"), { code: "file_not_found", message: /"missing\/x\.csv"/ });
    await assert.rejects(open("a"), { code: "not_a_file" });
  });
});

Deno.test("compression: by name, by first bytes, as told; several members and frames are one content", async () => {
  const frames = Buffer.concat([
    zstdCompressSync("1\n2"),
    Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]),
    zstdCompressSync("3\n4\n"),
  ]);
  const files = {
    "a.gz": Buffer.concat([gzipSync("1\n2"), gzipSync(""), gzipSync("3\n4\n")]),
    "b.zst": frames,
    "c": gzipSync("1\n23\n4"),
    "d": frames,
    "e": "1\n23\n4\n",
    "f": "1",
  };
  await withFiles(files, async (folder) => {
    for (const path of ["a.gz", "b.zst", "c", "d", "e"]) {
      const log = await readAll({ path, baseDirectory: folder });
      assert.deepEqual(log, [
        `splits ${path}`,
        `${path}: 1`,
        `${path}: 23`,
        `${path}: 4`,
        `ended ${path}`,
        "end",
      ]);
    }
    assert.deepEqual((await readAll({ path: "f", baseDirectory: folder })).slice(1), [
      "f: 1",
      "ended f",
      "end",
    ]);
    const raw = await readAll({ path: "c", baseDirectory: folder, compression: "none" });
    assert.ok(raw[1]!.endsWith("not_utf8") || raw[1]!.endsWith("not_json"), raw[1]);
    await assert.rejects(readAll({ path: "e", baseDirectory: folder, compression: "gzip" }), {
      code: "damaged_file",
      message: /"e"/,
    });
    await assert.rejects(readAll({ path: "e", baseDirectory: folder, compression: "zstd" }), {
      code: "damaged_file",
      message: /"e"/,
    });
  });
});

Deno.test("F2: a compressed file that is cut short anywhere is an error that names it; nothing wrong comes out before", async () => {
  const content = Array.from({ length: 3000 }, (_, i) => `${i}${"#".repeat(i % 50)}\n`).join("");
  for (const [name, whole] of [["x.gz", gzipSync(content)], ["x.zst", zstdCompressSync(content)]] as const) {
    const cuts = [
      0,
      1,
      3,
      4,
      5,
      7,
      9,
      11,
      18,
      20,
      whole.length >> 1,
      whole.length - 9,
      whole.length - 4,
      whole.length - 1,
    ];
    for (const cut of cuts) {
      await withFiles({ [name]: whole.subarray(0, cut) }, async (folder) => {
        const reader = await fileSource({ path: name, format: "lines", baseDirectory: folder }).open(
          context(),
        );
        let at = 0;
        await assert.rejects(
          async () => {
            for (;;) {
              const read = await reader.read();
              if (read.kind === "end") return;
              if (read.kind !== "records") continue;
              for (const value of read.values) {
                assert.equal(`${value}\n`, content.slice(at, at += String(value).length + 1));
              }
            }
          },
          { code: "damaged_file", message: new RegExp(`"${name}"`) },
          `${name} cut at ${cut}`,
        );
        await reader.close("done");
      });
    }
    const again = Buffer.concat([whole, whole.subarray(0, whole.length - 1)]);
    await withFiles(
      { [name]: again },
      (folder) =>
        assert.rejects(readAll({ path: name, format: "lines", baseDirectory: folder }), {
          code: "damaged_file",
        }),
    );
    await withFiles(
      { [name]: Buffer.concat([whole, Buffer.from("garbage!")]) },
      (folder) =>
        assert.rejects(readAll({ path: name, format: "lines", baseDirectory: folder }), {
          code: "damaged_file",
        }),
    );
  }
  const damaged = gzipSync(content);
  damaged[damaged.length - 6]! ^= 1;
  await withFiles(
    { "x.gz": damaged },
    (folder) =>
      assert.rejects(readAll({ path: "x.gz", format: "lines", baseDirectory: folder }), {
        code: "damaged_file",
      }),
  );
});

Deno.test("Z1–Z3: frames of a zstd stream are found however it is cut up", () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => ({
      frame: zstdCompressSync(bytes),
      content: bytes.length,
    })),
    fc.uint8Array({ maxLength: 9 }).map((bytes) => {
      const head = Buffer.from([0x50 + bytes.length, 0x2a, 0x4d, 0x18, bytes.length, 0, 0, 0]);
      return { frame: Buffer.concat([head, bytes]), content: 0 };
    }),
  );
  fc.assert(fc.property(
    fc.array(part, { minLength: 1, maxLength: 4 }),
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 9 }),
    (parts, sizes) => {
      const stream = Buffer.concat(parts.map(({ frame }) => frame)), frames = new ZstdFrames();
      const ends = new Set<number>();
      let end = 0;
      for (const { frame } of parts) ends.add(end += frame.length);
      let given = 0;
      for (let at = 0, i = 0; at < stream.length; i++) {
        if (!ends.has(at)) assert.throws(() => frames.end());
        const piece = stream.subarray(at, at += sizes[i % sizes.length]!);
        let within = 0;
        for (const out of frames.pieces(piece)) {
          for (let k = given + 1; k < given + out.length; k++) {
            assert.ok(!ends.has(k), "a piece crosses the end of a frame");
          }
          given += out.length;
          within += out.length;
        }
        assert.equal(within, piece.length);
      }
      frames.end();
      const sizesKnown = frames.content;
      if (sizesKnown !== undefined) {
        assert.equal(
          sizesKnown,
          parts.reduce((sum, { content }) => sum + content, 0),
        );
      }
    },
  ));
});

Deno.test("a header that cannot be read is an error that names the file", async () => {
  await withFiles({ "a.csv": "a,a\n1,2\n" }, async (folder) => {
    const reading = readAll({ path: "a.csv", format: "csv", baseDirectory: folder });
    await assert.rejects(reading, {
      code: "bad_csv_header",
      message: /file "a\.csv".*"a" is in the header twice/,
    });
  });
});

Deno.test("large files are read whole, in many pieces, and progress goes from nothing to all", async () => {
  const lines = Array.from({ length: 30_000 }, (_, i) => `{"id":${i},"text":"${"é".repeat(i % 40)}"}`).join(
    "\n",
  );
  await withFiles({ "a.ndjson": lines, "b.ndjson.gz": gzipSync(lines) }, async (folder) => {
    const reader = await fileSource({ path: "*", baseDirectory: folder }).open(context({ batchSize: 1024 }));
    const seen = new Map<string, number>();
    let done = -1;
    for (let read = await reader.read(); read.kind !== "end"; read = await reader.read()) {
      const progress = reader.progress!()!;
      assert.ok(progress.done >= done && progress.done <= progress.total);
      done = progress.done;
      if (read.kind !== "records") continue;
      for (const value of read.values as { id: number; text: string }[]) {
        const next: number = seen.get(read.split) ?? 0;
        assert.equal(value.id, next);
        assert.equal(value.text.length, next % 40);
        seen.set(read.split, next + 1);
      }
    }
    const { done: last, total } = reader.progress!()!;
    assert.equal(last, total);
    assert.deepEqual([...seen], [["a.ndjson", 30_000], ["b.ndjson.gz", 30_000]]);
    await reader.close("done");
  });
});

Deno.test("F3: a file that has become shorter than what had been read of it, or is gone, is an error", async () => {
  const content = "1\n2\n3\n";
  await withFiles({ "a": content, "b.gz": gzipSync(content) }, async (folder) => {
    const position: Position = { bytes: 6, record: 3 };
    const restored = (name: string) => ({ restored: new Map([[name, position]]) });
    assert.deepEqual(await readAll({ path: "a", baseDirectory: folder }, restored("a")), [
      "splits a",
      "ended a",
      "end",
    ]);
    assert.deepEqual(await readAll({ path: "b.gz", baseDirectory: folder }, restored("b.gz")), [
      "splits b.gz",
      "ended b.gz",
      "end",
    ]);
    await Deno.writeTextFile(`${folder}/a`, "1\n");
    await assert.rejects(readAll({ path: "a", baseDirectory: folder }, restored("a")), {
      code: "file_shrunk",
    });
    await Deno.writeFile(`${folder}/b.gz`, gzipSync("1\n"));
    await assert.rejects(readAll({ path: "b.gz", baseDirectory: folder }, restored("b.gz")), {
      code: "damaged_file",
    });
    await assert.rejects(readAll({ path: "a", baseDirectory: folder }, restored("gone")), {
      code: "file_not_found",
    });
    for (const bad of [null, 7, { bytes: -1, record: 0 }, { bytes: 0 }]) {
      const bogus = { restored: new Map([["a", bad as Position]]) };
      await assert.rejects(readAll({ path: "a", baseDirectory: folder }, bogus), {
        code: "invalid_position",
      });
    }
  });
});

Deno.test("settings that cannot work are refused", () => {
  for (
    const bad of [
      { path: "" },
      { path: "a", compression: "brotli" as "gzip" },
      { path: "a", compression: "gzip" as const, follow: true },
      { path: "a", pollInterval: 0 },
    ]
  ) assert.throws(() => fileSource(bad), { code: "invalid_file_options" });
  assert.throws(() => fileSource({ path: "a", format: "json" as "csv" }), { code: "invalid_text_options" });
});
