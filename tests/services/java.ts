/**
 * How Java programs are started here: small, quick to start, with classes shared between starts.
 *
 * @module
 */
import { cached, cacheFolder, digestOf, isThere } from "./cache.ts";
import { whereIs } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

/** How the JVM is run. */
export interface JavaOptions {
  /** All jars of a folder of the cache, and what comes behind them. */
  readonly classPath: readonly string[];
  readonly main: string;
  readonly args?: readonly string[];
  /** MiB. */
  readonly heap?: number;
  /**
   * `quick` (default) starts with a third less CPU and never optimizes much; `fast` is for what is measured.
   */
  readonly compiler?: "quick" | "fast";
  /** An archive of classes to start with, as made by `sharedClasses`. */
  readonly sharedClasses?: string | undefined;
  readonly flags?: readonly string[];
}

/** The command that runs a Java program. */
export function javaCommand(options: JavaOptions): string[] {
  const { classPath, main, args = [], heap = 256, compiler = "quick", sharedClasses, flags = [] } = options;
  return [
    javaProgram(),
    `-Xms${Math.min(heap, 128)}m`,
    `-Xmx${heap}m`,
    "-XX:+UseSerialGC",
    ...(compiler === "quick" ? ["-XX:TieredStopAtLevel=1"] : []),
    ...(sharedClasses === undefined
      ? []
      : [`-XX:SharedArchiveFile=${sharedClasses}`, "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]),
    ...flags,
    "-cp",
    classPath.join(":"),
    main,
    ...args,
  ];
}

/** The jars of a folder, in an order that does not change. */
export function jarsOf(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name.endsWith(".jar"))
    .toSorted().map((name) => `${folder}/${name}`);
}

/**
 * The archive of classes of a program, for this very JVM.
 *
 * @param name Begins the name of the folder of the cache.
 * @param train Runs the program once with these flags, and lets it end by itself or by SIGTERM.
 * @returns undefined where this JVM makes none.
 */
export async function sharedClasses(
  name: string,
  train: (flags: readonly string[]) => Promise<void>,
): Promise<string | undefined> {
  const folder = await cached(`${name}-classes-${jvm()}`, async (folder) => {
    await train([`-XX:ArchiveClassesAtExit=${folder}/classes.jsa`]);
  });
  const archive = `${folder}/classes.jsa`;
  return isThere(archive) ? archive : undefined;
}

/** Which JVM it is: an archive of classes serves only the one that made it, and the jars in their place. */
function jvm(): string {
  const path = Deno.realPathSync(javaProgram()), { size, mtime } = Deno.statSync(path);
  return digestOf(path, String(size), String(mtime?.getTime()), cacheFolder());
}

function javaProgram(): string {
  const path = whereIs("java");
  if (path === undefined) {
    throw new ServiceUnavailable(
      "Java 17 or later is needed (java on the PATH): run tests/services/install.sh",
    );
  }
  return path;
}
