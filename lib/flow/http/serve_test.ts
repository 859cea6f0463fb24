import assert from "node:assert/strict";
import { delay, systemClock } from "../../clock.ts";
import { stringifyJson } from "../../json.ts";
import { openApi } from "./openapi.ts";
import { apiReference } from "./reference.ts";
import { ROUTES } from "./routes.ts";
import { serveFlows } from "./serve.ts";
import { FlowEngine } from "../engine/mod.ts";
import { openMemoryStore } from "../store/memory.ts";
import { type Answered, flowOf, type HttpScene, inScene, oneTask, STORES } from "./kit_test.ts";

const ORDER = `name: order
start: pack
channels: {log: {reducer: append, default: []}}
search_attributes: {customer: input.customer}
nodes:
  - {id: pack, type: task, kind: pack, next: approved}
  - {id: approved, type: await, signal: approve, timeout: 1h, next: ship}
  - {id: ship, type: task, kind: ship}
`;

/** The route a call went to, as it is declared. */
function routeOf(method: string, path: string): string {
  const parts = path.split("?")[0]!.split("/");
  const found = ROUTES.filter((route) => {
    const own = route.path.split("/");
    return route.method === method && own.length === parts.length &&
      own.every((part, i) => part.startsWith("{") || part === parts[i]);
  });
  return `${method} ${(found.find(({ path }) => !path.includes("{")) ?? found[0])!.path}`;
}

