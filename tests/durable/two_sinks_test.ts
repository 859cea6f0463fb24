/**
 * A sink that commits in one transaction of its own store, and beside it one whose output cannot get lost once it is prepared: after a
 * crash at any call both show the same.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, type Env } from "../../mod.ts";
import type { Sink } from "../../lib/connector.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, slowSource } from "./kit.ts";
import { expected, inOrder, many } from "./sums.ts";

/** What an atomic sink's store holds. */
class Table {
  rows: unknown[] = [];
  committed = 0;
}

/** A sink that keeps what it has prepared in the process until its commit. */
function atomicSink(table: Table, point: CrashPoint): Sink {
  return {
    type: "atomic",
    commits: "atomic",
    describe: () => ({}),
    recover: (committable) =>
      (committable as { number: number }).number <= table.committed ? "committed" : "lost",
    open() {
      let rows: unknown[] = [];
      const prepared = new Map<number, readonly unknown[]>();
      return {
        write: (batch) => void rows.push(...batch.values),
        flush: () => {},
        prepare(number) {
          prepared.set(number, rows);
          rows = [];
          return { number };
        },
        commit: (committable) =>
          point.pass(() => {
            const { number } = committable as { readonly number: number };
            for (const [at, some] of [...prepared].sort(([a], [b]) => a - b)) {
              if (at > number) break;
              table.rows.push(...some);
              prepared.delete(at);
            }
            table.committed = Math.max(table.committed, number);
          }),
        close: () => {},
      };
    },
  };
}

const RECORDS = many(60);

function pipeline(pages: MemoryPages, files: Outside, table: Table, point: CrashPoint): Env {
  const env = createEnv({ name: "two" }).withCheckpointing("1ms").withStateBackend(
    lastingBackend(pages, point),
  );
  const sums = env.fromSource(slowSource({ a: RECORDS }, 4, 40), { id: "in" })
    .keyBy(({ key }) => key, { partitions: 2 })
    .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: "sum" });
  // The two-phase one first: the order of the pipeline is not the order of the commits.
  sums.toSink(committingSink(files, point), { id: "files" });
  sums.toSink(atomicSink(table, point), { id: "table" });
  return env;
}

Deno.test("a crash at any call: an atomic sink and a two-phase one show the same, and the run goes on", async () => {
  const quiet = new CrashPoint();
  await pipeline(new MemoryPages(), new Outside(), new Table(), quiet).execute();
  const rows = inOrder(expected(RECORDS));
  let crashes = 0;
  for (let at = 1; at <= quiet.calls; at++) {
    for (const before of [true, false]) {
      const pages = new MemoryPages(), files = new Outside(), table = new Table();
      const point = new CrashPoint(at, before);
      await pipeline(pages, files, table, point).execute().catch((error) => {
        if (!point.crashed) throw error;
        crashes++;
      });
      await pipeline(pages, files, table, new CrashPoint()).execute();
      assert.deepEqual(
        inOrder(files.visible),
        rows,
        `files, crash ${before ? "before" : "behind"} call ${at}`,
      );
      assert.deepEqual(inOrder(table.rows), rows, `table, crash ${before ? "before" : "behind"} call ${at}`);
    }
  }
  assert.ok(crashes > 20, `${crashes} crashes`);
});

Deno.test("two sinks that commit in transactions of their own are refused, where checkpoints are taken", async () => {
  const env = createEnv();
  const stream = env.fromSource(slowSource({ a: many(1) }));
  for (const id of ["one", "two"]) stream.toSink(atomicSink(new Table(), new CrashPoint()), { id });
  await env.execute();
  env.withCheckpointing("1s");
  assert.throws(() => env.start(), { code: "invalid_pipeline", message: /"one" and "two" each commit/ });
});
