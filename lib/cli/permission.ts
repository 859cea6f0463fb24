/**
 * What Deno does not let the program do, as an error that says so and how it is allowed.
 *
 * @module
 */
import { MailerError } from "../errors.ts";

/** As Deno writes it, in errors of several classes. */
const REFUSED = /^Requires (\w+ access(?: to .*)?), run again with the (--allow-[\w-]+) flag$/s;

/** The error `not_permitted` for a refusal of Deno; `undefined` where that is not what was thrown. */
export function refusalOf(thrown: unknown): MailerError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if (thrown instanceof MailerError) return thrown.code === "not_permitted" ? thrown : undefined;
  const [, what, flag] = REFUSED.exec(thrown.message) ?? [];
  if (what === undefined) return undefined;
  return new MailerError("not_permitted", `${what} is not permitted`, {
    hint: `start deno with ${flag}, or with -A`,
    cause: thrown,
  });
}

/** What `look` gives; what Deno refuses comes as `not_permitted`. */
export function permitted<T>(look: () => T): T {
  try {
    return look();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}
