import assert from "node:assert/strict";
import type { Committable, Recovered, Sink, SinkCommits, SinkWriter } from "../connector.ts";
import type { Batch } from "../record.ts";
import { commitContract } from "./commit_contract.ts";
import { sinkContract, type SinkUnderTest } from "./sink_contract.ts";

/** What a sink can do wrong; each must be found. */
type Fault =
  | "declares something else"
  | "visible when written"
  | "visible when prepared"
  | "commits what was written since"
  | "commits everything prepared"
  | "commits again"
  | "commits again in a later run"
  | "commits on close"
  | "takes back on close"
  | "forgets failed checkpoints"
  | "keeps leftovers"
  | "recovers nothing"
  | "always lost"
  | "always committed"
  | "reverses"
  | "undefined committable"
  | "committable is no JSON"
  | "no prepare"
  | "appends again";

/** What outlives a run. */
interface Store {
  rows: unknown[];
  /** Of `two-phase`: what is prepared, by number. */
  readonly prepared: Map<number, unknown[]>;
  /** Numbers of what has been committed. */
  readonly committed: Set<number>;
  next: number;
}

/** A committable of the sinks below: numbers of the pieces, each from barrier to barrier. */
interface Pieces {
  readonly pieces: readonly number[];
  /** Of `atomic`: this transaction. */
  readonly id: number;
}

/** A sink in memory, right but for its fault. */
function memorySink(commits: SinkCommits, fault?: Fault): SinkUnderTest {
  const store: Store = { rows: [], prepared: new Map(), committed: new Set(), next: 1 };
  const sink: Sink = {
    type: "reference",
    describe: () => ({}),
    commits: fault !== "declares something else" ? commits : commits === "atomic" ? "two-phase" : "atomic",
    recover(committable: Committable): Recovered {
      const { pieces, id } = committable as Pieces;
      if (fault === "recovers nothing") return "committed";
      if (commits === "two-phase") {
        commitPieces(store, pieces, store.prepared, fault === "commits again in a later run");
        return "committed";
      }
      if (fault === "always lost" || fault === "always committed") {
        return fault === "always lost" ? "lost" : "committed";
      }
      return store.committed.has(id) ? "committed" : "lost";
    },
    open(context): SinkWriter {
      if (commits === "idempotent") return idempotentWriter(store, fault);
      if (context.checkpoints === undefined) return plainWriter(store);
      if (fault !== "keeps leftovers") store.prepared.clear();
      return committingWriter(store, commits, fault);
    },
  };
  return { sink, written: () => [...store.rows] };
}

function commitPieces(
  store: Store,
  pieces: readonly number[],
  prepared: ReadonlyMap<number, unknown[]>,
  again = false,
): void {
  for (const piece of pieces) {
    if (store.committed.has(piece) && !again) continue;
    store.rows.push(...prepared.get(piece) ?? []);
    store.committed.add(piece);
  }
}

function plainWriter(store: Store): SinkWriter {
  return { write: ({ values }) => void store.rows.push(...values), flush() {}, close() {} };
}

