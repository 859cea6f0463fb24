import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import type { Position, SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { codeOf } from "../../lib/errors.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { fileSource, type FileSourceOptions } from "./mod.ts";

/** A followed folder, its clock, and what has been read of it. */
class Following {
  readonly folder: string;
  readonly clock = new VirtualClock();
  readonly logged: string[] = [];
  readonly positions = new Map<string, Position>();
  readonly #controller = new AbortController();
  #reader!: SourceReader;
  #pending: Promise<SourceRead> | undefined;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async start(
    folder: string,
    options: FileSourceOptions,
    restored?: ReadonlyMap<string, Position>,
  ): Promise<Following> {
    const following = new Following(folder);
    const context: SourceContext = {
      id: "source",
      batchSize: 100,
      clock: following.clock,
      logger: { log: (level, message) => following.logged.push(`${level} ${message}`) },
      signal: following.#controller.signal,
      restored,
      keepsState: false,
    };
    following.#reader = await fileSource({ ...options, follow: true, baseDirectory: folder }).open(context);
    return following;
  }

  get splits(): readonly string[] {
    return this.#reader.splits;
  }

  /** The next read, the clock moved on as long as it waits for the next round. */
  async read(): Promise<SourceRead> {
    const found = this.#pending ?? this.#reader.read();
    this.#pending = undefined;
    if (!(found instanceof Promise)) return this.#note(found);
    let isSettled = false;
    found.then(() => isSettled = true, () => isSettled = true);
    while (!isSettled) await this.clock.advance(this.clock.alarms > 0 ? 200 : 0);
    return this.#note(await found);
  }

  /** Reads up to the end of a round: what came besides empty fetches, in order. */
  async round(): Promise<string[]> {
    const log: string[] = [], empty = new Set<string>();
    for (;;) {
      const read = await this.read();
      if (read.kind === "empty") {
        if (empty.has(read.split)) return log;
        empty.add(read.split);
        continue;
      }
      empty.clear();
      if (read.kind === "records") {
        log.push(...read.values.map((value) => `${read.split}: ${JSON.stringify(value)}`));
        log.push(...(read.failures ?? []).map(({ error }) => `${read.split}: ${codeOf(error)}`));
      } else if (read.kind === "added") log.push(`added ${read.splits.join(" ")}`);
      else if (read.kind === "ended") log.push(`ended ${read.split}`);
      else throw new Error(`unexpected ${read.kind}`);
    }
  }

  write(name: string, text: string): Promise<void> {
    return Deno.writeFile(`${this.folder}/${name}`, Buffer.from(text), { append: true });
  }

  async stop(): Promise<void> {
    this.#controller.abort(new Error("stopped"));
    await this.#reader.close("done");
  }

  #note(read: SourceRead): SourceRead {
    if (read.kind === "records") this.positions.set(read.split, read.position);
    return read;
  }
}

