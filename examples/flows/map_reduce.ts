/**
 * Words of a text, counted piece by piece by executions of their own.
 *
 * deno run -A examples/flows/map_reduce.ts
 */
// deno-lint-ignore-file no-console -- it is what the example shows
import { Embedded, flowFile } from "./embedded.ts";

type Counts = Record<string, number>;

await using here = await Embedded.start([
  await flowFile("map-reduce.yaml"),
  await flowFile("count-words.yaml"),
], {
  "split-text": ({ context }) => ({ pieces: (context.input as { text: string }).text.split(". ") }),
  "count-words": ({ context }) => {
    const counts: Counts = {};
    for (const word of (context.input as { piece: string }).piece.toLowerCase().match(/\w+/g) ?? []) {
      counts[word] = (counts[word] ?? 0) + 1;
    }
    return counts;
  },
  "add-up": ({ context }) => {
    const total: Counts = {};
    // What a child flow of one task gives is what the task gave.
    for (const counts of context.results["map"] as Counts[]) {
      for (const [word, n] of Object.entries(counts)) total[word] = (total[word] ?? 0) + n;
    }
    return total;
  },
});

const text = "A stream is a flow of records. A flow is a graph of nodes. A record starts a flow";
const { id } = await here.client.start("map-reduce", { text });
const { output } = await here.client.wait(id);
const counts = Object.entries(output as Counts).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
for (const [word, n] of counts.slice(0, 3)) console.log(n, word);
