/**
 * `mailer flow`, as it is called.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type World, world } from "../kit_test.ts";
import { TEMPLATES } from "./pages.ts";

const HELLO = `name: hello
nodes:
  - { id: a, type: task, kind: greet, next: b }
  - { id: b, type: task, kind: log, with: { message: "hi {{ input.name }}" }, next: c }
  - { id: c, type: subflow, flow: child, next: d }
  - { id: d, type: task, kind: greet }
`;
const CHILD = `name: child
nodes:
  - { id: a, type: task, kind: greet }
`;
const WAITER = `name: waiter
search_attributes: { t: input.t }
channels: { x: { reducer: replace, default: 1 } }
nodes:
  - { id: w, type: await, signal: go, timeout: 1h, next: v }
  - { id: v, type: await, signal: go2, timeout: 1h }
`;
const WORKERS = `export const workers = {
  greet: ({ context, node }) => {
    if (context.input.name === "nobody") throw new Error("nobody to greet");
    return { text: \`hello \${context.input.name} from \${node}\`, n: 12345678901234567890n };
  },
};
export const odd = 1;
`;
const FILES = { "hello.yaml": HELLO, "child.yaml": CHILD, "waiter.yaml": WAITER, "workers.ts": WORKERS };

Deno.test("run: the output on standard output, the rest on standard error", async () => {
  await using place = await world({ files: FILES });
  const args = ["flow", "run", "hello.yaml", "--with", "child.yaml", "--workers", "workers.ts", "--input"];
  const { code, out, err } = await place.mailer(...args, '{"name":"x"}');
  assert.deepEqual([code, out], [0, '{"text":"hello x from d","n":12345678901234567890}\n']);
  assert.match(err, /msg="hi x"/);
  const failed = await place.mailer(...args, '{"name":"nobody"}');
  assert.deepEqual(failed, { code: 1, out: "", err: "failed: nobody to greet (error at a)\n" });
});

Deno.test("run: what is missing is said before it starts", async () => {
  const bad = {
    "bad.yaml": "name: bad\nnodes: [ { id: a, type: tsk } ]\n",
    "odd.ts": "export const workers = { greet: 1 };",
  };
  await using place = await world({ files: { ...FILES, ...bad } });
  const told = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await place.mailer("flow", "run", ...args);
    assert.equal(out, "");
    return `${code} ${err}`;
  };
  assert.match(
    await told("hello.yaml", "--with", "child.yaml"),
    /^1 error: nobody does the work of the kind greet \(hello, node a\).*\nhint: export workers for greet/,
  );
  assert.match(
    await told("hello.yaml", "--workers", "workers.ts"),
    /^1 error: the flow "child" is not given: hello, node c\nhint: name its file with --with/,
  );
  assert.match(await told("bad.yaml"), /^2 bad\.yaml:2/);
  assert.match(await told("none.yaml"), /^2 error: cannot read none\.yaml/);
  assert.match(
    await told("child.yaml", "--workers", "odd.ts"),
    /^2 error: odd\.ts: the worker "greet" is no function/,
  );
  assert.match(await told("child.yaml", "--workers", "none.ts"), /^1 error: cannot load the code/);
  assert.match(
    await told("child.yaml", "--workers", "workers.ts", "--input", "[1]"),
    /^2 error: --input takes an object/,
  );
  assert.match(
    await told("child.yaml", "--workers", "workers.ts", "--input", "{"),
    /^2 error: --input: not JSON/,
  );
  assert.match(
    await told("waiter.yaml", "--timeout", "50ms"),
    /^1 error: execution ".*" has not ended within 50ms\nhint: it waits for signals at w: go/,
  );
  assert.match(await told("waiter.yaml", "--timeout", "soon"), /^2 error: --timeout/);
});

Deno.test("run: with a store it is gone on with", async () => {
  await using place = await world({ files: FILES });
  const first = await place.mailer(
    "flow",
    "run",
    "waiter.yaml",
    "--data-dir",
    "d",
    "--id",
    "e",
    "--timeout",
    "50ms",
  );
  assert.equal(first.code, 1);
  assert.equal((await place.mailer("flow", "signal", "e", "go", "--data-dir", "d")).out, "sent\n");
  assert.equal((await place.mailer("flow", "signal", "e", "go2", "--data-dir", "d")).code, 0);
  const { code, out } = await place.mailer("flow", "run", "waiter.yaml", "--data-dir", "d", "--id", "e");
  assert.deepEqual([code, out], [0, '{"x":1}\n']);
});

Deno.test("run: an interrupt ends it", async () => {
  const workers =
    "export const workers = { greet: () => { dispatchEvent(new Event('greeted')); return new Promise(() => {}); } };";
  await using place = await world({ files: { ...FILES, "hangs.ts": workers } });
  const greeted = new Promise((resolve) => addEventListener("greeted", resolve, { once: true }));
  const running = place.mailer("flow", "run", "child.yaml", "--workers", "hangs.ts");
  await greeted;
  place.interrupt();
  const { code, err } = await running;
  assert.equal(code, 1);
  assert.match(err, /^error: interrupted: execution ".*" has not ended/);
});

/** JSON a command printed. */
async function json(place: World, ...args: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await place.mailer("flow", ...args, "--json", "--store", "s.db");
  assert.equal(code, 0, err);
  return JSON.parse(out);
}

