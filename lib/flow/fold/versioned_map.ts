/**
 * Maps whose every version stays readable, at the price of one: the newest version owns the entries, each older one
 * only knows what has to be undone to get back to it (Baker 1991, "Shallow binding makes functional arrays fast").
 *
 * V1 A version never changes, whoever else goes on from it.
 * V2 Going on from the version used last costs O(1). Reading another one costs as many steps as lie between the two.
 * V3 Entries come in the order of their keys as texts, or as numbers where all keys are digits; never in the order they
 *    were set, which versions do not keep.
 *
 * @module
 */
import { setOwn } from "../../value.ts";

/** What this version has and the next one does not. */
interface Difference<V> {
  readonly key: string;
  readonly had: boolean;
  readonly value: V | undefined;
  readonly next: VersionedMap<V>;
}

/** One version of a map with keys of text. */
export class VersionedMap<V> {
  /** Number of entries. */
  readonly size: number;
  /** The entries, where this is the version that owns them. */
  #entries: Record<string, V> | undefined;
  #difference: Difference<V> | undefined;

  private constructor(entries: Record<string, V> | undefined, size: number) {
    this.#entries = entries;
    this.size = size;
  }

  /** A map without entries. */
  static empty<V>(): VersionedMap<V> {
    return new VersionedMap<V>({}, 0);
  }

  /** A map of the own properties of an object. */
  static of<V>(record: Readonly<Record<string, V>>): VersionedMap<V> {
    const keys = Object.keys(record), entries: Record<string, V> = {};
    for (const key of keys) setOwn(entries, key, record[key]);
    return new VersionedMap<V>(entries, keys.length);
  }

  /** The value of a key; `undefined` where there is none. */
  get(key: string): V | undefined {
    const entries = this.#current();
    return Object.hasOwn(entries, key) ? entries[key] : undefined;
  }

  /** Whether there is an entry. */
  has(key: string): boolean {
    return Object.hasOwn(this.#current(), key);
  }

  /** A version with the entry. */
  set(key: string, value: V): VersionedMap<V> {
    const entries = this.#current(), had = Object.hasOwn(entries, key);
    const before = had ? entries[key] : undefined;
    if (had && before === value) return this;
    setOwn(entries, key, value);
    return this.#handOver({ key, had, value: before }, this.size + (had ? 0 : 1));
  }

  /** A version without the entry. */
  delete(key: string): VersionedMap<V> {
    const entries = this.#current();
    if (!Object.hasOwn(entries, key)) return this;
    const value = entries[key];
    delete entries[key];
    return this.#handOver({ key, had: true, value }, this.size - 1);
  }

  /** The keys, in order (V3). */
  keys(): string[] {
    return Object.keys(this.#current()).sort(compareKeys);
  }

  /** The values, in the order of their keys. */
  values(): V[] {
    const entries = this.#current();
    return this.keys().map((key) => entries[key]!);
  }

  /** Any one value; `undefined` in an empty map. */
  any(): V | undefined {
    const entries = this.#current();
    for (const key in entries) return entries[key];
    return undefined;
  }

  /** Entries as an object of their own, in order. */
  toObject(): Record<string, V> {
    const entries = this.#current(), copy: Record<string, V> = {};
    for (const key of this.keys()) setOwn(copy, key, entries[key]);
    return copy;
  }

  /**
   * The entries themselves, for a look at once: they are those of another version as soon as that is touched, and must
   * not be kept or changed.
   */
  peek(): Readonly<Record<string, V>> {
    return this.#current();
  }

  #handOver(change: Omit<Difference<V>, "next">, size: number): VersionedMap<V> {
    const next = new VersionedMap<V>(this.#entries, size);
    this.#entries = undefined;
    this.#difference = { ...change, next };
    return next;
  }

  /** The entries of this version, taken over from the one that owns them. */
  #current(): Record<string, V> {
    if (this.#entries !== undefined) return this.#entries;
    const path: VersionedMap<V>[] = [this];
    let owner = this.#difference!.next;
    for (; owner.#entries === undefined; owner = owner.#difference!.next) path.push(owner);
    for (let version = path.pop(); version !== undefined; version = path.pop()) {
      version.#takeOver(owner);
      owner = version;
    }
    return this.#entries!;
  }

  /** Makes this the owner, where `owner` is the next version. */
  #takeOver(owner: VersionedMap<V>): void {
    const entries = owner.#entries!, { key, had, value } = this.#difference!;
    const hadThere = Object.hasOwn(entries, key);
    owner.#difference = { key, had: hadThere, value: hadThere ? entries[key] : undefined, next: this };
    owner.#entries = undefined;
    if (had) setOwn(entries, key, value);
    else delete entries[key];
    this.#entries = entries;
    this.#difference = undefined;
  }
}

const DIGITS = /^\d+$/;

/** The order of keys: `node#2` before `node#10`, texts by their units else. */
export function compareKeys(a: string, b: string): number {
  const x = split(a), y = split(b);
  if (x.text !== y.text) return x.text < y.text ? -1 : 1;
  return x.number - y.number;
}

/** A key, or what stands in front of its `#` and the number behind it. */
function split(key: string): { readonly text: string; readonly number: number } {
  if (DIGITS.test(key)) return { text: "", number: Number(key) };
  const at = key.lastIndexOf("#");
  return at < 0 ? { text: key, number: -1 } : { text: key.slice(0, at), number: Number(key.slice(at + 1)) };
}
