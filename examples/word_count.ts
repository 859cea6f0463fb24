/**
 * Counts words: a row with the new count for every word that comes in.
 *
 * deno run -A examples/word_count.ts
 */
// deno-lint-ignore-file no-console -- rows go to stdout
import { createEnv } from "@mailer/core";

const env = createEnv({ name: "word-count" });
const rows = env
  .fromReadable(ReadableStream.from(["hello", "mailer", "hello"]))
  .keyBy((word) => word)
  .reduce((count: number | undefined) => (count ?? 0) + 1)
  .map((count, { key }) => ({ word: key, count }))
  .toReadable();

const done = env.execute();
for await (const row of rows) console.log(JSON.stringify(row));
await done;
