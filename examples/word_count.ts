/**
 * Counts words: a row with the new count for every word that comes in.
 *
 * deno run -A examples/word_count.ts
 */
import { createEnv } from "@mailer/core";
import { stdoutSink } from "@mailer/core/connectors/stdio";

const env = createEnv({ name: "word-count" });
env
  .fromReadable(ReadableStream.from(["hello", "mailer", "hello"]))
  .keyBy((word) => word)
  .reduce((count: number | undefined) => (count ?? 0) + 1)
  .map((count, { key }) => ({ word: key, count }))
  .toSink(stdoutSink());
await env.execute();
