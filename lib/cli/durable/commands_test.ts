import assert from "node:assert/strict";
import { systemClock } from "../../clock.ts";
import { createEnv, type KeyedContext, kv, memory, sqlite } from "../../../mod.ts";
import { collectingSink, scriptedSource, VirtualClock } from "../../testing/mod.ts";
import { type Manifest, ManifestStore } from "../../checkpoint/manifest.ts";
import { type World, world } from "../kit_test.ts";

const BACKENDS = { memory, kv, sqlite };
type Kind = keyof typeof BACKENDS;

function totals(kind: Kind): string {
  return `name: totals
env: { checkpointing: { interval: 10ms, retainCompleted: 3 }, state: { backend: ${kind} } }
source:
  id: orders
  type: slice
  records: [ { value: '{"k":"a","n":1}' }, { value: '{"k":"b","n":2}' }, { value: '{"k":"a","n":3}' }, { value: '{"k":7,"n":5}' } ]
pipeline:
  - { id: by-k, type: keyBy, keyBy: { field: k, partitions: 2 } }
  - { id: sums, type: reduce, reduce: { function: sum, field: n } }
sink: { type: stdout }
`;
}

interface Durable extends World {
  /** Folder of state and checkpoints. */
  readonly data: string;
  /** Runs a command over it. */
  ask(...args: readonly string[]): ReturnType<World["mailer"]>;
}

async function durable(kind: Kind): Promise<Durable> {
  const made = await world({ files: { "w.yaml": totals(kind) } }), data = `${made.host.cwd}/data`;
  return { ...made, data, ask: (...args) => made.mailer(...args, "--data-dir", data) };
}

