import assert from "node:assert/strict";
import { delay, systemClock } from "../../clock.ts";
import { type Job, PermanentError } from "../engine/mod.ts";
import { FlowEngine } from "../engine/mod.ts";
import { RemoteJobs } from "../engine/remote.ts";
import { MemoryDisk, openMemoryStore } from "../store/memory.ts";
import { serveFlows } from "./serve.ts";
import { flowOf, type HttpScene, inScene, oneTask, sceneOf, STORES } from "./kit_test.ts";
import { HttpWorker } from "./worker.ts";

const wait = (ms: number): Promise<void> => delay(systemClock, ms);
/** A lease, ms: over before a test is. */
const SHORT = 200;

Deno.test("jobs: a lease waits for a job, and gets it when it comes", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ lease, client }) => {
    assert.deepEqual(await lease("t", { waitMs: 0 }), []);
    const waiting = lease("t", { waitMs: 10_000 });
    await wait(50);
    const begun = performance.now();
    await client.start("t", { n: 1 }, { id: "e1" });
    const [job] = await waiting;
    assert.ok(performance.now() - begun < 1000, "it is woken, it does not poll");
    const { lease: token, ...rest } = job!;
    assert.equal(typeof token, "string");
    assert.deepEqual(
      Object.keys(rest).sort(),
      "attempt,context,deliveries,exec_id,flow,flow_hash,generation,id,idempotency_key,key,kind,lease_ms,node"
        .split(","),
    );
    assert.deepEqual(rest.context.input, { n: 1 });
    assert.deepEqual([rest.id, rest.attempt, rest.deliveries, rest.lease_ms], ["job.e1.a.1.1", 1, 1, 30_000]);
  });
});

Deno.test("jobs: several kinds in turn, at most as many as asked for", async () => {
  await inScene({ flows: [oneTask("t"), oneTask("u")] }, async ({ post, client }) => {
    for (let i = 0; i < 4; i++) for (const flow of ["t", "u"]) await client.start(flow);
    const seen: string[] = [];
    for (let i = 0; i < 8; i++) {
      const { body } = await post("/v1/jobs/lease", { kinds: ["t", "u"], worker: "w" });
      assert.equal(body.jobs.length, 1);
      seen.push(body.jobs[0].kind);
    }
    assert.deepEqual([...new Set(seen.slice(0, 2))].sort(), ["t", "u"], "neither waits for the other's end");
    assert.equal(seen.filter((kind) => kind === "t").length, 4);
  });
});

for (const [kind, store] of Object.entries(STORES)) {
  Deno.test(`jobs, ${kind}: two workers race for jobs, and none is handed to both`, async () => {
    await inScene({ flows: [oneTask("t")], store }, async ({ lease, client, about }) => {
      for (let i = 0; i < 20; i++) await client.start("t", {}, { id: `e${i}` });
      const drain = async (worker: string): Promise<string[]> => {
        const done: string[] = [];
        for (;;) {
          const jobs = await lease("t", { worker, max: 3, waitMs: 0 });
          if (jobs.length === 0) return done;
          for (const job of jobs) {
            assert.deepEqual((await about(job, "complete", { output: { worker } })).body, { accepted: true });
            done.push(job.id);
          }
        }
      };
      const [one, two] = await Promise.all([drain("one"), drain("two")]);
      assert.equal(new Set([...one, ...two]).size, 20);
      assert.equal(one.length + two.length, 20);
      assert.ok(one.length > 0 && two.length > 0);
      for (let i = 0; i < 20; i++) assert.equal((await client.get(`e${i}`)).status, "completed");
    });
  });

  Deno.test(`jobs, ${kind}: what a dead worker had is another's when the lease is over`, async () => {
    await inScene({ flows: [oneTask("t")], store }, async ({ lease, client, about }) => {
      await client.start("t", {}, { id: "e1" });
      const [dead] = await lease("t", { worker: "dead", leaseMs: SHORT });
      assert.deepEqual(await lease("t", { worker: "next", waitMs: 0 }), [], "it may be alive");
      const [job] = await lease("t", { worker: "next", waitMs: 5000 });
      assert.deepEqual([job!.id, job!.deliveries, job!.attempt], [dead!.id, 2, 1]);
      assert.equal(job!.idempotency_key, dead!.idempotency_key);
      // The dead one comes back: it hears that it is too late, and changes nothing.
      assert.equal((await about(dead!, "heartbeat")).body.wanted, false);
      const late = await about(dead!, "complete", { output: { from: "the dead" } });
      assert.equal(late.body.accepted, false);
      assert.match(late.body.reason, /another worker/);
      assert.deepEqual((await about(dead!, "release")).body, { released: false });
      assert.deepEqual((await about(job!, "complete", { output: { from: "next" } })).body, {
        accepted: true,
      });
      assert.deepEqual((await client.get("e1")).results["a"], { from: "next" });
      // The answer again, as by a worker that did not hear that it was taken.
      const again = await about(job!, "complete", { output: { from: "next" } });
      assert.deepEqual([again.status, again.body.accepted], [200, false]);
      assert.match(again.body.reason, /completed/);
      assert.equal((await client.history("e1")).filter(({ type }) => type === "NodeCompleted").length, 1);
    });
  });
}