for (const [kind, store] of Object.entries(STORES)) {
  Deno.test(`HTTP, ${kind}: every call does what it says`, async () => {
    await inScene({ flows: [flowOf(ORDER)], store }, async (scene) => {
      const called = new Set<string>();
      const ok = async (method: string, path: string, body?: unknown): Promise<Answered["body"]> => {
        const answer = await scene.call(method, path, body);
        assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${stringifyJson(answer.body)}`);
        called.add(routeOf(method, path));
        return answer.body;
      };
      await everyCall(ok, scene);
      const all = ROUTES.map(({ method, path }) => `${method} ${path}`);
      assert.deepEqual(all.filter((one) => !called.has(one)), []);
    });
  });
}

type Ok = (method: string, path: string, body?: unknown) => Promise<Answered["body"]>;

async function everyCall(ok: Ok, scene: HttpScene): Promise<void> {
  // Starting: an id is started once.
  const start = { flow: "order", id: "o-1", input: { customer: "c1", n: 123456789012345678901n } };
  assert.deepEqual(await ok("POST", "/v1/executions", start), { id: "o-1", joined: false });
  assert.deepEqual(await ok("POST", "/v1/executions", start), { id: "o-1", joined: true });
  assert.deepEqual((await ok("GET", "/v1/executions/o-1")).input, {
    customer: "c1",
    n: 123456789012345678901n,
  });

  // A worker, from the lease to the answer.
  const { jobs: [job] } = await ok("POST", "/v1/jobs/lease", { kinds: ["pack"], worker: "w", waitMs: 2000 });
  assert.deepEqual(job.context.input.n, 123456789012345678901n);
  assert.equal(job.idempotency_key, "o-1.pack.1");
  const at = `/v1/jobs/${encodeURIComponent(job.id)}`, lease = { lease: job.lease };
  assert.equal((await ok("POST", `${at}/heartbeat`, { ...lease, progress: { at: 1 } })).wanted, true);
  assert.deepEqual(await ok("POST", `${at}/release`, lease), { released: true });
  const [again] = await scene.lease("pack");
  assert.equal(again!.deliveries, 1, "what was released was not handed out");
  await ok("POST", `${at}/interrupt`, { lease: again!.lease, payload: { ask: 1 } });
  assert.deepEqual((await ok("GET", "/v1/executions/o-1")).waiting.interrupts[0].payload, { ask: 1 });
  await ok("POST", "/v1/executions/o-1/resume", { node: "pack", value: "go" });
  const [resumed] = await scene.lease("pack");
  assert.equal(resumed!.context.resume, "go");
  assert.deepEqual((await scene.about(resumed!, "complete", { output: { done: true } })).body, {
    accepted: true,
  });

  // What is open, and what changes it.
  assert.equal(
    (await ok("POST", "/v1/executions/o-1/update", { writes: { log: ["x"] } })).channels.log[0],
    "x",
  );
  await ok("POST", "/v1/executions/o-1/pause", { reason: "lunch" });
  assert.equal((await ok("GET", "/v1/executions/o-1")).paused, true);
  await ok("POST", "/v1/executions/o-1/unpause", {});
  assert.equal((await ok("GET", "/v1/executions/o-1/wait?timeoutMs=0")).ended, false);
  const signal = { name: "approve", payload: { by: "me" }, id: "s1" };
  assert.deepEqual(await ok("POST", "/v1/executions/o-1/signal", signal), { id: "s1", changed: true });
  assert.deepEqual(await ok("POST", "/v1/executions/o-1/signal", signal), { id: "s1", changed: false });
  const [ship] = await scene.lease("ship");
  const waiting = ok("GET", "/v1/executions/o-1/wait");
  await ok("POST", `/v1/jobs/${encodeURIComponent(ship!.id)}/complete`, {
    lease: ship!.lease,
    output: { ok: 1 },
  });
  const { ended, execution } = await waiting;
  assert.equal(ended, true);
  assert.equal(execution.status, "completed");

  // What has happened.
  const { events } = await ok("GET", "/v1/executions/o-1/history");
  assert.equal(events[0].type, "ExecutionStarted");
  assert.equal(events.at(-1).type, "ExecutionCompleted");
  const paged = [];
  for (let from = 1; from !== undefined;) {
    const page = await ok("GET", `/v1/executions/o-1/history?from=${from}&limit=2`);
    paged.push(...page.events);
    from = page.next;
  }
  assert.deepEqual(paged, events);
  assert.deepEqual((await ok("GET", "/v1/executions/o-1/outputs/pack")).outputs.length, 1);
  assert.equal((await ok("GET", "/v1/executions/o-1?seq=1")).status, "running");
  const watched = await ok("GET", "/v1/executions/o-1/watch") as string;
  assert.deepEqual(
    [...watched.matchAll(/^event: (\w+)$/gm)].map(([, type]) => type),
    [...events.map(({ type }: { type: string }) => type), "end"],
  );

  // What goes on from it.
  assert.equal((await ok("POST", "/v1/executions/o-1/fork", { seq: 1, id: "o-2" })).joined, false);
  assert.equal((await ok("POST", "/v1/executions/o-1/rerun", { node: "ship", id: "o-3" })).from, "o-1");
  const [failing] = await scene.lease("ship");
  await ok("POST", `/v1/jobs/${encodeURIComponent(failing!.id)}/fail`, {
    lease: failing!.lease,
    error: "broken",
  });
  assert.equal((await ok("GET", "/v1/executions/o-3")).failure.error, "broken");
  assert.deepEqual((await ok("POST", "/v1/executions/o-2/migrate", { dryRun: true })).problems, []);
  assert.equal((await ok("POST", "/v1/executions/o-2/cancel", { reason: "enough" })).changed, true);

  // Lists.
  const list = async (query: string): Promise<string[]> =>
    (await ok("GET", `/v1/executions?${query}`)).items.map(({ id }: { id: string }) => id);
  assert.deepEqual((await list("flow=order")).sort(), ["o-1", "o-2", "o-3"]);
  assert.deepEqual(await list("status=cancelled"), ["o-2"]);
  assert.equal((await list("attr=customer%3Dc1&attr=customer%5E%3Dc&limit=2")).length, 2);
  assert.deepEqual(await list("attr=customer%3Dc2"), []);
  const dry = await ok("POST", "/v1/bulk", { do: "archive", query: { status: "failed" }, dryRun: true });
  assert.deepEqual([dry.matched, dry.done, dry.dryRun], [1, 1, true]);

  // The end.
  assert.equal((await ok("POST", "/v1/executions/o-1/archive", {})).changed, true);
  assert.equal((await ok("GET", "/v1/executions/o-1")).archived, true);
  assert.equal((await ok("DELETE", "/v1/executions/o-2")).changed, true);
  assert.equal((await scene.get("/v1/executions/o-2")).status, 404);

  // Flows.
  const definition = {
    name: "other",
    nodes: [{ id: "a", type: "task", kind: "k", meta: { big: 90071992547409939n } }],
  };
  const { hash } = await ok("POST", "/v1/flows/register", { definition });
  const yaml = "name: other\nnodes:\n  - {id: a, type: task, kind: k, meta: {big: 90071992547409939}}\n";
  assert.equal((await ok("POST", "/v1/flows/register", { yaml })).hash, hash, "one meaning, one version");
  assert.deepEqual((await ok("GET", "/v1/flows/other")).definition.nodes[0].meta, {
    big: 90071992547409939n,
  });
  assert.equal((await ok("GET", "/v1/flows")).flows.length, 2);

  // Dead letters.
  const body = JSON.stringify({ id: "x", type: "cancel", exec_id: "o-3", data: {} });
  const letter = {
    kind: "cmd",
    key: "o-3",
    text: JSON.stringify({ reason: "because", deliveries: 3, body }),
  };
  const id = await scene.store.deadLetters.add(letter);
  assert.equal((await ok("GET", "/v1/dead-letters")).items[0].reason, "because");
  assert.deepEqual(await ok("POST", `/v1/dead-letters/${id}/redrive`, {}), { execution: "o-3" });
}

Deno.test("HTTP: what is wrong with a call is said by its status, code and hint", async () => {
  await inScene({ flows: [flowOf(ORDER)] }, async ({ call, get, post, server }) => {
    const refused = async (answer: Promise<Answered>, status: number, code: string, about?: RegExp) => {
      const { status: was, body } = await answer;
      assert.deepEqual([was, body.error?.code], [status, code], stringifyJson(body));
      assert.equal(typeof body.error.message, "string");
      if (about !== undefined) assert.match(`${body.error.message} ${body.error.hint}`, about);
    };
    const raw = (body: BodyInit, type = "application/json", path = "/v1/executions"): Promise<Answered> =>
      fetch(`${server.url}${path}`, { method: "POST", headers: { "content-type": type }, body })
        .then(async (response) => ({
          status: response.status,
          headers: response.headers,
          body: await response.json(),
        }));

    await refused(raw('{"flow":"order"}', "text/plain"), 400, "wrong_content_type", /application\/json/);
    await refused(raw("flow=order", "application/x-www-form-urlencoded"), 400, "wrong_content_type");
    await refused(raw("{}", "application/jsonp"), 400, "wrong_content_type");
    await refused(call("POST", "/v1/executions/o-1/unpause"), 400, "wrong_content_type");
    await refused(raw('{"flow":'), 400, "not_json");
    await refused(raw("[1]"), 400, "invalid_argument", /object/);
    await refused(raw(new Uint8Array([0x7b, 0xff, 0x7d])), 400, "not_json", /UTF-8/);
    await refused(
      raw(`{"flow":"order","input":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
      400,
      "too_deep",
    );
    await refused(
      raw(`{"flow":"order","input":${'{"a":'.repeat(1000)}1${"}".repeat(1000)}}`),
      400,
      "too_deep",
    );
    await refused(
      raw(`{"flow":"order","input":{"text":"${"[".repeat(1000)}"},"id":"deep text"}`),
      400,
      "invalid_argument",
    );
    await refused(post("/v1/executions", { flow: "order", inputt: {} }), 400, "invalid_argument", /"input"/);
    await refused(post("/v1/executions", {}), 400, "invalid_argument", /"flow"/);
    await refused(post("/v1/executions", { flow: "order", input: [1] }), 400, "invalid_argument");
    await refused(post("/v1/executions", { flow: "or.der" }), 400, "invalid_argument");
    await refused(post("/v1/executions", { flow: "order", id: "a>b" }), 400, "invalid_argument");
    await refused(
      post("/v1/executions", { flow: "order", signals: [{ nam: "x" }] }),
      400,
      "invalid_argument",
      /"nam"/,
    );
    await refused(post("/v1/executions", { flow: "nobody" }), 404, "unknown_flow");
    await refused(get("/v1/executions/none"), 404, "execution_not_found");
    await refused(get("/v1/executions/a%2Eb"), 400, "invalid_argument");
    await refused(get("/v1/executions/%zz"), 400, "invalid_argument");
    await refused(get("/v1/executions?limit=0"), 400, "invalid_argument", /limit/);
    await refused(get("/v1/executions?limitt=1"), 400, "invalid_argument", /"limit"/);
    await refused(get("/v1/executions?attr=x"), 400, "invalid_query");
    await refused(get("/v1/executions?cursor=x"), 400, "invalid_cursor");
    await refused(get("/v1/executions/none/watch"), 404, "execution_not_found");
    await refused(get("/v1/nothing"), 404, "not_found");
    await refused(get("/"), 404, "not_found");
    await refused(call("PUT", "/v1/executions"), 405, "wrong_method", /GET/);
    await refused(post("/v1/flows/register", { definition: { name: "x" } }), 400, "invalid_flow");
    await refused(post("/v1/flows/register", { yaml: "name: [" }), 400, "invalid_flow", /line 1/);
    await refused(post("/v1/flows/register", {}), 400, "invalid_argument");
    await refused(post("/v1/bulk", { do: "cancel" }), 400, "invalid_argument", /every execution/);
    await refused(post("/v1/bulk", { do: "signal", all: true }), 400, "invalid_argument", /name/);
    await refused(post("/v1/dead-letters/zz/redrive"), 404, "dead_letter_not_found");
    await refused(post("/v1/jobs/lease", { kinds: [], worker: "w" }), 400, "invalid_argument", /kinds/);
    await refused(post("/v1/jobs/lease", { kinds: ["k"], worker: "w", leaseMs: 5 }), 400, "invalid_argument");
    await refused(post("/v1/jobs/nonsense/complete", { lease: "1.1000.w" }), 400, "invalid_argument", /job/);
    await refused(post("/v1/jobs/job.e.a.1.1/heartbeat", { lease: "?" }), 400, "invalid_argument", /lease/);

    await post("/v1/executions", { flow: "order", id: "o-1" });
    await refused(
      post("/v1/executions", { flow: "order", id: "o-1", joinExisting: false }),
      409,
      "execution_exists",
    );
    await refused(post("/v1/executions/o-1/resume", { node: "pack" }), 409, "rejected");
    await refused(call("DELETE", "/v1/executions/o-1"), 409, "rejected");
    await refused(post("/v1/executions/o-1/fork", { seq: 99 }), 400, "invalid_argument");
    await post("/v1/executions/o-1/cancel");
    await refused(post("/v1/executions/o-1/signal", { name: "approve" }), 409, "execution_ended");
    await refused(post("/v1/executions/o-1/update", { writes: {} }), 409, "execution_ended");
    // Nothing of this has done anything.
    assert.equal((await get("/v1/executions")).body.items.length, 1);
  });
});

Deno.test("HTTP: a body that is too large is refused, with or without its length", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ server, get }) => {
    const chunk = new Uint8Array(1 << 20).fill(32);
    const body = (chunks: number): ReadableStream<Uint8Array> => {
      let left = chunks;
      return new ReadableStream({
        pull(controller) {
          if (left-- > 0) controller.enqueue(chunk);
          else controller.close();
        },
      });
    };
    const headers = { "content-type": "application/json" };
    for (const given of [body(8), new Uint8Array(5 << 20).fill(32)]) {
      const answer = fetch(`${server.url}/v1/executions`, { method: "POST", headers, body: given });
      // A client that goes on sending may find the connection closed before it has read the answer.
      const outcome = await answer.then(async (response) => {
        await response.text();
        return response.status;
      }, (error) => error instanceof TypeError);
      assert.ok(outcome === 413 || outcome === true, String(outcome));
    }
    // Just within: 4 MiB, and still JSON.
    const start = `{"flow":"t","id":"large","input":{"text":"`, end = `"}}`;
    const text = start + "x".repeat(4 * 1024 * 1024 - start.length - end.length) + end;
    const response = await fetch(`${server.url}/v1/executions`, { method: "POST", headers, body: text });
    assert.equal(response.status, 201, await response.text());
    assert.equal((await get("/v1/executions/large")).status, 200);
  });
});

