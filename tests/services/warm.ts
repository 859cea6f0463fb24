// deno-lint-ignore-file no-console -- it reports on the terminal
/**
 * Fetches and builds all that tests with servers need, so that no test waits for it: `deno run -A tests/services/warm.ts`.
 * Quick where it is there. With `--registry` the schema registry too, which is 142 MB.
 *
 * @module
 */
import { KafkaCluster } from "./kafka_cluster.ts";
import { preparePostgres } from "./postgres.ts";
import { schemaRegistryProgram } from "./registry.ts";
import { toxiproxyProgram } from "./toxiproxy.ts";
import { ServiceUnavailable } from "./unavailable.ts";

const all: Record<string, () => Promise<unknown>> = {
  "PostgreSQL": preparePostgres,
  "Kafka": KafkaCluster.prepare,
  "toxiproxy": toxiproxyProgram,
};
if (Deno.args.includes("--registry")) all["schema registry"] = schemaRegistryProgram;

let failed = 0;
for (const [name, prepare] of Object.entries(all)) {
  const start = performance.now();
  try {
    await prepare();
    console.log(`ok     ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    if (!(error instanceof ServiceUnavailable)) throw error;
    failed++;
    console.log(`FAILED ${name}: ${error.message}`);
  }
}
Deno.exit(failed > 0 ? 1 : 0);
