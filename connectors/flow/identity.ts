/**
 * Ids of executions that are worked out from what they are started for: so a repetition starts nothing new.
 *
 * @module
 */
import { createHash } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
/** So many characters of five bits. */
const LENGTH = 26;
const MOST = 128;

/**
 * Id of the execution of a flow for something that is told by `parts`: the flow's name, a letter, a hash.
 *
 * @param letter What kind of thing: `t` for a message that triggers, `r` for a record.
 */
export function derivedId(flow: string, letter: "t" | "r", parts: readonly unknown[]): string {
  const digest = createHash("sha256").update(JSON.stringify([flow, letter, ...parts])).digest();
  const suffix = `-${letter}${base32(digest)}`;
  return flow.slice(0, MOST - suffix.length) + suffix;
}

function base32(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < LENGTH; i++) {
    const bit = 5 * i, at = bit >> 3, pair = bytes[at]! << 8 | bytes[at + 1]!;
    text += ALPHABET[pair >> (11 - (bit & 7)) & 31];
  }
  return text;
}