Deno.test("F12 HTTP: a page of a history has a bounded size, and pages lose nothing", async () => {
  const flow = flowOf(
    "name: w\nchannels: {c: {}}\nnodes:\n  - {id: a, type: await, signal: s, timeout: 1h}\n",
  );
  await inScene({ flows: [flow] }, async ({ post, get, client }) => {
    await post("/v1/executions", { flow: "w", id: "w" });
    const big = "x".repeat(3 * 1024 * 1024);
    for (let i = 0; i < 4; i++) {
      assert.equal((await post("/v1/executions/w/update", { writes: { c: big + i } })).status, 200);
    }
    const seen = [], sizes: number[] = [];
    for (let from = 1; from !== undefined;) {
      const { body } = await get(`/v1/executions/w/history?from=${from}`);
      seen.push(...body.events);
      sizes.push(stringifyJson(body).length);
      from = body.next;
    }
    assert.deepEqual(seen, JSON.parse(JSON.stringify(await client.history("w"))));
    assert.ok(sizes.length >= 4 && Math.max(...sizes) < 5 * 1024 * 1024, sizes.join());
  });
});

Deno.test("HTTP: who has the token may call; health is for everybody", async () => {
  const token = "0123456789abcdef";
  await inScene({ token }, async ({ call, server }) => {
    for (
      const authorization of [
        "",
        token,
        "Bearer",
        `Bearer ${token}x`,
        "Bearer 0123456789abcdeF",
        `Basic ${token}`,
      ]
    ) {
      const { status, body, headers } = await call("GET", "/v1/flows", undefined, { authorization });
      assert.deepEqual([status, body.error.code, headers.get("www-authenticate")], [
        401,
        "unauthorized",
        "Bearer",
      ]);
    }
    const authorization = `Bearer ${token}`;
    assert.equal((await call("GET", "/v1/flows", undefined, { authorization })).status, 200);
    assert.equal((await call("GET", "/metrics")).status, 401);
    assert.match(
      (await call("GET", "/metrics", undefined, { authorization })).body,
      /^mailer_flow_decisions_total 0$/m,
    );
    // What is not there, and what is wrong, is not told to those who may not call.
    assert.equal((await call("GET", "/v1/nothing")).status, 401);
    assert.equal((await call("POST", "/v1/executions", { nonsense: 1 })).status, 401);
    assert.equal((await call("GET", "/healthz")).body, "ok\n");
    assert.equal((await call("GET", "/readyz")).body, "ready\n");
    assert.ok(server.url.startsWith("http://127.0.0.1:"));
  });
  await using store = await openMemoryStore();
  assert.throws(() => serveFlows({ engine: new FlowEngine({ store }), port: 0, token: "short" }), {
    code: "invalid_option",
  });
});

