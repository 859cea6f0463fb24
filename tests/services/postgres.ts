/**
 * A PostgreSQL of the test's own, from the packages of the system; or the one that `DATABASE_URL` names.
 *
 * It does not wait for the disk (`fsync` is off): what was committed survives the death of the server, not that of the machine.
 *
 * @module
 */
import { cached, digestOf, isThere } from "./cache.ts";
import { freePort } from "./ports.ts";
import { Keeper, type Program, run, whereIs } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

/** How a PostgreSQL is started. */
export interface PostgresOptions {
  /** A server of the test's own even where `DATABASE_URL` is set: needed to kill it. */
  readonly own?: boolean;
  /** More settings of the server. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** A running PostgreSQL. */
export interface Postgres extends AsyncDisposable {
  /** For clients; the user may do everything. */
  readonly url: string;
  /** Runs a query by `psql`, which knows nothing of the code under test. @returns Its rows, as JSON has them. */
  rows(query: string): Promise<Record<string, unknown>[]>;
  /** Runs statements by `psql`, each in a transaction of its own. */
  execute(statements: string): Promise<void>;
  /** Kills the server, not one that `DATABASE_URL` names. */
  kill(): Promise<void>;
  /** Starts it again, with the data it had. */
  start(): Promise<void>;
  /** Ends it; its data is gone. */
  stop(): Promise<void>;
}

/** Whether one is to be used that runs already. */
export function hasExternalPostgres(): boolean {
  return externalUrl() !== undefined;
}

/** What is missing to start one, in a sentence; undefined if nothing. Looks, and starts nothing. */
export function missingPostgres(): string | undefined {
  const get = "run tests/services/install.sh, or set DATABASE_URL";
  if (binaries() === undefined) return `PostgreSQL needs its server programs (initdb, postgres): ${get}`;
  if (Deno.uid() !== 0) return undefined;
  if (whereIs("setpriv") === undefined) {
    return `PostgreSQL refuses to run as root, and there is no setpriv (util-linux): ${get}`;
  }
  if (!Deno.readTextFileSync("/etc/passwd").includes("\npostgres:")) {
    return `PostgreSQL refuses to run as root, and there is no user postgres: ${get}`;
  }
  return undefined;
}

/** A PostgreSQL: that of `DATABASE_URL`, or one that is started. */
export async function postgresService({ own = false, settings }: PostgresOptions = {}): Promise<Postgres> {
  const url = externalUrl();
  if (url === undefined || own || settings !== undefined) return await PrivatePostgres.open(settings ?? {});
  return new ExternalPostgres(url);
}

/** Makes what a start needs and is not there yet. */
export async function preparePostgres(): Promise<void> {
  await initialized(serverPrograms());
}

function serverPrograms(): string {
  const missing = missingPostgres(), folder = binaries();
  if (missing !== undefined || folder === undefined) throw new ServiceUnavailable(missing ?? "no PostgreSQL");
  return folder;
}

function externalUrl(): string | undefined {
  return Deno.env.get("DATABASE_URL") || undefined;
}

abstract class PsqlPostgres {
  abstract readonly url: string;

  async rows(query: string): Promise<Record<string, unknown>[]> {
    const text = await this.#psql(`select coalesce(json_agg(q), '[]') from (${query}) q`);
    return JSON.parse(text) as Record<string, unknown>[];
  }

  async execute(statements: string): Promise<void> {
    await this.#psql(statements);
  }

  async #psql(input: string): Promise<string> {
    const folder = binaries(), program = folder === undefined ? "psql" : `${folder}/psql`;
    const args = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", this.url, "-f", "-"];
    const { success, stdout, output } = await run([program, ...args], { input });
    if (!success) throw new Error(`psql: ${output.trim()}`);
    return stdout;
  }
}

class ExternalPostgres extends PsqlPostgres implements Postgres {
  constructor(readonly url: string) {
    super();
  }

  kill(): Promise<void> {
    return Promise.reject(
      new Error("the server of DATABASE_URL is not killed: ask for one with `own: true`"),
    );
  }

