/**
 * Faults of the network: toxiproxy, built from the Go module proxy, in the cache.
 *
 * @module
 */
import { cached, isCached } from "./cache.ts";
import { freePort } from "./ports.ts";
import { Keeper, run, whereIs } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

const VERSION = "v2.5.0";
const FOLDER = `toxiproxy-${VERSION}-${Deno.build.os}-${Deno.build.arch}`;

/** What is missing, in a sentence; undefined if nothing. Looks, and starts nothing. */
export function missingToxiproxy(): string | undefined {
  if (isCached(FOLDER) || whereIs("go") !== undefined) return undefined;
  return `toxiproxy ${VERSION} needs go on the PATH to be built: run tests/services/install.sh`;
}

/** The path of the server; builds it where it is not there yet, which takes half a minute. */
export async function toxiproxyProgram(): Promise<string> {
  const missing = missingToxiproxy();
  if (missing !== undefined) throw new ServiceUnavailable(missing);
  const folder = await cached(FOLDER, async (folder) => {
    const command = ["go", "install", `github.com/Shopify/toxiproxy/v2/cmd/server@${VERSION}`];
    const { success, output } = await run(command, { env: { GOBIN: folder } });
    if (!success) throw new ServiceUnavailable(`toxiproxy ${VERSION} could not be built:`, output);
  });
  return `${folder}/server`;
}

/** What happens to bytes on their way. */
export type Toxic =
  /** All bytes come so many ms later. */
  | { readonly type: "latency"; readonly latency: number; readonly jitter?: number }
  /** Nothing comes through; the connection is closed after so many ms, never if 0. */
  | { readonly type: "timeout"; readonly timeout: number }
  /** The connection is reset after so many ms. */
  | { readonly type: "reset_peer"; readonly timeout: number }
  /** So many KB a second. */
  | { readonly type: "bandwidth"; readonly rate: number }
  /** The connection is closed after so many bytes. */
  | { readonly type: "limit_data"; readonly bytes: number }
  /** Bytes come in pieces. */
  | {
    readonly type: "slicer";
    readonly average_size: number;
    readonly size_variation?: number;
    /** Between pieces, in µs. */
    readonly delay?: number;
  };

/** Where a toxic works. */
export interface ToxicPlace {
  /** Default `downstream`: answers of the server. */
  readonly stream?: "downstream" | "upstream";
  /** Share of connections, 0 to 1; default 1. */
  readonly toxicity?: number;
}

/** A port that passes all on to a server. */
export class Proxy {
  /** Made by a `Toxiproxy`. */
  constructor(private readonly url: string, readonly name: string, readonly port: number) {}

  /** `host:port` for clients. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Adds a fault, to open connections too. @returns What removes it. */
  async add(
    toxic: Toxic,
    { stream = "downstream", toxicity = 1 }: ToxicPlace = {},
  ): Promise<() => Promise<void>> {
    const { type, ...attributes } = toxic;
    const name = `${type}-${crypto.randomUUID().slice(0, 8)}`;
    await ask("POST", `${this.url}/toxics`, { name, type, stream, toxicity, attributes });
    return () => ask("DELETE", `${this.url}/toxics/${name}`);
  }

  /** Closes all connections and refuses new ones. */
  async cut(): Promise<void> {
    await ask("POST", this.url, { enabled: false });
  }

  /** Takes connections again. */
  async mend(): Promise<void> {
    await ask("POST", this.url, { enabled: true });
  }
}

/** A running toxiproxy. */
export class Toxiproxy implements AsyncDisposable {
  readonly #proxies: Proxy[] = [];

  private constructor(private readonly keeper: Keeper, private readonly url: string) {}

  /** Starts one. */
  static async start(): Promise<Toxiproxy> {
    const program = await toxiproxyProgram();
    const keeper = await Keeper.open("toxiproxy");
    try {
      const port = freePort(), url = `http://127.0.0.1:${port}`;
      const server = keeper.start([program, "-host", "127.0.0.1", "-port", String(port)], {
        name: "toxiproxy",
      });
      await server.ready(() => isUp(url));
      return new Toxiproxy(keeper, url);
    } catch (error) {
      await keeper[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** All proxies there are. */
  get proxies(): readonly Proxy[] {
    return this.#proxies;
  }

  /** Opens a port in front of a server. @param upstream Its port on 127.0.0.1. @param port Default: a free one. */
  async open(name: string, upstream: number, port: number = freePort()): Promise<Proxy> {
    const listen = `127.0.0.1:${port}`;
    await ask("POST", `${this.url}/proxies`, {
      name,
      listen,
      upstream: `127.0.0.1:${upstream}`,
      enabled: true,
    });
    const proxy = new Proxy(`${this.url}/proxies/${name}`, name, port);
    this.#proxies.push(proxy);
    return proxy;
  }

  /** Removes all toxics and mends what was cut. */
  async reset(): Promise<void> {
    await ask("POST", `${this.url}/reset`);
  }

  /** Ends it, and with it all connections. */
  async stop(): Promise<void> {
    await this.keeper[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Starts a toxiproxy of the test's own. */
export function toxiproxy(): Promise<Toxiproxy> {
  return Toxiproxy.start();
}

async function isUp(url: string): Promise<boolean> {
  try {
    await ask("GET", `${url}/version`);
    return true;
  } catch (error) {
    if (error instanceof TypeError) return false; // no connection yet
    throw error;
  }
}

async function ask(method: string, url: string, body?: unknown): Promise<void> {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`toxiproxy: ${method} ${url}: ${response.status} ${text}`);
}
