import assert from "node:assert/strict";
import fc from "fast-check";
import type { Committable, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { csvFormat, stringFormat } from "../../lib/format/mod.ts";
import { silentLogger } from "../../lib/log.ts";
import { commitContract } from "../../lib/testing/commit_contract.ts";
import { batchOf } from "../../lib/testing/sink_contract.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import type { FileCommittable } from "./file_commit.ts";
import { fileSink, type FileSinkOptions } from "./mod.ts";

/** Names of files and what is in them. */
type Files = Record<string, string>;

async function inFolder<R>(run: (folder: string) => Promise<R>): Promise<R> {
  const folder = await Deno.makeTempDir();
  try {
    return await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Without the locks of writers that are open. */
async function filesIn(folder: string): Promise<Files> {
  const files: [string, string][] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (name.endsWith(".lock")) continue;
    files.push([name, await Deno.readTextFile(`${folder}/${name}`)]);
  }
  return Object.fromEntries(files.sort());
}

/** Makes a folder have these files and no others. */
async function setFiles(folder: string, files: Files): Promise<void> {
  for (const name of Object.keys(await filesIn(folder))) await Deno.remove(`${folder}/${name}`);
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
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

/** A writer of text lines with its two phases. */
class Lines {
  readonly #writer: SinkWriter;
  #checkpoint = 0;

  constructor(writer: SinkWriter) {
    this.#writer = writer;
  }
  async write(...texts: unknown[]): Promise<void> {
    await this.#writer.write(batchOf(texts));
  }
  async prepare(): Promise<Committable> {
    return JSON.parse(JSON.stringify(await this.#writer.prepare!(++this.#checkpoint)));
  }
  async commit(committable: Committable): Promise<void> {
    await this.#writer.commit!(committable);
  }
  async checkpoint(): Promise<Committable> {
    const committable = await this.prepare();
    await this.commit(committable);
    return committable;
  }
  async crash(): Promise<void> {
    await this.#writer.close("failed");
  }
  async done(): Promise<void> {
    await this.#writer.close("done");
  }
}

async function open(
  options: FileSinkOptions,
  restored?: Committable,
  clock = new VirtualClock(),
): Promise<Lines> {
  const sink = fileSink({ format: stringFormat(), ...options });
  return new Lines(await sink.open(context({ clock, checkpoints: { restored, interval: 1000 } })));
}

async function recover(options: FileSinkOptions, committable: Committable): Promise<unknown> {
  return await fileSink(options).recover!(committable, context());
}

function setUp(options: Partial<FileSinkOptions> = {}) {
  return async () => {
    const baseDirectory = await Deno.makeTempDir(), folder = `${baseDirectory}/deep/er`;
    const number = (name: string) => Number(name.split(".").at(-2)) || 0;
    return {
      sink: fileSink({ path: "deep/er/out.ndjson", baseDirectory, ...options }),
      async written() {
        const files = await filesIn(folder),
          names = Object.keys(files).filter((name) => !name.startsWith("."));
        names.sort((a, b) => number(a) - number(b));
        return names.flatMap((name) => files[name]!.split("\n").slice(0, -1).map((line) => JSON.parse(line)));
      },
      tearDown: () => Deno.remove(baseDirectory, { recursive: true }),
    };
  };
}

commitContract({ name: "file sink", commits: "two-phase", setUp: setUp() });
commitContract({ name: "file sink that appends", commits: "two-phase", setUp: setUp({ append: true }) });
commitContract({
  name: "file sink that rolls",
  commits: "two-phase",
  setUp: setUp({ rollSize: 50, rollEvery: "1h" }),
});
commitContract({
  name: "file sink that rolls and appends",
  commits: "two-phase",
  setUp: setUp({ rollSize: 100, append: true }),
});

Deno.test("W1: lines lie in a pending file until they are committed; without lines there is none", () =>
  inFolder(async (folder) => {
    const lines = await open({ path: `${folder}/a.txt` });
    assert.deepEqual(await filesIn(folder), { "a.txt": "" });
    const empty = await lines.prepare();
    assert.deepEqual(empty, { file: "a.txt", part: 0, length: 0, pending: [] });
    assert.deepEqual(await filesIn(folder), { "a.txt": "" });
    await lines.commit(empty);
    await lines.write("one", "two");
    await lines.write("three");
    assert.deepEqual(await filesIn(folder), { ".a.txt.pending-0-0": "one\ntwo\nthree\n", "a.txt": "" });
    const first = await lines.prepare();
    await lines.write("four");
    await lines.commit(first);
    assert.deepEqual(await filesIn(folder), {
      ".a.txt.pending-0-14": "four\n",
      "a.txt": "one\ntwo\nthree\n",
    });
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), { "a.txt": "one\ntwo\nthree\nfour\n" });
  }));

Deno.test("W1: what was written and not prepared goes with the writer; what was prepared stays", () =>
  inFolder(async (folder) => {
    const lines = await open({ path: `${folder}/a` });
    await lines.write("one");
    await lines.prepare();
    await lines.write("two");
    await lines.crash();
    assert.deepEqual(await filesIn(folder), { ".a.pending-0-0": "one\n", a: "" });
  }));

Deno.test("W2: rolled parts become visible in the commit, each line in its part", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a.txt`, rollSize: 8 };
    const lines = await open(options);
    await lines.write("one", "two");
    await lines.checkpoint();
    await lines.write("three", "4", "five");
    await lines.write("6");
    const second = await lines.prepare();
    await lines.write("7");
    assert.deepEqual(await filesIn(folder), {
      ".a.txt.pending-1-0": "three\n4\nfive\n6\n",
      ".a.txt.pending-3-0": "7\n",
      "a.txt": "one\ntwo\n",
    });
    await lines.commit(second);
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), {
      "a.txt": "one\ntwo\n",
      "a.1.txt": "three\n4\n",
      "a.2.txt": "five\n6\n",
      "a.3.txt": "7\n",
    });
  }));

Deno.test("W2: the age of a part is counted from its first record, over checkpoints and runs", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a`, rollEvery: "1m" }, clock = new VirtualClock();
    let lines = await open(options, undefined, clock);
    await clock.advance("5m");
    await lines.write("1");
    await clock.advance("30s");
    const first = await lines.checkpoint();
    await lines.crash();
    lines = await open(options, first, clock);
    await clock.advance("29s");
    await lines.write("2");
    await clock.advance("1s");
    await lines.write("3");
    await lines.checkpoint();
    await clock.advance("59s");
    await lines.write("4");
    await clock.advance("1s");
    await lines.write("5");
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), { "a": "1\n2\n", "a.1": "3\n4\n", "a.2": "5\n" });
  }));