Deno.test("the actions on a store, as JSON", async () => {
  await using place = await world({ files: FILES });
  const [{ name, hash, latest }] = await json(place, "register", "waiter.yaml") as never as [
    Record<string, unknown>,
  ];
  assert.deepEqual([name, latest], ["waiter", true]);
  assert.deepEqual(await json(place, "flows"), [{ name, hash, latest }]);
  assert.equal((await json(place, "flow", "waiter"))["name"], "waiter");
  assert.deepEqual(await json(place, "start", "waiter", "--id", "e", "--input", '{"t":"q"}'), {
    id: "e",
    joined: false,
  });
  assert.deepEqual(await json(place, "start", "waiter", "--id", "e"), { id: "e", joined: true });
  assert.equal((await json(place, "get", "e"))["status"], "waiting");
  assert.equal((await json(place, "pause", "e"))["changed"], true);
  assert.equal((await json(place, "pause", "e"))["changed"], false);
  assert.deepEqual(
    (await json(place, "list", "--flow", "waiter") as { items: { id: string }[] }).items.map(({ id }) => id),
    ["e"],
  );
  assert.deepEqual(await json(place, "bulk", "cancel", "--all"), {
    matched: 1,
    done: 1,
    skipped: 0,
    failed: 0,
    failures: [],
    dryRun: false,
  });
});

