/**
 * Secret values of a document, and hiding them in texts.
 *
 * @module
 */

/** What stands in place of a secret. */
export const MASK = "***";

/** Collects what must never be shown. */
export class Secrets {
  readonly #values = new Set<string>();

  /**
   * Notes the text of a secret field: the whole of it, what came into it by `${…}`, and the password of a URL.
   */
  add(text: string, references: readonly string[] = []): void {
    for (const value of [text, ...references, ...passwordsOf(text)]) {
      if (value !== "") this.#values.add(value);
    }
  }

  /** All of them, longest first, so that masking one leaves no rest of a longer one. */
  list(): string[] {
    return [...this.#values].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
  }
}

/**
 * A function that hides the given values in any text. Values of less than four characters are hidden where they stand
 * as a word of their own, since they would otherwise tear every text apart (and so show where they are).
 */
export function maskOf(secrets: readonly string[]): (text: string) => string {
  const inOrder = secrets.filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
  if (inOrder.length === 0) return (text) => text;
  const pattern = new RegExp(inOrder.map(patternOf).join("|"), "g");
  return (text) => text.replace(pattern, MASK);
}

/** The password of `scheme://user:password@host`, as written and decoded. */
function passwordsOf(text: string): string[] {
  const written = /^[a-z][a-z0-9+.-]*:\/\/[^/?#:@]*:([^/?#]*)@/i.exec(text)?.[1];
  if (written === undefined) return [];
  return /%[0-9a-f]{2}/i.test(written) ? [written, decoded(written)] : [written];
}

function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = run.slice(1).split("%").map((hex) => parseInt(hex, 16));
    return new TextDecoder().decode(new Uint8Array(bytes));
  });
}

function patternOf(secret: string): string {
  const plain = escapeRegExp(secret);
  return secret.length < 4 ? `(?<!\\w)${plain}(?!\\w)` : plain;
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