Deno.test("csv: every part begins with the header, and nothing else does, over checkpoints and runs", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a.csv`, format: csvFormat(), rollSize: 12 };
    let lines = await open(options);
    await lines.write({ a: 1, b: "x" });
    const first = await lines.checkpoint();
    await lines.crash();
    lines = await open(options, first);
    await lines.write({ a: 2, b: "y" }, { a: 3, b: "z" });
    const second = await lines.checkpoint();
    await lines.crash();
    lines = await open(options, second);
    await lines.write({ a: 4, b: "u" });
    await lines.prepare();
    await lines.write({ a: 5, b: "v" });
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), {
      "a.csv": "a,b\n1,x\n2,y\n",
      "a.1.csv": "a,b\n3,z\n4,u\n",
      "a.2.csv": "a,b\n5,v\n",
    });
  }));

/**
 * Every state of the folder that a commit passes through: after each byte it has appended, and after each file it has removed.
 *
 * @param appended For each pending file the parts its lines go to, with the lines.
 */
function statesOfCommit(before: Files, appended: Readonly<Record<string, [string, string][]>>): Files[] {
  const states: Files[] = [before];
  let files = before;
  for (const pieces of Object.values(appended)) {
    for (const [part, text] of pieces) {
      const there = files[part] ?? "";
      for (let bytes = 0; bytes <= text.length; bytes++) {
        states.push({ ...files, [part]: there + text.slice(0, bytes) });
      }
      files = states.at(-1)!;
    }
  }
  for (const name of Object.keys(appended)) {
    const { [name]: _removed, ...rest } = files;
    states.push(files = rest);
  }
  return states;
}

Deno.test("C1, C2: a commit interrupted anywhere is made again with the same outcome", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a.txt`, rollSize: 10 };
    const lines = await open(options);
    await lines.write("one");
    await lines.checkpoint();
    await lines.write("3", "four");
    await lines.prepare(); // and fails
    await lines.write("5", "six", "seven", "8");
    await lines.prepare(); // and fails
    await lines.write("9");
    const committable = await lines.prepare();
    const before = await filesIn(folder);
    assert.deepEqual(before, {
      ".a.txt.pending-0-4": "3\nfour\n",
      ".a.txt.pending-1-5": "5\nsix\nseven\n8\n",
      ".a.txt.pending-3-2": "9\n",
      "a.txt": "one\n",
    });
    const after = {
      "a.txt": "one\n3\n",
      "a.1.txt": "four\n5\n",
      "a.2.txt": "six\nseven\n",
      "a.3.txt": "8\n9\n",
    };
    const states = statesOfCommit(before, {
      ".a.txt.pending-0-4": [["a.txt", "3\n"], ["a.1.txt", "four\n"]],
      ".a.txt.pending-1-5": [["a.1.txt", "5\n"], ["a.2.txt", "six\nseven\n"], ["a.3.txt", "8\n"]],
      ".a.txt.pending-3-2": [["a.3.txt", "9\n"]],
    });
    assert.deepEqual(states.at(-1), after);
    states.push({ ...before, "a.txt": "one\n\0\0\0\0\0\0\0\0", "a.3.txt": "left by a crash of the machine" });
    const checkAgain = async (state: Files, again: () => Promise<unknown>) => {
      await setFiles(folder, state);
      for (let i = 0; i < 2; i++) {
        await again();
        assert.deepEqual(await filesIn(folder), after);
      }
    };
    for (const state of states) await checkAgain(state, () => lines.commit(committable));
    await lines.done();
    for (const state of states) {
      await checkAgain(state, () => recover(options, committable));
      await setFiles(folder, state);
      assert.equal(await recover(options, committable), "committed");
      const next = await open(options, committable);
      await next.write("10");
      await next.checkpoint();
      await next.done();
      assert.deepEqual(await filesIn(folder), { ...after, "a.3.txt": "8\n9\n10\n" });
    }
  }));

