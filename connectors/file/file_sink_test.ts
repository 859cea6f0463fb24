import assert from "node:assert/strict";
import fc from "fast-check";
import type { SinkContext } from "../../lib/connector.ts";
import { csvFormat, stringFormat } from "../../lib/format/mod.ts";
import { silentLogger } from "../../lib/log.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { fileSink, type FileSinkOptions } from "./mod.ts";

async function inFolder<R>(run: (folder: string) => Promise<R>): Promise<R> {
  const folder = await Deno.makeTempDir();
  try {
    return await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function context(options: Partial<SinkContext> = {}): SinkContext {
  return {
    id: "sink",
    clock: new VirtualClock(),
    logger: silentLogger,
    signal: new AbortController().signal,
    reject(_batch, _index, error) {
      throw error;
    },
    ...options,
  };
}

/** Writes batches as one run does. */
async function run(options: FileSinkOptions, batches: readonly (readonly unknown[])[]): Promise<void> {
  const writer = await fileSink(options).open(context());
  for (const values of batches) await writer.write(batchOf(values));
  await writer.flush();
  await writer.close("done");
}

/** The files of a folder and what is in them. */
async function filesIn(folder: string): Promise<Record<string, string>> {
  const files: [string, string][] = [];
  for await (const { name } of Deno.readDir(folder)) {
    files.push([name, await Deno.readTextFile(`${folder}/${name}`)]);
  }
  return Object.fromEntries(files.sort());
}

async function setUp(options: Partial<FileSinkOptions> = {}) {
  const folder = await Deno.makeTempDir(), path = "deep/er/out.ndjson";
  return {
    sink: fileSink({ path, baseDirectory: folder, ...options }),
    async written() {
      const files = await filesIn(`${folder}/deep/er`),
        number = (name: string) => Number(name.split(".").at(-2)) || 0;
      const names = Object.keys(files).sort((a, b) => number(a) - number(b));
      return names.flatMap((name) => files[name]!.split("\n").slice(0, -1).map((line) => JSON.parse(line)));
    },
    tearDown: () => Deno.remove(folder, { recursive: true }),
  };
}

const unwritable = { value: [Infinity], code: "not_json_number" };
sinkContract({ name: "file sink", setUp, unwritable });
sinkContract({
  name: "file sink that rolls",
  setUp: () => setUp({ rollSize: 500, rollEvery: "1h" }),
  unwritable,
});

Deno.test("O1: what a write has written is in the file when it returns", () =>
  inFolder(async (folder) => {
    const writer = await fileSink({ path: "a", baseDirectory: folder }).open(context());
    assert.deepEqual(await filesIn(folder), { a: "" });
    await writer.write(batchOf([{ b: 1 }, "x"]));
    assert.deepEqual(await filesIn(folder), { a: '{"b":1}\n"x"\n' });
    await writer.close("done");
  }));

Deno.test("O4: the file is emptied when a run starts, or kept with `append`; a torn last line is ended first", () =>
  inFolder(async (folder) => {
    const options = { path: "a", baseDirectory: folder };
    await run(options, [[1], [2]]);
    await run(options, [[3]]);
    assert.deepEqual(await filesIn(folder), { a: "3\n" });
    await run({ ...options, append: true }, [[4]]);
    assert.deepEqual(await filesIn(folder), { a: "3\n4\n" });
    await Deno.writeTextFile(`${folder}/a`, '3\n{"to');
    await run({ ...options, append: true }, [[5]]);
    assert.deepEqual(await filesIn(folder), { a: '3\n{"to\n5\n' });
  }));

Deno.test("O3: parts end before the record that would make them too long", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/out.x.ndjson`, rollSize: 8 };
    await run(options, [["ab", "cd"], ["é"], [], ["a long one", 1, 2]]);
    assert.deepEqual(await filesIn(folder), {
      "out.x.ndjson": '"ab"\n',
      "out.x.1.ndjson": '"cd"\n',
      "out.x.2.ndjson": '"é"\n',
      "out.x.3.ndjson": '"a long one"\n',
      "out.x.4.ndjson": "1\n2\n",
    });
    await run({ ...options, append: true }, [[3, 4, 5]]);
    assert.deepEqual((await filesIn(folder))["out.x.4.ndjson"], "1\n2\n3\n4\n");
    assert.deepEqual((await filesIn(folder))["out.x.5.ndjson"], "5\n");
    await run(options, [[6]]);
    assert.deepEqual(await filesIn(folder), { "out.x.ndjson": "6\n" }, "parts of the run before are removed");
  }));

Deno.test("O2, O3: rolled parts hold every line once, in order, none longer than allowed unless it is one record", async () => {
  const sizes = fc.array(fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 6 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      sizes,
      fc.integer({ min: 1, max: 60 }),
      (batches, rollSize) =>
        inFolder(async (folder) => {
          const texts = batches.map((lengths) => lengths.map((length, i) => `${i}`.repeat(length)));
          await run({ path: `${folder}/out`, rollSize, format: stringFormat() }, texts);
          const files = await filesIn(folder), parts: string[] = [];
          parts.push(files["out"]!);
          for (let n = 1; files[`out.${n}`] !== undefined; n++) parts.push(files[`out.${n}`]!);
          assert.equal(parts.length, Object.keys(files).length);
          assert.equal(parts.join(""), texts.flat().map((text) => `${text}\n`).join(""));
          for (const part of parts) assert.ok(part.length <= rollSize || part.split("\n").length === 2, part);
        }),
    ),
    { numRuns: 20 },
  );
});

Deno.test("O3: parts end by age, counted from their first record", () =>
  inFolder(async (folder) => {
    const clock = new VirtualClock();
    const writer = await fileSink({ path: `${folder}/out.txt`, rollEvery: "1m" }).open(context({ clock }));
    await clock.advance("5m");
    await writer.write(batchOf([1]));
    await clock.advance("59s");
    await writer.write(batchOf([2]));
    await clock.advance("1s");
    await writer.write(batchOf([3]));
    await clock.advance("10m");
    await writer.flush();
    await writer.write(batchOf([4, 5]));
    await writer.close("done");
    assert.deepEqual(await filesIn(folder), {
      "out.txt": "1\n2\n",
      "out.1.txt": "3\n",
      "out.2.txt": "4\n5\n",
    });
  }));

Deno.test("csv: every part begins with the header", () =>
  inFolder(async (folder) => {
    const rows = [{ a: 1, b: "x" }, { a: 2, b: "y" }, { a: 3 }];
    await run({ path: `${folder}/out.csv`, format: csvFormat(), rollSize: 12 }, [
      rows.slice(0, 1),
      rows.slice(1),
    ]);
    assert.deepEqual(await filesIn(folder), { "out.csv": "a,b\n1,x\n2,y\n", "out.1.csv": "a,b\n3,\n" });
    await run({ path: `${folder}/out.1.csv`, format: csvFormat(), append: true }, [rows.slice(0, 1)]);
    assert.equal((await filesIn(folder))["out.1.csv"], "a,b\n3,\n1,x\n");
  }));

Deno.test("errors name the file: no folder can be made, no permission, no space", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    for (const path of ["file/out", "."]) {
      await assert.rejects(
        run({ path, baseDirectory: folder }, []),
        (error: Error & { code: string }) =>
          error.code === "file_error" && error.message.includes(`${folder}/${path}`),
      );
    }
  });
  const full = fileSink({ path: "/dev/full" });
  const writer = await full.open(context()), batch = batchOf([1]);
  await assert.rejects(async () => await writer.write(batch), {
    code: "file_error",
    message: /"\/dev\/full": writing failed: .*[Nn]o space/,
  });
  await writer.close("done");
});

Deno.test("O2: a failed write that is made again writes every line once and rejects no record twice", () =>
  inFolder(async (folder) => {
    const path = `${folder}/out`, rejected: number[] = [];
    const writer = await fileSink({ path, rollSize: 20 }).open(
      context({ reject: (_batch, index) => void rejected.push(index) }),
    );
    await writer.write(batchOf(["first of all"]));
    await Deno.mkdir(`${path}.1`); // the next part cannot be opened
    const batch = batchOf(["a", NaN, "second", "third"]);
    await assert.rejects(async () => await writer.write(batch), { code: "file_error" });
    await Deno.remove(`${path}.1`);
    await writer.write(batch);
    await writer.close("done");
    assert.deepEqual(rejected, [1]);
    assert.deepEqual(await filesIn(folder), { out: '"first of all"\n"a"\n', "out.1": '"second"\n"third"\n' });
  }));

Deno.test("A1: a write that was torn is cut off before the next", () =>
  inFolder(async (folder) => {
    const path = `${folder}/out`;
    const writer = await fileSink({ path }).open(context());
    await writer.write(batchOf([1]));
    const write = Deno.FsFile.prototype.write;
    Deno.FsFile.prototype.write = async function (this: Deno.FsFile, bytes: Uint8Array): Promise<number> {
      Deno.FsFile.prototype.write = write;
      await write.call(this, bytes.subarray(0, 3));
      throw new Error("disk trouble");
    };
    const batch = batchOf([{ a: 1 }, { a: 2 }]);
    await assert.rejects(async () => await writer.write(batch), {
      code: "file_error",
      message: /disk trouble/,
    });
    assert.equal(await Deno.readTextFile(path), '1\n{"a');
    await writer.write(batch);
    await writer.flush();
    await writer.close("done");
    assert.equal(await Deno.readTextFile(path), '1\n{"a":1}\n{"a":2}\n');
  }));

Deno.test("settings that cannot work are refused", () => {
  for (const bad of [{ path: "" }, { path: "a/" }, { path: "a", rollSize: 0 }, { path: "a", rollEvery: 0 }]) {
    assert.throws(() => fileSink(bad), { code: "invalid_file_options" });
  }
});