Deno.test("HTTP: without a token only this machine is served, by a name of its own", async () => {
  await inScene({}, async ({ server }) => {
    const { port } = new URL(server.url);
    const ask = async (host: string): Promise<string> => {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
      const request = `GET /v1/flows HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
      await connection.write(new TextEncoder().encode(request));
      return (await new Response(connection.readable).text()).split("\r\n")[0]!;
    };
    assert.equal(await ask(`127.0.0.1:${port}`), "HTTP/1.1 200 OK");
    assert.equal(await ask(`localhost:${port}`), "HTTP/1.1 200 OK");
    assert.equal(await ask("evil.example"), "HTTP/1.1 401 Unauthorized");
    assert.equal(await ask("127.0.0.1.evil.example"), "HTTP/1.1 401 Unauthorized");
  });
});

Deno.test("HTTP: every answer says that it is nothing but what it is", async () => {
  await inScene({}, async ({ get, call }) => {
    for (
      const { headers } of [
        await get("/v1/flows"),
        await get("/nothing"),
        await get("/healthz"),
        await call("PUT", "/v1/flows"),
      ]
    ) {
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.match(headers.get("content-security-policy") ?? "", /default-src 'none'/);
      assert.equal(headers.get("cache-control"), "no-store");
      assert.equal(headers.get("access-control-allow-origin"), null);
    }
  });
});

Deno.test("HTTP: a watch goes on behind the last event it was seen", async () => {
  await inScene({ flows: [flowOf(ORDER)] }, async ({ post, server, client, lease, about }) => {
    await post("/v1/executions", { flow: "order", id: "o-1" });
    const read = async (lastId?: string): Promise<{ readonly seen: string[]; readonly id: string }> => {
      const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
      const abort = new AbortController();
      const response = await fetch(`${server.url}/v1/executions/o-1/watch`, {
        headers,
        signal: abort.signal,
      });
      assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
      const seen: string[] = [];
      let text = "", id = "";
      try {
        for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
          text += chunk;
          for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
            const block = text.slice(0, end);
            text = text.slice(end + 2);
            id = /^id: (.*)$/m.exec(block)?.[1] ?? id;
            const type = /^event: (.*)$/m.exec(block)?.[1];
            if (type !== undefined) seen.push(type);
          }
          // The first reader goes away in the middle.
          if (lastId === undefined && seen.includes("NodeScheduled")) break;
        }
      } finally {
        abort.abort();
      }
      return { seen, id };
    };
    const first = await read();
    assert.deepEqual(first, { seen: ["ExecutionStarted", "NodeEntered", "NodeScheduled"], id: "1" });
    const [job] = await lease("pack");
    await about(job!, "complete");
    const second = read(first.id);
    await client.cancel("o-1");
    const { seen } = await second;
    assert.equal(seen[0], "NodeCompleted");
    assert.deepEqual(seen.slice(-2), ["ExecutionCancelled", "end"]);
  });
});

Deno.test("HTTP: draining answers whoever waits", async () => {
  await inScene({ flows: [flowOf(ORDER)] }, async ({ post, get, server }) => {
    await post("/v1/executions", { flow: "order", id: "o-1" });
    const lease = post("/v1/jobs/lease", { kinds: ["other"], worker: "w", waitMs: 60_000 });
    const wait = get("/v1/executions/o-1/wait?timeoutMs=60000");
    const watch = get("/v1/executions/o-1/watch");
    await delay(systemClock, 200);
    const begun = performance.now();
    await server.drain();
    assert.ok(performance.now() - begun < 2000, "nobody is waited for");
    assert.deepEqual((await lease).body, { jobs: [] });
    assert.equal((await wait).body.ended, false);
    assert.match((await watch).body, /NodeScheduled/);
    await assert.rejects(get("/healthz"), TypeError);
  });
});

Deno.test("HTTP: draining does not wait for a body that never comes", async () => {
  await inScene({}, async ({ server }) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(server.url).port) });
    const head = "POST /v1/executions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n";
    await connection.write(new TextEncoder().encode(`${head}content-length: 100\r\n\r\n{`));
    await delay(systemClock, 100);
    const begun = performance.now();
    await server.drain(200);
    assert.ok(performance.now() - begun < 2000);
    connection.close();
  });
});

Deno.test("HTTP: only so many calls wait at once", async () => {
  await inScene({ maxWaiting: 2, flows: [oneTask("t")] }, async ({ post, server }) => {
    const lease = { kinds: ["t"], worker: "w", waitMs: 60_000 };
    const waiting = [post("/v1/jobs/lease", lease), post("/v1/jobs/lease", lease)];
    await delay(systemClock, 200);
    const { status, body, headers } = await post("/v1/jobs/lease", lease);
    assert.deepEqual([status, body.error.code, headers.get("retry-after")], [429, "too_many_requests", "1"]);
    assert.equal((await post("/v1/executions", { flow: "t" })).status, 201, "others are served");
    const [job] = (await Promise.race(waiting)).body.jobs;
    const again = post("/v1/jobs/lease", { ...lease, kinds: ["other"] });
    await delay(systemClock, 100);
    // A heartbeat is answered at once rather than refused: a lease must not be lost by that.
    const begun = performance.now(), at = `/v1/jobs/${encodeURIComponent(job.id)}/heartbeat`;
    assert.equal((await post(at, { lease: job.lease, waitMs: 20_000 })).body.wanted, true);
    assert.ok(performance.now() - begun < 1000);
    await server.drain();
    const answers = await Promise.all([...waiting, again]);
    assert.equal(answers.flatMap(({ body }) => body.jobs).length, 1, "one of them got the job");
  });
});

Deno.test("HTTP: an address that is taken, or cannot be, is said", async () => {
  await inScene({}, async ({ engine, server }) => {
    const port = Number(new URL(server.url).port);
    await Promise.resolve();
    assert.throws(() => serveFlows({ engine, port }), { code: "cannot_listen" });
  });
});

Deno.test("HTTP: the OpenAPI document names every call, and all that it refers to is there", async () => {
  await inScene({}, async ({ get }) => {
    const { body } = await get("/v1/openapi.json");
    assert.deepEqual(body, JSON.parse(JSON.stringify(openApi(ROUTES))));
    const operations = Object.entries(body.paths as Record<string, Record<string, unknown>>)
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
    assert.deepEqual(operations.sort(), ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
    for (const [, ref] of JSON.stringify(body).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      let at = body;
      for (const part of ref!.split("/")) at = at?.[part];
      assert.notEqual(at, undefined, ref);
    }
  });
});

Deno.test("docs/flow-api.md is the reference of the table of routes", async () => {
  const page = new URL("../../../docs/flow-api.md", import.meta.url);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--ext", "md", "-"],
    cwd: new URL("../../..", import.meta.url),
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(apiReference(ROUTES)));
  await writer.close();
  const { stdout } = await child.output();
  assert.ok(
    await Deno.readTextFile(page) === new TextDecoder().decode(stdout),
    "docs/flow-api.md is out of date: deno run tools/flow_api.ts > docs/flow-api.md && deno fmt docs/flow-api.md",
  );
});
