/**
 * Small types the protocol and the client share.
 *
 * @module
 */
import type { Headers } from "../../../lib/record.ts";

/** How a batch is compressed. */
export type Codec = "none" | "gzip" | "snappy" | "lz4" | "zstd";

/** One record as it is written or read. `null` and empty are two things, for keys and for values. */
export interface KafkaRecord {
  /** Key; null = none. */
  readonly key: Uint8Array | null;
  /** Value; null = a tombstone in a compacted topic. */
  readonly value: Uint8Array | null;
  /** Milliseconds since the epoch; may be negative. */
  readonly timestamp: number;
  /** Headers in order; names may repeat. */
  readonly headers?: Headers | undefined;
}
