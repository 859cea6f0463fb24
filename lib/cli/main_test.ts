import assert from "node:assert/strict";
import { world } from "./kit_test.ts";

const COPY = `name: copy
source:
  type: slice
  records: [ { value: 1 }, { value: 2 }, { value: 3 } ]
pipeline:
  - { id: most, type: filter, filter: { where: value > 1 } }
sink: { type: stdout }
`;
/** With an operator that this build does not carry. */
const BATCHED = COPY.replace("type: filter, filter: { where: value > 1 }", "type: batch, batch: { size: 2 }");

Deno.test("run: everything is read and written, and the closing line says so", async () => {
  await using w = await world({ files: { "copy.yaml": COPY } });
  const { code, out, err } = await w.mailer("run", "copy.yaml");
  assert.deepEqual([code, out, w.rows("sink")], [0, "", [2, 3]]);
  assert.match(err, /^copy: finished: 3 read, 2 written in \d+ ms\n$/);
  assert.deepEqual(w.files(), ["copy.yaml"]);
});

Deno.test("run: --quiet says nothing, --verbose when it runs, --json all in one line", async () => {
  await using w = await world({ files: { "copy.yaml": COPY } });
  assert.deepEqual(await w.mailer("run", "-q", "copy.yaml"), { code: 0, out: "", err: "" });
  assert.match((await w.mailer("run", "--verbose", "copy.yaml")).err, /^copy: running\ncopy: finished: /);
  const { err } = await w.mailer("run", "copy.yaml", "--json");
  const { elapsedMs, ...closing } = JSON.parse(err);
  assert.equal(typeof elapsedMs, "number");
  assert.deepEqual(closing, {
    workflow: "copy",
    outcome: "finished",
    read: 3,
    written: 2,
    deadLetters: 0,
    dropped: {},
    restarts: 0,
  });
});