/** Lines of JSON. */
function lines(text: string): Record<string, unknown>[] {
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

for (const kind of ["memory", "kv", "sqlite"] as const) {
  Deno.test(`${kind}: before the first run all commands say that nothing is there, and create nothing`, async () => {
    await using w = await durable(kind);
    for (const args of [["checkpoints", "ls"], ["checkpoints", "verify"], ["savepoint", "ls"]]) {
      const { code, out, err } = await w.ask(...args, "w.yaml");
      assert.deepEqual([code, out], [0, `workflow "totals" has no checkpoints in ${w.data}\n`]);
      assert.match(err, /^hint: run it first/);
      assert.deepEqual(await w.ask(...args, "w.yaml", "--json"), { code: 0, out: "", err: "" });
    }
    for (
      const args of [
        ["checkpoints", "show", "w.yaml", "1"],
        ["checkpoints", "verify", "w.yaml", "1"],
        ["checkpoints", "rm", "w.yaml", "1"],
        ["savepoint", "create", "w.yaml", "x"],
        ["savepoint", "rm", "w.yaml", "x"],
        ["state", "w.yaml", "sums"],
        ["state", "w.yaml", "sums", "a"],
      ]
    ) {
      const { code, out, err } = await w.ask(...args);
      assert.deepEqual([code, out], [1, ""]);
      assert.match(err, /^error: workflow "totals" has no checkpoints in .*\nhint: run it first/);
    }
    assert.deepEqual(w.files(), ["w.yaml"]);
  });

  Deno.test(`${kind}: what a run has left is listed, shown, verified, and looked into`, async () => {
    await using w = await durable(kind);
    assert.equal((await w.ask("run", "-q", "w.yaml")).code, 0);
    const [newest] = lines((await w.ask("checkpoints", "ls", "w.yaml", "--json")).out);
    const { number, takenAt, durationMs, stateBytes, ...rest } = newest!;
    assert.deepEqual(rest, { kind: "checkpoint", status: "completed", finished: true });
    assert.equal(new Date(takenAt as string).toISOString(), takenAt);
    assert.ok((durationMs as number) >= 0 && (stateBytes as number) > 0);
    const { out: list } = await w.ask("checkpoints", "ls", "w.yaml");
    assert.match(
      list,
      /^totals: \d checkpoints? in .*\n\nnumber {2}status .*\n +\d+ {2}completed, finished {2}\d{4}-/,
    );

    const { out: page } = await w.ask("checkpoints", "show", "w.yaml", String(number));
    assert.match(page, /^checkpoint \d+: completed, finished: all input had been read\ntaken at /);
    assert.match(page, /^source {2}split {2}position {2}watermark\norders {2}0 {6}4 {9}.*Z {2}ended$/m);
    assert.match(page, /^operator {2}space {2}tables {2}keys .*\nsums {6}acc {9}1 {5}3 /m);
    const shown = JSON.parse((await w.ask("checkpoints", "show", "w.yaml", String(number), "--json")).out);
    assert.deepEqual(shown.operators.sums.spaces, [{ space: "acc", kind: "table", tables: 1, keys: 3 }]);
    assert.equal(shown.sources.orders.splits["0"].position, 4);
    const unknown = await w.ask("checkpoints", "show", "w.yaml", "999");
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /^error: there is no checkpoint 999\nhint: there are checkpoints \d/);

    const verified = await w.ask("checkpoints", "verify", "w.yaml");
    assert.equal(verified.code, 0);
    assert.match(verified.out, new RegExp(`^checkpoint ${number}: OK, \\d+ pages in \\d runs?\n`));

    const held = async (...args: string[]) => lines((await w.ask("state", "w.yaml", "sums", ...args)).out);
    assert.deepEqual(await held("a"), [{ space: "acc", order: 0, value: 4 }]);
    assert.deepEqual(await held('"b"', "--at", String(number)), [{ space: "acc", order: 0, value: 2 }]);
    assert.deepEqual(await held("7"), [{ space: "acc", order: 0, value: 5 }]);
    const none = await w.ask("state", "w.yaml", "sums", "8");
    assert.deepEqual([none.code, none.out], [0, ""]);
    assert.match(none.err, /holds nothing of key 8\nhint: it was read as JSON; the text is '"8"'\n$/);
    assert.match(
      (await w.ask("state", "w.yaml", "sums")).out,
      /\nspace {2}tables {2}keys\nacc {9}1 {5}3\n$/,
    );
    const other = await w.ask("state", "w.yaml", "sum", "a");
    assert.equal(other.code, 1);
    assert.match(
      other.err,
      /no keyed state of "sum"\nhint: did you mean "sums"\? operators with .*: sums\n$/,
    );
  });

  Deno.test(`${kind}: savepoints are made, kept and gone on from; checkpoints are removed`, async () => {
    await using w = await durable(kind);
    await w.ask("run", "-q", "w.yaml");
    assert.match((await w.ask("savepoint", "ls", "w.yaml")).out, /^workflow "totals" has no savepoints in /);
    const made = await w.ask("savepoint", "create", "w.yaml", "before-fix");
    assert.match(made.out, /^created savepoint "before-fix" of checkpoint \d+, taken /);
    assert.equal((await w.ask("savepoint", "create", "w.yaml", "before-fix")).code, 1);
    assert.match(
      (await w.ask("savepoint", "ls", "w.yaml")).out,
      /^totals: 1 savepoint in .*\n\nnumber {2}savepoint /,
    );
    const listed = lines((await w.ask("checkpoints", "ls", "w.yaml", "--json")).out);
    const numbers = listed.filter((one) => one["kind"] === "checkpoint").map((one) => String(one["number"]));
    const spared = await w.ask("checkpoints", "rm", "w.yaml", ...numbers);
    assert.equal(spared.code, 1);
    assert.match(spared.err, /is the newest good one: .*\nhint: nothing has been removed; --force /);
    const removed = await w.ask("checkpoints", "rm", "w.yaml", ...numbers, "--force");
    assert.match(removed.out, /^removed checkpoint \d+/);
    assert.equal(
      (await w.ask("checkpoints", "verify", "w.yaml")).out.split(":")[0],
      'savepoint "before-fix"',
    );
    const again = await w.ask("run", "-q", "w.yaml", "--from-savepoint", "before-fix");
    assert.deepEqual([again.code, w.rows("sink")], [0, []]); // all had been read
    assert.match(
      (await w.ask("savepoint", "rm", "w.yaml", "before-fix")).out,
      /^removed savepoint "before-fix"/,
    );
    assert.equal((await w.ask("checkpoints", "verify", "w.yaml")).code, 0);
  });

  Deno.test(`${kind}: while the state is open elsewhere, all commands say that the workflow runs`, async () => {
    await using w = await durable(kind);
    await w.ask("run", "-q", "w.yaml");
    await using _open = await BACKENDS[kind](w.data).open("totals", systemClock);
    for (
      const args of [["checkpoints", "ls", "w.yaml"], ["savepoint", "create", "w.yaml", "x"], [
        "state",
        "w.yaml",
        "sums",
      ]]
    ) {
      const { code, err } = await w.ask(...args);
      assert.deepEqual([code, err], [
        1,
        'error: workflow "totals" is running: its state is in use\nhint: stop it first\n',
      ]);
    }
  });

  Deno.test(`${kind}: damage is found and named`, async () => {
    await using w = await durable(kind);
    await w.ask("run", "-q", "w.yaml");
    {
      await using pages = await BACKENDS[kind](w.data).open("totals", systemClock);
      const [found] = await new ManifestStore(pages).list();
      const { runs } = (found!.manifest as Manifest).operators["sums"]!.section!;
      await pages.deleteRuns(runs.map(({ run }) => run));
      await pages.commit([{ name: "savepoint/bad", bytes: new Uint8Array(30) }]);
    }
    const { code, out } = await w.ask("checkpoints", "verify", "w.yaml");
    assert.equal(code, 1);
    assert.match(
      out,
      /^savepoint "bad": damaged\n {2}state: .* is damaged: it does not begin like a manifest\n/,
    );
    assert.match(out, /^checkpoint \d+: damaged\n {2}state: page 0 of run "sums\/\d+" is not in /m);
    const list = (await w.ask("checkpoints", "ls", "w.yaml")).out;
    assert.match(list, /^ +bad +damaged +state: "savepoint\/bad" is damaged/m);
    const look = await w.ask("state", "w.yaml", "sums", "a");
    assert.equal(look.code, 1);
    assert.match(
      look.err,
      /^error: state: page \d+ of run .* is not in .*\nhint: --at NUMBER looks into another/,
    );
  });
}