Deno.test("jobs: heartbeats keep a job longer than its lease", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ lease, client, about }) => {
    await client.start("t");
    const [job] = await lease("t", { leaseMs: SHORT });
    for (let i = 0; i < 6; i++) {
      await wait(SHORT / 2);
      assert.equal((await about(job!, "heartbeat")).body.wanted, true);
      assert.deepEqual(await lease("t", { waitMs: 0 }), []);
    }
    assert.deepEqual((await about(job!, "complete")).body, { accepted: true });
  });
});

Deno.test("jobs: an attempt that nobody ever answers is given up", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ lease, client }) => {
    await client.start("t", {}, { id: "e1" });
    for (let i = 1; i <= 5; i++) {
      const [job] = await lease("t", { leaseMs: 100, waitMs: 5000 });
      assert.equal(job!.deliveries, i);
    }
    assert.deepEqual(await lease("t", { waitMs: 500 }), []);
    const { status, failure } = await client.wait("e1", { timeoutMs: 5000 });
    assert.deepEqual([status, failure?.reason], ["failed", "delivery_failed"]);
    const { items: [letter] } = await client.deadLetters();
    assert.deepEqual([letter!.kind, letter!.key], ["job", "job.e1.a.1.1"]);
  });
});

Deno.test("jobs: a silent worker ends the attempt, and the next one finds how far it had got", async () => {
  const flow = oneTask("t", ", heartbeat: 300ms, retry: {max_attempts: 2, delay: 10ms}");
  await inScene({ flows: [flow] }, async ({ lease, client, about }) => {
    await client.start("t", {}, { id: "e1" });
    const [first] = await lease("t");
    assert.equal(first!.heartbeat_ms, 300);
    await wait(200);
    assert.equal((await about(first!, "heartbeat", { progress: { row: 17 } })).body.wanted, true);
    await wait(200);
    // Keeping the lease is no sign of life of the work, however often.
    let kept = 0;
    while ((await about(first!, "heartbeat", { keep: true })).body.wanted) {
      await wait(50);
      assert.ok(++kept < 20);
    }
    const [second] = await lease("t", { waitMs: 5000 });
    assert.deepEqual([second!.attempt, second!.context.progress], [2, { row: 17 }]);
    assert.equal((await about(first!, "heartbeat")).body.wanted, false);
    assert.equal((await about(first!, "complete")).body.accepted, false);
    const [failed] = (await client.history("e1")).filter(({ type }) => type === "NodeFailed");
    assert.equal((failed!.data as { reason: string }).reason, "heartbeat_timeout");
    assert.deepEqual((await about(second!, "complete", { output: { ok: true } })).body, { accepted: true });
  });
});

Deno.test("jobs: a failure tells the progress of the last heartbeat, unless it tells its own", async () => {
  const flow = oneTask("t", ", retry: {max_attempts: 3, delay: 10ms}");
  await inScene({ flows: [flow] }, async ({ lease, client, about }) => {
    await client.start("t");
    const [first] = await lease("t");
    await about(first!, "heartbeat", { progress: 1 });
    await about(first!, "fail", { error: "no" });
    const [second] = await lease("t", { waitMs: 5000 });
    assert.equal(second!.context.progress, 1);
    await about(second!, "heartbeat", { progress: 2 });
    await about(second!, "fail", { error: "no", progress: { own: 3 } });
    const [third] = await lease("t", { waitMs: 5000 });
    assert.deepEqual(third!.context.progress, { own: 3 });
  });
});

