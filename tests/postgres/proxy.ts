/**
 * A way to a server that loses what it is told to lose.
 *
 * @module
 */

/** What happens to the statement that contains a text, once. */
export interface Accident {
  /** Looked for in what the client sends. */
  readonly at: string;
  /** Whether the server still gets it. */
  readonly arrives: boolean;
}

/** A proxy on 127.0.0.1. */
export class Proxy implements AsyncDisposable {
  /** Connections that were made so far. */
  connections = 0;
  /** Set: nothing gets through any more, and nobody is told. */
  isHole = false;
  /** Set: the connection is cut at this place. */
  accident: Accident | undefined;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #target: URL;
  readonly #open = new Set<Deno.Conn>();
  readonly #work: Promise<void>[] = [];

  /** @param url Of the server. */
  constructor(url: string) {
    this.#target = new URL(url);
    this.#work.push(this.#accept());
  }

  /** For clients. */
  get url(): string {
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String((this.#listener.addr as Deno.NetAddr).port);
    return url.href;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const one of this.#open) close(one);
    this.#open.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    close(this.#listener);
    this.cut();
    for (let at = 0; at < this.#work.length; at++) await this.#work[at];
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      this.connections++;
      this.#open.add(client);
      const { hostname, port } = this.#target;
      const server = await Deno.connect({ hostname, port: Number(port || 5432) }).catch(() => undefined);
      if (server === undefined) {
        close(client);
        continue;
      }
      this.#open.add(server);
      this.#work.push(this.#pump(client, server, true), this.#pump(server, client, false));
    }
  }

  async #pump(from: Deno.Conn, to: Deno.Conn, isClient: boolean): Promise<void> {
    const buffer = new Uint8Array(1 << 16), decoder = new TextDecoder("latin1");
    try {
      for (let read = await from.read(buffer); read !== null; read = await from.read(buffer)) {
        if (this.isHole) continue;
        const bytes = buffer.subarray(0, read), { accident } = this;
        if (isClient && accident !== undefined && decoder.decode(bytes).includes(accident.at)) {
          this.accident = undefined;
          close(from);
          if (accident.arrives) await writeAll(to, bytes);
          continue;
        }
        await writeAll(to, bytes);
      }
    } catch {
      // one of the two is gone
    }
    if (this.isHole) return; // a hole closes nothing
    close(from);
    close(to);
  }
}

async function writeAll(to: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
}

function close(one: { close(): void }): void {
  try {
    one.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error; // closed already
  }
}