Deno.test("C2: pending files come back after they were removed", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a` }, lines = await open(options);
    await lines.write("one");
    await lines.prepare();
    await lines.write("two");
    const second = await lines.prepare(), before = await filesIn(folder);
    await lines.commit(second);
    await lines.done();
    await setFiles(folder, { a: "one\ntwo\n", ".a.pending-0-0": before[".a.pending-0-0"]! }); // the machine had crashed
    await recover(options, second);
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n" });
  }));

Deno.test("C2: lines that are nowhere are an error that names their file", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a` }, lines = await open(options);
    await lines.write("one");
    await lines.checkpoint();
    await lines.write("two");
    const second = await lines.prepare();
    await lines.write("three");
    const third = await lines.prepare();
    await lines.crash();
    const before = await filesIn(folder), pending = `${folder}/.a.pending-0-`;
    const lost = async (files: Files, committable: Committable, message: string) => {
      await setFiles(folder, files);
      await assert.rejects(recover(options, committable), { code: "pending_lost", message });
      assert.deepEqual(await filesIn(folder), files);
    };
    const start = (name: string) =>
      `file "${pending}${name}": lines that a checkpoint had prepared are lost: `;
    const two = "two\n", three = "three\n";
    await lost(
      { a: "one\nt" },
      second,
      `${start("4")}it is gone, and "${folder}/a", which would have 8 bytes with its lines, has 5 bytes`,
    );
    await lost(
      { ".a.pending-0-8": three },
      third,
      `${start("4")}it is gone, and "${folder}/a", which would have 8 bytes with its lines, does not exist`,
    );
    await lost(
      { a: "one\n", ".a.pending-0-4": two },
      third,
      `${start("8")}it is gone, and "${folder}/a", which would have 14 bytes with its lines, has 4 bytes`,
    );
    await lost({ ...before, ".a.pending-0-4": "tw" }, third, `${start("4")}it has 2 of its 4 bytes`);
    await setFiles(folder, { a: "one\n", ".a.pending-0-4": two, ".a.pending-0-8": three });
    await recover(options, third);
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\nthree\n" });
  }));

