/**
 * A schema registry in the test's own process, and short ways to encode and decode.
 *
 * @module
 */
import type { Decoded, Format, PrepareContext } from "../../../lib/format/mod.ts";
import { systemClock } from "../../../lib/clock.ts";

/** What a test may say of the next answers; undefined: as a registry would answer. */
export type Instead = (request: Request) => Response | undefined | Promise<Response | undefined>;

interface Entry {
  readonly schema: string;
  readonly schemaType?: string;
  readonly references?: readonly {
    readonly name: string;
    readonly subject: string;
    readonly version: number;
  }[];
}

/** As much of Confluent's API as is needed, and no rules of compatibility. */
export class FakeRegistry implements AsyncDisposable {
  readonly url: string;
  /** Method and path of each request. */
  readonly asked: string[] = [];
  instead: Instead = () => undefined;
  readonly #schemas = new Map<number, Entry>();
  readonly #subjects = new Map<string, number[]>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #nextId: number;

  /** @param firstId Id of the first schema. */
  constructor(firstId = 1) {
    this.#nextId = firstId;
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
    this.url = `http://127.0.0.1:${this.#server.addr.port}/apis`;
  }

  /** Adds a schema. @returns Its id. */
  add(subject: string, entry: Entry): number {
    const ids = this.#subjects.get(subject) ?? [];
    const known = ids.find((id) => this.#schemas.get(id)!.schema === entry.schema);
    if (known !== undefined) return known;
    const id = this.#nextId++;
    this.#schemas.set(id, entry);
    this.#subjects.set(subject, [...ids, id]);
    return id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname.replace(/^\/apis/, "");
    this.asked.push(`${request.method} ${path}`);
    const instead = await this.instead(request);
    if (instead !== undefined) return instead;
    const byId = /^\/schemas\/ids\/(\d+)$/.exec(path);
    if (byId !== null) {
      const entry = this.#schemas.get(Number(byId[1]));
      return entry === undefined ? refused(404, 40403, "Schema not found") : Response.json(entry);
    }
    const [, name, version] = /^\/subjects\/([^/]+)(?:\/versions(?:\/(\w+))?)?$/.exec(path)!;
    const subject = decodeURIComponent(name!), ids = this.#subjects.get(subject);
    if (request.method === "GET") {
      if (ids === undefined) return refused(404, 40401, `Subject '${subject}' not found.`);
      const id = version === "latest" ? ids.at(-1)! : ids[Number(version) - 1]!;
      return Response.json({ subject, id, version: ids.indexOf(id) + 1, ...this.#schemas.get(id) });
    }
    const { schema } = await request.json() as { schema: string };
    if (path.endsWith("/versions")) return Response.json({ id: this.add(subject, { schema }) });
    if (ids === undefined) return refused(404, 40401, `Subject '${subject}' not found.`);
    const id = ids.find((id) => this.#schemas.get(id)!.schema === schema);
    return id === undefined
      ? refused(404, 40403, "Schema not found")
      : Response.json({ subject, id, schema });
  }
}

/** An answer that says no. */
export function refused(status: number, number: number, message: string): Response {
  return Response.json({ error_code: number, message }, { status });
}

/** What formats are prepared with. */
export const context = (signal: AbortSignal = new AbortController().signal): PrepareContext => ({
  clock: systemClock,
  signal,
});

/** What a new encoder makes of values. */
export async function encoded(format: Format, ...values: unknown[]): Promise<Uint8Array[]> {
  const encoder = format.encoder();
  await encoder.prepare?.(context());
  return values.map((value) => encoder.encode(value) as Uint8Array);
}

/** What a new decoder makes of payloads. */
export async function decoded(format: Format, ...payloads: (Uint8Array | string)[]): Promise<Decoded> {
  const decoder = format.decoder(), into: Decoded = { values: [], failures: [] };
  await decoder.prepare?.(payloads, context());
  decoder.decode(payloads, into);
  return into;
}
