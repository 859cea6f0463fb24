/**
 * Connecting as a server wants it: encryption, passwords, several addresses.
 *
 * @module
 */
import assert from "node:assert/strict";
import { postgresSink } from "../../connectors/postgres/mod.ts";
import { certificates, postgresService, serviceTest } from "../services/mod.ts";
import { errorOf, openSink, schemaWith, writeAll } from "./kit.ts";

/** A folder that the user of the server can read. */
async function sharedFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-postgres-" });
  await Deno.chmod(folder, 0o755);
  return folder;
}

/** Gives a file to the user that the server runs as, who alone may read it. */
async function giveToServer(path: string): Promise<void> {
  await Deno.chmod(path, 0o600);
  if (Deno.uid() !== 0) return;
  const { success } = await new Deno.Command("chown", { args: ["postgres", path] }).output();
  assert.ok(success);
}

serviceTest(
  "postgres: encrypted connections, and whom they trust",
  ["own postgres", "certificates"],
  async (context) => {
    const folder = await sharedFolder();
    try {
      await certificates(folder);
      await giveToServer(`${folder}/server.key`);
      const settings = {
        ssl: "on",
        ssl_cert_file: `${folder}/server.pem`,
        ssl_key_file: `${folder}/server.key`,
      };
      await using postgres = await postgresService({ own: true, settings });
      const schema = await schemaWith(postgres, "create table t (id int)");
      const sink = (query: string, host = "127.0.0.1") =>
        postgresSink({
          dsn: `${postgres.url.replace("127.0.0.1", host)}?application_name=tls_test&${query}`,
          table: `${schema}.t`,
          mapping: { id: "id" },
          maxRetries: 0,
        });
      for (
        const query of [
          "sslmode=prefer",
          "sslmode=require",
          `sslmode=verify-full&sslrootcert=${folder}/authority.pem`,
        ]
      ) {
        await context.step(query.replace(folder, ""), async () => {
          const { writer, write } = await openSink(sink(query));
          await write([{ id: 1 }]);
          await writer.flush();
          const rows = await postgres.rows(
            "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tls_test'",
          );
          assert.deepEqual(rows, [{ ssl: true }]);
          await writer.close("done");
        });
      }
      await context.step("a certificate of an authority that is not trusted", async () => {
        for (const query of ["sslmode=verify-full", `sslmode=verify-full&sslrootcert=${folder}/other.pem`]) {
          const error = await errorOf(() => openSink(sink(query)), "postgres_encryption");
          assert.match(error.message, /cannot be encrypted: /);
          assert.match(error.hint!, /sslrootcert/);
        }
      });
      await context.step("the connection is lost, and made again", async () => {
        const { writer, write } = await openSink(
          postgresSink({
            dsn: `${postgres.url}?sslmode=require&application_name=lost`,
            table: `${schema}.t`,
            mapping: { id: "id" },
          }),
        );
        await postgres.execute(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lost'",
        );
        await write([{ id: 7 }]);
        await writer.flush();
        await writer.close("done");
        assert.deepEqual(await postgres.rows(`select id from ${schema}.t where id = 7`), [{ id: 7 }]);
      });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

serviceTest("postgres: a server that does not encrypt", ["postgres"], async () => {
  await using postgres = await postgresService();
  const schema = await schemaWith(postgres, "create table t (id int)");
  const sink = (mode: string) =>
    postgresSink({ dsn: `${postgres.url}?sslmode=${mode}`, table: `${schema}.t`, mapping: { id: "id" } });
  assert.deepEqual(await writeAll(sink("prefer"), [{ id: 1 }]), []);
  const error = await errorOf(() => openSink(sink("require")), "postgres_encryption");
  assert.match(error.message, /does not encrypt/);
});

serviceTest("postgres: passwords; a wrong one is named by no message", ["own postgres"], async () => {
  const folder = await sharedFolder();
  try {
    const rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    await Deno.writeTextFile(`${folder}/hba.conf`, rules);
    await Deno.chmod(`${folder}/hba.conf`, 0o644);
    await using postgres = await postgresService({ own: true, settings: { hba_file: `${folder}/hba.conf` } });
    const schema = await schemaWith(postgres, "create table t (id int)");
    await postgres.execute(
      `create role "o'dd user" login password 'p@ss/w:rd'; grant usage on schema ${schema} to "o'dd user";
      grant insert on ${schema}.t to "o'dd user"`,
    );
    const sink = (login: string) =>
      postgresSink({
        dsn: postgres.url.replace("postgres@", `${login}@`),
        table: `${schema}.t`,
        mapping: { id: "id" },
      });
    assert.deepEqual(await writeAll(sink("o'dd%20user:p%40ss%2Fw%3Ard"), [{ id: 1 }]), []);
    const error = await errorOf(() => openSink(sink("o'dd%20user:hunter2secret")), "postgres_error");
    assert.match(error.message, /password authentication failed for user "o'dd user"/);
    assert.match(error.hint!, /password in dsn/);
    assert.doesNotMatch(Deno.inspect(error, { depth: 9, showHidden: true }), /hunter2secret/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

serviceTest("postgres: the first address that takes a connection", ["postgres"], async () => {
  await using postgres = await postgresService();
  const schema = await schemaWith(postgres, "create table t (id int)");
  const dsn = postgres.url.replace("127.0.0.1", "127.0.0.1:9,127.0.0.1");
  assert.deepEqual(
    await writeAll(postgresSink({ dsn, table: `${schema}.t`, mapping: { id: "id" } }), [{ id: 1 }]),
    [],
  );
});