Deno.test("C3: a stale committable does not take the lines of a later run for its own", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a` };
    let lines = await open(options);
    await lines.write("one");
    const first = await lines.prepare();
    await lines.crash();
    await recover(options, first);
    lines = await open(options, first);
    await lines.write("two");
    const second = await lines.prepare();
    await lines.crash();
    const later = await filesIn(folder);
    assert.equal(await recover(options, first), "committed");
    assert.deepEqual(await filesIn(folder), later);
    assert.equal(await recover(options, second), "committed");
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n" });
  }));

Deno.test("C4: a file that has become shorter, or is gone, is an error with both lengths; nothing is touched", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a`, rollSize: 8 }, lines = await open(options);
    await lines.write("one", "two", "three");
    const first = await lines.checkpoint();
    await lines.write("4");
    const second = await lines.prepare();
    await lines.crash();
    const changed = async (files: Files, message: string) => {
      await setFiles(folder, files);
      const error = {
        code: "output_changed",
        message: `file "${folder}/a.1": it had 6 bytes at the checkpoint, now ${message}`,
      };
      await assert.rejects(open(options, first), error);
      await assert.rejects(recover(options, second), error);
      assert.deepEqual(await filesIn(folder), files);
    };
    const pending = { ".a.pending-1-6": "4\n" };
    await changed({ a: "one\ntwo\n", "a.1": "three", ...pending }, "it has 5 bytes");
    await changed({ a: "one\ntwo\n", ...pending }, "it does not exist");
    await setFiles(folder, { a: "one\ntwo\n", "a.1": "three" });
    const error = await open(options, first).catch((error) => error);
    assert.match(error.hint, /put the file back.*or start without the checkpoint/);
  }));

Deno.test("a run that goes on from a checkpoint cuts off what was committed behind it, and removes leftovers", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a.txt`, rollSize: 8 }, lines = await open(options);
    await lines.write("one", "two", "3");
    const first = await lines.checkpoint();
    await lines.write("4", "five", "six", "7", "8", "9");
    await lines.checkpoint();
    await lines.write("10");
    await lines.prepare();
    await lines.crash();
    const others = {
      ".a.txt.pending-notes": "mine",
      ".b.txt.pending-0-0": "of another",
      "a.txt.pending-0-0": "x",
    };
    for (const [name, text] of Object.entries(others)) await Deno.writeTextFile(`${folder}/${name}`, text);
    await Deno.writeTextFile(`${folder}/.a.txt.pending-77`, "left");
    assert.deepEqual(
      Object.keys(await filesIn(folder)).filter((name) => /^a(\.\d)?\.txt$/.test(name)).length,
      5,
    );
    const next = await open({ ...options, append: true }, first);
    assert.deepEqual(await filesIn(folder), { ...others, "a.txt": "one\ntwo\n", "a.1.txt": "3\n" });
    await next.write("vier");
    await next.checkpoint();
    await next.done();
    assert.deepEqual(await filesIn(folder), { ...others, "a.txt": "one\ntwo\n", "a.1.txt": "3\nvier\n" });
  }));

Deno.test("a run that has never made parts removes none when it goes on", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a.txt` }, lines = await open(options);
    await Deno.writeTextFile(`${folder}/a.1.txt`, "of somebody else");
    await lines.write("one");
    const first = await lines.checkpoint();
    await lines.crash();
    await (await open(options, first)).done();
    assert.deepEqual(await filesIn(folder), { "a.txt": "one\n", "a.1.txt": "of somebody else" });
  }));

Deno.test("parts of a run that rolled go when a run that does not comes back to the first part", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a.txt`, lines = await open({ path, rollSize: 8 });
    await lines.write("one");
    const first = await lines.checkpoint();
    await lines.write("two", "three", "four");
    await lines.checkpoint();
    await lines.crash();
    const files = await filesIn(folder);
    assert.deepEqual(files, { "a.txt": "one\ntwo\n", "a.1.txt": "three\n", "a.2.txt": "four\n" });
    const next = await open({ path }, first);
    assert.deepEqual(await filesIn(folder), { "a.txt": "one\n" });
    await next.write("2");
    assert.ok(!("rolls" in (await next.checkpoint() as object)));
    await next.done();
    // Those of before the field was there are as good as those of a run that does not roll.
    const { rolls, ...old } = first as unknown as FileCommittable;
    assert.equal(rolls, true);
    await setFiles(folder, files);
    await (await open({ path }, JSON.parse(JSON.stringify(old)))).done();
    assert.deepEqual(await filesIn(folder), { ...files, "a.txt": "one\n" });
    await setFiles(folder, files);
    await (await open({ path, rollSize: 8 }, JSON.parse(JSON.stringify(old)))).done();
    assert.deepEqual(await filesIn(folder), { "a.txt": "one\n" });
  }));

Deno.test("O4: a first run begins anew, or goes on with `append` behind what there is; leftovers go", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a`, rollSize: 8 };
    const files = { a: "one\ntwo\n", "a.1": "three\nto", ".a.pending-1-6": "left\n" };
    await setFiles(folder, files);
    let lines = await open({ ...options, append: true });
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n", "a.1": "three\nto\n" });
    await lines.write("4");
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n", "a.1": "three\nto\n", "a.2": "4\n" });
    await setFiles(folder, files);
    lines = await open(options);
    assert.deepEqual(await filesIn(folder), { a: "" });
    await lines.write("1");
    await lines.checkpoint();
    await lines.done();
    assert.deepEqual(await filesIn(folder), { a: "1\n" });
  }));

