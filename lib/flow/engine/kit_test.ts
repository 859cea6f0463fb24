/**
 * A scene for tests of the engine: a store, an engine, a client and a clock that stands still. What is left in the store at the end
 * is checked: every execution against what must hold of histories, and against what the client shows of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { settle, VirtualClock } from "../../testing/virtual_clock.ts";
import { parseExact, stringifyJson } from "../../json.ts";
import { yieldToEventLoop } from "../../scheduling.ts";
import { type ExecutionView, FlowClient } from "../client/mod.ts";
import { type CompiledFlow, compileFlow, type Flow, parseFlow } from "../definition/mod.ts";
import { checkHistory, decodeEvents, encodeState, sameState, type State } from "../fold/mod.ts";
import { type Call, type Fault, FaultyCells } from "../store/faults.ts";
import { openKvStore } from "../store/kv.ts";
import { MemoryDisk, openMemoryStore } from "../store/memory.ts";
import type { Cells } from "../store/cells.ts";
import type { FlowStore } from "../store/port.ts";
import { type EngineOptions, FlowEngine, type Handler, type WorkerOptions } from "./mod.ts";
import { Executions } from "./executions.ts";
import { Flows } from "./flows.ts";

/** Where a scene's store lies. */
export type Place = "memory" | "kv";

/** Longer than any test lasts: nothing happens because of it. */
const FOREVER = 365 * 86_400_000;

/** What a scene is made with. */
export interface SceneOptions extends Partial<Omit<EngineOptions, "store" | "flows" | "clock">> {
  readonly place?: Place;
  /** YAML texts. */
  readonly flows: readonly string[];
  /** By kind. */
  readonly workers?: Readonly<Record<string, Handler>>;
  readonly worker?: WorkerOptions;
  readonly partitions?: readonly number[];
  /** Partitions of the store. Default 4. */
  readonly count?: number;
  /** Default: only what this process does is noticed. ms */
  readonly pollMs?: number;
  readonly timeoutMs?: number;
  /** What goes wrong with the store's calls. */
  readonly fault?: (call: Call) => Fault | undefined;
}

/** A flow of YAML text. */
export function flowOf(yaml: string): Flow {
  const { flow, problems } = parseFlow(yaml, { file: "flow.yaml" });
  assert.deepEqual(problems.map(({ message, line }) => `${line}: ${message}`), []);
  return flow!;
}

/** A flow of nodes, one a line: `a: task, kind: k, next: b`. */
export function nodes(name: string, ...lines: readonly string[]): string {
  return `name: ${name}\nnodes:\n${lines.map((line) => `  - { ${line} }\n`).join("")}`;
}

/** A store, an engine that owns it, a client. */
export class Scene implements AsyncDisposable {
  readonly clock: VirtualClock;
  readonly store: FlowStore;
  readonly engine: FlowEngine;
  readonly client: FlowClient;
  readonly logged: string[] = [];
  readonly #options: SceneOptions;
  readonly #more: AsyncDisposable[] = [];
  readonly #disk: MemoryDisk;

  private constructor(options: SceneOptions, clock: VirtualClock, store: FlowStore, disk: MemoryDisk) {
    this.#options = options;
    this.clock = clock;
    this.store = store;
    this.#disk = disk;
    this.engine = this.newEngine(store);
    this.client = this.newClient(this.engine);
  }

  static async open(options: SceneOptions): Promise<Scene> {
    const clock = new VirtualClock(), disk = new MemoryDisk();
    const { place = "memory", count = 4, pollMs = FOREVER, fault = () => undefined } = options;
    const settings = {
      clock,
      partitions: count,
      pollMs,
      wrap: (cells: Cells) => new FaultyCells(cells, fault),
    };
    const store = place === "memory"
      ? await openMemoryStore({ ...settings, disk })
      : await openKvStore({ ...settings, path: ":memory:" });
    const scene = new Scene(options, clock, store, disk);
    await scene.engine.start();
    return scene;
  }

