/**
 * A broker that answers what a test tells it to: for answers no real one can be made to give.
 *
 * @module
 */
import { WireReader, WireWriter } from "../protocol/wire.ts";

/** A request as it came. */
export interface FakeRequest {
  /** Number of the kind of request. */
  readonly key: number;
  /** Its body. */
  readonly body: WireReader;
}

/** Writes an answer; returns false to leave the request without one, or `close` to end the connection. */
export type FakeAnswer = (request: FakeRequest, to: WireWriter) => void | false | "close";

const API_VERSIONS = 18;
const METADATA = 3;

/** A broker on a free port. */
export class FakeBroker implements AsyncDisposable {
  /** Numbers of the requests that came, in order, without those that open a connection. */
  readonly requests: number[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #connections = new Set<Deno.Conn>();
  readonly #serving: Promise<void>;
  readonly #answer: FakeAnswer;

  /** @param answer What it says to everything but the versions it speaks, which are all. */
  constructor(answer: FakeAnswer) {
    this.#answer = answer;
    this.#serving = this.#serve();
  }

  /** Its port. */
  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** `host:port`. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async #serve(): Promise<void> {
    const all: Promise<void>[] = [];
    for await (const connection of this.#listener) {
      this.#connections.add(connection);
      all.push(this.#talk(connection));
    }
    await Promise.all(all);
  }

  async #talk(connection: Deno.Conn): Promise<void> {
    try {
      while (await this.#exchange(connection));
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    if (this.#connections.delete(connection)) connection.close();
  }

  /** One request with its answer; false ends the connection. */
  async #exchange(connection: Deno.Conn): Promise<boolean> {
    const size = await readFully(connection, 4);
    const body = new WireReader(await readFully(connection, new WireReader(size).int32()));
    const key = body.int16();
    body.int16();
    const answer = new WireWriter().int32(body.int32());
    body.nullableString();
    const said = key === API_VERSIONS ? versions(answer) : this.#say({ key, body }, answer);
    if (said === "close") return false;
    if (said === false) return true;
    const bytes = answer.finish();
    await writeFully(connection, new WireWriter().int32(bytes.length).raw(bytes).finish());
    return true;
  }

  #say(request: FakeRequest, to: WireWriter): void | false | "close" {
    this.requests.push(request.key);
    return this.#answer(request, to);
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of [...this.#connections]) {
      this.#connections.delete(connection);
      connection.close();
    }
    await this.#serving;
  }
}

/** An answer to a metadata request: this broker leads every partition of one topic. */
export function answerMetadata(to: WireWriter, port: number, topic: string, partitions: number): void {
  to.int32(0);
  to.array([1], (id) => to.int32(id).string("127.0.0.1").int32(port).nullableString(undefined));
  to.nullableString(undefined).int32(1);
  to.array([topic], (name) => {
    to.int16(0).string(name).bool(false);
    to.array(Array.from({ length: partitions }, (_, i) => i), (partition) => {
      to.int16(0).int32(partition).int32(1).int32(0).array([1], (id) => to.int32(id));
      to.array([1], (id) => to.int32(id)).array([], () => {});
    });
  });
}

/** Whether a request asks for metadata. */
export const isMetadata = ({ key }: FakeRequest): boolean => key === METADATA;

function versions(to: WireWriter): void {
  to.int16(0).array(Array.from({ length: 70 }, (_, i) => i), (key) => to.int16(key).int16(0).int16(30)).int32(
    0,
  );
}

async function readFully(connection: Deno.Conn, bytes: number): Promise<Uint8Array> {
  const all = new Uint8Array(bytes);
  for (let at = 0; at < bytes;) {
    const read = await connection.read(all.subarray(at));
    if (read === null) throw new Deno.errors.UnexpectedEof();
    at += read;
  }
  return all;
}

async function writeFully(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

const GONE = [
  Deno.errors.UnexpectedEof,
  Deno.errors.BadResource,
  Deno.errors.Interrupted,
  Deno.errors.ConnectionReset,
  Deno.errors.BrokenPipe,
];

const isGone = (error: unknown): boolean => GONE.some((kind) => error instanceof kind);
