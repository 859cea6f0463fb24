import assert from "node:assert/strict";
import { postgresSink, type PostgresSinkOptions } from "./mod.ts";

const BASE: PostgresSinkOptions = {
  dsn: "postgres://u:hunter2secret@db:5432/d",
  table: "ops.totals",
  mapping: { "customer.id": "customer", sum: "total" },
};

Deno.test("G1, G4: a sink is described without a server, and without its password", () => {
  const sink = postgresSink({ ...BASE, mode: "upsert", conflictColumns: ["customer"] });
  assert.equal(sink.commits, "atomic");
  assert.deepEqual(sink.describe(), {
    server: "db:5432/d",
    table: "ops.totals",
    mapping: { "customer.id": "customer", sum: "total" },
    mode: "upsert",
    conflictColumns: ["customer"],
    updateColumns: ["total"],
    batchSize: 100,
  });
});

Deno.test("options that cannot be meant are refused when the sink is made", () => {
  const upsert = { mode: "upsert" } as const;
  const cases: [Partial<PostgresSinkOptions>, string, RegExp][] = [
    [{ table: "a.b.c" }, "invalid_postgres_options", /table is the name/],
    [{ table: "t; drop table t" }, "invalid_postgres_options", /table is the name/],
    [{ checkpointTable: '"' }, "invalid_postgres_options", /checkpointTable/],
    [{ mapping: {} }, "invalid_postgres_options", /a column at least/],
    [{ mapping: { a: "x", b: "x" } }, "invalid_postgres_options", /filled twice/],
    [{ mapping: { "a..b": "x" } }, "invalid_path", /a\.\.b/],
    [{ conflictColumns: ["total"] }, "invalid_postgres_options", /only upsert/],
    [upsert, "invalid_postgres_options", /needs conflictColumns/],
    [
      { ...upsert, conflictColumns: ["nope"] },
      "invalid_postgres_options",
      /"nope" is no column of the mapping/,
    ],
    [
      { ...upsert, conflictColumns: ["total"], updateColumns: ["x"] },
      "invalid_postgres_options",
      /"x" is no column/,
    ],
    [{ batchSize: 0 }, "invalid_postgres_options", /batchSize/],
    [{ maxRetries: -1 }, "invalid_postgres_options", /maxRetries/],
    [{ flushInterval: "0" }, "invalid_postgres_options", /flushInterval/],
    [{ queryTimeout: "soon" }, "invalid_duration", /soon/],
    [{ name: "" }, "invalid_postgres_options", /name/],
    [{ dsn: "postgres://u:hunter2secret@h:x/d" }, "invalid_dsn", /host is a name/],
  ];
  for (const [options, code, message] of cases) {
    assert.throws(() => postgresSink({ ...BASE, ...options }), (error: Error & { code: string }) => {
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      return true;
    });
  }
});