  /** The same store, as another process sees it; of scenes in memory. */
  async otherStore(fault: (call: Call) => Fault | undefined = () => undefined): Promise<FlowStore> {
    const { pollMs = FOREVER } = this.#options, { clock } = this;
    const wrap = (cells: Cells) => new FaultyCells(cells, fault);
    const store = await openMemoryStore({ clock, pollMs, disk: this.#disk, wrap });
    this.#more.unshift(store);
    return store;
  }

  /** Another engine, with the same flows and workers. */
  newEngine(
    store: FlowStore,
    more?: Partial<EngineOptions>,
    workers?: Readonly<Record<string, Handler>>,
  ): FlowEngine {
    const {
      place: _,
      flows,
      workers: own = {},
      worker,
      count: _c,
      pollMs: _p,
      timeoutMs: _t,
      fault: _f,
      ...rest
    } = this.#options;
    const engine = new FlowEngine({
      ownershipMs: FOREVER,
      ...rest,
      ...more,
      store,
      clock: this.clock,
      flows: more?.flows ?? flows.map(flowOf),
      logger: {
        log: (level, message, fields) =>
          void this.logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
      },
    });
    for (const [kind, handler] of Object.entries(workers ?? own)) engine.worker(kind, handler, worker);
    this.#more.push(engine);
    return engine;
  }

  newClient(engine?: FlowEngine): FlowClient {
    return new FlowClient({
      store: this.store,
      clock: this.clock,
      ...(engine === undefined ? {} : { engine }),
      ...(this.#options.timeoutMs === undefined ? {} : { timeoutMs: this.#options.timeoutMs }),
    });
  }

  /** Waits, without time going on, until something is so. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    for (let turn = 0; turn < 5000; turn++) {
      if (await isSo()) return;
      await yieldToEventLoop();
      await this.clock.advance(0); // what was found to be due only after its time
    }
    assert.fail(`never: ${what}\n${this.logged.join("\n")}`);
  }

  /** Waits until an execution has this status. */
  async reaches(id: string, status: string): Promise<void> {
    await this.until(`${id} ${status}`, async () => {
      const { items } = await this.client.list({ limit: 1000 }); // it need not be there yet
      return items.some((item) => item.id === id && item.status === status);
    });
  }

  /** An execution at its end, which comes without time going on. */
  async ended(id: string): Promise<ExecutionView> {
    await this.until(`${id} ended`, async () => (await this.client.get(id)).endedAt !== undefined);
    return await this.client.wait(id);
  }

  /** Checks all that is in the store. */
  async check(): Promise<void> {
    const flows = new Flows(this.store.definitions, this.clock), versions = new Map<string, CompiledFlow>();
    for (const { name, hash } of await this.store.definitions.list()) {
      versions.set(hash, (await flows.find(name, hash))!);
    }
    const executions = new Executions(this.store, flows);
    let cursor: string | undefined;
    do {
      const page = await this.client.list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) });
      for (const listed of page.items) {
        const { id } = listed,
          decisions = (await executions.history(id))!.map(({ events }) => decodeEvents(events));
        const { problems, state } = checkHistory((hash) => versions.get(hash)!, decisions);
        assert.deepEqual(problems, [], id);
        const read = (await executions.read(id))!;
        if (!sameState(state!, read.state)) {
          const written = (state: State): unknown => parseExact(stringifyJson(encodeState(state)));
          assert.deepEqual(
            written(read.state),
            written(state!),
            `${id}: the history adds up to another state`,
          );
        }
        assert.equal(decisions.at(-1)!.at(-1)!.i, state!.events);
        const view = await this.client.get(id);
        assert.equal(view.status, listed.status, `${id}: lists show what is`);
        assert.equal(view.events, state!.events, `${id}: what is remembered is what is stored`);
        // Nothing is left lying about of what has ended.
        const { jobs, timers } = read.head;
        if (view.endedAt !== undefined) {
          assert.deepEqual(Object.keys(jobs), [], `${id} has ended`);
          assert.deepEqual(Object.keys(timers).filter((timer) => timer !== "expiry"), [], `${id} has ended`);
        } else {
          assert.equal(
            Object.keys(jobs).length,
            view.waiting.tasks.length,
            `${id}: a job for each open attempt`,
          );
        }
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.check();
    await this.end();
  }

  /** Ends it without a check. */
  async end(): Promise<void> {
    for (const each of this.#more.splice(0).reverse()) {
      let isDone = false;
      const ending = each[Symbol.asyncDispose]().then(() => isDone = true);
      await settle();
      if (!isDone) await this.clock.advance("31s"); // it waits for what hangs
      await ending;
    }
    await this.store[Symbol.asyncDispose]();
  }
}

/** One test on each kind of store. */
export function onStores(name: string, test: (place: Place) => Promise<void>): void {
  for (const place of ["memory", "kv"] as const) Deno.test(`${name} (${place})`, () => test(place));
}

export { compileFlow };