Deno.test("run: with --json every line on standard error is a JSON object, of a run that fails too", async () => {
  const bad = COPY.replace("value > 1", "value.a > 1");
  await using w = await world({ files: { "copy.yaml": COPY, "bad.yaml": bad } });
  const flags = ["--json", "--verbose", "--progress", "--debug", "--metrics", "127.0.0.1:0"];
  const lines = async (...args: string[]) =>
    (await w.mailer("run", ...args, ...flags)).err.trimEnd().split("\n").map((line) => JSON.parse(line));
  const fine = await lines("copy.yaml");
  assert.deepEqual(fine.map(({ event }) => event).filter((event) => event !== "progress"), [
    "metrics",
    "running",
    undefined,
  ]);
  assert.match(fine[0].url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const { outcome, error } = (await lines("bad.yaml")).at(-1);
  assert.equal(outcome, "failed");
  assert.match(error.message, /^operator "most": /);
  assert.equal(Array.isArray(error.stack), true);
  await using other = await world({ files: { "batch.yaml": BATCHED } });
  const { err } = await other.mailer("run", "batch.yaml", "--json");
  assert.deepEqual(Object.keys(JSON.parse(err)), ["event", "error"]);
});

Deno.test("run: all problems of all documents at once, nothing is run, exit code 2", async () => {
  const bad = COPY.replace("where: value > 1", "were: value > 1").replace("stdout", "stdou");
  await using w = await world({ files: { "copy.yaml": COPY, "bad.yaml": bad } });
  const { code, out, err } = await w.mailer("run", "bad.yaml", "copy.yaml", "missing.yaml");
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(err, /^bad\.yaml:6:41: pipeline\[0\] "most"\.filter\.were: .*did you mean "where"/m);
  assert.match(err, /^bad\.yaml:7:15: sink\.type: .*did you mean "stdout"/m);
  assert.match(
    err,
    /^error: cannot read missing\.yaml: there is no such file\nhint: looked for \/.*missing\.yaml$/m,
  );
  assert.deepEqual(w.rows("sink"), []);
  const json = await w.mailer("run", "--json", "bad.yaml", "missing.yaml");
  assert.deepEqual([json.code, json.err], [2, ""]);
  const problems = json.out.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(problems.at(-1).code, "unreadable_document");
  assert.deepEqual(Object.keys(problems[0]), ["file", "line", "column", "path", "code", "message", "hint"]);
});

Deno.test("run: a record error names operator and position, without a stack trace", async () => {
  await using w = await world({ files: { "bad.yaml": COPY.replace("value > 1", "value.a > 1") } });
  const { code, err } = await w.mailer("run", "bad.yaml");
  assert.equal(code, 1);
  assert.match(err, /^error: operator "most": .* \(record from source\/0 at offset 0\)\n/);
  assert.match(err, /^bad: failed: 3 read, 0 written|^copy: failed: 3 read, 0 written/m);
  assert.equal(/^\s+at /m.test(err), false);
  assert.match((await w.mailer("run", "--debug", "bad.yaml")).err, /^\s+at /m);
});

Deno.test("run: of several workflows the one that failed is named, and its error decides", async () => {
  const bad = COPY.replace("name: copy", "name: bad").replace("value > 1", "value.a > 1");
  await using w = await world({ files: { "copy.yaml": COPY, "bad.yaml": bad } });
  const { code, err } = await w.mailer("run", "copy.yaml", "bad.yaml");
  assert.equal(code, 1);
  assert.match(err, /^error: bad: operator "most": /m);
  assert.match(err, /^bad: failed: /m);
  assert.match(err, /^copy: (finished|stopped): /m);
});

Deno.test("run: what this build does not carry is listed, exit code 1", async () => {
  await using w = await world({ files: { "batch.yaml": BATCHED } });
  const { code, err } = await w.mailer("run", "batch.yaml");
  assert.equal(code, 1);
  assert.match(
    err,
    /^error: the workflow is valid, but this build does not carry yet:\n {2}line 6: .*operator batch/,
  );
  assert.match(
    (await w.mailer("validate", "batch.yaml")).out,
    /^batch\.yaml: valid: copy, 1 operator, at-most-once\n {2}line 6: /,
  );
});

Deno.test("run: --metrics serves Prometheus text and health while it runs, at an address it prints", async () => {
  const slow = COPY.replace(
    "pipeline:",
    "pipeline:\n  - { id: slow, type: throttle, throttle: { rate: 1, per: 1h } }",
  );
  await using w = await world({ files: { "slow.yaml": slow } });
  const printed = Promise.withResolvers<string>();
  const write = w.host.stderr.write;
  w.host.stderr.write = (text) => {
    write(text);
    const url = /^metrics: (.*)\/metrics$/m.exec(text)?.[1];
    if (url !== undefined) printed.resolve(url);
  };
  const { main } = await import("./main.ts");
  const code = main(["run", "--metrics", "127.0.0.1:0", "--buffer-size", "1", "slow.yaml"], w.host);
  const url = await printed.promise;
  const get = async (path: string) => {
    const response = await fetch(url + path);
    return { status: response.status, text: await response.text() };
  };
  const metrics = await get("/metrics");
  assert.equal(metrics.status, 200);
  assert.match(metrics.text, /^mailer_edge_capacity_records\{edge="source->slow",pipeline="copy"\} 1$/m);
  assert.deepEqual(await get("/healthz"), { status: 200, text: "ok\n" });
  assert.deepEqual(await get("/readyz"), { status: 200, text: "ready\n" });
  assert.equal((await get("/x")).status, 404);
  w.interrupt();
  assert.deepEqual(await get("/readyz"), { status: 503, text: "copy: stopping\n" });
  w.interrupt();
  assert.equal(await code, 130);
  await assert.rejects(fetch(`${url}/healthz`));
});

Deno.test("usage: unknown commands and options get a did-you-mean and exit code 2", async () => {
  await using w = await world();
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["rn", "x.yaml"], /^error: unknown command 'rn'\nhint: did you mean run\?\n$/],
    [["frobnicate"], /^error: unknown command 'frobnicate'\nhint: one of: run, validate, /],
    [["help", "rn"], /^error: unknown command 'rn'\nhint: did you mean run\?\n$/],
    [["help", "frobnicate"], /^error: unknown command 'frobnicate'\nhint: one of: run, validate, /],
    [["x.yaml"], /^error: unknown command 'x\.yaml'\nhint: did you mean: mailer run x\.yaml\n$/],
    [["run", "--quite", "x.yaml"], /^error: unknown option '--quite'\nhint: did you mean --quiet\?\n$/],
    [["run"], /^error: missing required argument 'FILE'\nhint: mailer run --help shows what there is\n$/],
    [["explain", "a", "b"], /^error: too many arguments/],
    [
      ["run", "--metrics", "9090", "x"],
      /^error: option '--metrics <HOST:PORT>' argument '9090' is invalid\. expected HOST:PORT/,
    ],
    [["run", "--buffer-size", "0", "x"], /expected a whole number from 1/],
    [["run", "--log-level", "loud", "x"], /expected one of debug, info, warn, error/],
    [
      ["new", "windw"],
      /^error: there is no template "windw"\nhint: did you mean "window"\? mailer new lists all kinds\n$/,
    ],
    [[], /^Usage: mailer COMMAND/],
  ];
  for (const [args, expected] of cases) {
    const { code, out, err } = await w.mailer(...args);
    assert.deepEqual([code, out], [2, ""], args.join(" "));
    assert.match(err, expected);
  }
});