async function follow(
  files: Readonly<Record<string, string | Uint8Array>>,
  options: FileSourceOptions,
  run: (following: Following) => Promise<void>,
  restored?: ReadonlyMap<string, Position>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [name, content] of Object.entries(files)) {
      await Deno.writeFile(`${folder}/${name}`, Buffer.from(content));
    }
    const following = await Following.start(folder, options, restored);
    try {
      await run(following);
    } finally {
      await following.stop();
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("W1, W2: what is appended is read, a line once its line break is there; fetches without news are empty", async () => {
  await follow({ a: "1\n2" }, { path: "a" }, async (following) => {
    assert.deepEqual(await following.round(), ["a: 1"]);
    const before = following.clock.now();
    assert.deepEqual(await following.read(), { kind: "empty", split: "a" });
    assert.equal(following.clock.now() - before, 200);
    await following.write("a", "3");
    assert.deepEqual(await following.round(), []);
    await following.write("a", "\n{\n\n4");
    assert.deepEqual(await following.round(), ["a: 23", "a: not_json"]);
    await following.write("a", "5\r");
    assert.deepEqual(await following.round(), []);
    await following.write("a", "\n");
    assert.deepEqual(await following.round(), ["a: 45"]);
    assert.deepEqual(following.positions.get("a"), { bytes: 12, record: 4 });
  });
});

Deno.test("W1: all files of a pattern are followed side by side, and new ones are added", async () => {
  await follow(
    { b: "1\n", a: "2\n", x: "no" },
    { path: "{a,b,c,d}", pollInterval: "1s" },
    async (following) => {
      assert.deepEqual(following.splits, ["a", "b"]);
      assert.deepEqual(await following.round(), ["a: 2", "b: 1"]);
      await following.write("b", "3\n");
      await following.write("d", "5\n");
      await following.write("c", "4\n");
      assert.deepEqual((await following.round()).sort(), ["added c d", "b: 3", "c: 4", "d: 5"]);
      await following.write("a", "6\n");
      await following.write("d", "7\n");
      assert.deepEqual(await following.round(), ["a: 6", "d: 7"]);
    },
  );
});

Deno.test("a pattern or path that matches nothing yet is waited for, with a warning", async () => {
  await follow({}, { path: "later*.csv", format: "csv" }, async (following) => {
    assert.deepEqual(following.splits, []);
    assert.match(following.logged[0]!, /^warn no file matches "later\*\.csv" in folder .* yet$/);
    const pending = following.read();
    await following.write("later.csv", "a,b\n1,2\n");
    assert.deepEqual(await pending, { kind: "added", splits: ["later.csv"] });
    assert.deepEqual(await following.round(), ['later.csv: {"a":"1","b":"2"}']);
    await following.write("later.csv", '3,"4');
    assert.deepEqual(await following.round(), []);
    await following.write("later.csv", '\n5"\n');
    assert.deepEqual(await following.round(), ['later.csv: {"a":"3","b":"4\\n5"}']);
  });
});

Deno.test("W3: a file that was cut, or replaced by another, is an error", async () => {
  const options = { path: "a" };
  await follow({ a: "1\n2\n" }, options, async (following) => {
    await following.round();
    await Deno.truncate(`${following.folder}/a`, 2);
    await assert.rejects(following.read(), {
      code: "file_shrunk",
      message: /"a" has 2 bytes, but 4 had been read/,
    });
  });
  await follow({ a: "1\n2\n" }, options, async (following) => {
    await following.round();
    await Deno.writeTextFile(`${following.folder}/new`, "1\n2\n3\n");
    await Deno.rename(`${following.folder}/new`, `${following.folder}/a`);
    await assert.rejects(following.read(), { code: "file_replaced" });
  });
});

Deno.test("W4: a file that is removed has ended, its last line with it; under its name no other may come", async () => {
  await follow({ a: "1\n2", b: "" }, { path: "*" }, async (following) => {
    assert.deepEqual(await following.round(), ["a: 1"]);
    await Deno.remove(`${following.folder}/a`);
    assert.deepEqual(await following.round(), ["a: 2", "ended a"]);
    assert.match(following.logged[0]!, /"a" was removed/);
    await following.write("b", "3\n");
    assert.deepEqual(await following.round(), ["b: 3"]);
    await following.write("a", "4\n");
    await assert.rejects(following.round(), { code: "file_replaced" });
  });
});

Deno.test("W4: a compressed file among them is read to its end, once", async () => {
  await follow({ "a.gz": gzipSync("1\n2"), b: "3\n" }, { path: "*" }, async (following) => {
    assert.deepEqual(await following.round(), ["a.gz: 1", "a.gz: 2", "ended a.gz", "b: 3"]);
    await following.write("b", "4\n");
    assert.deepEqual(await following.round(), ["b: 4"]);
  });
});

Deno.test("a restored run goes on in every file, and finds those that were added meanwhile", async () => {
  const files = { a: "1\n2\n3\n", b: "4\n5", gone: "" };
  const positions: Position[] = [{ bytes: 2, record: 1 }, { bytes: 2, record: 1 }];
  await follow(files, { path: "[a-z]" }, async (following) => {
    assert.deepEqual(following.splits, ["a", "b", "lost"]);
    assert.deepEqual(await following.round(), ["a: 2", "a: 3", "ended lost"]);
    await following.write("b", "6\n");
    await following.write("c", "7\n");
    assert.deepEqual((await following.round()).sort(), ["added c", "b: 56", "c: 7"]);
    assert.deepEqual(following.positions.get("b"), { bytes: 5, record: 2 });
  }, new Map([["a", positions[0]], ["b", positions[1]], ["lost", positions[0]]]));
});
