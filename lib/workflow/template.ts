/**
 * Starting documents for `mailer new KIND`, made from the descriptions of the components.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import type { Component } from "./component.ts";
import { COMPONENTS } from "./components/mod.ts";
import type { AnyFields, FieldType } from "./field_type.ts";
import { didYouMean } from "./suggest.ts";

/** A kind of document that can be started. */
export interface TemplateKind {
  readonly kind: string;
  readonly summary: string;
}

/** What can be asked for: a workflow, its tests, and a workflow around each component. */
export function templateKinds(): readonly TemplateKind[] {
  return [
    { kind: "workflow", summary: "A small workflow that runs as it is" },
    { kind: "test", summary: "Tests of that workflow" },
    ...COMPONENTS.map((component) => ({ kind: kindOf(component), summary: component.summary })),
  ];
}

/** `window`, or `source-file` and `sink-file` where a type is both. */
function kindOf({ kind, type }: Component): string {
  const isAmbiguous = COMPONENTS.filter((other) => other.type === type).length > 1;
  return isAmbiguous ? `${kind}-${type}` : type;
}

/**
 * The text of a starting document.
 *
 * @throws {MailerError} `unknown_kind`.
 */
export function template(kind: string): string {
  if (kind === "workflow") return WORKFLOW;
  if (kind === "test") return TEST;
  const component = COMPONENTS.find((one) => kindOf(one) === kind);
  if (component === undefined) {
    throw new MailerError("unknown_kind", `there is no template "${kind}"`, { hint: hintFor(kind) });
  }
  return documentAround(component, "commented");
}

/** The kinds that were probably meant and how to see all of them, or all of them. */
function hintFor(unknown: string): string {
  const both = COMPONENTS.filter(({ type }) => type === unknown).map(kindOf); // a type that is source and sink
  const kinds = templateKinds().map(({ kind }) => kind);
  const meant = both.length > 0
    ? `did you mean ${both.map((kind) => `"${kind}"`).join(" or ")}?`
    : didYouMean(unknown, kinds);
  return meant === undefined ? `one of: ${kinds.join(", ")}` : `${meant} mailer new lists all kinds`;
}

const WORKFLOW = `# Sums of completed orders, a running total for each customer.
# Check it: mailer validate FILE   Run it: mailer run FILE   Test it: mailer test FILE.test.yaml
name: order-totals

source:
  type: generator
  records:
    - { key: o-1, value: '{"customer":{"id":"c1"},"status":"completed","amount":10}' }
    - { key: o-2, value: '{"customer":{"id":"c1"},"status":"pending","amount":15}' }
    - { key: o-3, value: '{"customer":{"id":"c2"},"status":"completed","amount":7}' }

pipeline: # each reads the one before it; write from: to read another
  - id: completed
    type: filter
    filter: { field: status, operator: equals, value: completed }
  - id: by-customer
    type: keyBy
    keyBy: { field: customer.id }
  - id: totals
    type: reduce
    reduce: { function: sum, field: amount }

sink:
  type: stdout # one JSON value a line
`;

const TEST = `# Run it: mailer test FILE
workflow: order-totals.yaml
cases:
  - name: pending orders do not count
    input: # instead of the source
      - { at: 2026-03-01T10:00:00Z, value: { customer: { id: c1 }, status: completed, amount: 10 } }
      - { at: 2026-03-01T10:00:05Z, value: { customer: { id: c1 }, status: pending, amount: 99 } }
    expect:
      sink: # by id of the sink; in any order
        - { customer: { id: c1 }, sum: 10 }
`;

/** A whole document in which a component stands as in its example. */
export function documentAround(component: Component, style: "plain" | "commented"): string {
  const own = example(component) + (style === "commented" ? remarks(component) : "");
  const parts = [`name: example`, ""];
  if (component.type === "join") parts.push(TWO_SOURCES);
  else parts.push("source:", indent(component.kind === "source" ? own : SOURCE, "  "));
  parts.push("pipeline:", ...pipelineAround(component, own).map(listed));
  parts.push("", "sink:", indent(sinkOf(component, own), "  "));
  if (component.kind === "sink" && component.type === "txnKafka") {
    parts.splice(1, 0, "env: { checkpointing: { interval: 10s } }");
    return parts.join("\n").replace(indent(SOURCE, "  "), indent(EXACT_SOURCE, "  ")).trimEnd() + "\n";
  }
  return parts.join("\n").trimEnd() + "\n";
}

const SOURCE = `type: slice
records:
  - { key: a, value: '{"customer":{"id":"c1"},"amount":10,"items":[1,2],"at":"2026-03-01T10:00:00Z"}' }
timestamp: { field: at }
`;
const EXACT_SOURCE = `type: kafka
kafka: { brokers: [localhost:9092], topic: orders, groupID: example, exactlyOnce: true }
`;
const TWO_SOURCES = `sources:
  - name: orders
    source:
      type: slice
      records: [ { key: o-1, value: '{"order":"o-1"}' } ]
  - name: payments
    source:
      type: slice
      records: [ { key: o-1, value: '{"order":"o-1","paid":true}' } ]
`;

function pipelineAround(component: Component, own: string): string[] {
  if (component.kind !== "operator") return ["id: keep\ntype: filter\nfilter: { where: 'true' }\n"];
  const { type, needsKey, needsWindow } = component;
  const before: string[] = [], after: string[] = [];
  if (needsKey === true && type !== "join") {
    before.push("id: by-key\ntype: keyBy\nkeyBy: { field: customer.id }\n");
  }
  if (needsWindow === true) before.push("id: minute\ntype: window\nwindow: { type: tumbling, size: 1m }\n");
  if (type === "window") after.push("id: number\ntype: reduce\nreduce: { function: count }\n");
  return [...before, own, ...after];
}

function sinkOf(component: Component, own: string): string {
  if (component.kind === "sink") return own;
  if (component.type !== "route") return "type: stdout\n";
  const id = /^id: (.*)$/m.exec(component.example)![1];
  return `type: stdout\nfrom: ${id}.${/name: (\w+)/.exec(component.example)![1]}\n`;
}

function example({ example: text }: Component): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

/** Comments that say what else the component's block can hold. */
function remarks({ summary, type, block }: Component): string {
  if (block === undefined) return `# ${summary}\n`;
  const lines = fieldLines(block);
  return [`# ${summary}`, ...lines.length === 0 ? [] : [`# Fields of ${type}:`], ...lines].map((line) =>
    `${line}\n`
  ).join("");
}

function fieldLines(type: FieldType): string[] {
  if (type.kind === "block") return linesOf(type.fields);
  if (type.kind !== "variants") return [];
  return [
    ...linesOf(type.common),
    ...Object.entries(type.variants).flatMap(([name, { summary, fields }]) => [
      `#   ${type.by}: ${name} (${summary})`,
      ...linesOf(fields).map((line) => line.replace("#   ", "#     ")),
    ]),
  ];
}

function linesOf(fields: AnyFields): string[] {
  return Object.entries(fields).map(([name, { summary, required, default: standard }]) => {
    const shown = typeof standard === "string" ? standard : JSON.stringify(standard);
    const note = required === true ? " (required)" : standard === undefined ? "" : ` (default ${shown})`;
    return `#   ${name}: ${summary}${note}`;
  });
}

function listed(text: string): string {
  return indent(text, "    ").replace("    ", "  - ").trimEnd();
}

function indent(text: string, by: string): string {
  return text.split("\n").map((line) => line === "" ? line : by + line).join("\n").trimEnd();
}