Deno.test("help is printed on standard output", async () => {
  await using w = await world();
  for (const args of [["help"], ["--help"], ["-h"]]) {
    const { code, out, err } = await w.mailer(...args);
    assert.deepEqual([code, err], [0, ""]);
    for (
      const name of ["run", "validate", "lint", "explain", "test", "new", "schema", "reference", "version"]
    ) {
      assert.match(out, new RegExp(`^  ${name}\\b`, "m"));
    }
  }
  assert.match((await w.mailer("help", "run")).out, /^Usage: mailer run \[options\] FILE…/);
  assert.match((await w.mailer("run", "--help")).out, /Exit codes: 0 done/);
});

Deno.test("validate: one line of text, or of JSON, for each problem", async () => {
  const bad = COPY.replace("stdout", "stdou");
  await using w = await world({ files: { "copy.yaml": COPY, "bad.yaml": bad } });
  assert.deepEqual(await w.mailer("validate", "copy.yaml"), {
    code: 0,
    out: "copy.yaml: valid: copy, 1 operator, at-most-once\n",
    err: "",
  });
  const text = await w.mailer("validate", "bad.yaml", "copy.yaml");
  assert.deepEqual([text.code, text.out.split("\n").length], [2, 3]);
  assert.match(text.out, /^bad\.yaml:7:15: sink\.type: .*\ncopy\.yaml: valid/);
  const json = await w.mailer("validate", "--json", "bad.yaml", "copy.yaml");
  assert.equal(json.code, 2);
  assert.deepEqual({ ...JSON.parse(json.out), message: "" }, {
    file: "bad.yaml",
    line: 7,
    column: 15,
    path: "sink.type",
    code: JSON.parse(json.out).code,
    message: "",
    hint: 'did you mean "stdout"?',
  });
  assert.deepEqual(w.files(), ["bad.yaml", "copy.yaml"]);
});

Deno.test("validate: what is unset is a problem, unless allowed; what is set is never shown", async () => {
  const kafka = `name: k
source:
  type: kafka
  kafka: { brokers: [b:1], topic: t, groupID: g, deserialise: x, sasl: { mechanism: plain, username: u, password: "\${PASS}" } }
sink: { type: stdout }
`;
  await using w = await world({
    files: { "k.yaml": kafka, "ok.yaml": kafka.replace("deserialise: x, ", "") },
  });
  assert.match((await w.mailer("validate", "ok.yaml")).out, /\$\{PASS\} is not set/);
  assert.equal((await w.mailer("validate", "--allow-unset", "ok.yaml")).code, 0);
  await using set = await world({ files: { "k.yaml": kafka }, env: { PASS: "deserialise" } });
  const { out, err } = await set.mailer("validate", "k.yaml");
  assert.equal((out + err).includes("deserialise"), false);
  assert.match(out, /\*\*\*/);
});

Deno.test("a workflow given to test, or tests given to another command, is one problem that names the command", async () => {
  await using w = await world({
    files: {
      "copy.yaml": COPY,
      "copy.test.yaml": "workflow: copy.yaml\ncases:\n  - { name: a, expect: { sink: [2, 3] } }\n",
      "odd.test.yaml": "workflow: copy.test.yaml\ncases:\n  - { name: a, expect: { sink: [] } }\n",
    },
  });
  const tests = "copy.test.yaml:1:1: this document holds tests, and not a workflow " +
    "(mailer test copy.test.yaml runs them)\n";
  for (const command of ["run", "validate", "lint", "explain"]) {
    const { code, out, err } = await w.mailer(command, "copy.test.yaml");
    assert.deepEqual([code, out + err], [2, tests], command);
  }
  assert.deepEqual(await w.mailer("test", "odd.test.yaml"), { code: 2, out: "", err: tests });
  const { code, err } = await w.mailer("test", "copy.yaml");
  assert.equal(code, 2);
  assert.equal(
    err,
    "copy.yaml:1:1: this document is a workflow, and holds no tests " +
      "(mailer run copy.yaml runs it; its tests are a document of their own: mailer new test)\n",
  );
  assert.equal((await w.mailer("test", "copy.test.yaml")).code, 0);
});

