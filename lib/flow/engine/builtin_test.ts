/**
 * The built-in kinds.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Decimal } from "../../json.ts";
import { silentLogger } from "../../log.ts";
import { builtInWorkers } from "./builtin.ts";
import { nodes, Scene } from "./kit_test.ts";

interface Heard {
  readonly method: string;
  readonly path: string;
  readonly key: string | null;
  readonly type: string | null;
  readonly body: string;
}

/** A server that answers as its path says: `/STATUS`. */
function server(heard: Heard[]): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const url = new URL(request.url), status = Number(url.pathname.split("/")[1]);
    heard.push({
      method: request.method,
      path: url.pathname + url.search,
      key: request.headers.get("idempotency-key"),
      type: request.headers.get("content-type"),
      body: await request.text(),
    });
    if (status === 204) return new Response(null, { status });
    if (url.searchParams.has("text")) return new Response("hello", { status });
    if (url.searchParams.has("broken")) {
      return new Response("{", { status, headers: { "content-type": "application/json" } });
    }
    return new Response('{"n": 9007199254740993, "d": 0.1000000000000000055511}', {
      status,
      headers: { "content-type": "application/problem+json; charset=utf-8", "x-own": "1" },
    });
  });
}

/** Runs one node of kind `http`; retries cost no time. */
async function run(
  settings: string,
  input: Record<string, unknown> = {},
): Promise<{ heard: Heard[]; output: unknown; attempts: number; error: string; name: unknown }> {
  const heard: Heard[] = [], http = server(heard);
  try {
    const flow = `name: f
nodes:
  - id: a
    type: task
    kind: http
    retry: { max_attempts: 2, backoff: fixed, delay: 1s }
    with: ${settings}
`;
    await using scene = await Scene.open({
      flows: [flow],
      workers: builtInWorkers({ logger: silentLogger }),
    });
    await scene.client.start("f", { base: `http://127.0.0.1:${http.addr.port}`, ...input }, { id: "e" });
    let isOver = false;
    const over = scene.client.wait("e").finally(() => isOver = true);
    while (!isOver) {
      await scene.clock.advance("1s");
      await fetch(`http://127.0.0.1:${http.addr.port}/204/turn`); // real time for what goes over the network
    }
    const { output, failure } = await over, events = await scene.client.history("e");
    const failed = events.findLast(({ type }) => type === "NodeFailed");
    return {
      heard: heard.filter(({ path }) => path !== "/204/turn"),
      output,
      attempts: events.filter(({ type }) => type === "NodeScheduled").length,
      error: failure?.error ?? "",
      name: (failed?.data as { name?: string } | undefined)?.name,
    };
  } finally {
    await http.shutdown();
  }
}

Deno.test("http: a request with its key, and what was answered, digit for digit", async () => {
  const { heard, output } = await run(
    '{ method: POST, url: "{{ input.base }}/200/{{ input.id }}", body: { id: input.id, n: input.n }, headers: { x-a: "{{ input.id }}" } }',
    { id: "a b/c", n: 12345678901234567890n },
  );
  assert.equal(heard.length, 1);
  const { method, path, key, type, body } = heard[0]!;
  assert.deepEqual([method, path, type, body], [
    "POST",
    "/200/a%20b%2Fc",
    "application/json",
    '{"id":"a b/c","n":12345678901234567890}',
  ]);
  assert.match(key!, /^e\.a\.\d+$/);
  const { status, headers, body: answered } = output as {
    status: number;
    headers: Record<string, string>;
    body: { n: bigint; d: Decimal };
  };
  assert.deepEqual([status, headers["x-own"], answered.n], [200, "1", 9007199254740993n]);
  assert.equal(answered.d.text, "0.1000000000000000055511");
});