Deno.test("the actions on a store, for people", async () => {
  await using place = await world({ files: FILES });
  const told = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await place.mailer("flow", ...args, "--store", "s.db");
    return `${code} ${out}${err}`;
  };
  assert.match(
    await told("list"),
    /^1 error: there is no store .*\nhint: mailer flow register FILE makes one/,
  );
  assert.match(
    await told("register", "waiter.yaml", "child.yaml"),
    /^0 registered waiter@[0-9a-f]{16}\nregistered child@/,
  );
  assert.match(await told("flows"), /^0 FLOW +VERSION\nchild +[0-9a-f]{16} +newest\nwaiter/);
  assert.equal(
    await told("start", "waiter", "--id", "e", "--input", '{"t":"q"}', "--signal", 'go={"n":1}'),
    "0 e\n",
  );
  assert.equal(await told("start", "waiter", "--id", "e"), "0 e (it was there already)\n");
  assert.match(
    await told("start", "waiter", "--id", "e", "--new"),
    /^1 error: there is already an execution "e"/,
  );
  assert.match(await told("start", "none"), /^1 error: there is no flow "none"\nhint: register it first/);
  assert.match(await told("get", "e"), /status +waiting\n(.*\n)+waits for +signals at v: go2 until 2/);
  assert.match(await told("get", "e", "--seq", "1"), /decisions +1, 2 steps/);
  assert.match(await told("update", "e", "--writes", '{"x":5}'), /channels +\{"x":5\}/);
  assert.match(await told("update", "e", "--writes", '{"y":5}'), /^2 error:/);
  assert.equal(await told("pause", "e", "--reason", "wait"), "0 paused\n");
  assert.equal(await told("unpause", "e"), "0 goes on\n");
  assert.match(await told("resume", "e", "v"), /^1 error: nothing is interrupted at "v"/);
  assert.equal(await told("fork", "e", "1", "--id", "f"), "0 f\n");
  assert.equal(await told("rerun", "e", "v", "--id", "g", "--writes", '{"x":7}'), "0 g\n");
  assert.match(
    await told("list", "--attr", "t=q", "--order", "oldest"),
    /^0 EXECUTION .*\ne .*\nf .*\ng .*\n$/,
  );
  assert.match(await told("list", "--attr", "t"), /^2 error: --attr t/);
  assert.match(await told("migrate", "e", "--dry-run"), /^0 nothing keeps it from going on with/);
  assert.equal(await told("cancel", "f", "--reason", "enough"), "0 cancelled\n");
  assert.equal(await told("cancel", "f"), "0 it had ended\n");
  assert.equal(await told("wait", "f"), "1 cancelled: enough\n");
  assert.equal(
    await told("bulk", "signal", "go2", "--flow", "waiter", "--dry-run"),
    "0 3 fit: 2 to be done, 1 skipped, 0 failed\n",
  );
  assert.equal(
    await told("bulk", "signal", "go2", "--flow", "waiter"),
    "0 3 fit: 2 done, 1 skipped, 0 failed\n",
  );
  assert.match(await told("bulk", "cancel"), /^2 error: cancel: the query fits every execution/);
  assert.match(await told("bulk", "explode", "--all"), /^2 error: bulk does not know "explode"/);
  assert.equal(await told("wait", "e"), '0 {"x":5}\n');
  assert.equal(
    (await told("history", "e")).split("\n").length - 1,
    (await told("watch", "e")).split("\n").length - 1,
  );
  assert.match(await told("history", "e", "--limit", "1"), /^0 +1 +1 +2.*ExecutionStarted/);
  assert.equal(await told("archive", "e"), "0 archived\n");
  assert.match(await told("signal", "e", "go"), /^1 error: execution "e" is archived/);
  assert.equal(await told("delete", "e"), "0 deleted\n");
  assert.match(await told("get", "e"), /^1 error: there is no execution "e"/);
  assert.match(await told("get", "a.b"), /^2 error: "a\.b" is no id of an execution/);
  assert.equal(await told("dlq"), "0 ");
  assert.match(await told("redrive", "none"), /^1 error: there is no dead letter "none"/);
  assert.match(
    await told("start", "waiter", "--wait", "--timeout", "20ms"),
    /^1 error: execution ".*" has not ended within 20 ms/,
  );
});

Deno.test("calls that do not fit", async () => {
  await using place = await world({ files: FILES });
  const told = async (...args: string[]): Promise<string> => {
    const { code, err } = await place.mailer("flow", ...args);
    return `${code} ${err}`;
  };
  assert.match(await told("lst"), /^2 error: mailer flow has no "lst"\nhint: did you mean "list"\?/);
  assert.match(
    await told("get"),
    /^2 error: mailer flow get was given nothing\nhint: it is called as mailer flow get ID/,
  );
  assert.match(await told("get", "a", "b"), /^2 error: mailer flow get was given "a" "b"/);
  assert.match(
    await told("get", "a", "--input", "{}"),
    /^2 error: mailer flow get takes no --input\nhint: it takes --store, --data-dir, --seq/,
  );
  assert.match(
    await told("validate", "hello.yaml", "--id", "x"),
    /^2 error: mailer flow validate takes no --id/,
  );
  const help = await place.mailer("flow", "--help");
  for (const action of ["run FILE", "signal ID NAME", "redrive LETTER"]) {
    assert.ok(help.out.includes(action), action);
  }
});

Deno.test("documents to begin with are valid, and their tests pass", async () => {
  await using place = await world({
    files: { "order.yaml": TEMPLATES["flow"]!, "order.test.yaml": TEMPLATES["test"]! },
  });
  assert.equal((await place.mailer("flow", "new")).out, TEMPLATES["flow"]);
  assert.equal((await place.mailer("flow", "new", "test")).out, TEMPLATES["test"]);
  assert.equal((await place.mailer("flow", "new", "x")).code, 2);
  const valid = await place.mailer("flow", "validate", "order.yaml");
  assert.deepEqual([valid.code, valid.err], [0, ""], valid.err);
  const tested = await place.mailer("flow", "test", "order.test.yaml");
  assert.equal(tested.code, 0, tested.out);
  assert.equal(JSON.parse((await place.mailer("flow", "schema")).out)["type"], "object");
  assert.match((await place.mailer("flow", "reference")).out, /^# Flows/);
});
