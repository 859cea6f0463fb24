/**
 * What is said where a server cannot be had.
 *
 * @module
 */

/** A server cannot be had on this machine; the message says which, why, and how to get it. */
export class ServiceUnavailable extends Error {
  /** @param why What went wrong. @param output What the program that failed has printed; its end is shown. */
  constructor(why: string, output = "") {
    super(output === "" ? why : `${why}\n${lastLines(output)}`);
    this.name = "ServiceUnavailable";
  }
}

/** The end of an output: where it says why. */
export function lastLines(text: string, count = 25): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}
