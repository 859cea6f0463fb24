/** `mailer serve` as a process: it says when it is ready, survives being killed, and drains when it is told to. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { delay, systemClock } from "../../lib/clock.ts";
import { HttpWorker } from "../../lib/flow/http/worker.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

const FLOW = `name: steps
start: first
nodes:
  - {id: first, type: task, kind: step, next: each, retry: {max_attempts: 3, delay: 10ms}}
  - {id: each, type: map, over: "[1, 2, 3]", kind: step, next: nap}
  - {id: nap, type: sleep, for: 50ms, next: last}
  - {id: last, type: task, kind: step}
`;

interface Process {
  readonly url: string;
  kill(signal: Deno.Signal): Promise<Deno.CommandStatus>;
}

/** Starts `mailer serve` and waits until it is ready. */
async function start(folder: string, listen: string): Promise<Process> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      `${root}cli.ts`,
      "serve",
      "--flows",
      "steps.yaml",
      "--listen",
      listen,
    ],
    cwd: folder,
    env: { INIT_CWD: "" }, // whoever started the tests may have set it
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const lines = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", url: string | undefined;
  while (url === undefined) {
    const { value, done } = await lines.read();
    assert.ok(!done, `it ended: ${text}`);
    text += value;
    url = /^serving flows at (http:\S+)$/m.exec(text)?.[1];
  }
  return {
    url,
    kill: async (signal) => {
      child.kill(signal);
      while (!(await lines.read()).done);
      return await child.status;
    },
  };
}

async function call(url: string, path: string, body?: unknown): Promise<unknown> {
  for (let tries = 0;; tries++) {
    try {
      const response = await fetch(`${url}${path}`, {
        ...(body === undefined ? {} : {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      });
      const answer = await response.json();
      assert.ok(response.ok, JSON.stringify(answer));
      return answer;
    } catch (error) {
      if (!(error instanceof TypeError) || tries > 100) throw error;
      await delay(systemClock, 50); // nobody listens: the same id is safe to use again
    }
  }
}

interface HistoryEvent {
  readonly type: string;
  readonly data: { readonly key?: string };
}

Deno.test("mailer serve: killed again and again, it loses nothing and does nothing twice", async () => {
  const folder = await Deno.makeTempDir(), ids = Array.from({ length: 12 }, (_, i) => `e${i}`);
  await Deno.writeTextFile(`${folder}/steps.yaml`, FLOW);
  let server = await start(folder, "127.0.0.1:0"), worker: HttpWorker | undefined;
  const { url } = server, address = new URL(url).host;
  try {
    worker = new HttpWorker({
      url,
      leaseMs: 1000,
      handlers: {
        step: async ({ idempotencyKey }) => {
          await delay(systemClock, 20);
          return { key: idempotencyKey };
        },
      },
    }).start();
    const starting = ids.map(async (id, i) => {
      await delay(systemClock, i * 100);
      await call(url, "/v1/executions", { flow: "steps", id });
    });
    for (let kills = 0; kills < 3; kills++) {
      await delay(systemClock, 300);
      await server.kill("SIGKILL");
      server = await start(folder, address);
    }
    await Promise.all(starting);
    for (const id of ids) {
      let ended = false;
      for (let asks = 0; !ended; asks++) {
        assert.ok(asks < 10, `${id} does not end`);
        ({ ended } = await call(url, `/v1/executions/${id}/wait?timeoutMs=5000`) as { ended: boolean });
      }
      const { events } = await call(url, `/v1/executions/${id}/history`) as { events: HistoryEvent[] };
      const completed = events.filter(({ type }) => type === "NodeCompleted").map(({ data }) => data.key!);
      assert.deepEqual(completed.sort(), ["each#0", "each#1", "each#2", "first", "last"], id);
      assert.equal(events.at(-1)!.type, "ExecutionCompleted");
    }
    await worker.drain();
    const { code, signal } = await server.kill("SIGTERM");
    assert.deepEqual([code, signal], [0, null], "it has drained");
  } finally {
    await worker?.kill();
    await server.kill("SIGKILL").catch(() => {}); // it has ended already, unless something above failed
    await Deno.remove(folder, { recursive: true });
  }
});