function committingWriter(store: Store, commits: SinkCommits, fault: Fault | undefined): SinkWriter {
  // Of `atomic` what is prepared goes with the writer; a committed transaction has its number beside its rows.
  const prepared = commits === "two-phase" ? store.prepared : new Map<number, unknown[]>();
  let waiting = fault === "keeps leftovers" ? [...prepared.keys()] : [], written: unknown[] = [];
  const commit = (committable: Committable) => {
    const { pieces, id } = committable as Pieces;
    const all = fault === "commits everything prepared" ? [...prepared.keys()] : pieces;
    const ordered = fault === "reverses" ? all.toReversed() : all;
    commitPieces(store, ordered, prepared, fault === "commits again");
    if (commits === "atomic") store.committed.add(id);
    waiting = waiting.filter((piece) => !pieces.includes(piece));
    if (fault === "commits what was written since") store.rows.push(...written.splice(0));
  };
  const prepare = (): Committable => {
    if (fault === "visible when prepared") store.rows.push(...written.splice(0));
    const piece = store.next++;
    prepared.set(piece, written);
    written = [];
    waiting = fault === "forgets failed checkpoints" ? [piece] : [...waiting, piece];
    if (fault === "undefined committable") return undefined;
    if (fault === "committable is no JSON") {
      return { pieces: [...waiting], id: store.next++, at: new Date(0) };
    }
    return { pieces: [...waiting], id: store.next++ };
  };
  return {
    write(batch: Batch) {
      (fault === "visible when written" ? store.rows : written).push(...batch.values);
    },
    flush() {},
    ...(fault === "no prepare" ? {} : { prepare }),
    commit,
    close(outcome) {
      if (fault === "commits on close") store.rows.push(...written);
      if (fault === "takes back on close" && outcome === "failed") store.rows.length = 0;
    },
  };
}

function idempotentWriter(store: Store, fault: Fault | undefined): SinkWriter {
  return {
    write({ values }) {
      const known = new Set(store.rows.map((row) => JSON.stringify(row)));
      for (const value of values) {
        if (fault === "appends again" || !known.has(JSON.stringify(value))) store.rows.push(value);
      }
    },
    flush() {},
    close() {},
  };
}

for (const commits of ["two-phase", "atomic", "idempotent"] as const) {
  commitContract({ name: `${commits} sink in memory`, commits, setUp: () => memorySink(commits) });
}
for (const commits of ["two-phase", "atomic"] as const) {
  sinkContract({
    name: `${commits} sink in memory without checkpoints`,
    setUp: () => memorySink(commits),
  });
}

/** The tests that fail, by the letters in front of their titles. */
async function failing(commits: SinkCommits, fault?: Fault): Promise<string[]> {
  const tests: [string, () => Promise<void>][] = [], failed: string[] = [];
  const test = (name: string, run: () => Promise<void>) => void tests.push([name, run]);
  commitContract({ name: "x", commits, setUp: () => memorySink(commits, fault), test });
  for (const [name, run] of tests) {
    await run().catch((error) => {
      assert.ok(error instanceof assert.AssertionError, error);
      failed.push(name.slice("x: ".length, name.indexOf(":", "x: ".length)));
    });
  }
  return failed;
}

const BOTH: readonly (readonly [Fault, string])[] = [
  ["declares something else", "K1"],
  ["visible when written", "K1"],
  ["visible when prepared", "K1"],
  ["commits what was written since", "K1"],
  ["commits everything prepared", "K6"],
  ["commits again", "K2"],
  ["commits on close", "K8"],
  ["takes back on close", "K8"],
  ["forgets failed checkpoints", "K5"],
  ["reverses", "K5"],
  ["undefined committable", "K1"],
  ["committable is no JSON", "K1"],
  ["no prepare", "K1"],
];
const FAULTS: readonly (readonly [SinkCommits, readonly (readonly [Fault, string])[]])[] = [
  ["two-phase", [
    ...BOTH,
    ["keeps leftovers", "K4"],
    ["recovers nothing", "K3"],
    ["commits again in a later run", "K2"],
  ]],
  ["atomic", [...BOTH, ["always lost", "K3"], ["always lost", "K2"], ["always committed", "K3"]]],
  ["idempotent", [["appends again", "I1"], ["appends again", "I2"], ["declares something else", "I1"]]],
];

for (const [commits, faults] of FAULTS) {
  Deno.test(`the suite of ${commits} sinks finds nothing wrong with a right one`, async () => {
    assert.deepEqual(await failing(commits), []);
  });
  for (const [fault, test] of faults) {
    Deno.test(`the suite of ${commits} sinks finds by ${test}: ${fault}`, async () => {
      const failed = await failing(commits, fault);
      assert.ok(failed.includes(test), `failed: ${failed.join(" ")}`);
    });
  }
}
