/**
 * Where keyed state and checkpoints are kept.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { MailerError } from "../errors.ts";
import { RESIDENT, type StateLimits } from "../state/log/mod.ts";
import type { PageStore } from "../state/pages/port.ts";

const MiB = 2 ** 20;
/** Of each operator; cells take some 300 bytes and their values. */
const PAGED: StateLimits = { changes: 131_072, changeBytes: 32 * MiB, liveBytes: 64 * MiB };

/** Where keyed state and checkpoints are kept: {@link memory}, {@link kv} or {@link sqlite}. */
export interface StateBackend {
  /** Its kind. */
  readonly type: "memory" | "kv" | "sqlite";
  /** For `describe` and `explain`. */
  describe(): Readonly<Record<string, unknown>>;
  /** @ignore How much keyed state an operator keeps in memory, and when it writes in between checkpoints. */
  readonly limits: StateLimits;
  /** @ignore Opens what one pipeline keeps. */
  open(pipeline: string, clock: Clock): Promise<PageStore>;
  /** @ignore Whether the pipeline has anything there; creates nothing. */
  exists(pipeline: string): Promise<boolean>;
}

/**
 * Keyed state in memory; checkpoints, where they are taken, are files in a folder.
 *
 * @param folder Where the checkpoints lie, one folder a pipeline. Default `./data`.
 */
export function memory(folder = "./data"): StateBackend {
  return backend("memory", folder, "checkpoints", async (path) => {
    const { openFilePages } = await import("../state/pages/files.ts");
    return await openFilePages({ path });
  });
}

/**
 * Keyed state and checkpoints in Deno KV.
 *
 * @param path A folder, one database a pipeline, or the URL of a remote database. Default `./data`.
 */
export function kv(path = "./data"): StateBackend {
  const open = async (path: string, clock: Clock, prefix?: Deno.KvKey): Promise<PageStore> => {
    const { openKvPages } = await import("../state/pages/kv.ts");
    return await openKvPages({ path, clock, ...(prefix === undefined ? {} : { prefix }) });
  };
  if (!/^https?:\/\//.test(path)) return backend("kv", path, "state.kv", open);
  return {
    type: "kv",
    limits: PAGED,
    describe: () => ({ url: path }),
    open: (pipeline, clock) => open(path, clock, ["mailer", pipeline]),
    exists: () => Promise.resolve(true),
  };
}

/**
 * Keyed state and checkpoints in SQLite; needs no unstable flag.
 *
 * @param folder One database a pipeline. Default `./data`.
 */
export function sqlite(folder = "./data"): StateBackend {
  return backend("sqlite", folder, "state.sqlite", async (path, clock) => {
    const { openSqlitePages } = await import("../state/pages/sqlite.ts");
    return openSqlitePages({ path, clock });
  });
}

function backend(
  type: StateBackend["type"],
  folder: string,
  file: string,
  open: (path: string, clock: Clock) => Promise<PageStore>,
): StateBackend {
  if (folder === "") throw new MailerError("invalid_option", `${type}: the folder has no name`);
  const folderOf = (pipeline: string): string =>
    `${folder}/${encodeURIComponent(pipeline).replaceAll(".", "%2E")}`;
  return {
    type,
    limits: type === "memory" ? RESIDENT : PAGED,
    describe: () => ({ folder }),
    async open(pipeline, clock) {
      const own = folderOf(pipeline);
      await Deno.mkdir(own, { recursive: true });
      return await open(`${own}/${file}`, clock);
    },
    async exists(pipeline) {
      try {
        await Deno.stat(`${folderOf(pipeline)}/${file}`);
        return true;
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return false;
        throw error;
      }
    },
  };
}
