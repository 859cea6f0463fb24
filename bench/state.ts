/**
 * Program: `deno run -A bench/state.ts [--keys N[,N…]] [--store kv|sqlite|memory] [--json]`.
 *
 * Keyed state at sizes that grow: 13-byte keys, 16-byte values, one table, one partition. Every key is set once in the order of its
 * number; a checkpoint; 10,000 random look-ups; the first 1,000 keys set again and a checkpoint, 25 times; restores from the
 * store, opened anew, until a key has been read; the look-ups again with nothing in memory. Each size in a process of its own.
 *
 * *blocked* is how long a checkpoint holds records up, *pause* the longest stretch in which nothing else had a turn until it was
 * durable, *durable* until its manifest was synced. Look-ups are by batches of 1,024 (prefetch, then get); *cold* has everything to
 * read, *at once* with all 10,000 in one batch. `heap` is what the state adds after a collection, `buffers` what lies outside of it.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { medianAndSpread } from "./measure.ts";
import { type Column, millions, print, printHead, printRow } from "./print.ts";
import { circumstances } from "./process.ts";

/** What a checkpoint cost. */
export interface CheckpointCost {
  readonly changes: number;
  readonly blockedMs: number;
  readonly durableMs: number;
}

/** What a run measured. */
export interface StateCost {
  readonly keys: number;
  readonly store: string;
  readonly loadPerSecond: number;
  readonly afterLoad: CheckpointCost;
  readonly runsAfterLoad: number;
  /** How long compaction went on after the first checkpoint. */
  readonly compactionSeconds: number;
  readonly changed: readonly CheckpointCost[];
  /** As many changes as are written at once, and the longest stretch in which nothing else had a turn. */
  readonly full: CheckpointCost & { readonly longestPauseMs: number };
  readonly restoreMs: readonly number[];
  readonly warmMicros: number;
  readonly afterLoadMicros: number;
  readonly coldMicros: number;
  readonly coldAtOnceMicros: number;
  readonly runs: number;
  readonly stateBytes: number;
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly rssBytes: number;
}

const SIZES = [1000, 100_000, 1_000_000, 5_000_000];
const COLUMNS: readonly Column[] = [
  ["keys", 9],
  ["load M/s", 8],
  ["first: changes", 14],
  ["blocked", 8],
  ["durable", 8],
  ["1,000: blocked", 14],
  ["durable", 8],
  ["many: changes", 13],
  ["pause", 6],
  ["durable", 8],
  ["restore ms", 10],
  ["warm µs", 8],
  ["cold", 6],
  ["at once", 8],
  ["runs", 5],
  ["state MB", 8],
  ["heap MB", 8],
  ["buffers", 8],
];

async function runOne(keys: number, store: string): Promise<StateCost> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-bench-state-" });
  try {
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--unstable-kv",
        "--v8-flags=--expose-gc",
        fileURLToPath(new URL("state_child.ts", import.meta.url)),
        String(keys),
        store,
        folder,
      ],
      stdout: "piped",
      stderr: "inherit",
    });
    const { success, stdout } = await child.output();
    if (!success) throw new Error(`the run with ${keys} keys failed`);
    return JSON.parse(new TextDecoder().decode(stdout));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function row(cost: StateCost): string[] {
  const middle = (pick: (cost: CheckpointCost) => number): string =>
    medianAndSpread(cost.changed.map(pick)).median.toFixed(2);
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
  const { afterLoad, full } = cost;
  return [
    cost.keys.toLocaleString("en"),
    millions(cost.loadPerSecond),
    afterLoad.changes.toLocaleString("en"),
    afterLoad.blockedMs.toFixed(2),
    afterLoad.durableMs.toFixed(1),
    middle(({ blockedMs }) => blockedMs),
    middle(({ durableMs }) => durableMs),
    full.changes.toLocaleString("en"),
    full.longestPauseMs.toFixed(1),
    full.durableMs.toFixed(1),
    medianAndSpread(cost.restoreMs).median.toFixed(1),
    cost.warmMicros.toFixed(2),
    cost.coldMicros.toFixed(1),
    cost.coldAtOnceMicros.toFixed(1),
    String(cost.runs),
    megabytes(cost.stateBytes),
    megabytes(cost.heapBytes),
    megabytes(cost.externalBytes),
  ];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: [...Deno.args],
    options: {
      keys: { type: "string" },
      store: { type: "string", default: "kv" },
      json: { type: "boolean" },
    },
  });
  const { store } = values;
  if (!["kv", "sqlite", "memory"].includes(store)) {
    throw new TypeError(`--store is kv, sqlite or memory, not "${store}"`);
  }
  const sizes = values.keys === undefined
    ? SIZES
    : values.keys.split(",").map((text) => Number(text.replaceAll("_", "")));
  if (!sizes.every((keys) => Number.isSafeInteger(keys) && keys > 0)) {
    throw new TypeError(`--keys takes whole numbers from 1, not "${values.keys}"`);
  }
  if (!values.json) {
    print(`state on ${store}: ${await circumstances()}`);
    printHead(COLUMNS);
  }
  for (const keys of sizes) {
    const cost = await runOne(keys, store);
    if (values.json) print(JSON.stringify(cost));
    else printRow(COLUMNS, row(cost));
  }
}

if (import.meta.main) await main();