Deno.test("numbers that JSON cannot hold are records that fail at the sink, by its policy", async () => {
  const flow = (policy: string) =>
    `name: inf
source: { type: slice, records: [ { value: { a: 1.0 } }, { value: { a: 0.0 } } ] }
pipeline: [ { id: m, type: map, map: { expr: '{"by": {"r": [1, 1.0 / value.a]}}' } } ]
sink: { id: out, type: file, file: { path: out.ndjson }, onError: ${policy} }
dlq: { type: file, file: { path: dead.ndjson } }
`;
  const { connectorsFor } = await import("../../connectors/registry.ts");
  for (
    const [policy, exit, rows, dead] of [["fail", 1, 0, 0], ["drop", 0, 1, 0], ["dlq", 0, 1, 1]] as const
  ) {
    await using w = await world({ files: { "inf.yaml": flow(policy) } });
    const { main } = await import("./main.ts");
    const host = { ...w.host, connectors: connectorsFor };
    assert.equal(await main(["run", "inf.yaml"], host), exit, policy);
    const linesOf = (file: string) =>
      w.files().includes(file) ? Deno.readTextFileSync(`${w.host.cwd}/${file}`).split("\n").slice(0, -1) : [];
    if (policy !== "fail") assert.deepEqual(linesOf("out.ndjson"), Array(rows).fill('{"by":{"r":[1,1]}}'));
    const letters = linesOf("dead.ndjson").map((line) => JSON.parse(line));
    assert.deepEqual(
      letters.map(({ operator, error }) => [operator, error.code]),
      Array(dead).fill(["out", "not_json_number"]),
    );
    if (policy === "fail") {
      assert.match(
        (w.host.stderr as unknown as { text: string }).text,
        /^error: operator "out": .*Infinity (at by\.r\[1\] )?cannot be written as JSON \(record from source\/slice at offset 1\)\n/,
      );
    }
  }
});

Deno.test("lint: warnings leave the exit code alone, unless strict", async () => {
  const quiet = COPY, noisy = COPY.replace("filter: {", "onError: drop, filter: {");
  await using w = await world({
    files: { "quiet.yaml": quiet, "noisy.yaml": noisy, "bad.yaml": COPY.replace("slice", "slic") },
  });
  assert.deepEqual(await w.mailer("lint", "--strict", "quiet.yaml"), {
    code: 0,
    out: "0 warnings\n",
    err: "",
  });
  const { code, out } = await w.mailer("lint", "noisy.yaml");
  assert.equal(code, 0);
  assert.match(out, /^noisy\.yaml:6:\d+: pipeline\[0\] "most"\.onError: .*\n1 warning\n$/);
  assert.equal((await w.mailer("lint", "--strict", "noisy.yaml")).code, 1);
  assert.equal(JSON.parse((await w.mailer("lint", "--json", "noisy.yaml")).out).code, "drops");
  assert.equal((await w.mailer("lint", "bad.yaml")).code, 2);
});

Deno.test("explain: stages and guarantee for people, the same as JSON, nothing opened", async () => {
  let opened = 0;
  const sink = () => ({
    type: "spy",
    describe: () => ({}),
    open: () => (opened++, { write() {}, flush() {}, close() {} }),
  });
  await using w = await world({ files: { "copy.yaml": COPY, "bad.yaml": "name: 1" }, sink });
  const text = await w.mailer("explain", "copy.yaml");
  assert.deepEqual([text.code, text.err], [0, ""]);
  assert.match(text.out, /^pipeline copy\n[^]*most: filter[^]*\nguarantee: at-most-once: /);
  const described = JSON.parse((await w.mailer("explain", "--json", "copy.yaml")).out);
  assert.equal(described.guarantee.level, "at-most-once");
  assert.equal(opened, 0);
  assert.equal((await w.mailer("explain", "bad.yaml")).code, 2);
});

Deno.test("explain: lengths of time as they are written, and a day of 24 hours is none of the calendar", async () => {
  const flow = (size: string, slide: string) =>
    `name: times
source: { type: slice, records: [ { value: 1 } ], watermark: { maxOutOfOrderness: 7200s } }
pipeline:
  - { id: k, type: keyBy, keyBy: { expr: value } }
  - { id: w, type: window, window: { type: sliding, size: ${size}, slide: ${slide}, allowedLateness: 90s } }
  - { id: n, type: reduce, reduce: { function: count } }
sink: { type: stdout }
`;
  for (
    const [size, slide, shown] of [
      ["90m", "1800000ms", "sliding 1h30m every 30m"],
      ["48h", "24h", "sliding 48h every 24h"],
      ["2d", "1d", "sliding 2d every 1d"],
    ] as const
  ) {
    await using w = await world({ files: { "times.yaml": flow(size, slide) } });
    const { code, out } = await w.mailer("explain", "times.yaml");
    assert.equal(code, 0);
    assert.match(out, /watermarks bounded\(2h\)/);
    assert.ok(out.includes(`(window ${shown}, allowedLateness 1m30s)`), out);
  }
});

