/**
 * Variables, members and elements: `value`, `value.a.b`, `value.items[0]`, `has(value.a)`.
 *
 * The shapes a pipeline is made of, a variable and a member of one, are closures of their own: every call between
 * closures that is saved is some nanoseconds a record.
 *
 * @module
 */
import type { CallNode, IndexNode, MemberNode, Node } from "./ast.ts";
import type { Code, Context, Run } from "./code.ts";
import { failure } from "./errors.ts";
import { has, index, interned, isOrdinary, isPlain, select } from "./members.ts";
import type { Inner } from "./result.ts";
import { timestampOfMillis } from "./times.ts";
import type { Kind } from "./values.ts";

/** A variable of the activation; one that is not there, or undefined, is null. */
export function variable(variableName: string, kind: Kind): Code {
  const name = interned(variableName);
  if (kind === "timestamp") {
    const run: Run = (slots) => {
      const ms = slots[name];
      const time = typeof ms === "number" ? timestampOfMillis(ms) : undefined;
      if (time === undefined) throw failure(`${name} is no time between the years 1 and 9999`);
      return time;
    };
    return { run, kind, inner: "itself" };
  }
  const run: Run = name === "value" ? (slots) => slots["value"] ?? null : (slots) => slots[name] ?? null;
  return { run, kind, inner: "none", variable: name };
}

/** `target.name` */
export function member(node: MemberNode, context: Context): Code {
  return memberOf(node, node.target, node.name, context);
}

function memberOf(node: Node, targetNode: Node, fieldName: string, context: Context): Code {
  const name = interned(fieldName);
  const target = context.compile(targetNode), { run } = target;
  const missing = context.missing(targetNode),
    part = context.part(node),
    targetPart = context.part(targetNode);
  const slow = (map: unknown): unknown => select(map, name, missing, part, targetPart);
  const code = (fast: Run): Code => ({ run: fast, kind: "any", inner: innerOfMember(target) });
  if (!isOrdinary(name)) return code((slots) => slow(run(slots)));
  if (target.variable === "value") {
    return code((slots) => {
      const map = slots["value"];
      if (isPlain(map)) {
        const found = map[name];
        if (found !== undefined) return found;
      }
      return slow(map);
    });
  }
  return code((slots) => {
    const map = run(slots);
    if (isPlain(map)) {
      const found = map[name];
      if (found !== undefined) return found;
    }
    return slow(map);
  });
}

/** `target[key]`; a text that is written out is a member like any other. */
export function element(node: IndexNode, context: Context): Code {
  const { target: targetNode } = node;
  if (node.key.kind === "literal" && typeof node.key.value === "string") {
    return memberOf(node, targetNode, node.key.value, context);
  }
  const target = context.compile(targetNode), key = context.compile(node.key);
  const missing = context.missing(targetNode),
    part = context.part(node),
    targetPart = context.part(targetNode);
  return {
    run: (slots) => index(target.run(slots), key.run(slots), missing, part, targetPart),
    kind: "any",
    inner: innerOfMember(target),
  };
}

/** `has(target.name)`, or `has(target["name"])` */
export function presence(node: CallNode, context: Context): Code {
  const asked = node.args[0]!;
  const name = asked.kind === "member"
    ? asked.name
    : asked.kind === "index" && asked.key.kind === "literal" && typeof asked.key.value === "string"
    ? asked.key.value
    : undefined;
  if (name === undefined || (asked.kind !== "member" && asked.kind !== "index")) {
    return context.problem(asked.start, "has() asks for a field", { hint: "write has(value.field)" });
  }
  const { run } = context.compile(asked.target);
  const missing = context.missing(asked.target), targetPart = context.part(asked.target);
  const field = interned(name), ordinary = isOrdinary(name);
  return {
    run: (slots) => {
      const map = run(slots);
      return ordinary && isPlain(map) ? map[field] !== undefined : has(map, field, missing, targetPart);
    },
    kind: "bool",
    inner: "none",
  };
}

function innerOfMember(target: Code): Inner {
  return target.inner === "deep" ? "deep" : "none";
}
