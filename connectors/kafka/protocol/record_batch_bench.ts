/**
 * What encoding and decoding batches costs: 1,000 records of about 150 bytes with a key. `deno bench -A connectors/kafka`.
 *
 * @module
 */
import { PLAIN_STAMP, RecordBatchBuilder } from "./record_batch_builder.ts";
import { decodeRecordSet } from "./record_set.ts";
import type { Codec } from "./types.ts";

const TEXTS = Array.from({ length: 1000 }, (_, i) => {
  return JSON.stringify({ id: i, user: `user-${i % 97}`, amount: i * 1.25, note: "x".repeat(100) });
});
const encoder = new TextEncoder();
const VALUES = TEXTS.map((text) => encoder.encode(text));
const KEYS = TEXTS.map((_, i) => encoder.encode(`user-${i % 97}`));

function encode(values: readonly (string | Uint8Array)[], codec: Codec): Uint8Array {
  const builder = new RecordBatchBuilder(200_000);
  for (let i = 0; i < values.length; i++) builder.append(KEYS[i]!, values[i]!, 1_700_000_000_000 + i);
  return builder.encode({ ...PLAIN_STAMP, codec });
}

Deno.bench("encode 1,000 records from texts", () => {
  encode(TEXTS, "none");
});

for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
  const batch = encode(VALUES, codec).slice();
  Deno.bench(`encode 1,000 records, ${codec}`, () => {
    encode(VALUES, codec);
  });
  Deno.bench(`decode 1,000 records, ${codec}`, () => {
    decodeRecordSet(batch, { fetchOffset: 0, aborted: [] });
  });
}
