import assert from "node:assert/strict";
import { delay, systemClock } from "../../clock.ts";
import { HttpWorker } from "../../flow/http/worker.ts";
import { type KeptOutput, type World, world, type WorldOptions } from "../kit_test.ts";
import { main } from "../main.ts";

const HELLO = "name: hello\nnodes:\n  - {id: say, type: task, kind: greet}\n";
const NOTE = `name: note
nodes:
  - {id: write, type: task, kind: log, with: {message: "noted {{ input.what }}"}}
`;

/** Runs a test on `mailer serve`, interrupts it unless the test did, and gives what it said and its exit code. */
async function serving(
  world: World,
  args: readonly string[],
  body: (url: string) => Promise<unknown>,
): Promise<{ readonly code: number; readonly err: string }> {
  const said = world.host.stderr as KeptOutput, before = said.text.length;
  const ended = main(["serve", "--listen", "127.0.0.1:0", ...args], world.host);
  let url: string | undefined, code: number | undefined;
  void ended.then((exit) => code = exit);
  while (url === undefined && code === undefined) {
    await delay(systemClock, 10);
    url = /http:\/\/[\w.:]+/.exec(said.text.slice(before))?.[0];
  }
  if (url !== undefined) {
    if (await body(url) !== "interrupted") world.interrupt();
  }
  return { code: await ended, err: said.text.slice(before) };
}

async function inWorld(options: WorldOptions, body: (world: World) => Promise<void>): Promise<void> {
  await using made = await world(options);
  await body(made);
}

async function post(url: string, path: string, body: unknown, token?: string): Promise<Response> {
  return await fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
}

Deno.test("mailer serve: flows of files and folders, started, waited for, and there again the next time", async () => {
  await inWorld(
    { files: { "hello.yaml": HELLO, "note.yaml": NOTE, "hello.test.yaml": "no flow" } },
    async (world) => {
      const first = await serving(world, ["--flows", "."], async (url) => {
        assert.equal(await (await fetch(`${url}/readyz`)).text(), "ready\n");
        const { flows } = await (await fetch(`${url}/v1/flows`)).json();
        assert.deepEqual(flows.map(({ name }: { name: string }) => name).sort(), ["hello", "note"]);
        await (await post(url, "/v1/executions", { flow: "hello", id: "h1" })).body?.cancel();
        await (await post(url, "/v1/executions", { flow: "note", id: "n1", input: { what: "this" } })).body
          ?.cancel();
        const { execution } = await (await fetch(`${url}/v1/executions/n1/wait`)).json();
        assert.equal(execution.status, "completed", "built-in kinds need no worker");
      });
      assert.equal(first.code, 0);
      assert.match(first.err, /^serving flows at http:\/\/127\.0\.0\.1:\d+\n/m);
      assert.match(first.err, /msg="noted this"/);
      assert.match(first.err, /^draining; interrupt again to stop at once$/m);
      assert.ok(world.files().includes("data"));

      const second = await serving(world, ["--json"], async (url) => {
        await using worker = new HttpWorker({ url, handlers: { greet: () => ({ hello: "world" }) } }).start();
        const { execution } = await (await fetch(`${url}/v1/executions/h1/wait`)).json();
        assert.deepEqual(execution.output, { hello: "world" });
        assert.equal(worker.active <= 1, true);
      });
      assert.equal(second.code, 0);
      const lines = second.err.trim().split("\n").map((line) => JSON.parse(line));
      assert.equal(lines[0].event, "ready");
      assert.equal(lines.at(-1).event, "draining");
    },
  );
});

Deno.test("mailer serve: the token is in a file, and in nothing that is said", async () => {
  const token = "s3cret-s3cret-s3cret";
  await inWorld({ files: { "hello.yaml": HELLO, token: `${token}\n` } }, async (world) => {
    const { code, err } = await serving(world, ["hello.yaml", "--token-file", "token"], async (url) => {
      for (const [given, status] of [[undefined, 401], ["wrong-wrong-wrong", 401], [token, 201]] as const) {
        const response = await post(url, "/v1/executions", { flow: "hello" }, given);
        await response.body?.cancel();
        assert.equal(response.status, status);
      }
    });
    assert.equal(code, 0);
    assert.ok(!err.includes(token));
  });
});

Deno.test("mailer serve: what is wrong is said before anything is opened", async () => {
  const files = {
    "bad.yaml": "name: bad\nnodes: []\n",
    "a.yaml": HELLO,
    "b.yaml": HELLO,
    empty: " ",
    odd: "short",
  };
  await inWorld({ files }, async (world) => {
    const refused = async (args: readonly string[], code: number, message: RegExp): Promise<void> => {
      const { code: was, err } = await serving(world, args, () => assert.fail("it serves"));
      assert.deepEqual([was, message.test(err)], [code, true], err);
    };
    await refused(["bad.yaml"], 2, /bad\.yaml:2:/);
    await refused(["none.yaml"], 2, /there is no such file/);
    await refused(["--flows", "a.yaml", "b.yaml"], 2, /both have a flow "hello"/);
    await refused(["a.yaml", "--token-file", "none"], 2, /cannot read the token in none/);
    await refused(["a.yaml", "--token-file", "empty"], 2, /holds no token/);
    await refused(["a.yaml", "--token-file", "odd"], 2, /holds no token/);
    await refused(["a.yaml", "--listen", "nowhere"], 2, /HOST:PORT/);
    await refused(["a.yaml", "--listen", "192.0.2.1:0"], 1, /cannot listen at 192\.0\.2\.1:0/);
    assert.deepEqual(
      world.files().filter((name) => name.startsWith("data")),
      ["data"],
      "made by the last one",
    );
  });
});

Deno.test("mailer serve: a second interrupt ends the process at once", async () => {
  await inWorld({ files: { "hello.yaml": HELLO } }, async (world) => {
    const { code } = await serving(world, ["hello.yaml"], () => {
      world.interrupt();
      assert.throws(() => world.interrupt(), /exit 130/);
      return Promise.resolve("interrupted");
    });
    assert.equal(code, 0, "this process goes on, and so it has drained");
  });
});
