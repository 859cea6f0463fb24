import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { bytesFormat, csvFormat, type Format, stringFormat } from "../../lib/format/mod.ts";
import { silentLogger } from "../../lib/log.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { failure, sourceContract } from "../../lib/testing/source_contract.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { type Output, stdinSource, stdoutSink } from "./mod.ts";

function bytesOf(...parts: (string | Uint8Array)[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new Uint8Array(Buffer.from(part)));
      controller.close();
    },
  });
}

sourceContract({
  name: "stdin source",
  setUp: () => ({ source: stdinSource({ input: bytesOf('{"a":', "1}\n\r\n", "2\n{", "}\nx\n", '"end"') }) }),
  expected: [{ split: "stdin", records: [{ a: 1 }, 2, {}, failure("not_json"), "end"] }],
  positions: "cannot be replayed",
  waiting: () => ({ source: stdinSource({ input: new ReadableStream() }) }),
});

sourceContract({
  name: "stdin source with csv",
  setUp: () => ({
    source: stdinSource({
      format: "csv",
      csv: { types: { n: "number" } },
      input: bytesOf("a,n\nx", ",1\n", "y,2"),
    }),
  }),
  expected: [{ split: "stdin", records: [{ a: "x", n: 1 }, { a: "y", n: 2 }] }],
  positions: "cannot be replayed",
});

/** An output that takes at most a few bytes at a time. */
function smallOutput(most = 7): { readonly output: Output; text(): string } {
  const parts: Uint8Array[] = [];
  return {
    output: {
      write(bytes) {
        const taken = bytes.slice(0, most);
        parts.push(taken);
        return Promise.resolve(taken.length);
      },
    },
    text: () => Buffer.concat(parts).toString(),
  };
}

sinkContract({
  name: "stdout sink",
  setUp: () => {
    const { output, text } = smallOutput();
    return {
      sink: stdoutSink({ output }),
      written: () => text().split("\n").slice(0, -1).map((line) => JSON.parse(line)),
    };
  },
  unwritable: { value: { bad: NaN }, code: "not_json_number" },
  blocked: () => ({
    sink: stdoutSink({ output: { write: () => new Promise(() => {}) } }),
    written: () => [],
  }),
});

const context = () => ({
  id: "sink",
  clock: new VirtualClock(),
  logger: silentLogger,
  signal: new AbortController().signal,
  reject: (_: unknown, __: number, error: Error) => {
    throw error;
  },
});

async function written(values: unknown[], format?: Format): Promise<string> {
  const { output, text } = smallOutput(3);
  const writer = await stdoutSink({ output, ...(format === undefined ? {} : { format }) }).open(context());
  await writer.write(batchOf(values.slice(0, 1)));
  await writer.write(batchOf(values.slice(1)));
  await writer.close("done");
  return text();
}

Deno.test("stdout sink: values are written as their format says", async () => {
  assert.equal(await written(["a\nb", { c: 1n }, -0]), '"a\\nb"\n{"c":1}\n0\n');
  assert.equal(await written(["a", { c: 1 }, Uint8Array.of(0xc3, 0xa9)], stringFormat()), 'a\n{"c":1}\né\n');
  assert.equal(await written([Uint8Array.of(65), "b", Uint8Array.of(67, 68)], bytesFormat()), "A\nb\nCD\n");
  assert.equal(await written([{ a: 1, b: "x,y" }, { b: null, a: "é" }], csvFormat()), 'a,b\n1,"x,y"\né,\n');
  await assert.rejects(written([1], bytesFormat()), { code: "not_bytes" });
  await assert.rejects(written(["\ud800"], stringFormat()), { code: "not_utf8" });
});

Deno.test("stdout sink: a batch that is written again after an error goes on where it stopped", async () => {
  const { output, text } = smallOutput(4);
  let isBroken = false, writes = 0;
  const writer = await stdoutSink({
    output: {
      write: (bytes) =>
        ++writes === 2 && !isBroken
          ? (isBroken = true, Promise.reject(new Error("busy")))
          : output.write(bytes),
    },
  }).open(context());
  const batch = batchOf(["one", "two"]);
  await assert.rejects(async () => await writer.write(batch), { code: "stdout_failed", message: /busy/ });
  await writer.write(batch);
  await writer.write(batchOf(["three"]));
  assert.equal(text(), '"one"\n"two"\n"three"\n');
  await writer.close("done");
});