Deno.test("a checkpoint of another sink, or for another file, is refused and nothing is touched", () =>
  inFolder(async (folder) => {
    const lines = await open({ path: `${folder}/a` });
    await lines.write("one");
    const first = await lines.prepare() as FileCommittable;
    await lines.crash();
    await Deno.writeTextFile(`${folder}/b`, "somebody's\n");
    const before = await filesIn(folder), outside = { ...first.pending[0], name: "../b" };
    const bad: [string, Committable][] = [
      ["b", first],
      ["a", null],
      ["a", 7],
      ["a", { file: "a", part: 0 }],
      ["a", { ...first, length: -1 }],
      ["a", { ...first, rolls: 1 } as unknown as Committable],
      ["a", { ...first, pending: [outside] }],
      ["a", { ...first, pending: [{ ...first.pending[0], pieces: [] }] }],
    ];
    for (const [path, committable] of bad) {
      const options = { path: `${folder}/${path}` };
      await assert.rejects(open(options, committable), { code: "output_changed" });
      await assert.rejects(recover(options, committable), { code: "output_changed" });
    }
    assert.deepEqual(await filesIn(folder), before);
  }));

Deno.test("a pipe or a device is refused with checkpoints, and written to without", {
  ignore: Deno.build.os === "windows",
}, () =>
  inFolder(async (folder) => {
    const pipe = `${folder}/pipe`;
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    for (const path of ["/dev/null", pipe]) {
      await assert.rejects(open({ path }), {
        code: "not_a_file",
        message: new RegExp(`"${path}".*pipe or a device`),
      });
    }
    const writer = await fileSink({ path: "/dev/null" }).open(context());
    await writer.write(batchOf([1]));
    await writer.close("done");
    await assert.rejects(open({ path: folder }), { code: "file_error" });
    await Deno.writeTextFile(`${folder}/file`, "");
    await assert.rejects(open({ path: `${folder}/file/a` }), { code: "file_error" });
  }));

function lockedOut(path: string) {
  return {
    code: "output_locked",
    message: `file "${path}": another sink, or another run, is writing to it`,
    hint: /a file of its own.*stop the other run/,
  };
}

/** What the system shows of a folder, locks and all. */
function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** On Windows an open file keeps its name, so locks stay. */
function withLeftLock(...names: string[]): string[] {
  return (Deno.build.os === "windows" ? [".a.lock", ...names] : names).sort();
}

Deno.test("C5, W4: a second writer is locked out from open to close, and nothing is touched", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a`, options = { path };
    const lines = await open(options);
    await lines.write("one");
    const first = await lines.prepare();
    await lines.write("two");
    const before = await filesIn(folder);
    for (const restored of [undefined, first]) {
      await assert.rejects(open(options, restored), lockedOut(path));
      await assert.rejects(
        open({ path: "a", baseDirectory: folder, append: true }, restored),
        lockedOut(path),
      );
    }
    await assert.rejects(recover(options, first), lockedOut(path));
    assert.deepEqual(await filesIn(folder), before);
    const other = await open({ path: `${folder}/b` }); // another file is another's
    await other.done();
    await lines.commit(first);
    await lines.checkpoint();
    await assert.rejects(open(options), lockedOut(path));
    await lines.done();
    assert.deepEqual(
      namesIn(folder),
      withLeftLock("a", "b", ...(Deno.build.os === "windows" ? [".b.lock"] : [])),
    );
    assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n", b: "" });
    await (await open({ ...options, append: true })).done();
  }));

Deno.test("C5: the lock is let go by a close, a recovery, and whatever of them failed", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a`, options = { path };
    let lines = await open(options);
    await lines.write("one");
    const first = await lines.prepare();
    await lines.write("two");
    await lines.crash();
    assert.deepEqual(namesIn(folder), withLeftLock(".a.pending-0-0", "a"));
    for (let again = 0; again < 2; again++) {
      assert.equal(await recover(options, first), "committed");
      assert.deepEqual(namesIn(folder), withLeftLock("a"));
    }
    lines = await open(options, first);
    await lines.crash();
    await Deno.truncate(path, 1);
    await assert.rejects(open(options, first), { code: "output_changed" });
    await assert.rejects(recover(options, first), { code: "pending_lost" });
    await Deno.remove(path);
    await Deno.mkdir(path);
    await assert.rejects(open(options), { code: "file_error" });
    assert.deepEqual(namesIn(folder), withLeftLock("a"));
    await Deno.remove(path);
    lines = await open(options);
    await lines.write("three");
    await Deno.remove(`${folder}/.a.pending-0-0`);
    await Deno.mkdir(`${folder}/.a.pending-0-0/full`, { recursive: true });
    await assert.rejects(lines.crash(), { code: "file_error" }); // it cannot remove its pending file
    await Deno.remove(`${folder}/.a.pending-0-0`, { recursive: true });
    await (await open(options)).done();
    assert.deepEqual(namesIn(folder), withLeftLock("a"));
  }));