Deno.test("http: which statuses are tried again", async () => {
  const url = (path: string, more = ""): string => `{ url: "{{ input.base }}${path}"${more} }`;
  assert.deepEqual(
    await Promise.all(
      [400, 404, 422, 301, 408, 425, 429, 500, 503].map(async (status) => {
        const { attempts, name, heard, error } = await run(url(`/${status}/x?secret=1`));
        assert.equal(heard.length, attempts);
        assert.equal(new Set(heard.map(({ key }) => key)).size, 1, "attempts share their key");
        assert.equal(error.includes("secret"), false);
        return [status, attempts, name];
      }),
    ),
    [
      [400, 1, "http_400"],
      [404, 1, "http_404"],
      [422, 1, "http_422"],
      [301, 1, "http_301"],
      [408, 2, "http_408"],
      [425, 2, "http_425"],
      [429, 2, "http_429"],
      [500, 2, "http_500"],
      [503, 2, "http_503"],
    ],
  );
  assert.equal((await run(url("/404/x", ", expect: [404]"))).attempts, 1);
  assert.equal((await run(url("/200/x", ", expect: [404]"))).name, "http_200");
});

Deno.test("http: bodies that are no JSON, addresses that are none", async () => {
  const body = ({ output }: { output: unknown }): unknown => (output as { body: unknown }).body;
  assert.equal(body(await run('{ url: "{{ input.base }}/200/x?text" }')), "hello");
  assert.equal(body(await run('{ url: "{{ input.base }}/204/x" }')), null);
  const broken = await run('{ url: "{{ input.base }}/200/x?broken" }');
  assert.deepEqual([broken.attempts, broken.name], [2, "http_bad_body"]);
  for (const url of ["ftp://x/y", "no address"]) {
    const { attempts, error } = await run(`{ url: "${url}" }`);
    assert.equal(attempts, 1);
    assert.match(error, /no http or https address/);
  }
  const nobody = await run('{ url: "http://127.0.0.1:1/x?secret=1" }');
  assert.deepEqual([nobody.attempts, nobody.name], [2, "http_unreachable"]);
  assert.equal(nobody.error.includes("secret"), false);
});

Deno.test("http: who waits no longer ends the request", async () => {
  const gone = Promise.withResolvers<void>(), stop = new AbortController();
  let isThere = false;
  const http = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {}, signal: stop.signal },
    (request) => {
      isThere = true;
      request.signal.addEventListener("abort", () => gone.resolve());
      return new Promise<Response>(() => {});
    },
  );
  const flow = nodes("f", 'id: a, type: task, kind: http, timeout: 5s, with: { url: "{{ input.url }}" }');
  {
    await using scene = await Scene.open({
      flows: [flow],
      workers: builtInWorkers({ logger: silentLogger }),
    });
    await scene.client.start("f", { url: `http://127.0.0.1:${http.addr.port}/` }, { id: "e" });
    await scene.until("it is under way", () => isThere);
    await scene.clock.advance("5s");
    assert.equal((await scene.client.wait("e")).failure!.reason, "timeout");
    await gone.promise;
  }
  stop.abort();
  await http.finished;
});

Deno.test("log writes a line; emit says what is missing", async () => {
  const flow = nodes(
    "f",
    "id: a, type: task, kind: log, with: { message: 'order {{ input.id }}' }, next: b",
    "id: b, type: task, kind: log, next: c",
    "id: c, type: task, kind: emit, with: { topic: orders, value: input }",
  );
  const lines: unknown[] = [];
  const workers = builtInWorkers({ logger: { log: (...line) => void lines.push(line) } });
  await using scene = await Scene.open({ flows: [flow], workers });
  await scene.client.start("f", { id: 7 }, { id: "e" });
  assert.match((await scene.client.wait("e")).failure!.error, /the topic "orders" is not known here/);
  assert.deepEqual(lines, [
    ["info", "order 7", { flow: "f", execution: "e", node: "a" }],
    ["info", "b", { flow: "f", execution: "e", node: "b" }],
  ]);
});
