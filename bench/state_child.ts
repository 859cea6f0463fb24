/**
 * One run of the state benchmark, in a process of its own: `KEYS STORE FOLDER`. Prints what it measured as JSON.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import {
  openDocument,
  openStateStore,
  type Partition,
  sealDocument,
  type Section,
} from "../lib/state/log/mod.ts";
import { MemoryPages, openKvPages, openSqlitePages, type PageStore } from "../lib/state/pages/mod.ts";
import { print } from "./print.ts";
import type { CheckpointCost, StateCost } from "./state.ts";

const BATCH = 1024;
const LOOK_UPS = 10_000;
const DIRTY = 1000;
/** Many, since a forced collection or a fresh process makes the first ones slow. */
const ROUNDS = 25;
const OPERATOR = "reduce";
const MANIFEST = "checkpoint";

const TEN = Array.from({ length: 9 }, (_, i) => 10 ** (8 - i));
const digits = (i: number): number[] => TEN.map((power) => 48 + Math.floor(i / power) % 10);
const codes = (text: string): number[] => [...text].map((letter) => letter.charCodeAt(0));
const [KEY, VALUE] = [codes("key-"), codes("v00000")];
/** `key-` and nine digits. In one piece, as a decoder would make it: not glued together by the engine when it is first looked at. */
const keyOf = (i: number): string => String.fromCharCode(...KEY, ...digits(i));
/** `v`, fourteen digits and a NUL. */
const valueOf = (i: number): string => String.fromCharCode(...VALUE, ...digits(i), 0);

/** Whole numbers below `below`, from a seed (mulberry32). */
function randomNumbers(count: number, below: number): number[] {
  let seed = 42;
  return Array.from({ length: count }, () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  });
}

function collect(): void {
  (globalThis as { gc?: () => void }).gc?.();
}

/** The longest time that nothing else had a turn while `work` went on, ms. */
async function longestPause(work: () => Promise<void>): Promise<number> {
  let longest = 0, last = performance.now(), isOver = false;
  const turn = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return longest;
}

async function measure(keys: number, storeName: string, folder: string): Promise<StateCost> {
  const memory = new MemoryPages();
  const openPages = (): Promise<PageStore> => {
    if (storeName === "memory") return Promise.resolve(memory);
    if (storeName === "kv") return openKvPages({ path: `${folder}/state.kv` });
    return openSqlitePages({ path: `${folder}/state.sqlite` });
  };
  collect();
  const before = Deno.memoryUsage();
  let pages = await openPages();
  let store = await openStateStore({ operator: OPERATOR, pages });
  let partition = store.partition();
  let table = partition.space<string>("reduce").table();

  let loadMs = 0;
  for (let i = 0; i < keys;) {
    const count = Math.min(BATCH, keys - i),
      names = new Array<string>(count),
      values = new Array<string>(count);
    for (let j = 0; j < count; j++, i++) [names[j], values[j]] = [keyOf(i), valueOf(i)];
    const started = performance.now(); // making the texts does not count
    for (let j = 0; j < count; j++) table.set(names[j]!, values[j]!);
    await partition.settle();
    loadMs += performance.now() - started;
  }

  const checkpoint = async (): Promise<CheckpointCost> => {
    const changes = partition.dirty, started = performance.now();
    const frozen = partition.freeze();
    const blockedMs = performance.now() - started;
    const over = Promise.withResolvers<void>();
    const section = await store.persist([frozen], over.promise);
    await pages.commit([{ name: MANIFEST, bytes: sealDocument({ [OPERATOR]: section }) }]);
    over.resolve();
    const durableMs = performance.now() - started;
    if (last !== undefined) await store.release(last);
    last = section;
    return { changes, blockedMs, durableMs };
  };
  let last: Section | undefined;
  const afterLoad = await checkpoint();
  const runsAfterLoad = store.runs;
  const started = performance.now();
  await store.idle();
  const compactionSeconds = (performance.now() - started) / 1000;

  const wanted = randomNumbers(LOOK_UPS, keys);
  /** @returns µs a look-up. */
  const lookUp = async (batch: number): Promise<number> => {
    const started = performance.now();
    let found = 0;
    for (let i = 0; i < wanted.length; i += batch) {
      await partition.settle();
      const names = wanted.slice(i, i + batch).map(keyOf);
      await table.prefetch(names);
      for (const name of names) if (table.get(name)?.value !== undefined) found++;
    }
    const micros = (performance.now() - started) * 1000 / LOOK_UPS;
    if (found !== LOOK_UPS) throw new Error(`${found} of ${LOOK_UPS} keys were found`);
    return micros;
  };
  const afterLoadMicros = await lookUp(BATCH);
  const warmMicros = await lookUp(BATCH);

  const changed: CheckpointCost[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await store.idle();
    for (let i = 0; i < Math.min(DIRTY, keys); i++) table.set(keyOf(i), valueOf(i + round + 1));
    changed.push(await checkpoint());
  }
  for (let i = 0; i < Math.min(store.limits.changes - 1, keys); i++) table.set(keyOf(i), valueOf(i));
  let full!: CheckpointCost;
  const longestPauseMs = await longestPause(async () => void (full = await checkpoint()));
  const bytes = store.bytes;
  collect();
  const after = Deno.memoryUsage();
  await store.idle();
  await store[Symbol.asyncDispose]();

  const restore = async (): Promise<number> => {
    if (storeName !== "memory") await pages[Symbol.asyncDispose]();
    collect();
    const started = performance.now();
    pages = await openPages();
    const [manifest] = await pages.list("documents", MANIFEST);
    const section = (openDocument(MANIFEST, manifest!.bytes) as Record<string, Section>)[OPERATOR]!;
    store = await openStateStore({ operator: OPERATOR, pages, section });
    partition = store.partition();
    table = partition.space<string>("reduce").table();
    const last = keyOf(keys - 1);
    await table.prefetch([last]);
    const value = table.get(last)?.value;
    const took = performance.now() - started;
    if (value === undefined) throw new Error("the last key was not restored");
    return took;
  };
  const restoreMs: number[] = [];
  for (let round = 0; round < 5; round++) {
    restoreMs.push(await restore());
    await store[Symbol.asyncDispose]();
  }
  await restore();
  const runs = store.runs;
  const coldMicros = await lookUp(BATCH);
  await store[Symbol.asyncDispose]();
  await restore();
  const coldAtOnceMicros = await lookUp(LOOK_UPS);
  await check(partition, keys);
  await store[Symbol.asyncDispose]();
  await pages[Symbol.asyncDispose]();
  return {
    keys,
    store: storeName,
    loadPerSecond: keys / loadMs * 1000,
    afterLoad,
    runsAfterLoad,
    compactionSeconds,
    changed,
    full: { ...full, longestPauseMs },
    restoreMs,
    warmMicros,
    afterLoadMicros,
    coldMicros,
    coldAtOnceMicros,
    runs,
    stateBytes: bytes,
    heapBytes: after.heapUsed - before.heapUsed,
    externalBytes: after.external - before.external,
    rssBytes: after.rss,
  };
}

/** Nothing is lost and nothing invented. */
async function check(partition: Partition, keys: number): Promise<void> {
  let count = 0;
  for await (const lot of partition.space("reduce").table().scan()) count += lot.length;
  if (count !== keys) throw new Error(`${count} keys were stored, not ${keys}`);
}

const [keys, storeName, folder] = Deno.args;
print(JSON.stringify(await measure(Number(keys), storeName!, folder!)));