Deno.test("C5: a lock file that was left, or is taken away, is in nobody's way", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a`, lock = `${folder}/.a.lock`;
    await Deno.writeTextFile(lock, "left by a crash");
    const lines = await open({ path });
    await Deno.remove(lock);
    await Deno.writeTextFile(lock, "somebody else's");
    await lines.done();
    assert.equal(await Deno.readTextFile(lock), "somebody else's");
    await Deno.remove(lock);
    await Deno.mkdir(lock);
    await assert.rejects(open({ path }), { code: "file_error", message: /\.a\.lock": locking it failed/ });
    await assert.rejects(
      open({ path: `${lock}/deep/er/a` }, { file: "a", part: 0, length: 1, pending: [] }),
      {
        code: "output_changed",
      },
    );
  }));

Deno.test("C5: many that want the lock at once: one has it at a time, and no file is left", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a`, append: true };
    let inside = 0, rounds = 0;
    const contender = async () => {
      for (let won = 0, tries = 0; won < 20; tries++) {
        assert.ok(tries < 20_000, "nobody lets go");
        const lines = await open(options).catch((error) => {
          assert.equal(error.code, "output_locked");
        });
        if (lines === undefined) continue;
        assert.equal(++inside, 1);
        await lines.write(`${rounds++}`);
        await lines.checkpoint();
        inside--;
        await lines.done();
        won++;
      }
    };
    await Promise.all(Array.from({ length: 4 }, contender));
    assert.equal((await filesIn(folder)).a, Array.from({ length: 80 }, (_, i) => `${i}\n`).join(""));
    assert.deepEqual(namesIn(folder), withLeftLock("a"));
  }));

Deno.test("without checkpoints several runs may append to one file", () =>
  inFolder(async (folder) => {
    const options = { path: `${folder}/a`, append: true };
    const writers = [await fileSink(options).open(context()), await fileSink(options).open(context())];
    assert.deepEqual(namesIn(folder), ["a"]);
    for (const writer of writers) await writer.close("done");
  }));

const OTHER_PROCESS = `
  import { fileSink } from ${JSON.stringify(import.meta.resolve("./mod.ts"))};
  import { batchOf } from ${JSON.stringify(import.meta.resolve("../../lib/testing/sink_contract.ts"))};
  import { systemClock } from ${JSON.stringify(import.meta.resolve("../../lib/clock.ts"))};
  const writer = await fileSink({ path: Deno.args[0] }).open({
    id: "x", clock: systemClock, logger: { log() {} }, signal: new AbortController().signal,
    reject(batch, index, error) { throw error; }, checkpoints: { restored: undefined, interval: 1000 },
  }).catch((error) => console.log(error.code));
  if (writer === undefined) Deno.exit();
  await writer.write(batchOf([1]));
  console.log(JSON.stringify(await writer.prepare(1)));
  for await (const _ of Deno.stdin.readable); // until it is killed
`;

function otherProcess(script: string, path: string): Deno.ChildProcess {
  const config = new URL("../../deno.json", import.meta.url).pathname;
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", config, script, path],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
}

