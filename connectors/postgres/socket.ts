/**
 * The way to a server: a connection, encrypted where the connection URL says so.
 *
 * K1 Addresses are tried in their order; what the last one answers is the error.
 * K2 Encryption is agreed on here, before the client gets the connection, so that the deadline covers it.
 *
 * @module
 */
import type { Socket } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import { asError, MailerError } from "../../lib/errors.ts";
import { databaseError, timedOut } from "./database_error.ts";
import { type Address, nameOf, type Server } from "./server.ts";

/** What a session needs besides its server. */
export interface SessionOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Longest time for a query, or for connecting, ms. */
  readonly queryTimeout: number;
}

/**
 * A connection to the first address that takes one.
 *
 * @throws {DatabaseError} `postgres_connection`, `postgres_timeout`; `postgres_encryption` where the two cannot agree on it.
 */
export async function connectTo(server: Server, options: SessionOptions): Promise<Socket> {
  let failed: unknown;
  for (const address of server.addresses) {
    try {
      return await within(options, address, (signal) => open(server, address, signal));
    } catch (error) {
      options.signal.throwIfAborted();
      failed = error;
    }
  }
  throw databaseError(server.name, failed);
}

/** What `work` gives, unless the deadline or an abort comes first: then its signal fires. */
async function within<T>(
  { clock, signal, queryTimeout }: SessionOptions,
  address: Address,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const end = new AbortController(), onAbort = () => end.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const alarm = clock.schedule(queryTimeout, () => {
    end.abort(timedOut(nameOf(address), "connecting", queryTimeout));
  });
  try {
    return await work(end.signal);
  } finally {
    alarm.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

async function open(server: Server, address: Address, signal: AbortSignal): Promise<Socket> {
  const { connect } = await import("node:net");
  const socket = connect({ ...address, noDelay: true });
  await settled(socket, "connect", signal);
  if (server.encryption === "disable") return socket;
  // "SSLRequest": its length, and a number that is no version of the protocol.
  socket.write(Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47));
  const [answer] = await settled(socket, "data", signal) as [Uint8Array];
  if (answer[0] === 0x53) return await encrypted(server, socket, address, signal);
  if (server.encryption === "prefer") return socket;
  socket.destroy();
  throw refused(
    server,
    "the server does not encrypt connections",
    "set ssl = on at the server, or sslmode=disable",
  );
}

async function encrypted(
  { encryption, authority, name }: Server,
  socket: Socket,
  address: Address,
  signal: AbortSignal,
): Promise<Socket> {
  const { connect } = await import("node:tls"), { isIP } = await import("node:net");
  const host = "host" in address ? address.host : "localhost";
  const secure = connect({
    socket,
    ...(isIP(host) === 0 ? { servername: host } : { host }),
    ...(encryption === "verify-full" ? {} : { rejectUnauthorized: false }),
    ...(authority === undefined ? {} : { ca: await authorityIn(authority) }),
  });
  try {
    await settled(secure, "secureConnect", signal);
  } catch (error) {
    socket.destroy();
    if (signal.aborted) throw error;
    const hint = "see the certificate of the server, and sslrootcert";
    throw refused({ name }, `the connection cannot be encrypted: ${asError(error).message}`, hint);
  }
  return secure;
}

async function authorityIn(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) throw cause;
    throw new MailerError("invalid_dsn", `postgres: sslrootcert "${path}" cannot be read`, {
      cause,
      lasting: true,
    });
  }
}

function refused({ name }: Pick<Server, "name">, what: string, hint: string): MailerError {
  return new MailerError("postgres_encryption", `postgres at ${name}: ${what}`, { lasting: true, hint });
}

/** What comes with an event of a socket. The socket is given up where an error or the signal comes first. */
function settled(socket: Socket, event: string, signal: AbortSignal): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const end = (error: unknown) => {
      clear();
      socket.on("error", () => {}); // it is given up: what else it says is of no interest
      socket.destroy();
      reject(error);
    };
    const onEvent = (...values: unknown[]) => {
      clear();
      resolve(values);
    };
    const onClose = () => end(new Error("the connection was closed"));
    const onAbort = () => end(signal.reason);
    const clear = () => {
      socket.removeListener(event, onEvent);
      socket.removeListener("error", end);
      socket.removeListener("close", onClose);
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) return end(signal.reason);
    socket.once(event, onEvent);
    socket.once("error", end);
    socket.once("close", onClose);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