Deno.test("F62 jobs: a worker that waits with its heartbeat hears of a cancellation at once", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ lease, client, about }) => {
    await client.start("t", {}, { id: "e1" });
    const [job] = await lease("t");
    const beat = about(job!, "heartbeat", { waitMs: 20_000 });
    await wait(100);
    const begun = performance.now();
    await client.cancel("e1", "the customer left");
    const { body } = await beat;
    assert.ok(performance.now() - begun < 500);
    assert.equal(body.wanted, false);
    assert.match(body.reason, /cancelled: the customer left/);
    assert.equal((await about(job!, "fail", { error: "stopped" })).body.accepted, false);
  });
});

Deno.test("jobs: an answer that does not fit is a failure of the attempt, said by the engine", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ lease, client, about }) => {
    await client.start("t", {}, { id: "e1" });
    const [job] = await lease("t");
    assert.deepEqual((await about(job!, "complete", { output: [1] })).body, { accepted: true });
    assert.equal((await client.get("e1")).failure?.reason, "invalid_output");
  });
});

Deno.test("jobs: a result that is kept answers without a worker", async () => {
  await inScene({ flows: [oneTask("t", ", cache: {ttl: 1h}")] }, async ({ lease, client, about, engine }) => {
    await client.start("t", { n: 1 }, { id: "e1" });
    const [job] = await lease("t");
    await about(job!, "complete", { output: { twice: 2 } });
    await client.start("t", { n: 1 }, { id: "e2" });
    assert.deepEqual(await lease("t", { waitMs: 0 }), []);
    assert.deepEqual((await client.get("e2")).results["a"], { twice: 2 });
    assert.equal(engine.counters.cacheHits, 1);
  });
});

/** Two servers with an engine each, on one store: as two processes. */
async function twoServers(
  flows: Parameters<typeof inScene>[0]["flows"],
  body: (one: HttpScene, two: HttpScene) => Promise<void>,
): Promise<void> {
  const disk = new MemoryDisk();
  await using storeOne = await openMemoryStore({ disk });
  await using storeTwo = await openMemoryStore({ disk });
  await using engineOne = await new FlowEngine({ store: storeOne, flows: flows ?? [] }).start();
  await using engineTwo = await new FlowEngine({ store: storeTwo }).start();
  await using one = serveFlows({ engine: engineOne, port: 0 });
  await using two = serveFlows({ engine: engineTwo, port: 0 });
  await body(sceneOf(storeOne, engineOne, one), sceneOf(storeTwo, engineTwo, two));
}

Deno.test("F82 jobs: the limit of a node holds over all processes, and keeps no other key waiting", async () => {
  const flow = oneTask("t", ", concurrency: {key: input.tenant, max: 2}");
  await twoServers([flow], async (one, two) => {
    for (let i = 0; i < 8; i++) await one.client.start("t", { tenant: "noisy" }, { id: `n${i}` });
    await one.client.start("t", { tenant: "quiet" }, { id: "q" });
    const leased = [
      ...await one.lease("t", { max: 10, waitMs: 0 }),
      ...await two.lease("t", { max: 10, waitMs: 0 }),
    ];
    const tenants = leased.map(({ context }) => (context.input as { tenant: string }).tenant);
    assert.deepEqual(tenants.sort(), ["noisy", "noisy", "quiet"]);
    // Whoever waits gets the place as soon as it is free, and waiting was no delivery.
    const next = two.lease("t", { waitMs: 5000 });
    await wait(300);
    const noisy = leased.find(({ exec_id }) => exec_id !== "q")!;
    assert.deepEqual((await one.about(noisy, "complete")).body, { accepted: true });
    const [job] = await next;
    assert.equal(job!.deliveries, 1);
  });
});

Deno.test("jobs: the rate of a node holds over all processes", async () => {
  await twoServers([oneTask("t", ", rate: {max: 3, per: 1h}")], async (one, two) => {
    for (let i = 0; i < 8; i++) await one.client.start("t");
    const leased = await Promise.all([
      one.lease("t", { max: 10, waitMs: 300 }),
      two.lease("t", { max: 10, waitMs: 300 }),
    ]);
    assert.equal(leased.flat().length, 3);
    // An answer gives no place back: what has begun has begun.
    for (const job of leased.flat()) await one.about(job, "complete");
    assert.deepEqual(await two.lease("t", { waitMs: 300 }), []);
  });
});

