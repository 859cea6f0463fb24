/**
 * A definition made ready to run: graph and functions for all its expressions, templates and schemas.
 *
 * @module
 */
import { compileSchema } from "./output_schema.ts";
import { compileFor, type Scope } from "./scope.ts";
import { compileShape, compileTemplate } from "./template.ts";
import { neededOf } from "./node_kinds.ts";
import type {
  BuiltInSettings,
  CompiledFlow,
  CompiledNode,
  Evaluate,
  Flow,
  FlowContext,
  FlowDefinition,
  FlowNode,
  JoinNode,
  TaskPolicy,
} from "./types.ts";

/** What {@link compileFlow} makes of the parts of a node. */
type Parts = { -readonly [K in keyof CompiledNode]?: CompiledNode[K] };

/** Compiles a flow that has been validated. */
export function compileFlow(flow: Flow): CompiledFlow {
  const { definition, hash } = flow;
  const branchOf = branchesOf(definition);
  const attributes = Object.entries(definition.searchAttributes).map(([name, text]) => {
    return [name, evaluator(text, "input")] as const;
  });
  const nodes = definition.nodes.map((node) => {
    const fanout = branchOf.get(node.id);
    const compiled: CompiledNode = {
      node,
      ...(fanout === undefined ? {} : { branchOf: fanout }),
      ...partsOf(node, definition),
    };
    return [node.id, Object.freeze(compiled)] as const;
  });
  return Object.freeze({
    definition,
    hash,
    nodes: new Map(nodes),
    searchAttributes: new Map(attributes),
    ...(definition.output === undefined ? {} : { output: evaluator(definition.output, "context") }),
  });
}

function branchesOf({ nodes }: FlowDefinition): ReadonlyMap<string, string> {
  return new Map(nodes.flatMap((node) => {
    return node.type === "fanout" ? node.branches.map((branch) => [branch, node.id] as const) : [];
  }));
}

function evaluator(text: string, scope: Scope): Evaluate {
  return compileFor(text, scope).evaluate;
}

function partsOf(node: FlowNode, definition: FlowDefinition): Parts {
  switch (node.type) {
    case "task":
      return policyParts(node, "context");
    case "choice":
      return {
        rules: node.rules.map(({ when }) =>
          when === undefined ? undefined : compileFor(when, "context").test
        ),
      };
    case "join":
      return { join: joinOf(node, definition) };
    case "map":
      return {
        over: evaluator(node.over, "context"),
        ...(node.flow === undefined ? policyParts(node, "item") : inputPart(node.input, "item")),
      };
    case "subflow":
      return inputPart(node.input, "context");
    case "sleep":
      return node.until === undefined ? {} : { until: evaluator(node.until, "context") };
    case "fail":
      return { message: compileTemplate(node.message, "context") };
    default:
      return {};
  }
}

function inputPart(input: string | undefined, scope: Scope): Parts {
  return input === undefined ? {} : { input: evaluator(input, scope) };
}

function joinOf(join: JoinNode, { nodes }: FlowDefinition): NonNullable<CompiledNode["join"]> {
  for (const node of nodes) {
    if (node.type !== "fanout" || node.next !== join.id) continue;
    const { waitFor } = join;
    const awaited = waitFor === undefined
      ? node.branches
      : node.branches.filter((id) => waitFor.includes(id));
    return { fanout: node.id, awaited, needed: neededOf(join.policy, awaited.length) };
  }
  throw new TypeError(`join "${join.id}" closes no fan-out`); // validation lets none through
}

function policyParts(policy: TaskPolicy, scope: Scope): Parts {
  const { concurrency, rate, outputSchema } = policy;
  const parts: Parts = {};
  if (concurrency !== undefined) parts.concurrencyKey = evaluator(concurrency.key, scope);
  if (rate?.key !== undefined) parts.rateKey = evaluator(rate.key, scope);
  if (outputSchema !== undefined) {
    const check = compileSchema(outputSchema as object);
    if (typeof check !== "function") throw new TypeError(check.problem); // validation lets none through
    parts.outputProblem = check;
  }
  const settings = policy.with ?? (policy.kind === "log" ? {} : undefined);
  if (settings !== undefined) parts.with = compileSettings(settings, scope);
  return parts;
}

function compileSettings(settings: BuiltInSettings, scope: Scope): NonNullable<CompiledNode["with"]> {
  const parts: (readonly [string, Evaluate])[] = [];
  const add = (name: string, evaluate: Evaluate) => parts.push([name, evaluate]);
  if ("url" in settings) {
    const headers = Object.entries(settings.headers).map(([name, text]) => {
      return [name, compileTemplate(text, scope, "header")] as const;
    });
    add("method", () => settings.method);
    add("url", compileTemplate(settings.url, scope, "url"));
    add("headers", (context) => Object.fromEntries(headers.map(([name, fill]) => [name, fill(context)])));
    add("expect", () => settings.expect);
    if (settings.body !== undefined) add("body", compileShape(settings.body, scope));
  } else if ("value" in settings) {
    if (settings.source !== undefined) add("source", () => settings.source);
    if (settings.topic !== undefined) add("topic", () => settings.topic);
    if (settings.key !== undefined) add("key", evaluator(settings.key, scope));
    add("value", compileShape(settings.value, scope));
  } else if (settings.message !== undefined) add("message", compileTemplate(settings.message, scope));
  return (context: FlowContext) => {
    return Object.fromEntries(parts.map(([name, evaluate]) => [name, evaluate(context)]));
  };
}