Deno.test("state: what user code keeps is shown as it was put in, with the time it goes", async () => {
  await using w = await durable("sqlite");
  const at = Date.UTC(2024, 4, 1);
  const source = scriptedSource([
    { do: "records", values: [{ k: "a", at }, { k: "b", at: at + 1000 }] },
    { do: "end" },
  ]).source;
  // Processing time stands still, so nothing has expired or fired at the end.
  const clock = new VirtualClock(at), env = createEnv({ name: "totals" }).withClock(clock);
  env.withStateBackend(sqlite(w.data)).withCheckpointing("1h");
  env.fromSource<{ k: string; at: number }>(source, { timestamp: (value) => value.at })
    .keyBy((value) => value.k, { partitions: 2 })
    .processKeyed({
      onRecord(_value, context: KeyedContext<string>) {
        const seen = context.map<string, number>("seen");
        seen.set("z", 1);
        seen.set("c", 2);
        context.list<number>("list", { ttl: "1h", ttlTime: "processing" }).add(5);
        context.setProcessingTimer(at + 7_200_000, "later");
      },
    }, { id: "user" })
    .toSink(collectingSink<unknown>().sink, { id: "out" });
  await env.execute();
  const { code, out, err } = await w.ask("state", "w.yaml", "user", "a");
  assert.equal(code, 0, err);
  const [list, seen, timers, ...others] = lines(out);
  assert.deepEqual([timers!["space"], others], ["timers", []]);
  assert.match(JSON.stringify(timers), new RegExp(`later.*${at + 7_200_000}`));
  assert.deepEqual(list, { space: "state:list", order: 0, value: [5], expires: "2024-05-01T01:00:00.000Z" });
  assert.equal(JSON.stringify(seen), '{"space":"state:seen","order":0,"value":{"z":1,"c":2}}');
});

Deno.test("usage: what is asked for wrongly is said, exit code 2", async () => {
  await using w = await durable("sqlite");
  const cases: [string[], RegExp][] = [
    [
      ["checkpoints", "lss", "w.yaml"],
      /no action "lss"\nhint: did you mean ls\? there are: ls, show, verify, rm\n/,
    ],
    [["checkpoints", "ls", "w.yaml", "3"], /ls takes no 3\nhint: mailer checkpoints show FILE 3 /],
    [["checkpoints", "show", "w.yaml"], /show takes the number/],
    [["checkpoints", "rm", "w.yaml"], /rm takes the numbers/],
    [["checkpoints", "rm", "w.yaml", "a"], /not "a"\nhint: mailer savepoint rm FILE a /],
    [["savepoint", "create", "w.yaml"], /create takes one name/],
    [["savepoint", "rm", "w.yaml"], /rm takes the names/],
    [["savepoint", "show", "w.yaml"], /no action "show"/],
    [["checkpoints", "ls"], /missing required argument 'FILE'/],
    [["state", "no.yaml", "sums"], /cannot read no\.yaml/],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await w.ask(...args);
    assert.equal(code, 2, args.join(" "));
    assert.match(err, message);
  }
  await Deno.writeTextFile(`${w.host.cwd}/plain.yaml`, totals("memory").replace(/^env: .*\n/m, ""));
  assert.match(
    (await w.ask("checkpoints", "ls", "plain.yaml")).err,
    /^hint: it takes none: env\.checkpointing is not set\n/,
  );
});
