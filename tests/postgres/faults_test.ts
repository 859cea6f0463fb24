/**
 * The Postgres sink where the server, or the way to it, fails: nothing is lost, and with checkpoints nothing comes twice.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LIMITS, type Limits } from "../../connectors/postgres/intake.ts";
import type { PostgresSinkOptions } from "../../connectors/postgres/mod.ts";
import { postgresSinkWithin } from "../../connectors/postgres/postgres_sink.ts";
import type { Sink } from "../../lib/connector.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/log.ts";
import { batchOf } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import { settle, VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { type Postgres, postgresService, serviceTest } from "../services/mod.ts";
import { errorOf, FIRST_RUN, HASTY_CLOCK, openSink, schemaWith, until } from "./kit.ts";
import { Proxy } from "./proxy.ts";

interface Scene {
  /** A sink that goes to the server by the URL. */
  sink(url: string, limits?: Partial<Limits>, options?: Partial<PostgresSinkOptions>): Sink;
  /** The ids in the table, as they were written. */
  ids(): Promise<unknown[]>;
  readonly table: string;
}

/** Rows without a key: what is written twice is there twice. */
async function scene(postgres: Postgres): Promise<Scene> {
  const schema = await schemaWith(postgres, "create table t (id int, pos int generated always as identity)");
  const table = `${schema}.t`;
  return {
    table,
    sink: (dsn, limits = {}, options = {}) =>
      postgresSinkWithin(
        { dsn, table, mapping: { id: "id" }, checkpointTable: `${schema}.checkpoints`, ...options },
        { ...LIMITS, ...limits },
      ),
    ids: async () => (await postgres.rows(`select id from ${table} order by pos`)).map(({ id }) => id),
  };
}

/** The statement alone, as it is sent. */
const COMMIT = "commit\0";

const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => ({ id: from + i }));
const numbers = (from: number, to: number) => ids(from, to).map(({ id }) => id);

async function recover(sink: Sink, committable: unknown): Promise<string> {
  const signal = new AbortController().signal;
  return await sink.recover!(committable, { id: "sink", clock: systemClock, logger: silentLogger, signal });
}

for (const arrives of [true, false]) {
  serviceTest(
    `postgres: a connection that is lost during COMMIT, which ${
      arrives ? "arrives" : "does not arrive"
    }: each row once`,
    ["postgres"],
    async () => {
      await using postgres = await postgresService();
      await using proxy = new Proxy(postgres.url);
      const { sink, ids: there } = await scene(postgres);
      const { writer, write, log } = await openSink(sink(proxy.url), { checkpoints: FIRST_RUN });
      await write(ids(0, 10));
      const first = await writer.prepare!(1);
      await write(ids(10, 12)); // for the next
      proxy.accident = { at: COMMIT, arrives };
      await writer.commit!(first);
      assert.equal(proxy.accident, undefined);
      assert.equal(log.length, 1);
      assert.match(log[0]!, /trying again/);
      assert.deepEqual(await there(), numbers(0, 10));
      await writer.commit!(await writer.prepare!(2));
      await writer.close("done");
      assert.deepEqual(await there(), numbers(0, 12));
    },
  );

  serviceTest(
    `postgres: a process that dies during COMMIT, which ${
      arrives ? "arrives" : "does not arrive"
    }: the next one knows`,
    ["postgres"],
    async () => {
      await using postgres = await postgresService();
      await using proxy = new Proxy(postgres.url);
      const { sink, ids: there } = await scene(postgres);
      const opened = await openSink(sink(proxy.url, {}, { maxRetries: 0 }), { checkpoints: FIRST_RUN });
      await opened.write(ids(0, 10));
      const first = await opened.writer.prepare!(1);
      proxy.accident = { at: COMMIT, arrives };
      await errorOf(() => opened.writer.commit!(first), "postgres_connection");
      await opened.writer.close("failed");
      if (arrives) await until(async () => (await there()).length > 0); // else `recover` may be the earlier
      assert.equal(await recover(sink(postgres.url), first), arrives ? "committed" : "lost");
      assert.equal(await recover(sink(postgres.url), first), arrives ? "committed" : "lost");
      assert.deepEqual(await there(), arrives ? numbers(0, 10) : []);
    },
  );
}

