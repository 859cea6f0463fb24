/**
 * The program as a process of its own: exit codes, streams, signals, folders.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROGRAM = ["run", "-A", "--no-check", `${ROOT}cli.ts`];

/** A folder with these files, gone at the end. */
async function folder(
  files: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(`${path}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${path}/${name}`, text);
  }
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

interface Started {
  readonly child: Deno.ChildProcess;
  /** Resolves once standard error, or standard output, holds the text. */
  said(text: string): Promise<void>;
  wrote(text: string): Promise<void>;
  readonly out: Promise<string>;
  readonly err: Promise<string>;
}

/** Where and how the program is started. */
interface Start {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: "piped" | "null";
  /** What deno is told, instead of to run the program. */
  readonly command?: readonly string[];
}

function start(
  args: readonly string[],
  { cwd, env = {}, stdin = "null", command = PROGRAM }: Start,
): Started {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...command, ...args],
    cwd,
    env: { INIT_CWD: "", NO_COLOR: "1", ...env },
    stdin,
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const out = kept(child.stdout), err = kept(child.stderr);
  return { child, said: err.holds, wrote: out.holds, out: out.all, err: err.all };
}

/** Reads a stream to its end, and tells when it has brought a text. */
function kept(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): { readonly all: Promise<string>; holds(wanted: string): Promise<void> } {
  let text = "";
  const looks = new Set<() => void>();
  const all = (async () => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      text += part;
      for (const look of looks) look();
    }
    return text;
  })();
  return {
    all,
    holds: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => text.includes(wanted) && resolve();
        looks.add(look);
        look();
        all.then(() => reject(new Error(`"${wanted}" did not come: ${text}`)), reject);
      }),
  };
}

/** Interrupts a program until it has ended: signals that come together are one interrupt. */
async function interruptAgain({ child }: Started): Promise<void> {
  const timer = setInterval(() => child.kill("SIGINT"), 50);
  try {
    await child.status;
  } finally {
    clearInterval(timer);
  }
}

async function ended({ child, out, err }: Started): Promise<{ code: number; out: string; err: string }> {
  const [{ code }, outText, errText] = await Promise.all([child.status, out, err]);
  return { code, out: outText, err: errText };
}

const mailer = (args: readonly string[], where: Start) => ended(start(args, where));

const COPY = `name: copy
source: { type: slice, records: [ { value: { a: 1 } }, { value: { a: 2 } } ] }
sink: { type: stdout }
`;
/** Reads what it is given until it is stopped. */
const PIPE = `name: pipe
source: { type: stdin }
sink: { type: stdout }
`;
/** Never comes to an end by itself. */
const STUCK = `name: stuck
env: { shutdownTimeout: 1h }
source: { type: slice, records: [ { value: 1 }, { value: 2 }, { value: 3 } ] }
pipeline: [ { id: slow, type: throttle, throttle: { rate: 1, per: 1h } } ]
sink: { type: stdout }
`;

Deno.test("results go to standard output and nothing else does", async () => {
  await using dir = await folder({ "copy.yaml": COPY });
  const { code, out, err } = await mailer(["run", "copy.yaml"], { cwd: dir.path });
  assert.deepEqual([code, out], [0, '{"a":1}\n{"a":2}\n']);
  assert.match(err, /^copy: finished: 2 read, 2 written in \S+ m?s\n$/);
});

Deno.test("exit codes: a failed run 1, an invalid or missing document 2", async () => {
  await using dir = await folder({
    "bad.yaml": COPY.replace(
      "sink:",
      "pipeline: [ { id: add, type: map, map: { expr: value.b + 1 } } ]\nsink:",
    ),
    "invalid.yaml": COPY.replace("stdout", "stdot"),
  });
  const bad = await mailer(["run", "bad.yaml"], { cwd: dir.path });
  assert.deepEqual([bad.code, bad.out], [1, ""]);
  assert.match(bad.err, /^error: operator "add": .*b.* \(record from source\/\S+ at offset 0\)\n/);
  assert.equal(/^\s+at /m.test(bad.err), false);
  const invalid = await mailer(["run", "invalid.yaml", "missing.yaml"], { cwd: dir.path });
  assert.deepEqual([invalid.code, invalid.out], [2, ""]);
  assert.match(
    invalid.err,
    /^invalid\.yaml:3:15: sink\.type: .*did you mean "stdout".*\nerror: cannot read missing\.yaml/,
  );
});

for (const signal of Deno.build.os === "windows" ? ["SIGINT"] as const : ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`${signal} once: what was read is written, then the program ends with 0`, async () => {
    await using dir = await folder({ "pipe.yaml": PIPE });
    const started = start(["run", "--verbose", "pipe.yaml"], { cwd: dir.path, stdin: "piped" });
    const stdin = started.child.stdin.getWriter();
    await stdin.write(new TextEncoder().encode('{"a":1}\n'));
    await started.wrote('{"a":1}\n');
    started.child.kill(signal);
    const { code, out, err } = await ended(started);
    assert.deepEqual([code, out], [0, '{"a":1}\n'], err);
    assert.match(
      err,
      /^pipe: running\ndraining; interrupt again to stop at once\npipe: stopped: 1 read, 1 written in /,
    );
    await stdin.close().catch(() => {}); // the program is gone, and its end of the pipe with it
  });
}

Deno.test("interrupted twice: the program ends at once, with 130", async () => {
  await using dir = await folder({ "stuck.yaml": STUCK });
  const started = start(["run", "--verbose", "stuck.yaml"], { cwd: dir.path });
  await started.said("stuck: running\n");
  started.child.kill("SIGINT");
  await started.said("draining; interrupt again to stop at once\n");
  await interruptAgain(started);
  const { code, err } = await ended(started);
  assert.equal(code, 130);
  assert.match(err, /\nstopping at once\nstuck: aborted: 3 read, \d written in /);
});

