/**
 * A process that is killed while it runs a workflow with the Postgres sink, or its server: the table is that of the run in which
 * nobody was killed.
 * More rounds: `deno run -A tests/postgres/kill_rounds.ts 200`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { postgresService, serviceTest } from "../services/mod.ts";
import { killRound, MODES, serverRound } from "./kill_rounds.ts";

for (const mode of MODES) {
  serviceTest(`postgres: kill -9 at random instants, ${mode}: every record once`, ["postgres"], async () => {
    await using postgres = await postgresService();
    let kills = 0, restored = 0;
    for (let seed = 11; seed < 20 && restored < 2; seed++) { // where the machine is busy, many are killed too early
      const round = await killRound(postgres, mode, seed);
      kills += round.kills;
      restored += round.restored;
    }
    assert.ok(kills > 0, "no process was killed");
    assert.ok(restored > 0, "no run went on from a checkpoint");
  });

  serviceTest(`postgres: kill -9 of the server, ${mode}: every record once`, ["own postgres"], async () => {
    await using postgres = await postgresService({ own: true });
    const { kills } = await serverRound(postgres, mode, 1);
    assert.ok(kills > 0, "the server was not killed");
  });
}