Deno.test("stdin source: it has one reader, and a restored run counts on and warns", async () => {
  const input = bytesOf("1\n2\n"), warnings: string[] = [];
  const source = stdinSource({ input });
  const reader = await source.open({
    id: "source",
    batchSize: 10,
    clock: new VirtualClock(),
    logger: { log: (level) => warnings.push(level) },
    signal: new AbortController().signal,
    restored: new Map([["stdin", { bytes: 100, record: 7 }]]),
    keepsState: false,
  });
  const read = await reader.read();
  assert.ok(read.kind === "records");
  assert.deepEqual([read.firstOffset, read.values, warnings], [7, [1, 2], ["warn"]]);
  await reader.close("done");
});

const PROGRAM = `
  import { stdinSource, stdoutSink } from ${JSON.stringify(import.meta.resolve("./mod.ts"))};
  import { batchOf } from ${JSON.stringify(import.meta.resolve("../../lib/testing/sink_contract.ts"))};
  import { systemClock } from ${JSON.stringify(import.meta.resolve("../../lib/clock.ts"))};
  const controller = new AbortController();
  const common = { id: "x", clock: systemClock, logger: { log() {} }, signal: controller.signal };
  const reader = await stdinSource().open({ ...common, batchSize: 1000, restored: undefined });
  const writer = await stdoutSink().open({ ...common, reject(batch, index, error) { throw error; } });
  try {
    if (Deno.args[0] === "abort") queueMicrotask(() => controller.abort(new Error("stop")));
    for (;;) {
      const read = await reader.read();
      if (read.kind === "end") break;
      if (read.kind === "records") await writer.write(batchOf(read.values));
    }
    await writer.flush();
  } catch (error) {
    console.error(error.code ?? error.message);
    Deno.exitCode = 1;
  } finally {
    await reader.close("done");
    await writer.close("done");
  }
`;

async function program(...args: string[]): Promise<{ process: Deno.ChildProcess; remove(): Promise<void> }> {
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(path, PROGRAM);
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", config, path, ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  return { process, remove: () => Deno.remove(path) };
}

Deno.test("the process's own streams: what goes in comes out", async () => {
  const { process, remove } = await program();
  const lines = Array.from({ length: 20_000 }, (_, i) => `{"id":${i},"text":"${"é".repeat(20)}"}\n`).join("");
  const out = new Response(process.stdout).text(), errors = new Response(process.stderr).text();
  const input = process.stdin.getWriter();
  await input.write(new TextEncoder().encode(lines));
  await input.close();
  assert.equal(await out, lines);
  assert.equal(await errors, "");
  assert.equal((await process.status).code, 0);
  await remove();
});

Deno.test("a reader of stdout that goes away ends the run with stdout_closed", async () => {
  const { process, remove } = await program();
  const errors = new Response(process.stderr).text();
  const reader = process.stdout.getReader(), input = process.stdin.getWriter();
  const line = new TextEncoder().encode(`"${"x".repeat(10_000)}"\n`);
  await input.write(line);
  await reader.read();
  await reader.cancel();
  const feeding = (async () => {
    for (let i = 0; i < 1000; i++) await input.write(line);
  })();
  await feeding.catch(() => {}); // the program is gone, and its end of the pipe with it
  assert.match(await errors, /^stdout_closed$/m);
  assert.equal((await process.status).code, 1);
  await input.close().catch(() => {});
  await remove();
});

Deno.test("a stop ends a process that waits for standard input which never comes", async () => {
  const { process, remove } = await program("abort");
  const [errors, out] = await Promise.all([
    new Response(process.stderr).text(),
    new Response(process.stdout).text(),
  ]);
  assert.deepEqual([errors.trim(), out, (await process.status).code], ["stop", "", 1]);
  await process.stdin.close();
  await remove();
});
