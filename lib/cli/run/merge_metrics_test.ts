import assert from "node:assert/strict";
import { mergeMetrics } from "./merge_metrics.ts";

const text = (pipeline: string, extra = "") =>
  `# HELP a_total Things\n# TYPE a_total counter\na_total{pipeline="${pipeline}"} 1\n\n# HELP b Size\n# TYPE b gauge\nb{pipeline="${pipeline}"} 2\n${extra}`;

Deno.test("every metric is described once, with the samples of all pipelines behind it", () => {
  assert.equal(
    mergeMetrics([text("x"), text("y", "\n# HELP c Only here\n# TYPE c gauge\nc 3\n")]),
    `# HELP a_total Things
# TYPE a_total counter
a_total{pipeline="x"} 1
a_total{pipeline="y"} 1
# HELP b Size
# TYPE b gauge
b{pipeline="x"} 2
b{pipeline="y"} 2
# HELP c Only here
# TYPE c gauge
c 3
`,
  );
});

Deno.test("one text stays as it is, but for blank lines", () => {
  assert.equal(mergeMetrics([text("x")]), text("x").replace("\n\n", "\n"));
});
