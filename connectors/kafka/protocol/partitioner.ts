/**
 * Which partition a record goes to: as Java's default for records with a key, so that other producers of a topic agree.
 *
 * @module
 */

/** MurmurHash2 with the seed of Kafka's clients, signed. */
export function murmur2(bytes: Uint8Array): number {
  const multiplier = 0x5bd1e995;
  const length = bytes.length;
  let hash = 0x9747b28c ^ length;
  let at = 0;
  for (const last = length - 4; at <= last; at += 4) {
    let word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    word = Math.imul(word, multiplier);
    word ^= word >>> 24;
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier);
  }
  const rest = length - at;
  if (rest === 3) hash ^= bytes[at + 2]! << 16;
  if (rest >= 2) hash ^= bytes[at + 1]! << 8;
  if (rest >= 1) hash = Math.imul(hash ^ bytes[at]!, multiplier);
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}

/** The partition of a key; an empty key is a key. */
export function partitionOfKey(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}

/**
 * Partitions for the records of one topic. A key decides by itself. Records without a key stay with one partition until
 * `nextBatch`, then go to the one behind it: few large batches instead of many small ones, and over time the same number for all.
 * (Java's default picks the next one at random; which one it is has no meaning there either.)
 */
export class Partitioner {
  readonly #partitions: number;
  #current: number;

  /**
   * @param partitions Number of partitions of the topic.
   * @param first Where records without a key begin; several producers should not begin with the same.
   */
  constructor(partitions: number, first = 0) {
    if (!Number.isInteger(partitions) || partitions < 1) throw new RangeError(`partitions: ${partitions}`);
    this.#partitions = partitions;
    this.#current = Math.abs(Math.trunc(first)) % partitions;
  }

  /** The partition of a record. */
  partition(key: Uint8Array | null): number {
    return key === null ? this.#current : partitionOfKey(key, this.#partitions);
  }

  /** The batch of the current partition is full: records without a key go on with the next. */
  nextBatch(): void {
    this.#current = (this.#current + 1) % this.#partitions;
  }
}
