/**
 * Connection URLs: `postgres://user:password@host:5432/database?sslmode=require`.
 *
 * U1 The URL is read here and nowhere else; what is thrown of it never has the URL in it.
 * U2 What the URL leaves out (user, password, database) the client takes from `PGUSER`, `PGPASSWORD` and `PGDATABASE`, else the user
 *    is that of the operating system.
 *
 * @module
 */
import { MailerError } from "../../lib/errors.ts";

/** How the connection is encrypted: as `sslmode` of the URL says. */
export type Encryption = "disable" | "prefer" | "require" | "verify-full";

/** Where a server is, and who wants in. */
export interface Server {
  /** For people: hosts and database. */
  readonly name: string;
  /** Tried in their order. */
  readonly addresses: readonly Address[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly encryption: Encryption;
  /** File of the authority whose certificates are trusted; undefined: those the system trusts. */
  readonly authority: string | undefined;
  /** What the server shows of us in `pg_stat_activity`. */
  readonly applicationName: string;
  /** Settings of the session, as in `options=-c search_path=app`. */
  readonly settings: string | undefined;
}

/** A host and its port, or the path of a socket. */
export type Address = { readonly host: string; readonly port: number } | { readonly path: string };

const MODES: Readonly<Record<string, Encryption>> = {
  disable: "disable",
  allow: "prefer",
  prefer: "prefer",
  require: "require",
  "verify-ca": "verify-full",
  "verify-full": "verify-full",
};
const KNOWN = ["sslmode", "sslrootcert", "application_name", "options", "host"];
/** What other programs look at and has no meaning here. */
const IGNORED = ["channel_binding", "connect_timeout", "target_session_attrs", "gssencmode"];
const SHAPE = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/**
 * Reads a connection URL.
 *
 * @throws {MailerError} `invalid_dsn`; the message says what is wrong with it and shows nothing of it but names of parameters.
 */
export function parseDsn(dsn: string): Server {
  const [, login = "", hosts = "", path = "", query = ""] = SHAPE.exec(dsn) ?? fail("it is no such URL");
  const [user = "", password] = split(login, ":");
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (KNOWN.includes(name) || IGNORED.includes(name)) continue;
    fail(`parameter ${JSON.stringify(name)} is not known: there are ${KNOWN.join(", ")}`);
  }
  const mode = parameters.get("sslmode") ?? "disable";
  if (!Object.hasOwn(MODES, mode)) fail(`sslmode is one of: ${Object.keys(MODES).join(", ")}`);
  const addresses = addressesOf(parameters.get("host") ?? decode(hosts));
  const database = decode(path);
  return {
    name: `${addresses.map(nameOf).join(",")}${database === "" ? "" : `/${database}`}`,
    addresses,
    user: user === "" ? undefined : decode(user),
    password: password === undefined || password === "" ? undefined : decode(password),
    database: database === "" ? undefined : database,
    encryption: MODES[mode]!,
    authority: parameters.get("sslrootcert") ?? undefined,
    applicationName: parameters.get("application_name") ?? "mailer",
    settings: parameters.get("options") ?? undefined,
  };
}

/** For people. */
export function nameOf(address: Address): string {
  if ("path" in address) return address.path;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

function addressesOf(hosts: string): Address[] {
  return (hosts === "" ? "localhost" : hosts).split(",").map((one) => {
    if (one.startsWith("/")) return { path: `${one}/.s.PGSQL.5432` };
    const [, bracketed, plain, port = "5432"] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(one) ??
      fail("a host is a name or an address, with :port behind it where it is not 5432");
    const number = Number(port);
    if (number < 1 || number > 65535) fail("a port is a number from 1 to 65535");
    return { host: bracketed ?? (plain === "" || plain === undefined ? "localhost" : plain), port: number };
  });
}

/** The text in front of and behind the first `separator`; the second is missing where there is none. */
function split(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return fail("a % in it is not followed by two hexadecimal digits"); // U1: the cause would show the text
  }
}

function fail(what: string): never {
  throw new MailerError("invalid_dsn", `postgres: dsn is not a connection URL: ${what}`, {
    hint: "write it like postgres://user:password@host:5432/database, odd characters of it as %xx",
  });
}
