/**
 * How much a store keeps in memory, and when it writes.
 *
 * @module
 */

/** Settings of a store; each has a default. */
export interface StateLimits {
  /** Changes, in all partitions, from which on they are written. Default 16,384. */
  readonly changes?: number;
  /** About how many bytes the changes may take. Default 4 MiB. */
  readonly changeBytes?: number;
  /** About how many bytes the cells in memory may take. Infinity: all stay there. Default 32 MiB. */
  readonly liveBytes?: number;
  /** Where no cache is given: bytes of pages kept in memory. Default 32 MiB. */
  readonly cacheBytes?: number;
  /** Bytes of a page, about. Default 8,192. */
  readonly pageBytes?: number;
  /** How many runs become one. Default 24. */
  readonly fanIn?: number;
}

/** Limits with nothing left out. */
export function completeLimits(limits: StateLimits): Required<StateLimits> {
  const MiB = 2 ** 20;
  return {
    changes: limits.changes ?? 16_384,
    changeBytes: limits.changeBytes ?? 4 * MiB,
    liveBytes: limits.liveBytes ?? 32 * MiB,
    cacheBytes: limits.cacheBytes ?? 32 * MiB,
    pageBytes: limits.pageBytes ?? 8192,
    fanIn: limits.fanIn ?? 24,
  };
}
