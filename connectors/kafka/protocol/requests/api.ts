/**
 * What a kind of request is: its number, the version that is spoken, and how question and answer are written.
 *
 * @module
 */
import type { WireReader, WireWriter } from "../wire.ts";

/** One kind of request. */
export interface Api<Question, Answer> {
  /** Its number. */
  readonly key: number;
  /** Its name, for errors. */
  readonly name: string;
  /** The version spoken. */
  readonly version: number;
  /** Whether this version has tagged fields, also in the header. */
  readonly flexible?: true;
  /** Writes the question. */
  write(to: WireWriter, question: Question): void;
  /** Reads the answer. */
  read(from: WireReader): Answer;
}

/** An answer that is asked to wait before the next question, ms. */
export interface Throttled {
  /** For how long. */
  readonly throttleMs: number;
}

/** Groups entries by topic, in order of first appearance: most requests are nested like that. */
export function byTopic<T extends { readonly topic: string }>(
  entries: readonly T[],
): [topic: string, entries: T[]][] {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const group = groups.get(entry.topic);
    if (group === undefined) groups.set(entry.topic, [entry]);
    else group.push(entry);
  }
  return [...groups];
}
