/**
 * Documents with the Postgres sink, run by the program as a process.
 *
 * @module
 */
import assert from "node:assert/strict";
import { postgresService, serviceTest } from "../services/mod.ts";
import { schemaWith } from "./kit.ts";

const CLI = new URL("../../cli.ts", import.meta.url).pathname;
/** All that a workflow with Postgres needs. */
const PERMISSIONS = ["--allow-net", "--allow-env", "--allow-read", "--allow-write"];

async function mailer(
  permissions: readonly string[],
  args: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", ...permissions, CLI, ...args],
    ...options,
    env: { INIT_CWD: "", ...options.env },
  }).output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

const document = (table: string, more = "") =>
  `name: totals
source:
  type: file
  file: { path: in.ndjson }
pipeline:
  - { id: key, type: keyBy, keyBy: { field: customer.id } }
  - { id: sum, type: reduce, reduce: { function: sum, field: amount } }
sink:
  type: postgres
  onError: dlq
  postgres:
    dsn: "\${DSN}"
    table: ${table}
    mapping: { customer.id: customer, sum: total }
    mode: upsert
    conflictColumns: [customer]
dlq: { type: file, file: { path: dead.ndjson } }
${more}`;

const RECORDS = [
  { customer: { id: "ann" }, amount: 5 },
  { customer: { id: "bob" }, amount: 13 },
  { customer: { id: "ann" }, amount: 2.5 },
];

serviceTest(
  "a document: rows in the table, refused ones among the dead letters",
  ["postgres"],
  async (context) => {
    await using postgres = await postgresService();
    const folder = await Deno.makeTempDir({ prefix: "mailer-postgres-" });
    try {
      await Deno.writeTextFile(
        `${folder}/in.ndjson`,
        RECORDS.map((record) => `${JSON.stringify(record)}\n`).join(""),
      );
      for (const more of ["", "env: { checkpointing: { interval: 1s } }\n"]) {
        await context.step(more === "" ? "without checkpoints" : "with checkpoints", async () => {
          const schema = await schemaWith(
            postgres,
            "create table totals (customer text primary key, total numeric check (total <> 13))",
          );
          const options = `?options=${encodeURIComponent(`-c search_path=${schema}`)}`;
          const env = { DSN: postgres.url.replace("postgres@", "postgres:hunter2secret@") + options };
          await Deno.writeTextFile(`${folder}/wf.yaml`, document("totals", more));
          const in_ = { cwd: folder, env };

          const dry = await mailer(PERMISSIONS, ["dry-run", "wf.yaml"], in_);
          assert.equal(dry.code, 0, dry.err);
          assert.match(dry.out, /ok: table "totals" at 127\.0\.0\.1:\d+\/postgres, 2 columns\n/);
          assert.equal(/"mailer_checkpoints" for checkpoints will be made/.test(dry.out), more !== "");

          const { code, err } = await mailer(
            PERMISSIONS,
            ["run", "--data-dir", `data${schema}`, "wf.yaml"],
            in_,
          );
          assert.equal(code, 0, err);
          assert.deepEqual(await postgres.rows(`select * from ${schema}.totals`), [{
            customer: "ann",
            total: 7.5,
          }]);
          const [letter, ...others] = (await Deno.readTextFile(`${folder}/dead.ndjson`)).trim().split("\n");
          const dead = JSON.parse(letter!);
          assert.deepEqual(others, []);
          assert.equal(dead.error.code, "constraint_violation");
          assert.match(dead.error.message, /totals_total_check/);
          assert.equal((dry.out + err + letter).includes("hunter2secret"), false);
        });
      }
      await context.step("what is missing is said by dry-run and by run", async () => {
        await Deno.writeTextFile(`${folder}/wf.yaml`, document("nowhere"));
        const options = { cwd: folder, env: { DSN: postgres.url } };
        const dry = await mailer(PERMISSIONS, ["dry-run", "wf.yaml"], options);
        assert.equal(dry.code, 1);
        assert.match(dry.out, /NOT OK: there is no table "nowhere" in the database\n +hint: create it/);
        const run = await mailer(PERMISSIONS, ["run", "wf.yaml"], options);
        assert.equal(run.code, 1);
        assert.match(run.err, /error: there is no table "nowhere" in the database\nhint: create it/);
      });
      await context.step("what Deno does not permit is named", async () => {
        const permissions = PERMISSIONS.filter((one) => one !== "--allow-net");
        const { code, err } = await mailer(permissions, ["run", "wf.yaml"], {
          cwd: folder,
          env: { DSN: postgres.url },
        });
        assert.equal(code, 2);
        assert.match(
          err,
          /net access to "127\.0\.0\.1:\d+" is not permitted\nhint: start deno with --allow-net/,
        );
      });
      await context.step("nothing is connected to validate and explain", async () => {
        const permissions = PERMISSIONS.filter((one) => one !== "--allow-net");
        for (const command of ["validate", "explain", "lint"]) {
          const { code, err } = await mailer(permissions, [command, "wf.yaml"], {
            cwd: folder,
            env: { DSN: "postgres://nobody@nowhere.invalid/none" },
          });
          assert.equal(code, 0, err);
        }
      });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
