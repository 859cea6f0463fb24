/**
 * Rules about failure policies, parallelism and watermarks, which concern a node together with the rest of the document.
 *
 * @module
 */
import type { Draft } from "./document.ts";
import type { DraftNode } from "./node.ts";
import { type Problems, TOP } from "./problem.ts";
import { childOf, nodeAt } from "./reader.ts";

/** Checks what nodes say beside their blocks. */
export function checkPolicies(draft: Draft, problems: Problems): void {
  const operators = draft.operators.filter((node) => node !== undefined);
  checkDlq(draft, [...draft.sources, ...operators, ...draft.sinks], problems);
  for (const source of draft.sources) checkWatermark(source, problems);
  for (const operator of operators) checkParallelism(operator, problems);
  for (const sink of draft.sinks) checkTwice(sink, "onError", problems);
}

/** Someone sends dead letters, so there is a place for them: it lacks at the top. */
function checkDlq({ root }: Draft, nodes: readonly DraftNode[], problems: Problems): void {
  if (childOf(root, "dlq") !== undefined) return;
  const senders = nodes.filter(({ fields }) => fields.onError === "dlq");
  if (senders.length === 0) return;
  const lines = senders.map(({ map, place }) => childOf(map, "onError")?.place.line ?? place.line);
  const message = `onError: dlq in line ${lines.join(", ")} needs a dlq, where failed records go`;
  problems.add(
    TOP,
    ["dlq"],
    "missing",
    message,
    "for example dlq: { type: file, file: { path: dead.ndjson } }",
  );
}

/** Kafka's own block and the source's mean the same, so only one of them can stand. */
function checkWatermark({ map, path, component }: DraftNode, problems: Problems): void {
  if (component?.type !== "kafka" || nodeAt(map, ["kafka", "watermark"]) === undefined) return;
  const own = map.entries.find(({ key }) => key === "watermark");
  if (own === undefined) return;
  const message = "the watermark stands here and in the kafka block";
  problems.add(own.place, [...path, "watermark"], "excluded", message, "keep one of them");
}

function checkParallelism(node: DraftNode, problems: Problems): void {
  const { component, map, path } = node;
  if (component?.kind !== "operator") return;
  checkTwice(node, "parallelism", problems);
  const own = map.entries.find(({ key }) => key === "parallelism");
  if (own === undefined || component.parallel === true || node.fields.parallelism === 1) return;
  const message = `${component.type} does not run in parallel`;
  const hint = component.needsKey === true || component.type === "keyBy"
    ? "the partitions of the keyBy say how many work side by side"
    : "leave it out";
  problems.add(own.place, [...path, "parallelism"], "excluded", message, hint);
}

/** The older format has some fields inside the block. */
function checkTwice({ component, map, path }: DraftNode, field: string, problems: Problems): void {
  if (component === undefined || childOf(map, field) === undefined) return;
  const block = childOf(map, component.type);
  const inner = block?.kind === "map" ? block.entries.find(({ key }) => key === field) : undefined;
  if (inner === undefined) return;
  const message = `${field} stands here and beside the block`;
  problems.add(
    inner.place,
    [...path, component.type, field],
    "excluded",
    message,
    "keep the one beside the block",
  );
}
