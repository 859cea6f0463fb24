/**
 * How many decisions a second the store of flows commits: one after the other, and many executions at a time.
 *
 * Each is what a middle step of a flow is: some events, the job that was done removed, the next one put with a lease, the answered
 * head replaced. The executions are started before; that is not measured. Beside it stand how many decisions shared an operation,
 * how many keys one writes, and a loop that does nothing but such writes.
 *
 * `deno run -A bench/flow_store.ts [SECONDS]`
 *
 * @module
 */
import process from "node:process";
import { openKvStore } from "../lib/flow/store/kv.ts";
import { openMemoryStore } from "../lib/flow/store/memory.ts";
import { type Column, printHead, printRow } from "./print.ts";
import type { FlowStore, Head, Ownership, StoreStats } from "../lib/flow/store/port.ts";

/** One measurement. */
export interface FlowStoreResult {
  readonly store: "file" | "file, plain loop" | "kv memory" | "kv memory, plain loop" | "memory";
  /** Executions at a time. */
  readonly atOnce: number;
  /** Decisions a second. */
  readonly rate: number;
  /** Decisions a second of CPU time, that of all threads. */
  readonly perCpuSecond: number;
  /** ms until a decision is durable, median. */
  readonly medianMs: number;
  /** Decisions an atomic operation. */
  readonly shared: number;
  /** Keys written a decision. */
  readonly mutations: number;
}

const LEASE = 3_600_000;
const EVENTS = JSON.stringify([
  {
    type: "NodeCompleted",
    v: 1,
    time: "2026-01-01T00:00:00Z",
    i: 5,
    data: { node: "charge", output: { id: 17 } },
  },
  { type: "NodeEntered", v: 1, time: "2026-01-01T00:00:00Z", i: 6, data: { node: "ship" } },
  {
    type: "NodeScheduled",
    v: 1,
    time: "2026-01-01T00:00:00Z",
    i: 7,
    data: { node: "ship", kind: "ship", attempt: 1 },
  },
]);

/** Measures one store, for so many seconds each number of executions at a time. */
export async function measureFlowStore(
  name: FlowStoreResult["store"],
  store: FlowStore,
  seconds: number,
  atOnce: readonly number[] = [1, 8, 32, 128],
): Promise<FlowStoreResult[]> {
  const owned: Ownership[] = [];
  for (let partition = 0; partition < store.partitions.count; partition++) {
    owned.push((await store.partitions.acquire(partition, "bench", LEASE))!);
  }
  const results: FlowStoreResult[] = [];
  for (const count of atOnce) {
    const runs = await Promise.all(
      Array.from({ length: count }, (_, i) => start(store, owned, `order-${count}-${i}`)),
    );
    const latencies: number[] = [],
      before = store.stats(),
      cpu = process.cpuUsage(),
      began = performance.now();
    const until = began + seconds * 1000;
    await Promise.all(runs.map(async (run) => {
      for (let now = performance.now(); now < until;) {
        await run.step();
        const then = performance.now();
        latencies.push(then - now);
        now = then;
      }
    }));
    const elapsed = (performance.now() - began) / 1000, after = store.stats();
    const { user, system } = process.cpuUsage(cpu);
    const counted = (key: keyof StoreStats): number => after[key] - before[key];
    latencies.sort((a, b) => a - b);
    results.push({
      store: name,
      atOnce: count,
      rate: Math.round(counted("decisions") / elapsed),
      perCpuSecond: Math.round(counted("decisions") / ((user + system) / 1e6)),
      medianMs: Math.round(latencies[latencies.length >> 1]! * 100) / 100,
      shared: Math.round(counted("decisions") / counted("commits") * 10) / 10,
      mutations: Math.round(counted("mutations") / counted("decisions") * 10) / 10,
    });
  }
  return results;
}

/**
 * The hand-written loop: Deno KV alone writes what so many decisions at a time come to, with the same checks, in the order of keys.
 */
