/**
 * Tests that need a real server: where it cannot be had they fail if they must not be left out, and else say that they are.
 *
 * 1. Where `CI` is set, or `MAILER_SERVICES` is `required`, a test whose server cannot be had fails.
 * 2. Elsewhere it is left out, and a sentence says which server it needs and how to get it.
 * 3. Finding out costs some looks at files, and starts nothing.
 *
 * @module
 */
import { missingCertificates } from "./certificates.ts";
import { hasExternalKafka } from "./kafka.ts";
import { missingKafka } from "./kafka_installation.ts";
import { hasExternalPostgres, missingPostgres } from "./postgres.ts";
import { isSchemaRegistryFetched, missingSchemaRegistry } from "./registry.ts";
import { missingToxiproxy } from "./toxiproxy.ts";
import { ServiceUnavailable } from "./unavailable.ts";

/** What a test can need. `own` ones are those it stops, kills or configures, so that one which runs already will not do. */
export type Need =
  | "kafka"
  | "own kafka"
  | "postgres"
  | "own postgres"
  | "toxiproxy"
  | "schema registry"
  | "certificates";

const MISSING: Readonly<Record<Need, () => string | undefined>> = {
  "kafka": () => hasExternalKafka() ? undefined : also(missingKafka(), "set KAFKA_BROKERS"),
  "own kafka": missingKafka,
  "postgres": () => hasExternalPostgres() ? undefined : missingPostgres(),
  "own postgres": missingPostgres,
  "toxiproxy": missingToxiproxy,
  "schema registry": () => missingSchemaRegistry() ?? notFetched(),
  "certificates": missingCertificates,
};

/** What is missing for these, a sentence each. */
export function missingServices(needs: readonly Need[]): string[] {
  if (Deno.build.os === "windows") return ["tests with servers run on Linux and macOS"];
  return needs.map((need) => MISSING[need]()).filter((sentence) => sentence !== undefined);
}

/** Whether tests may not be left out. */
export function areServicesRequired(): boolean {
  return Deno.env.get("MAILER_SERVICES") === "required" || (Deno.env.get("CI") ?? "") !== "";
}

/** A test that needs servers. */
export function serviceTest(
  name: string,
  needs: readonly Need[],
  run: (test: Deno.TestContext) => void | Promise<void>,
): void {
  const missing = missingServices(needs), isRequired = areServicesRequired();
  if (missing.length > 0 && !isRequired) {
    Deno.test({ name: `${name} [left out: ${missing.join("; ")}]`, ignore: true, fn: () => {} });
    return;
  }
  Deno.test(name, async (test) => {
    if (missing.length > 0) throw new ServiceUnavailable(missing.join("; "));
    try {
      await run(test);
    } catch (error) {
      // All seemed to be there, but something could not be fetched.
      if (isRequired || !(error instanceof ServiceUnavailable)) throw error;
      // deno-lint-ignore no-console -- it does not pass silently
      console.warn(`left out: ${name}: ${error.message}`);
    }
  });
}

function also(sentence: string | undefined, remedy: string): string | undefined {
  return sentence === undefined ? undefined : `${sentence}, or ${remedy}`;
}

/** Nobody's first test run downloads that much unasked. */
function notFetched(): string | undefined {
  if (areServicesRequired() || isSchemaRegistryFetched()) return undefined;
  return "the schema registry is a download of 142 MB: deno run -A tests/services/warm.ts --registry";
}