Deno.test("jobs: a call about a job may come to any process", async () => {
  const flow = oneTask("t", ", heartbeat: 500ms, retry: {max_attempts: 2, delay: 10ms}");
  await twoServers([flow], async (one, two) => {
    await one.client.start("t", {}, { id: "e1" });
    const [job] = await one.lease("t");
    for (let i = 0; i < 3; i++) {
      await wait(300);
      assert.equal((await two.about(job!, "heartbeat", { progress: i })).body.wanted, true);
    }
    // The second process has heard of the worker last: it watches it now.
    const [next] = await one.lease("t", { waitMs: 5000 });
    assert.deepEqual([next!.attempt, next!.context.progress], [2, 2]);
    assert.deepEqual((await two.about(next!, "complete", { output: { by: "two" } })).body, {
      accepted: true,
    });
    assert.deepEqual((await one.client.wait("e1", { timeoutMs: 5000 })).results["a"], { by: "two" });
  });
});

Deno.test("jobs: limits hold for workers of the process as well", async () => {
  let most = 0, active = 0;
  await inScene(
    { flows: [oneTask("t", ', concurrency: {key: "input.k", max: 2}')] },
    async ({ client, engine }) => {
      engine.worker("t", async () => {
        most = Math.max(most, ++active);
        await wait(20);
        active--;
      }, { concurrency: 8 });
      const ids = await Promise.all(
        Array.from({ length: 10 }, async () => (await client.start("t", { k: "same" })).id),
      );
      for (const id of ids) assert.equal((await client.wait(id, { timeoutMs: 10_000 })).status, "completed");
      assert.equal(most, 2);
    },
  );
});

Deno.test("jobs: what a worker that has gone was to get is another's, as if never handed out", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ server, lease, client }) => {
    const abort = new AbortController();
    const gone = fetch(`${server.url}/v1/jobs/lease`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ kinds: ["t"], worker: "gone", waitMs: 20_000 }),
      signal: abort.signal,
    });
    await wait(100);
    abort.abort();
    await assert.rejects(gone);
    await wait(50);
    await client.start("t");
    const [job] = await lease("t");
    assert.equal(job!.deliveries, 1);
  });
});

Deno.test("jobs: a worker that goes away while it is being served leaves nothing behind", async () => {
  await inScene({ flows: [oneTask("t")] }, async ({ engine, client, lease }) => {
    await client.start("t");
    const remote = new RemoteJobs(engine);
    const request = { kinds: ["t"], max: 1, worker: "gone", leaseMs: 60_000, waitMs: 0 };
    assert.deepEqual(await remote.lease(request, AbortSignal.abort()), []);
    const [job] = await lease("t");
    assert.equal(job!.deliveries, 1);
    remote.close();
    await assert.rejects(remote.lease(request, new AbortController().signal), { code: "draining" });
  });
});

// The worker over HTTP.

/** Runs a test with a worker. */
async function withWorker(
  scene: HttpScene,
  handler: (job: Job) => unknown,
  body: (worker: HttpWorker) => Promise<void>,
  more: { readonly leaseMs?: number; readonly concurrency?: number } = {},
): Promise<void> {
  const worker = new HttpWorker({ url: scene.server.url, handlers: { t: handler }, ...more }).start();
  try {
    await body(worker);
  } finally {
    await worker.kill();
  }
}

Deno.test("F61 HTTP worker: its handler hears of a cancellation at once, and gives no answer", async () => {
  await inScene({ flows: [oneTask("t")] }, async (scene) => {
    const begun = Promise.withResolvers<void>(), heard = Promise.withResolvers<unknown>();
    const handler = async ({ signal }: Job): Promise<void> => {
      begun.resolve();
      await delay(systemClock, 30_000, signal).catch(() => heard.resolve(signal.reason));
    };
    await withWorker(scene, handler, async (worker) => {
      await scene.client.start("t", {}, { id: "e1" });
      await begun.promise;
      const at = performance.now();
      await scene.client.cancel("e1", "enough");
      const reason = await heard.promise as { code: string; message: string };
      assert.ok(performance.now() - at < 1000);
      assert.equal(reason.code, "cancelled");
      assert.match(reason.message, /cancelled: enough/);
      assert.equal((await scene.client.get("e1")).status, "cancelled");
      await worker.drain();
      assert.equal(worker.active, 0);
    });
  });
});

