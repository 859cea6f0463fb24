/**
 * A schema registry that speaks Confluent's API: Apicurio, in memory, from Maven Central. Its download is 142 MB, so it is
 * fetched only when a test asks for it.
 *
 * @module
 */
import { isCached } from "./cache.ts";
import { javaCommand } from "./java.ts";
import { missingJava, unpacked } from "./maven.ts";
import { freePort } from "./ports.ts";
import { Keeper } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

const VERSION = "2.6.13.Final";
const FOLDER = `apicurio-registry-${VERSION}`;

/** A running schema registry. */
export interface SchemaRegistry extends AsyncDisposable {
  /** Base of Confluent's API. */
  readonly url: string;
  /** Ends it; its schemas are gone. */
  stop(): Promise<void>;
}

/** What is missing, in a sentence; undefined if nothing. Looks, and starts nothing. */
export function missingSchemaRegistry(): string | undefined {
  return missingJava(`the schema registry Apicurio ${VERSION}`, isSchemaRegistryFetched());
}

/** Whether it is there already. */
export function isSchemaRegistryFetched(): boolean {
  return isCached(FOLDER);
}

/** Fetches it where it is not there yet. @returns Its folder. */
export async function schemaRegistryProgram(): Promise<string> {
  const missing = missingSchemaRegistry();
  if (missing !== undefined) throw new ServiceUnavailable(missing);
  return await unpacked(FOLDER, `io.apicurio:apicurio-registry-app:${VERSION}:tar.gz:all`);
}

/** Starts a schema registry of the test's own: some ten seconds. */
export async function schemaRegistry(): Promise<SchemaRegistry> {
  const folder = await schemaRegistryProgram();
  const keeper = await Keeper.open("registry");
  const stop = () => keeper[Symbol.asyncDispose]();
  try {
    const port = freePort(), base = `http://127.0.0.1:${port}`;
    const command = javaCommand({
      classPath: [`${folder}/apicurio-registry-app-${VERSION}-runner.jar`], // which names the others
      main: "io.quarkus.runner.GeneratedMain",
      heap: 512,
      flags: ["-Dquarkus.http.host=127.0.0.1", `-Dquarkus.http.port=${port}`],
    });
    const server = keeper.start(command, { name: "registry" });
    await server.ready(() => isUp(`${base}/apis/ccompat/v7/subjects`), 120_000);
    return { url: `${base}/apis/ccompat/v7`, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function isUp(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.ok;
  } catch (error) {
    if (error instanceof TypeError) return false; // no connection yet
    throw error;
  }
}