async function measurePlainLoop(
  name: FlowStoreResult["store"],
  path: string,
  seconds: number,
  atOnce: readonly number[] = [1, 8, 32, 64],
): Promise<FlowStoreResult[]> {
  const kv = await Deno.openKv(path), results: FlowStoreResult[] = [];
  const events = new TextEncoder().encode(EVENTS), head = new Uint8Array(240), job = new Uint8Array(90);
  for (const count of atOnce) {
    const latencies: number[] = [], cpu = process.cpuUsage(), began = performance.now();
    const until = began + seconds * 1000;
    let version: string | null = null, seq = 0;
    for (let now = began; now < until;) {
      const atomic = kv.atomic(), sets: [key: string, value: Uint8Array | undefined][] = [];
      seq++;
      for (let i = 0; i < count; i++) {
        const id = `order-${count}-${i}`, ship = `j/ship/0000002s/000mjuohs00/${id}/ship`;
        atomic.check({ key: ["plain", `h/${id}`], versionstamp: version });
        sets.push([`e/${id}/${String(seq).padStart(8, "0")}`, events], [`h/${id}`, head], [
          `${ship}.${seq}.1`,
          job,
        ]);
        if (seq > 1) sets.push([`${ship}.${seq - 1}.1`, undefined]);
      }
      sets.sort(([a], [b]) => a < b ? -1 : 1);
      for (const [key, value] of sets) {
        if (value === undefined) atomic.delete(["plain", key]);
        else atomic.set(["plain", key], value);
      }
      const result = await atomic.commit();
      if (!result.ok) throw new Error("a check failed");
      version = result.versionstamp;
      const then = performance.now();
      latencies.push(then - now);
      now = then;
    }
    const elapsed = (performance.now() - began) / 1000, { user, system } = process.cpuUsage(cpu);
    latencies.sort((a, b) => a - b);
    results.push({
      store: name,
      atOnce: count,
      rate: Math.round(seq * count / elapsed),
      perCpuSecond: Math.round(seq * count / ((user + system) / 1e6)),
      medianMs: Math.round(latencies[latencies.length >> 1]! * 100) / 100,
      shared: count,
      mutations: 4,
    });
  }
  kv.close();
  return results;
}

async function start(
  store: FlowStore,
  owned: readonly Ownership[],
  execId: string,
): Promise<{ step(): Promise<void> }> {
  const ownership = owned[store.partitions.of(execId)]!, now = Date.now();
  let head: Head | undefined;
  const step = async (): Promise<void> => {
    const seq = (head?.seq ?? 0) + 1;
    const outcome = await store.executions.commit({
      execId,
      ownership,
      head,
      events: EVENTS,
      lastIndex: seq * 3,
      removeJobs: [`ship.${seq - 1}.1`],
      jobs: [{
        id: `ship.${seq}.1`,
        kind: "ship",
        text: `{"seq":${seq}}`,
        lease: { worker: "w", leaseMs: LEASE },
      }],
      ...head === undefined
        ? {
          summary: {
            flow: "order",
            flowHash: "0011223344556677",
            status: "running",
            createdAt: now,
            updatedAt: now,
            attrs: {},
          },
        }
        : {},
    });
    if (outcome.kind !== "committed") throw new Error(`${execId}: ${outcome.kind}`);
    head = outcome.head;
  };
  await step();
  return { step };
}

/** All of them, one after the other. */
export async function measureFlowStores(seconds: number): Promise<FlowStoreResult[]> {
  const folder = await Deno.makeTempDir();
  try {
    const results: FlowStoreResult[] = [];
    for (const [name, path] of [["file", `${folder}/flows`], ["kv memory", ":memory:"]] as const) {
      {
        await using store = await openKvStore({ path });
        results.push(...await measureFlowStore(name, store, seconds));
      }
      results.push(...await measurePlainLoop(`${name}, plain loop`, path, seconds));
    }
    await using store = await openMemoryStore();
    results.push(...await measureFlowStore("memory", store, seconds));
    return results;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const COLUMNS: readonly Column[] = [
  ["store", 21],
  ["at once", 7],
  ["decisions/s", 11],
  ["per CPU s", 9],
  ["median ms", 9],
  ["per operation", 13],
  ["keys each", 9],
];

if (import.meta.main) {
  const results = await measureFlowStores(Number(Deno.args[0] ?? 2));
  printHead(COLUMNS);
  for (const { store, atOnce, rate, perCpuSecond, medianMs, shared, mutations } of results) {
    printRow(COLUMNS, [store, ...[atOnce, rate, perCpuSecond, medianMs, shared, mutations].map(String)]);
  }
}