Deno.test("HTTP worker: draining lets jobs under way come to their end, and takes no more", async () => {
  await inScene({ flows: [oneTask("t")] }, async (scene) => {
    const begun = Promise.withResolvers<void>(), go = Promise.withResolvers<void>();
    const handler = async (): Promise<object> => {
      begun.resolve();
      await go.promise;
      return { ok: true };
    };
    await withWorker(scene, handler, async (worker) => {
      await scene.client.start("t", {}, { id: "e1" });
      await begun.promise;
      const drained = worker.drain();
      await scene.client.start("t", {}, { id: "e2" });
      go.resolve();
      await drained;
      assert.equal((await scene.client.get("e1")).status, "completed");
      assert.equal((await scene.client.get("e2")).status, "running");
      assert.equal((await scene.lease("t", { waitMs: 0 })).length, 1, "it is there for others");
    });
  });
});

Deno.test("HTTP worker: what it had when it was killed is another's", async () => {
  await inScene({ flows: [oneTask("t")] }, async (scene) => {
    const begun = Promise.withResolvers<void>();
    const hang = async ({ signal }: Job): Promise<void> => {
      begun.resolve();
      await delay(systemClock, 30_000, signal);
    };
    await withWorker(scene, hang, async (worker) => {
      await scene.client.start("t", {}, { id: "e1" });
      await begun.promise;
      await worker.kill();
      assert.equal((await scene.client.get("e1")).status, "running", "it gave no answer");
    }, { leaseMs: 300 });
    await withWorker(scene, ({ deliveries }) => ({ deliveries }), async () => {
      const { results } = await scene.client.wait("e1", { timeoutMs: 5000 });
      assert.deepEqual(results["a"], { deliveries: 2 });
    });
  });
});

Deno.test("HTTP worker: an answer that the server refuses fails the attempt", async () => {
  await inScene({ flows: [oneTask("t")] }, async (scene) => {
    let deep: unknown = 1;
    for (let i = 0; i < 600; i++) deep = [deep];
    await withWorker(scene, () => ({ deep }), async () => {
      await scene.client.start("t", {}, { id: "e1" });
      const { failure } = await scene.client.wait("e1", { timeoutMs: 5000 });
      assert.match(failure?.error ?? "", /the answer was refused: .*nested deeper/);
    });
  });
});

Deno.test("HTTP worker: as many at once as it is to do, and it goes on when the server was away", async () => {
  const disk = new MemoryDisk();
  await using store = await openMemoryStore({ disk });
  await using engine = await new FlowEngine({ store, flows: [oneTask("t")] }).start();
  const first = serveFlows({ engine, port: 0 }), port = Number(new URL(first.url).port);
  let active = 0, most = 0;
  const handler = async ({ context }: Job): Promise<object> => {
    most = Math.max(most, ++active);
    await wait(50);
    active--;
    if ((context.input as { bad?: true }).bad) throw new PermanentError("bad");
    return {};
  };
  const scene = sceneOf(store, engine, first);
  await withWorker(scene, handler, async () => {
    const start = (id: string, input = {}): Promise<unknown> => scene.client.start("t", input, { id });
    await Promise.all(Array.from({ length: 8 }, (_, i) => start(`a${i}`)));
    for (let i = 0; i < 8; i++) await scene.client.wait(`a${i}`, { timeoutMs: 5000 });
    assert.equal(most, 3);
    await first.drain();
    await start("b0", { bad: true });
    await wait(300);
    await using second = serveFlows({ engine, port });
    const { status, failure } = await scene.client.wait("b0", { timeoutMs: 10_000 });
    assert.deepEqual([status, failure?.error], ["failed", "bad"]);
    assert.equal(second.url, first.url);
  }, { concurrency: 3 });
});

Deno.test("jobs: many executions, workers of both kinds, none lost", async () => {
  const flow = flowOf(`name: m
nodes:
  - {id: each, type: map, over: input.items, kind: t, max_parallel: 10}
`);
  await inScene({ flows: [flow] }, async (scene) => {
    await withWorker(
      scene,
      ({ context }) => ({ got: (context as unknown as { item: number }).item }),
      async () => {
        scene.engine.worker("t", ({ context }) => ({ got: (context as unknown as { item: number }).item }));
        const { id } = await scene.client.start("m", { items: Array.from({ length: 60 }, (_, i) => i) });
        const { status, results } = await scene.client.wait(id, { timeoutMs: 20_000 });
        assert.equal(status, "completed");
        assert.deepEqual(
          (results["each"] as { got: number }[]).map(({ got }) => got),
          Array.from({ length: 60 }, (_, i) => i),
        );
      },
    );
  });
});
