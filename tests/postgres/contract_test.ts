/**
 * The Postgres sink passes the contract suites of sinks, against a real server.
 *
 * @module
 */
import { postgresSink, type PostgresSinkOptions } from "../../connectors/postgres/mod.ts";
import { commitContract } from "../../lib/testing/commit_contract.ts";
import { sinkContract, type SinkUnderTest } from "../../lib/testing/sink_contract.ts";
import { type Postgres, postgresService, serviceTest } from "../services/mod.ts";
import { schemaWith } from "./kit.ts";

type Test = (name: string, run: () => Promise<void>) => void;

const VALUES = [
  { id: 1, name: "x", data: { a: [1, { c: null }], "": "é😀\n" } },
  { id: 2, name: 'quoted "text" with \\ and {braces, commas}', data: 17 },
  { id: 3, name: "", data: null },
  { id: 4, name: "NULL", data: [] },
  { id: 5, name: null, data: "NULL" },
  { id: 6, name: "\n\t'", data: true },
  { id: 7, name: "é😀", data: {} },
];

/** The suite's tests as steps of one, on one server. */
function suite(name: string, register: (server: () => Postgres, test: Test) => void): void {
  serviceTest(name, ["postgres"], async (context) => {
    await using postgres = await postgresService();
    const steps: [string, () => Promise<void>][] = [];
    register(() => postgres, (title, run) => void steps.push([title, run]));
    for (const [title, run] of steps) await context.step(title, run);
  });
}

async function table(
  postgres: Postgres,
  keys: string,
  options: Partial<PostgresSinkOptions> = {},
): Promise<SinkUnderTest> {
  const schema = await schemaWith(
    postgres,
    `create table t (id bigint ${keys}, name text, data jsonb, pos bigint generated always as identity)`,
  );
  const url = new URL(postgres.url);
  url.password = "hunter2secret";
  const mapping = { id: "id", name: "name", data: "data" };
  return {
    sink: postgresSink({
      dsn: url.href,
      table: `${schema}.t`,
      mapping,
      checkpointTable: `${schema}.checkpoints`,
      ...options,
    }),
    written: () =>
      postgres.rows(`select id, name, data from ${schema}.t order by ${keys === "" ? "pos" : "id"}`),
  };
}

const UPSERT = { mode: "upsert", conflictColumns: ["id"] } as const;

suite("postgres sink: the contract of sinks, insert", (server, test) =>
  sinkContract({
    name: "postgres",
    values: VALUES,
    secrets: ["hunter2secret"],
    unwritable: { value: { id: "no number" }, code: "invalid_value" },
    setUp: () => table(server(), ""),
    blocked: async () => {
      const under = await table(server(), "", { batchSize: 1 });
      return under;
    },
    test: (title, run) => title.includes("Q4") ? undefined : test(title, run),
  }));

suite("postgres sink: the contract of sinks, upsert", (server, test) =>
  sinkContract({
    name: "postgres",
    values: VALUES,
    unwritable: { value: "no object", code: "not_an_object" },
    setUp: () => table(server(), "primary key", UPSERT),
    // What comes again replaces what is there.
    test: (title, run) => title.includes("large batch") ? undefined : test(title, run),
  }));

suite("postgres sink: the contract of sinks that commit, insert", (server, test) =>
  commitContract({
    name: "postgres",
    commits: "atomic",
    values: VALUES,
    setUp: () => table(server(), ""),
    test,
  }));

suite("postgres sink: the contract of sinks that commit, upsert", (server, test) =>
  commitContract({
    name: "postgres",
    commits: "atomic",
    values: VALUES,
    setUp: () => table(server(), "primary key", UPSERT),
    test: (title, run) => title.includes("large batch") ? undefined : test(title, run),
  }));