Deno.test("a drain past its deadline names what is stuck, and ends with 3", async () => {
  await using dir = await folder({ "stuck.yaml": STUCK.replace("1h }\nsource", "50ms }\nsource") });
  const started = start(["run", "--verbose", "stuck.yaml"], { cwd: dir.path });
  await started.said("stuck: running\n");
  started.child.kill("SIGINT");
  const { code, err } = await ended(started);
  assert.equal(code, 3);
  assert.match(err, /^error: not drained within 50 ms: .*"slow".*\nhint: .*\nstuck: failed: /m);
});

Deno.test("a reader of standard output that goes away ends the program without a word", async () => {
  const values = Array.from({ length: 2000 }, (_, i) => `{ value: ${JSON.stringify("x".repeat(500) + i)} }`);
  const source = `name: big\nsource: { type: slice, records: [ ${
    values.map((v) => v.replace(/"(.*)"/, "'\"$1\"'")).join(", ")
  } ] }\n`;
  await using dir = await folder({
    "big.yaml": `${source}sink: { type: stdout }\n`,
    "two.yaml":
      `${source}sinks: [ { id: a, type: stdout }, { id: b, type: file, file: { path: out.ndjson } } ]\n`,
  });
  const cut = async (file: string) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: [...PROGRAM, "run", file],
      cwd: dir.path,
      env: { INIT_CWD: "", NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const err = new Response(child.stderr).text(), reader = child.stdout.getReader();
    await reader.read();
    await reader.cancel();
    const { code } = await child.status;
    return { code, err: await err };
  };
  assert.deepEqual(await cut("big.yaml"), { code: 0, err: "" });
  const two = await cut("two.yaml");
  assert.equal(two.code, 1, "another sink was cut off, too: that is a failure");
  assert.match(two.err, /^error: .*standard output/);
});

Deno.test("`deno task run FILE` takes FILE from where the user stands; its paths start at the document", async () => {
  await using dir = await folder({
    "sub/copy.yaml": COPY.replace("stdout", "file, file: { path: out.ndjson }"),
  });
  const task = ["task", "--quiet", "--config", `${ROOT}deno.json`, "run", "sub/copy.yaml"];
  const { code, err } = await mailer([], { cwd: dir.path, command: task, env: { INIT_CWD: dir.path } });
  assert.equal(code, 0, err);
  assert.equal(await Deno.readTextFile(`${dir.path}/sub/out.ndjson`), '{"a":1}\n{"a":2}\n');
  const elsewhere = await mailer(["run", "copy.yaml"], {
    cwd: dir.path,
    env: { INIT_CWD: `${dir.path}/sub` },
  });
  assert.equal(elsewhere.code, 0, elsewhere.err);
});

Deno.test("several workflows run side by side; the first failure stops the others gracefully", async () => {
  const bad = COPY.replace("name: copy", "name: bad").replace(
    "sink:",
    "pipeline: [ { id: no, type: map, map: { expr: value.b } } ]\nsink:",
  );
  await using dir = await folder({ "bad.yaml": bad, "pipe.yaml": PIPE });
  const started = start(["run", "pipe.yaml", "bad.yaml"], { cwd: dir.path, stdin: "piped" });
  const { code, err } = await ended(started);
  assert.equal(code, 1);
  assert.match(err, /^error: bad: operator "no": /m);
  assert.match(err, /^pipe: stopped: 0 read, 0 written in /m);
  await started.child.stdin.close().catch(() => {}); // the program is gone, and its end of the pipe with it
});

Deno.test("a secret from the environment is shown nowhere", async () => {
  const dsn = "postgres, postgres: { dsn: '${DSN}', table: t, mapping: { a: a }, maxRetries: 0, mod: x }";
  await using dir = await folder({
    "s.yaml": COPY.replace("stdout", dsn),
    "ok.yaml": COPY.replace("stdout", dsn.replace(", mod: x", "")),
  });
  const env = { DSN: "postgres://u:hunter2secret@h/d" };
  for (
    const args of [["validate", "s.yaml"], ["run", "--debug", "ok.yaml"], ["explain", "--debug", "ok.yaml"], [
      "lint",
      "ok.yaml",
    ]]
  ) {
    const { out, err } = await mailer(args, { cwd: dir.path, env });
    assert.notEqual(out + err, "");
    assert.equal((out + err).includes("hunter2secret"), false, args.join(" "));
  }
});

Deno.test("progress is shown where there is no terminal only when asked for", async () => {
  await using dir = await folder({ "stuck.yaml": STUCK });
  const started = start(["run", "--progress", "stuck.yaml"], { cwd: dir.path });
  await started.said("/s");
  started.child.kill("SIGINT");
  await started.said("draining");
  await interruptAgain(started);
  const { err } = await ended(started);
  assert.match(err, /^stuck: running\nstuck: 3 read, \d written, \d+\/s/);
  assert.equal(err.includes("\x1b"), false);
});

Deno.test("a bundle of the program works like the program", async () => {
  await using dir = await folder({ "copy.yaml": COPY });
  const bundled = await mailer([], {
    cwd: ROOT,
    command: ["bundle", "--quiet", "-o", `${dir.path}/mailer.js`, "cli.ts"],
  });
  assert.equal(bundled.code, 0, bundled.err);
  const command = ["run", "-A", "--no-config", `${dir.path}/mailer.js`];
  const { code, out } = await mailer(["run", "-q", "copy.yaml"], { cwd: dir.path, command });
  assert.deepEqual([code, out], [0, '{"a":1}\n{"a":2}\n']);
  assert.match((await mailer(["version"], { cwd: dir.path, command })).out, /^mailer \d/);
});
