/**
 * The reference page of flows, as Markdown, from the descriptions.
 *
 * @module
 */
import { fieldTable, fieldTables, rulesText } from "../../workflow/reference.ts";
import type { AnyFields } from "../../workflow/field_type.ts";
import { BUILT_IN_KINDS } from "./fields.ts";
import { FLOW, FLOW_FIELDS } from "./flow_fields.ts";
import { NODE_FIELDS, NODE_KINDS, type NodeKind } from "./node_kinds.ts";

/** The page. */
export function flowReference(): string {
  const { nodes: _nodes, ...blocks } = FLOW_FIELDS;
  const seen = new Set<unknown>();
  return [
    "# Flows",
    "Generated from the descriptions that validation uses. Fields marked * are required.",
    "A flow is a YAML or JSON document: one block. Names have 1 to 128 letters, digits, `_` and `-`. Durations are texts such as `500ms`, `30s`, `1h30m` or `1d` (24 hours).",
    "## Top level",
    fieldTable(FLOW_FIELDS),
    ...rulesText(FLOW.kind === "block" ? FLOW.rules : []),
    "`on_expire` stands beside a `retention` only.",
    ...innerTables(blocks, "", seen),
    "## Nodes",
    "Every node has a `type`, and:",
    fieldTable(NODE_FIELDS),
    ...NODE_KINDS.flatMap((kind) => nodeText(kind, seen)),
    "## Built-in kinds of tasks",
    "A task, or a map, of these kinds needs no worker: `with` says what is done. Of `http` and `emit` without `with`, a worker of yours takes care.",
    ...BUILT_IN_KINDS.flatMap(({ kind, summary, settings, example }) => [
      `### kind ${kind}`,
      summary,
      fieldTables(settings, "with"),
      fenced(example),
    ]),
    EXPRESSIONS,
  ].filter((text) => text !== "").join("\n\n") + "\n";
}

function nodeText({ type, summary, fields, rules, example }: NodeKind, seen: Set<unknown>): string[] {
  return [
    `### node ${type}`,
    summary,
    fieldTable(fields),
    ...rulesText(rules),
    ...innerTables(fields, `${type}.`, seen),
    fenced(example),
  ];
}

/** Tables of the blocks in some fields, each once on the page. */
function innerTables(fields: AnyFields, before: string, seen: Set<unknown>): string[] {
  return Object.entries(fields).flatMap(([name, { type }]) => {
    const text = seen.has(type) ? "" : fieldTables(type, `${before}${name}`);
    seen.add(type);
    return text === "" ? [] : [`\`${before}${name}\``, text];
  });
}

function fenced(example: string): string {
  return "```yaml\n" + example + "```";
}

const EXPRESSIONS = `## Expressions

The expressions of workflows, with a few more spellings: \`and\`, \`or\`, \`not\`, \`nil\`, \`not in\`, \`x matches "p"\` (and
\`contains\`, \`startsWith\`, \`endsWith\`), \`len(x)\`, \`{name: value}\`. They see:

| name | what it is |
|---|---|
| \`input\` | input of the execution |
| \`channels\` | channels by name |
| \`results\` | newest output of each node that settled |
| \`last_node\` | the task, join, map, subflow or await that settled last |
| \`visits\` | how often each node was entered; 0 before the first time |
| \`signals\` | payloads of consumed signals by name |
| \`branches\` | status of each branch of the last fan-out: pending, completed, failed or cancelled |
| \`counters\` | usage by counter; 0 before the first |
| \`errors\` | by node that has not succeeded since: \`error\`, \`reason\`, \`attempt\`, \`index\` of the item |
| \`item\`, \`index\` | in what a map says of its items: the element, and its position from 0 |

What is missing reads as null, at any depth. \`==\`, \`!=\`, \`in\` and \`has()\` take null; any other operator on null fails.
Whole numbers are exact in 64 bits, and dividing them is exact: 7 / 2 is 3.5.

A template is a text with \`{{ expression }}\` in it; \`{{ "{{" }}\` writes the braces themselves.`;
