/**
 * Whether tests name what their workflow has.
 *
 * @module
 */
import { type Problem, Problems } from "./problem.ts";
import { sideOutputsOf } from "./side_outputs.ts";
import type { WorkflowSpec } from "./spec.ts";
import { didYouMean } from "./suggest.ts";
import type { TestDocument } from "./test_document.ts";

/** Reports names in tests that their workflow does not have. */
export function checkTestNames(tests: TestDocument, workflow: WorkflowSpec): readonly Problem[] {
  const problems = new Problems(tests.file);
  const sources = workflow.sources.map(({ id }) => id);
  const sides = workflow.operators.flatMap((node) =>
    (sideOutputsOf(node) ?? []).map((name) => `${node.id}.${name}`)
  );
  const sinks = [...workflow.sinks.map(({ id }) => id), ...sides, "dlq"];
  // Code may write to outputs the document does not name.
  const open = workflow.operators.filter((node) => sideOutputsOf(node) === undefined).map(({ id }) =>
    `${id}.`
  );
  tests.cases.forEach(({ input, expect }, i) => {
    for (const { source, place } of input) {
      const path = ["cases", i, "input", ...source === undefined ? [] : [source]];
      if (source === undefined && sources.length > 1) {
        const message = "the workflow has several sources, so input is by source";
        problems.add(place, path, "missing", message, `for example ${sources[0]}: [ … ]`);
      } else if (source !== undefined && !sources.includes(source)) {
        const message = `the workflow has no source "${source}"`;
        problems.add(place, path, "unknown_node", message, didYouMean(source, sources));
      }
    }
    for (const { name, place } of expect) {
      if (sinks.includes(name) || open.some((start) => name.startsWith(start))) continue;
      const message = `the workflow has no sink or side output "${name}"`;
      problems.add(place, ["cases", i, "expect", name], "unknown_node", message, didYouMean(name, sinks));
    }
  });
  return problems.list((text) => text);
}
