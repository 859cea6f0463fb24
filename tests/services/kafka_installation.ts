/**
 * Kafka's broker and a tool over Kafka's Java clients, from Maven Central, in the cache.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { cached, digestOf, isCached } from "./cache.ts";
import { jarsOf, javaCommand } from "./java.ts";
import { jars, missingJava } from "./maven.ts";
import { run } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

/** The release of Kafka that tests run against. */
export const KAFKA_VERSION = "4.4.0";

const BROKER = [
  `org.apache.kafka:kafka_2.13:${KAFKA_VERSION}`,
  "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5",
];
/** A Java compiler that a runtime without one can run. */
const COMPILER = "org.eclipse.jdt:ecj:3.38.0";

const BROKER_FOLDER = `kafka-${KAFKA_VERSION}-${digestOf(...BROKER)}`;
const TOOL_SOURCE = fileURLToPath(new URL("java/KafkaTool.java", import.meta.url));

/** Jars in the cache. */
export interface KafkaInstallation {
  /** Begins the names of what depends on them. */
  readonly name: string;
  readonly broker: readonly string[];
  readonly tool: readonly string[];
}

/** What is missing to start a broker, in a sentence; undefined if nothing. Looks, and starts nothing. */
export function missingKafka(): string | undefined {
  return missingJava(`Apache Kafka ${KAFKA_VERSION}`, isCached(BROKER_FOLDER));
}

/** Fetches and builds what is not there yet: some 50 MB the first time. */
export async function kafkaInstallation(): Promise<KafkaInstallation> {
  const missing = missingKafka();
  if (missing !== undefined) throw new ServiceUnavailable(missing);
  const broker = jarsOf(await jars(BROKER_FOLDER, BROKER));
  return { name: BROKER_FOLDER, broker, tool: [...broker, await toolClasses(broker)] };
}

async function toolClasses(broker: readonly string[]): Promise<string> {
  const source = await Deno.readTextFile(TOOL_SOURCE);
  return await cached(`kafka-tool-${digestOf(source, COMPILER, BROKER_FOLDER)}`, async (folder) => {
    const [id, version] = COMPILER.split(":").slice(1);
    const compiler = jarsOf(await jars(`${id}-${version}`, [COMPILER]));
    const args = ["-source", "17", "-target", "17", "-proc:none", "-nowarn"];
    const command = javaCommand({
      classPath: compiler,
      main: "org.eclipse.jdt.internal.compiler.batch.Main",
      args: [...args, "-cp", broker.join(":"), "-d", folder, TOOL_SOURCE],
    });
    const { success, output } = await run(command);
    if (!success) throw new ServiceUnavailable("tests/services/java/KafkaTool.java did not compile:", output);
  });
}
