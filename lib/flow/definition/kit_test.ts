/**
 * What the tests of definitions share.
 *
 * @module
 */
import assert from "node:assert/strict";
import { problemText } from "../../workflow/problem.ts";
import { type ParsedFlow, parseFlow } from "./parse.ts";
import type { Flow, FlowNode } from "./types.ts";

/** Reads a document. */
export function parsed(text: string, file = "flow.yaml"): ParsedFlow {
  return parseFlow(text, { file });
}

/** Problems of a document as `line:column path code`. */
export function problemsOf(text: string, file?: string): string[] {
  return parsed(text, file).problems.map(({ line, column, path, code }) =>
    `${line}:${column} ${path} ${code}`
  );
}

/** Warnings of a document that has to be right, as `line:column path code`. */
export function warningsOf(text: string): string[] {
  flowOf(text);
  return parsed(text).warnings.map(({ line, column, path, code }) => `${line}:${column} ${path} ${code}`);
}

/** The flow of a document that has to be right. */
export function flowOf(text: string, file?: string): Flow {
  const { flow, problems } = parsed(text, file);
  assert.ok(flow, problems.map(problemText).join("\n"));
  return flow;
}

/** A document with these nodes, the first in line 3. */
export function nodes(...lines: string[]): string {
  return `name: t\nnodes:\n${lines.map((line) => `  - ${line}\n`).join("")}`;
}

/** The nodes of a document that has to be right. */
export function nodesOf(...lines: string[]): readonly FlowNode[] {
  return flowOf(nodes(...lines)).definition.nodes;
}

/** A flow with every kind of node and nearly every field. */
export const EVERYTHING = `name: everything
description: all there is
start: first
channels:
  log: { reducer: append, default: [a] }
  total: { reducer: sum, default: 0 }
  seen: { reducer: merge, default: { big: 9007199254740993 } }
  last: { default: null }
output: '{"total": channels.total, "turns": visits["first"]}'
budget: { tokens: 100.5, steps: 50 }
max_steps: 200
deadline: 36h
search_attributes: { customer: input.customer, big: "input.amount > 100" }
retention: 30d
on_expire: archive
archive_retention: 1y
triggers:
  - { subject: orders.created }
  - { subject: "orders.*", stream: ORDERS }
nodes:
  - id: first
    type: task
    kind: model
    meta: { prompt: hi, big: 12345678901234567890, exact: 0.1000000000000000000001 }
    timeout: 30s
    heartbeat: 5s
    retry: { max_attempts: 4, backoff: exponential, delay: 10s, max_delay: 1h, jitter: 0.2, max_elapsed: 2h, except: [CardRefused, timeout] }
    output_schema: { type: object, properties: { n: { type: integer } }, required: [n] }
    cache: { ttl: 1h }
    concurrency: { key: input.customer, max: 3 }
    rate: { max: 10, per: 1m, key: input.customer }
    priority: 7
    dynamic: [ask, first]
    next: ask
    on_failure: refused
  - { id: ask, type: fanout, branches: [a, b, c], next: votes }
  - { id: a, type: task, kind: ask-a }
  - { id: b, type: subflow, flow: credit-check, input: "{customer: input.customer}", on_parent_close: abandon }
  - id: c
    type: task
    kind: http
    with:
      method: POST
      url: "https://example.com/{{ input.customer }}?n={{ {a: {b: 1}}.a.b }}"
      headers: { x-total: "{{ channels.total }}" }
      body: { total: channels.total, list: [input.a, 1, true, null] }
      expect: [200, 404]
  - { id: votes, type: join, wait_for: [a, c], policy: "quorum:1", next: wait, on_failure: refused }
  - { id: wait, type: await, signal: decision, timeout: 48h, on_timeout: refused, next: both }
  - { id: both, type: await, signals: [paid, shipped], policy: any, timeout: 1h, next: check }
  - id: check
    type: choice
    on_error: fail
    rules:
      - { default: true, to: each }
      - { when: 'signals.decision.ok and not (branches.a == "failed")', to: $end }
  - id: each
    type: map
    over: results.first.items
    max_parallel: 2
    kind: emit
    with: { topic: prices, key: item.sku, value: "{sku: item.sku, n: index}" }
    next: children
  - { id: children, type: map, over: "[1, 2]", flow: price-one, input: "{n: item}", next: nap }
  - { id: nap, type: sleep, for: 1.5h, next: later }
  - { id: later, type: sleep, until: input.due, next: tell }
  - { id: tell, type: task, kind: log, with: { message: "done {{ input }}" } }
  - { id: refused, type: fail, message: "refused: {{ errors.first.error }}" }
`.replace("1y", "8760h");