Deno.test("no command shows a secret of the document", async () => {
  const secret = COPY.replace(
    "stdout",
    "postgres, postgres: { dsn: 'postgres://u:hunter2secret@h/d', table: t, mapping: { a: a } }",
  );
  await using w = await world({ files: { "s.yaml": secret } });
  for (
    const args of [["explain", "s.yaml"], ["explain", "--json", "s.yaml"], ["run", "s.yaml"], [
      "lint",
      "s.yaml",
    ]]
  ) {
    const { out, err } = await w.mailer(...args);
    assert.notEqual(out + err, "");
    assert.equal((out + err).includes("hunter2secret"), false, args.join(" "));
  }
});

Deno.test("new: a document on standard output or in a file, under its own name; nothing is overwritten", async () => {
  await using w = await world();
  assert.match((await w.mailer("new")).out, /^workflow +\S[^]*^window +\S/m);
  assert.match((await w.mailer("new", "workflow")).out, /^name: order-totals$/m);
  assert.deepEqual(await w.mailer("new", "workflow", "mine"), { code: 0, out: "", err: "wrote mine.yaml\n" });
  assert.deepEqual(await w.mailer("new", "test", "mine"), {
    code: 0,
    out: "",
    err: "wrote mine.test.yaml\n",
  });
  assert.deepEqual(w.files(), ["mine.test.yaml", "mine.yaml"]);
  assert.match((await w.mailer("run", "mine.yaml")).err, /^mine: finished: /);
  assert.deepEqual(await w.mailer("test", "mine.test.yaml"), {
    code: 0,
    out: "mine.test.yaml\n  ok      pending orders do not count\n1 passed, 0 failed\n",
    err: "",
  });
  const again = await w.mailer("new", "window", "mine");
  assert.deepEqual([again.code, again.err.split("\n")[0]], [1, "error: mine.yaml is there already"]);
});

Deno.test("schema, reference and version are what they say", async () => {
  await using w = await world();
  assert.equal(typeof JSON.parse((await w.mailer("schema")).out), "object");
  assert.match((await w.mailer("reference")).out, /^# Workflow documents\n/);
  const version = await w.mailer("version");
  assert.match(version.out, /^mailer \d+\.\d+\.\d+ \(deno \d+\.\d+\.\d+, v8 .*\)\n$/);
  assert.deepEqual(await w.mailer("--version"), version);
  assert.deepEqual(Object.keys(JSON.parse((await w.mailer("version", "--json")).out)), [
    "mailer",
    "deno",
    "v8",
  ]);
});

Deno.test("code that a document names is loaded from beside it", async () => {
  const ref = COPY.replace(
    "type: filter, filter: { where: value > 1 }",
    "type: map, map: { ref: ./ops.ts#twice }",
  );
  await using w = await world({
    files: { "ref.yaml": ref, "ops.ts": "export const twice = (n: number): number => 2 * n;" },
  });
  assert.equal((await w.mailer("run", "ref.yaml")).code, 0);
  assert.deepEqual(w.rows("sink"), [2, 4, 6]);
});

Deno.test("dry-run: every source and sink looks whether a run could start; exit code 1 where it could not", async () => {
  const reads = COPY.replace(/^source:\n( .*\n)+/m, "source: { type: file, file: { path: in.ndjson } }\n");
  const { connectorsFor } = await import("../../connectors/registry.ts");
  const { main } = await import("./main.ts");
  await using w = await world({ files: { "reads.yaml": reads, "in.ndjson": "1\n" } });
  const host = { ...w.host, connectors: connectorsFor };
  const said = () => (w.host.stdout as unknown as { text: string }).text;
  assert.equal(await main(["dry-run", "reads.yaml"], host), 0);
  assert.equal(
    said(),
    "copy: source source (file): ok\n  ok: 1 file, 2 bytes\ncopy: sink sink (stdout): nothing to check\n",
  );
  await Deno.remove(`${w.host.cwd}/in.ndjson`);
  assert.equal(await main(["dry-run", "reads.yaml", "--json"], host), 1);
  const [source] = said().split("\n").slice(3).map((line) => line === "" ? undefined : JSON.parse(line));
  assert.deepEqual([source.workflow, source.id, source.kind, source.ok], ["copy", "source", "source", false]);
  assert.match(source.findings[0].text, /^there is no file "in\.ndjson" in folder /);
  assert.equal(w.files().includes("data"), false, "it left something behind");
});
