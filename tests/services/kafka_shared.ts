/**
 * One broker for all test files that only need some Kafka: the first user starts it, others join, and it ends when nobody has
 * used it for some time. Users tell their topics and groups apart by names of their own.
 *
 * It belongs to a process in the background, which is this file run as a program. Locks on files say who is there, so that
 * nothing is left behind by whoever is killed:
 *
 * 1. A user holds `users.lock` shared. The broker ends only when its process has that lock for itself, so never under a user.
 * 2. Its process holds `alive.lock` for itself as long as it lives.
 * 3. Who looks whether it lives, and starts it if not, holds `start.lock`.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { cacheFolder, exclusive, isThere } from "./cache.ts";
import { KafkaCluster } from "./kafka_cluster.ts";
import { KAFKA_VERSION, kafkaInstallation } from "./kafka_installation.ts";
import { pause, run } from "./process.ts";
import { lastLines } from "./unavailable.ts";

/** How long the broker waits for the next user, in ms. */
const IDLE = 20_000;
/** How long a user waits for the broker, in ms. */
const PATIENCE = 120_000;
/** By then its process is alive, if it ever will be. */
const BIRTH = 10_000;

/** Where a shared broker is. */
export interface SharedKafka {
  readonly brokers: readonly string[];
  /** Of the Java clients. */
  readonly javaPort: number;
  /** Lets go of it. */
  leave(): void;
}

/** Joins the shared broker; starts it if there is none. */
export async function joinSharedKafka(): Promise<SharedKafka> {
  await kafkaInstallation(); // what cannot be had is said here, not in the background
  const folder = sharedFolder();
  await Deno.mkdir(folder, { recursive: true });
  const users = await openLock("users");
  try {
    await users.lock(false);
    const place = await find(folder);
    return { ...place, leave: () => users.close() };
  } catch (error) {
    users.close();
    throw error;
  }
}

interface Place {
  readonly brokers: readonly string[];
  readonly javaPort: number;
}

async function find(folder: string): Promise<Place> {
  await using _lock = await exclusive(`${folder}/start.lock`);
  if (!await isAlive()) {
    for (const name of ["place.json", "failed.txt"]) {
      if (isThere(`${folder}/${name}`)) await Deno.remove(`${folder}/${name}`);
    }
    await startInBackground(`${folder}/log.txt`);
  }
  const start = performance.now();
  while (!isThere(`${folder}/place.json`)) {
    if (isThere(`${folder}/failed.txt`)) throw new Error(await Deno.readTextFile(`${folder}/failed.txt`));
    const waited = performance.now() - start;
    if (waited > PATIENCE || (waited > BIRTH && !await isAlive())) {
      throw new Error(
        `the shared Kafka did not come up:\n${lastLines(await Deno.readTextFile(`${folder}/log.txt`))}`,
      );
    }
    await pause(30);
  }
  return JSON.parse(await Deno.readTextFile(`${folder}/place.json`)) as Place;
}

async function isAlive(): Promise<boolean> {
  using file = await openLock("alive");
  return !await file.tryLock(false);
}

/** By a shell that ends at once: what runs on is nobody's child, and no terminal's signal reaches it. */
async function startInBackground(log: string): Promise<void> {
  const program = fileURLToPath(import.meta.url);
  const command = [Deno.execPath(), "run", "-A", "--no-check", "--no-config", "--no-lock", program];
  const script = `trap '' INT HUP; log="$1"; shift; "$@" </dev/null >"$log" 2>&1 &`;
  const { success, output } = await run(["sh", "-c", script, "sh", log, ...command], { cwd: "/" });
  if (!success) throw new Error(`the shared Kafka could not be started: ${output}`);
}

function openLock(name: string): Promise<Deno.FsFile> {
  return Deno.open(`${sharedFolder()}/${name}.lock`, { create: true, read: true, write: true });
}

function sharedFolder(): string {
  return `${cacheFolder()}/kafka-${KAFKA_VERSION}-shared`;
}

/** The process in the background. */
async function serve(): Promise<void> {
  const folder = sharedFolder();
  // Let go of in the other order: whoever gets `users` must not find it alive.
  using users = await openLock("users");
  using alive = await openLock("alive");
  await alive.lock(true);
  await using cluster = await startOrTell(folder);
  const place: Place = { brokers: cluster.brokers, javaPort: await cluster.javaPort() };
  await Deno.writeTextFile(`${folder}/place.new`, JSON.stringify(place));
  await Deno.rename(`${folder}/place.new`, `${folder}/place.json`);
  await untilUnused(users, cluster);
  await Deno.remove(`${folder}/place.json`);
}

async function startOrTell(folder: string): Promise<KafkaCluster> {
  try {
    // Nobody kills this one, and on a busy machine it may be slow to show that it lives.
    return await KafkaCluster.start({ properties: { "broker.session.timeout.ms": 30_000 } });
  } catch (error) {
    await Deno.writeTextFile(`${folder}/failed.txt`, `the shared Kafka did not start: ${error}`);
    throw error;
  }
}

/** Resolves when nobody has used it for some time; holds the lock for itself then. */
async function untilUnused(users: Deno.FsFile, cluster: KafkaCluster): Promise<void> {
  let lastUse = performance.now();
  for (;;) {
    await pause(500);
    const isUnused = await users.tryLock(true);
    if (!isUnused) lastUse = performance.now();
    else if (performance.now() - lastUse >= IDLE || !cluster.isUp(1)) return;
    else await users.unlock();
  }
}

if (import.meta.main) await serve();
