/**
 * The writer that commits, driven at random: several checkpoints under way, failed ones, lost connections, commits that are lost on
 * their way, little memory, new runs. What can be seen is always what a list says that knows nothing of all this.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../connectors/postgres/intake.ts";
import { postgresSinkWithin } from "../../connectors/postgres/postgres_sink.ts";
import { systemClock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import { silentLogger } from "../../lib/log.ts";
import { type Postgres, postgresService, serviceTest } from "../services/mod.ts";
import { FIRST_RUN, HASTY_CLOCK, type Opened, openSink, schemaWith } from "./kit.ts";
import { Proxy } from "./proxy.ts";

interface Prepared {
  readonly committable: unknown;
  /** Rows that are to be seen when it is committed. */
  readonly rows: number;
}

function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

async function play(postgres: Postgres, seed: number, kept: number): Promise<Record<string, number>> {
  await using proxy = new Proxy(postgres.url);
  const next = random(seed), pick = (below: number) => Math.floor(next() * below);
  const schema = await schemaWith(postgres, "create table t (id int, pos int generated always as identity)");
  const sink = postgresSinkWithin(
    { dsn: proxy.url, table: `${schema}.t`, mapping: { id: "id" }, checkpointTable: `${schema}.c` },
    { ...LIMITS, rows: 3, kept },
  );
  const visible = async () =>
    (await postgres.rows(`select id from ${schema}.t order by pos`)).map(({ id }) => id);
  const counts: Record<string, number> = {}, count = (what: string) => counts[what] = (counts[what] ?? 0) + 1;
  /** Rows are numbered; a run that goes on from a checkpoint writes them from there again. */
  let written = 0, committed = 0, checkpoint = 0, restored: unknown, waiting: Prepared[] = [];
  const open = () => openSink(sink, { clock: HASTY_CLOCK, checkpoints: { ...FIRST_RUN, restored } });
  let run: Opened = await open();
  const accidents = ["commit\0", "update ", "insert into", "savepoint", "begin"];

  /** What a new process does. Of the checkpoint that was to be committed it asks what has become of it. */
  const startAgain = async (committing: Prepared | undefined) => {
    count("new runs");
    proxy.accident = undefined;
    await run.writer.close("failed");
    if (committing !== undefined) {
      const signal = new AbortController().signal;
      const context = { id: "sink", clock: systemClock, logger: silentLogger, signal };
      const outcome = await sink.recover!(committing.committable, context);
      count(outcome);
      if (outcome === "committed") [committed, restored] = [committing.rows, committing.committable];
    }
    [written, waiting] = [committed, []];
    run = await open();
  };

  for (let step = 0; step < 40; step++) {
    let committing: Prepared | undefined;
    try {
      const dice = next();
      if (dice < 0.35) {
        const from = written;
        written += pick(9);
        await run.write(Array.from({ length: written - from }, (_, i) => ({ id: from + i })));
      } else if (dice < 0.55) {
        waiting.push({ committable: await run.writer.prepare!(++checkpoint), rows: written });
      } else if (dice < 0.8) {
        const at = waiting.splice(0, 1 + pick(2)).at(-1); // one that is left out has failed
        if (at === undefined) continue;
        committing = at;
        await run.writer.commit!(at.committable);
        [committed, restored] = [at.rows, at.committable];
        count("commits");
      } else if (dice < 0.85) await run.writer.flush();
      else if (dice < 0.9) proxy.cut();
      else if (dice < 0.97) {
        proxy.accident = { at: accidents[pick(accidents.length)]!, arrives: next() < 0.5 };
      } else await startAgain(undefined);
    } catch (error) {
      if (codeOf(error) !== "rows_lost") throw error;
      count("rows lost");
      await startAgain(committing);
    }
    assert.deepEqual(
      await visible(),
      Array.from({ length: committed }, (_, i) => i),
      `seed ${seed}, step ${step}`,
    );
  }
  await run.writer.close("failed");
  return counts;
}

const SEEDS = Number(Deno.env.get("MAILER_SEEDS") ?? 6);

for (const [what, kept] of [["all is kept", 1 << 20], ["little is kept", 10]] as const) {
  serviceTest(
    `postgres: whatever happens, what is visible is what was committed: ${what}`,
    ["postgres"],
    async () => {
      await using postgres = await postgresService();
      const all: Record<string, number> = {};
      for (let seed = 1; seed <= SEEDS; seed++) {
        const counts = await play(postgres, seed, kept);
        for (const [name, count] of Object.entries(counts)) all[name] = (all[name] ?? 0) + count;
      }
      assert.ok(all["commits"]! > SEEDS, JSON.stringify(all));
      if (kept === 10) assert.ok(all["rows lost"]! > 0, JSON.stringify(all));
    },
  );
}