  start(): Promise<void> {
    return Promise.reject(
      new Error("the server of DATABASE_URL is not started: ask for one with `own: true`"),
    );
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

class PrivatePostgres extends PsqlPostgres implements Postgres {
  readonly url: string;
  readonly #port = freePort();
  #program: Program | undefined;

  private constructor(
    private readonly keeper: Keeper,
    private readonly folder: string,
    private readonly settings: Readonly<Record<string, string | number>>,
  ) {
    super();
    this.url = `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  static async open(settings: Readonly<Record<string, string | number>>): Promise<PrivatePostgres> {
    const folder = serverPrograms();
    const template = await initialized(folder);
    const keeper = await Keeper.open("postgres");
    try {
      await succeed(["cp", "-a", `${template}/data`, `${keeper.folder}/data`]);
      const server = new PrivatePostgres(keeper, folder, settings);
      await server.start();
      return server;
    } catch (error) {
      await keeper[Symbol.asyncDispose]();
      throw error;
    }
  }

  async kill(): Promise<void> {
    await this.#program?.end("SIGKILL");
  }

  async start(): Promise<void> {
    if (this.#program !== undefined && !this.#program.hasEnded) throw new Error("PostgreSQL runs already");
    const deadline = performance.now() + 30_000;
    for (;;) {
      const program = this.#program = this.keeper.start(this.#command(), { name: "postgres" });
      try {
        return await program.ready(async () => (await program.log()).includes("ready to accept connections"));
      } catch (error) {
        // After a kill the server's other processes take a moment to notice.
        const isTooEarly = program.hasEnded &&
          /pre-existing shared memory|lock file/.test(await program.log());
        if (!isTooEarly || performance.now() > deadline) throw error;
      }
    }
  }

  async stop(): Promise<void> {
    await this.#program?.end("SIGQUIT"); // at once: its data goes too
    await this.keeper[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #command(): string[] {
    const settings = {
      listen_addresses: "127.0.0.1",
      port: this.#port,
      unix_socket_directories: "",
      dynamic_shared_memory_type: "mmap", // in its folder, so that a killed one leaves nothing
      max_prepared_transactions: 20,
      fsync: "off",
      ...this.settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return asPostgres([`${this.folder}/postgres`, "-D", `${this.keeper.folder}/data`, ...options]);
  }
}

/** Where the newest server programs are. */
function binaries(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = isThere(root) ? [...Deno.readDirSync(root)].map(({ name }) => name) : [];
  const folders = versions.toSorted((a, b) => Number(b) - Number(a)).map((version) =>
    `${root}/${version}/bin`
  );
  const onPath = whereIs("initdb")?.replace(/\/initdb$/, "");
  if (onPath !== undefined) folders.push(onPath);
  return folders.find((folder) => isThere(`${folder}/initdb`) && isThere(`${folder}/postgres`));
}

/** The data of a new server, in the cache. */
function initialized(binaries: string): Promise<string> {
  const path = Deno.realPathSync(`${binaries}/postgres`), { size, mtime } = Deno.statSync(path);
  return cached(`postgres-data-${digestOf(path, String(size), String(mtime?.getTime()))}`, async (folder) => {
    await using keeper = await Keeper.open("postgres");
    const work = `${keeper.folder}/work`;
    await Deno.mkdir(work);
    if (Deno.uid() === 0) await succeed(["chown", "postgres:postgres", work]);
    const options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
    await succeed(asPostgres([`${binaries}/initdb`, "-D", `${work}/data`, ...options]), keeper.folder);
    await succeed(["cp", "-a", `${work}/data`, `${folder}/data`]);
  });
}

/** It refuses to run as root. */
function asPostgres(command: readonly string[]): string[] {
  if (Deno.uid() !== 0) return [...command];
  return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", ...command];
}

async function succeed(command: readonly string[], cwd = "/"): Promise<void> {
  const { success, output } = await run(command, { cwd });
  if (!success) {
    throw new ServiceUnavailable(`PostgreSQL cannot be had: ${command.join(" ")} failed:`, output);
  }
}
