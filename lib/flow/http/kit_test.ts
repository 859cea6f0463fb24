/**
 * Flows served on a real socket, for tests.
 *
 * @module
 */
import assert from "node:assert/strict";
import { parseJson, stringifyJson } from "../../json.ts";
import { FlowClient } from "../client/mod.ts";
import { type Flow, parseFlow } from "../definition/mod.ts";
import { FlowEngine } from "../engine/mod.ts";
import type { RemoteJob } from "../engine/remote.ts";
import { openKvStore } from "../store/kv.ts";
import { openMemoryStore } from "../store/memory.ts";
import type { FlowStore } from "../store/port.ts";
import { type FlowServer, serveFlows, type ServeOptions } from "./serve.ts";

/** Stores that tests run on. */
export const STORES = { memory: () => openMemoryStore(), KV: () => openKvStore({ path: ":memory:" }) };

/** A flow of YAML text. */
export function flowOf(text: string): Flow {
  const { flow, problems } = parseFlow(text, { file: "flow.yaml" });
  assert.deepEqual(problems.map(({ message }) => message), []);
  return flow!;
}

/** A flow of one task. */
export function oneTask(name: string, more = ""): Flow {
  return flowOf(`name: ${name}\nnodes:\n  - {id: a, type: task, kind: ${name}${more}}\n`);
}

/** An answer. */
export interface Answered {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- JSON of any shape, looked at by tests
  readonly body: any;
  readonly headers: Headers;
}

/** What a test is made of. */
export interface HttpScene {
  readonly store: FlowStore;
  readonly engine: FlowEngine;
  readonly client: FlowClient;
  readonly server: FlowServer;
  /** Calls with JSON; `body` absent: none. */
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answered>;
  get(path: string): Promise<Answered>;
  post(path: string, body?: unknown): Promise<Answered>;
  /** Leases jobs. */
  lease(kind: string, more?: Readonly<Record<string, unknown>>): Promise<readonly RemoteJob[]>;
  /** A call about a job. */
  about(job: RemoteJob, action: string, body?: Readonly<Record<string, unknown>>): Promise<Answered>;
}

/** Settings of a scene. */
export interface SceneOptions extends Partial<ServeOptions> {
  readonly flows?: readonly Flow[];
  readonly store?: () => Promise<FlowStore>;
}

/** Runs a test on a server of its own. */
export async function inScene(
  { flows = [], store: open = STORES.memory, ...options }: SceneOptions,
  body: (scene: HttpScene) => Promise<void>,
): Promise<void> {
  await using store = await open();
  await using engine = await new FlowEngine({ store, flows }).start();
  await using server = serveFlows({ engine, port: 0, ...options });
  await body(sceneOf(store, engine, server));
}

/** What a test does with a server. */
export function sceneOf(store: FlowStore, engine: FlowEngine, server: FlowServer): HttpScene {
  const call: HttpScene["call"] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: stringifyJson(body) }),
    });
    const text = await response.text(),
      isJson = response.headers.get("content-type")?.includes("json") === true;
    return { status: response.status, body: isJson ? parseJson(text) : text, headers: response.headers };
  };
  const post: HttpScene["post"] = (path, body = {}) => call("POST", path, body);
  return {
    store,
    engine,
    server,
    client: new FlowClient({ store, engine }),
    call,
    post,
    get: (path) => call("GET", path),
    lease: async (kind, more = {}) => {
      const { status, body } = await post("/v1/jobs/lease", {
        kinds: [kind],
        worker: "w",
        waitMs: 2000,
        ...more,
      });
      assert.equal(status, 200, stringifyJson(body));
      return body.jobs;
    },
    about: (job, action, body = {}) => {
      return post(`/v1/jobs/${encodeURIComponent(job.id)}/${action}`, { lease: job.lease, ...body });
    },
  };
}
