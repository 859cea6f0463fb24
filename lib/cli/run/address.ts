/**
 * `HOST:PORT` on the command line.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";

/** Where to listen. */
export interface Address {
  readonly hostname: string;
  /** 0 = one that is free. */
  readonly port: number;
}

const FORM = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/;

/**
 * The address a text names: `127.0.0.1:9090`, `localhost:0`, `[::1]:9090`.
 *
 * @throws {MailerError} `usage`.
 */
export function parseAddress(text: string): Address {
  const [, v6, name, digits] = FORM.exec(text) ?? [];
  const port = Number(digits);
  if (!(port <= 65_535)) {
    throw new MailerError("usage", "expected HOST:PORT, for example 127.0.0.1:9090 or [::1]:0");
  }
  return { hostname: (v6 ?? name)!, port };
}

/** The address as it stands in a URL. */
export function addressText({ hostname, port }: Address): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}
