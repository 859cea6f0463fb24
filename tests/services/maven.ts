/**
 * Java programs from Maven Central, pinned, in the cache.
 *
 * @module
 */
import { cached } from "./cache.ts";
import { run, whereIs } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

const PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";

/** What a server in Java needs and is not there; undefined if nothing. `what` begins the sentence. */
export function missingJava(what: string, isFetched: boolean): string | undefined {
  const missing = isFetched ? ["java"] : ["java", "mvn"];
  const absent = missing.filter((program) => whereIs(program) === undefined);
  if (absent.length === 0) return undefined;
  return `${what} needs ${absent.join(" and ")} on the PATH (Java 17 or later; Maven to fetch it): ` +
    "run tests/services/install.sh";
}

/**
 * A folder with these artifacts and all they need.
 *
 * @param name Folder of the cache.
 * @param artifacts `group:artifact:version`.
 */
export function jars(name: string, artifacts: readonly string[]): Promise<string> {
  return cached(name, async (folder) => {
    await using work = await temporary();
    await Deno.writeTextFile(`${work.path}/pom.xml`, pom(artifacts));
    await maven(work.path, "copy-dependencies", { includeScope: "runtime", outputDirectory: folder });
  });
}

/** A folder with what a `tar.gz` artifact holds, `group:artifact:version:tar.gz[:classifier]`. */
export function unpacked(name: string, artifact: string): Promise<string> {
  return cached(name, async (folder) => {
    await using work = await temporary();
    await maven(work.path, "copy", { artifact, outputDirectory: work.path });
    const archives = [...Deno.readDirSync(work.path)].filter((entry) => entry.name.endsWith(".tar.gz"));
    const { success, output } = await run(["tar", "-xzf", `${work.path}/${archives[0]!.name}`, "-C", folder]);
    if (!success) throw new ServiceUnavailable(`${artifact} could not be unpacked:`, output);
  });
}

/** Why nothing could be fetched; whoever asks next need not wait to hear it. */
let unreachable: ServiceUnavailable | undefined;

async function maven(cwd: string, goal: string, options: Readonly<Record<string, string>>): Promise<void> {
  if (whereIs("mvn") === undefined) {
    throw new ServiceUnavailable(
      "Maven (mvn) is needed to fetch Java programs: run tests/services/install.sh",
    );
  }
  if (unreachable !== undefined) throw unreachable;
  const settings = Object.entries(options).map(([key, value]) => `-D${key}=${value}`);
  const { success, output } = await run(["mvn", "-B", "-ntp", "-q", `${PLUGIN}:${goal}`, ...settings], {
    cwd,
  });
  if (success) return;
  unreachable = new ServiceUnavailable("Maven could not fetch from Maven Central:", output);
  throw unreachable;
}

async function temporary(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir({ prefix: "mailer-maven-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

function pom(artifacts: readonly string[]): string {
  const dependencies = artifacts.map((artifact) => {
    const [group, id, version] = artifact.split(":");
    return `<dependency><groupId>${group}</groupId><artifactId>${id}</artifactId><version>${version}</version></dependency>`;
  });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>mailer</groupId><artifactId>services</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
${dependencies.join("\n")}
</dependencies>
</project>
`;
}
