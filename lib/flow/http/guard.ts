/**
 * Who may call.
 *
 * G1 With a token only who has it; it is compared in constant time. Without one only programs on this machine, and only by a name of
 *    this machine: a page that has its own name point here gets nothing.
 *
 * @module
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { MailerError } from "../../errors.ts";

/** Lets calls in. */
export interface Guard {
  /** @throws {MailerError} `unauthorized`. */
  check(request: Request, remote: string): void;
}

/** A guard for a token, or for this machine. */
export function guardOf(token: string | undefined): Guard {
  return token === undefined ? { check: checkLocal } : { check: tokenCheck(token) };
}

function tokenCheck(token: string): Guard["check"] {
  const expected = digest(token);
  return (request) => {
    const given = /^Bearer +(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return;
    throw new MailerError(
      "unauthorized",
      given === undefined ? "no token came with the call" : "the token is another",
      {
        hint: "send the header authorization: Bearer TOKEN",
      },
    );
  };
}

/** Digests are of one length, whatever was given. */
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

function checkLocal(request: Request, remote: string): void {
  const { hostname } = new URL(request.url);
  if (isLoopback(remote) && isLoopback(hostname)) return;
  throw new MailerError("unauthorized", "without a token only programs on this machine are served", {
    hint: "start the server with a token, or call it as 127.0.0.1 or localhost",
  });
}

/** Whether an address or name is this machine's own. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(bare);
}