serviceTest(
  "postgres: connections that are lost anywhere else: rows are sent again, once",
  ["postgres"],
  async () => {
    await using postgres = await postgresService();
    for (
      const at of [
        "begin",
        "savepoint piece",
        "insert into",
        "release savepoint",
        "interval_1",
        "rollback to",
        "update ",
      ]
    ) {
      for (const arrives of [true, false]) {
        await using proxy = new Proxy(postgres.url);
        const { sink, ids: there } = await scene(postgres);
        const { writer, write, log } = await openSink(sink(proxy.url, { rows: 4 }), {
          clock: HASTY_CLOCK,
          checkpoints: FIRST_RUN,
        });
        proxy.accident = { at, arrives };
        await write(ids(0, 10));
        const first = await writer.prepare!(1);
        await write(ids(10, 20));
        await writer.flush();
        await writer.commit!(first);
        assert.deepEqual(await there(), numbers(0, 10), at);
        await writer.commit!(await writer.prepare!(2));
        await writer.close("done");
        assert.equal(proxy.accident, undefined, `${at} was never sent`);
        assert.ok(log.length >= 1, at);
        assert.deepEqual(await there(), numbers(0, 20), at);
      }
    }
  },
);

serviceTest(
  "postgres: the server is killed and comes back in the middle of a run",
  ["own postgres"],
  async (context) => {
    await using postgres = await postgresService({ own: true });
    const retries = { maxRetries: 8 };
    await context.step("with checkpoints each row is there once", async () => {
      const { sink, ids: there } = await scene(postgres);
      const { writer, write } = await openSink(sink(postgres.url, { rows: 4 }, retries), {
        checkpoints: FIRST_RUN,
      });
      await write(ids(0, 10));
      const first = await writer.prepare!(1);
      await writer.commit!(first);
      await write(ids(10, 20));
      await writer.flush(); // in the transaction
      const second = await writer.prepare!(2);
      await postgres.kill();
      const [committed] = await Promise.allSettled([writer.commit!(second), postgres.start()]);
      assert.equal(committed.status, "fulfilled");
      assert.deepEqual(await there(), numbers(0, 20));
      await write(ids(20, 25));
      await writer.commit!(await writer.prepare!(3));
      await writer.close("done");
      assert.deepEqual(await there(), numbers(0, 25));
    });
    await context.step("without them none is lost", async () => {
      const { sink, ids: there } = await scene(postgres);
      const { writer, write } = await openSink(sink(postgres.url, {}, retries));
      await write(ids(0, 100));
      await writer.flush();
      await postgres.kill();
      await write(ids(100, 200));
      const [flushed] = await Promise.allSettled([writer.flush(), postgres.start()]);
      assert.equal(flushed.status, "fulfilled");
      await writer.close("done");
      assert.deepEqual([...new Set(await there())], numbers(0, 200));
    });
    await context.step("where it does not come back the run ends, and says why", async () => {
      const { sink } = await scene(postgres);
      const { writer, write } = await openSink(sink(postgres.url, {}, { maxRetries: 1 }));
      await postgres.kill();
      const error = await errorOf(async () => {
        for (;;) { // what serves this connection notices a moment later
          await write(ids(0, 100));
          await writer.flush();
        }
      }, "postgres_connection");
      assert.match(error.message, /postgres at 127\.0\.0\.1:\d+\/postgres: .*(ECONNREFUSED|refused)/);
      await writer.close("failed");
      await postgres.start();
    });
  },
);

serviceTest("postgres: a server that does not answer is given up at the deadline", ["postgres"], async () => {
  await using postgres = await postgresService();
  await using proxy = new Proxy(postgres.url);
  const { sink, ids: there } = await scene(postgres);
  const clock = new VirtualClock();
  const writer = await sink(proxy.url, {}, { queryTimeout: "10s", maxRetries: 1 }).open(
    sinkContext({ clock }),
  );
  await writer.write(batchOf(ids(0, 3)));
  proxy.isHole = true;
  const flushing = writer.flush() as Promise<void>;
  flushing.catch(() => {}); // it is looked at below
  await clock.advance("10.9s");
  assert.equal(proxy.connections, 1);
  await clock.advance("0.1s"); // deadline
  await clock.advance("0.5s"); // before the further attempt
  await until(async () => (await settle(), proxy.connections === 2));
  proxy.isHole = false;
  await flushing.catch(async () => { // what went through the hole before cannot be answered
    await writer.flush();
  });
  assert.deepEqual(await there(), numbers(0, 3));

  proxy.isHole = true;
  await writer.write(batchOf(ids(3, 4)));
  const lost = assert.rejects(async () => await writer.flush(), {
    code: "postgres_timeout",
    message: /longer than 10000 ms/,
  });
  for (let step = 0; step < 30; step++) await clock.advance("1s");
  await lost;
  await writer.close("failed");
});