Deno.test("C5: another process is locked out as well, and one that is killed lets go", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a`, options = { path }, script = `${folder}/other.ts`;
    await Deno.writeTextFile(script, OTHER_PROCESS);
    const lines = await open(options);
    const locked = otherProcess(script, path);
    await locked.stdin.close();
    assert.equal(await new Response(locked.stdout).text(), "output_locked\n");
    await locked.status;
    await lines.done();
    const holder = otherProcess(script, path), output = holder.stdout.getReader();
    const committable = JSON.parse(new TextDecoder().decode((await output.read()).value));
    await assert.rejects(open(options), lockedOut(path));
    await assert.rejects(recover(options, committable), lockedOut(path));
    holder.kill("SIGKILL");
    await Promise.all([output.cancel(), holder.stdin.abort(), holder.status]);
    assert.ok(namesIn(folder).includes(".a.lock"));
    assert.equal(await recover(options, committable), "committed");
    await (await open(options, committable)).done();
    assert.deepEqual(namesIn(folder), withLeftLock("a", "other.ts"));
    assert.equal(await Deno.readTextFile(path), "1\n");
  }));

Deno.test("a failed write that is made again writes every line once and rejects no record twice", () =>
  inFolder(async (folder) => {
    const rejected: number[] = [], checkpoints = { restored: undefined, interval: 1000 };
    const reject = (_batch: unknown, index: number) => void rejected.push(index);
    const writer = await fileSink({ path: `${folder}/a` }).open(context({ checkpoints, reject }));
    const lines = new Lines(writer), first = batchOf([1, NaN, 2]), second = batchOf([3, NaN, 4]);
    await Deno.mkdir(`${folder}/.a.pending-0-0`); // the pending file cannot be opened
    await assert.rejects(async () => await writer.write(first), { code: "file_error" });
    await Deno.remove(`${folder}/.a.pending-0-0`);
    await writer.write(first);
    const restore = tearNextWrite(2);
    await assert.rejects(async () => await writer.write(second), {
      code: "file_error",
      message: /disk trouble/,
    });
    restore();
    assert.equal((await filesIn(folder))[".a.pending-0-0"], "1\n2\n3\n");
    await writer.write(second);
    await lines.checkpoint();
    assert.deepEqual(await filesIn(folder), { a: "1\n2\n3\n4\n" });
    const again = tearNextWrite(1);
    await assert.rejects(async () => await writer.write(batchOf([5])), { message: /disk trouble/ });
    again();
    await lines.checkpoint(); // the batch was given up: half of its line is not committed
    await lines.write(6);
    const last = await lines.prepare(), tear = tearNextWrite(1);
    await assert.rejects(lines.commit(last), { code: "file_error", message: /disk trouble/ });
    tear();
    assert.deepEqual((await filesIn(folder)).a, "1\n2\n3\n4\n6");
    await lines.commit(last);
    await lines.done();
    assert.deepEqual(rejected, [1, 1]);
    assert.deepEqual(await filesIn(folder), { a: "1\n2\n3\n4\n6\n" });
  }));

/** The next write to a file writes so many bytes and fails. */
function tearNextWrite(length: number): () => void {
  const { write } = Deno.FsFile.prototype;
  const restore = () => void (Deno.FsFile.prototype.write = write);
  Deno.FsFile.prototype.write = async function (this: Deno.FsFile, bytes: Uint8Array): Promise<number> {
    restore();
    await write.call(this, bytes.subarray(0, length));
    throw new Error("disk trouble");
  };
  return restore;
}

Deno.test("lines are copied whole where the system writes less than it is asked to", () =>
  inFolder(async (folder) => {
    const { write } = Deno.FsFile.prototype, texts = ["x", "y", "z"].map((text) => text.repeat(300_000));
    Deno.FsFile.prototype.write = function (this: Deno.FsFile, bytes: Uint8Array): Promise<number> {
      return write.call(this, bytes.subarray(0, Math.ceil(bytes.length / 2)));
    };
    try {
      const lines = await open({ path: `${folder}/a` });
      await lines.write(...texts);
      await lines.checkpoint();
      await lines.done();
    } finally {
      Deno.FsFile.prototype.write = write;
    }
    assert.ok((await filesIn(folder)).a === texts.map((text) => `${text}\n`).join(""));
  }));

Deno.test("what is prepared, and what is committed before its pending file goes, is on disk", {
  ignore: Deno.build.os === "windows",
}, () =>
  inFolder(async (folder) => {
    const { sync, syncData } = Deno.FsFile.prototype, synced: string[] = [];
    const note = async (file: Deno.FsFile) => {
      const { isDirectory, size } = await file.stat();
      const pending = Object.keys(await filesIn(folder)).filter((name) => name.startsWith("."));
      synced.push(`${isDirectory ? "folder" : `${size} bytes`}, pending: ${pending.length}`);
    };
    Deno.FsFile.prototype.sync = async function (this: Deno.FsFile) {
      await note(this);
      await sync.call(this);
    };
    Deno.FsFile.prototype.syncData = async function (this: Deno.FsFile) {
      await note(this);
      await syncData.call(this);
    };
    try {
      const lines = await open({ path: `${folder}/a`, rollSize: 8 });
      await lines.write("one", "two", "three");
      synced.length = 0;
      const first = await lines.prepare();
      assert.deepEqual(synced.splice(0), ["14 bytes, pending: 1", "folder, pending: 1"]);
      await lines.commit(first);
      assert.deepEqual(synced.splice(0), [
        "8 bytes, pending: 1",
        "6 bytes, pending: 1",
        "folder, pending: 1",
      ]);
      assert.deepEqual(await filesIn(folder), { a: "one\ntwo\n", "a.1": "three\n" });
      await lines.done();
    } finally {
      Object.assign(Deno.FsFile.prototype, { sync, syncData });
    }
  }));

Deno.test("when the run gives up, what is pending rejects, and the close waits for it", () =>
  inFolder(async (folder) => {
    const controller = new AbortController(), reason = new Error("given up by the test");
    const sink = fileSink({ path: `${folder}/a` });
    const lines = new Lines(
      await sink.open(
        context({ checkpoints: { restored: undefined, interval: 1000 }, signal: controller.signal }),
      ),
    );
    await lines.write(1);
    const first = await lines.prepare(), commit = lines.commit(first);
    controller.abort(reason);
    await assert.rejects(commit, reason);
    await lines.crash();
    assert.deepEqual(await filesIn(folder), { a: "1\n" });
  }));

/** What may happen next; a commit is of the oldest checkpoint that is durable and not committed. */
type Step = "write" | "barrier" | "barrier that fails" | "commit" | "crash";

Deno.test("whatever comes between, the files are those of a run that was never interrupted", async () => {
  const batches = fc.array(fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 5 }), { maxLength: 8 });
  const step = fc.constantFrom<Step>("write", "write", "barrier", "barrier that fails", "commit", "crash");
  await fc.assert(
    fc.asyncProperty(
      batches,
      fc.array(step, { maxLength: 30 }),
      fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
      (lengths, steps, rollSize) =>
        inFolder(async (folder) => {
          const input = lengths.map((batch, i) => batch.map((length) => `${i}`.repeat(length)));
          const rolls = rollSize === undefined ? {} : { rollSize };
          await Deno.mkdir(`${folder}/plain`);
          const plain = await fileSink({ path: `${folder}/plain/a.txt`, format: stringFormat(), ...rolls })
            .open(context());
          for (const batch of input) await plain.write(batchOf(batch));
          await plain.close("done");
          await runWithSteps({ path: `${folder}/two/a.txt`, ...rolls }, input, steps);
          assert.deepEqual(await filesIn(`${folder}/two`), await filesIn(`${folder}/plain`));
        }),
    ),
    { numRuns: 60 },
  );
});

async function runWithSteps(
  options: FileSinkOptions,
  input: readonly (readonly string[])[],
  steps: readonly Step[],
): Promise<void> {
  /** Checkpoints that are durable; how much of the input is in front of each. */
  let durable: { readonly next: number; readonly committable: Committable }[] = [], uncommitted = 0, next = 0;
  let lines = await open(options);
  const commit = async () => {
    if (uncommitted > 0) await lines.commit(durable.at(-uncommitted--)!.committable);
  };
  for (const step of steps) {
    if (step === "write" && next < input.length) await lines.write(...input[next++]!);
    else if (step === "barrier") {
      durable.push({ next, committable: await lines.prepare() });
      uncommitted++;
    } else if (step === "barrier that fails") await lines.prepare();
    else if (step === "commit") await commit();
    else if (step === "crash") {
      await lines.crash();
      const last = durable.at(-1);
      if (last !== undefined) await recover(options, last.committable);
      durable = last === undefined ? [] : [last];
      uncommitted = 0;
      next = last?.next ?? 0;
      lines = await open(options, last?.committable);
    }
  }
  while (next < input.length) await lines.write(...input[next++]!);
  durable.push({ next, committable: await lines.prepare() });
  uncommitted++;
  while (uncommitted > 0) await commit();
  await lines.done();
}