serviceTest(
  "postgres: a connection that never comes about is given up at the deadline",
  ["postgres"],
  async () => {
    await using postgres = await postgresService();
    await using proxy = new Proxy(postgres.url);
    proxy.isHole = true;
    const { sink } = await scene(postgres), clock = new VirtualClock();
    const opening = assert.rejects(
      async () =>
        await sink(proxy.url, {}, { maxRetries: 0, queryTimeout: "5s" }).open(sinkContext({ clock })),
      { code: "postgres_timeout" },
    );
    await until(() => proxy.connections === 1);
    await settle();
    await clock.advance("6s");
    await opening;
    assert.equal(clock.alarms, 0);
  },
);

serviceTest(
  "postgres: a lock that is held too long, and a deadlock, are tried again",
  ["postgres"],
  async () => {
    await using postgres = await postgresService();
    const schema = await schemaWith(postgres, "create table t (id int primary key, v int)");
    const sink = (options: Partial<PostgresSinkOptions> = {}) =>
      postgresSinkWithin({
        dsn: postgres.url,
        table: `${schema}.t`,
        mapping: { id: "id", v: "v" },
        mode: "upsert",
        conflictColumns: ["id"],
        checkpointTable: `${schema}.checkpoints`,
        ...options,
      }, LIMITS);
    const checkpoints = FIRST_RUN;
    const one = await openSink(sink({ name: "one" }), { checkpoints });
    const two = await openSink(sink({ name: "two", queryTimeout: "200ms" }), { checkpoints });
    await one.write([{ id: 1, v: 1 }]);
    const held = await one.writer.prepare!(1);
    await two.write([{ id: 2, v: 2 }]);
    await two.writer.flush();
    await two.write([{ id: 1, v: 2 }]);
    const waiting = two.writer.prepare!(1);
    await until(() => two.log.length > 0);
    assert.match(two.log[0]!, /57014|longer than/);
    await one.writer.commit!(held);
    await two.writer.commit!(await waiting);

    // Each has what the other one wants.
    const three = await openSink(sink({ name: "three" }), { checkpoints });
    await one.write([{ id: 1, v: 11 }]);
    await one.writer.flush();
    await three.write([{ id: 2, v: 33 }]);
    await three.writer.flush();
    await one.write([{ id: 2, v: 12 }]);
    await three.write([{ id: 1, v: 34 }]);
    await Promise.all([one, three].map(async ({ writer }) => await writer.commit!(await writer.prepare!(2))));
    assert.match([...one.log, ...three.log].join("\n"), /deadlock detected/);
    for (const { writer } of [one, two, three]) await writer.close("failed");
  },
);

serviceTest("postgres: memory is bounded: what is sent is let go, or put aside", ["postgres"], async () => {
  await using postgres = await postgresService();
  await using proxy = new Proxy(postgres.url);
  const { sink, ids: there } = await scene(postgres);
  const { writer, write } = await openSink(sink(proxy.url, { rows: 10, kept: 25 }), {
    checkpoints: FIRST_RUN,
  });
  await write(ids(0, 100));
  const first = await writer.prepare!(1);
  assert.equal(proxy.connections, 1);
  await write(ids(100, 200));
  const second = await writer.prepare!(2);
  assert.equal(proxy.connections, 2); // with what is put aside
  await write(ids(200, 300));
  await writer.flush();
  assert.deepEqual(await there(), []);
  await writer.commit!(first);
  assert.deepEqual(await there(), numbers(0, 100));
  await writer.commit!(second);
  assert.deepEqual(await there(), numbers(0, 200));
  await writer.commit!(await writer.prepare!(3));
  assert.deepEqual(await there(), numbers(0, 300));

  await write(ids(300, 400)); // more than is kept
  await writer.flush();
  proxy.cut();
  await until(() => proxy.connections >= 2);
  const error = await errorOf(async () => {
    await write(ids(400, 500));
    await writer.prepare!(4);
  }, "rows_lost");
  assert.match(error.hint!, /goes on from the one before/);
  await writer.close("failed");
  assert.deepEqual(await there(), numbers(0, 300));
});

serviceTest(
  "postgres: of two processes on one sink the later one wins, and the other is told",
  ["postgres"],
  async (context) => {
    await using postgres = await postgresService();
    const steps: [string, Partial<PostgresSinkOptions>, boolean][] = [
      ["which go on from one checkpoint", {}, true],
      ["which start, with one name", { name: "totals" }, false],
    ];
    for (const [what, options, goesOn] of steps) {
      await context.step(what, async () => {
        const { sink, ids: there, table } = await scene(postgres);
        const open = (restored: unknown) =>
          openSink(sink(postgres.url, {}, options), { checkpoints: { ...FIRST_RUN, restored } });
        let restored: unknown;
        const earlier = await open(undefined);
        if (goesOn) {
          await earlier.write(ids(0, 5));
          restored = await earlier.writer.prepare!(1);
          await earlier.writer.commit!(restored);
        }
        const start = goesOn ? 5 : 0;
        await earlier.write(ids(start, 10));
        const lost = await earlier.writer.prepare!(2);
        const later = await open(restored);
        await later.write(ids(start, 10));
        const won = await later.writer.prepare!(2);
        const error = await errorOf(() => earlier.writer.commit!(lost), "output_fenced");
        assert.match(error.message, new RegExp(`table "${table}": another run of this sink has taken over`));
        await later.writer.commit!(won);
        await earlier.writer.close("failed");
        assert.deepEqual(await there(), numbers(0, 10));
        assert.equal(await recover(sink(postgres.url), won), "committed");
        await later.write(ids(10, 11)); // `recover` has taken its right away
        await errorOf(async () => later.writer.commit!(await later.writer.prepare!(3)), "output_fenced");
        await later.writer.close("failed");
      });
    }
  },
);

serviceTest("postgres: sinks without a name have nothing to do with each other", ["postgres"], async () => {
  await using postgres = await postgresService();
  const { sink, ids: there } = await scene(postgres);
  const writers = await Promise.all(
    [1, 2, 3].map(() => openSink(sink(postgres.url), { checkpoints: FIRST_RUN })),
  );
  for (const [i, { writer, write }] of writers.entries()) {
    await write([{ id: i }]);
    await writer.commit!(await writer.prepare!(1));
    await writer.close("done");
  }
  assert.deepEqual(await there(), [0, 1, 2]);
});

serviceTest(
  "postgres: a session that lingers loses its locks to the run that takes over",
  ["postgres"],
  async () => {
    await using postgres = await postgresService();
    await using proxy = new Proxy(postgres.url);
    const schema = await schemaWith(postgres, "create table t (id int primary key)");
    const sink = (dsn: string) =>
      postgresSinkWithin({
        dsn,
        table: `${schema}.t`,
        mapping: { id: "id" },
        mode: "upsert",
        conflictColumns: ["id"],
        checkpointTable: `${schema}.checkpoints`,
        name: "totals",
      }, LIMITS);
    const gone = await openSink(sink(proxy.url), { checkpoints: FIRST_RUN });
    await gone.write([{ id: 1 }]);
    await gone.writer.prepare!(1); // holds the key
    proxy.isHole = true; // the server does not hear that it is gone
    const next = await openSink(sink(postgres.url), { checkpoints: FIRST_RUN });
    await next.write([{ id: 1 }]);
    await next.writer.commit!(await next.writer.prepare!(1));
    assert.deepEqual(await postgres.rows(`select id from ${schema}.t`), [{ id: 1 }]);
    await next.writer.close("done");
    await gone.writer.close("failed");
  },
);

serviceTest("postgres: a checkpoint that the database knows nothing of is neither committed nor lost", [
  "postgres",
], async () => {
  await using postgres = await postgresService();
  const one = await scene(postgres), other = await scene(postgres);
  const { writer, write } = await openSink(one.sink(postgres.url), { checkpoints: FIRST_RUN });
  await write(ids(0, 1));
  const prepared = await writer.prepare!(1) as { table: string };
  await writer.close("failed");
  const elsewhere = { ...prepared, table: other.table };
  await errorOf(() => recover(other.sink(postgres.url), elsewhere), "checkpoint_unknown");
  await errorOf(() => recover(other.sink(postgres.url), prepared), "output_changed");
  await errorOf(
    () => openSink(other.sink(postgres.url), { checkpoints: { ...FIRST_RUN, restored: prepared } }),
    "output_changed",
  );
});

serviceTest(
  "postgres: going back to an older checkpoint is said, for rows of later ones stay",
  ["postgres"],
  async () => {
    await using postgres = await postgresService();
    const { sink, ids: there } = await scene(postgres);
    const { writer, write } = await openSink(sink(postgres.url), { checkpoints: FIRST_RUN });
    await write(ids(0, 1));
    const old = await writer.prepare!(1);
    await writer.commit!(old);
    await write(ids(1, 2));
    await writer.commit!(await writer.prepare!(2));
    await writer.close("done");
    const again = await openSink(sink(postgres.url), { checkpoints: { ...FIRST_RUN, restored: old } });
    await again.writer.close("done");
    assert.match(again.log.join("\n"), /warn the table has rows of later checkpoints/);
    assert.deepEqual(await there(), [0, 1]);
  },
);
