/**
 * List and map literals, and what an expression gives in the end.
 *
 * K1 Every evaluation makes new lists and objects, in the order written; `__proto__` is a key like any other.
 * K2 A literal that is the result is made of values that have already left, so that nothing is walked afterwards.
 *
 * @module
 */
import { setOwn } from "../value.ts";
import type { ListNode, MapNode, Node } from "./ast.ts";
import type { Code, Context, Run, Slots } from "./code.ts";
import { failure, type Part } from "./errors.ts";
import { chosen } from "./logic.ts";
import { interned, mapGet } from "./members.ts";
import { type Inner, leave, leaveDeep } from "./result.ts";
import { KeyedMap, kindOf } from "./values.ts";

/** A node whose value leaves the expression. */
export function compileResult(node: Node, context: Context): Code {
  switch (node.kind) {
    case "list": {
      const items = node.items.map((item) => compileResult(item, context).run);
      return { run: listOf(items), kind: "list", inner: "none" };
    }
    case "map": {
      const keys = textKeys(node, context);
      if (keys === undefined) break;
      const values = node.entries.map(([, value]) => compileResult(value, context).run);
      return { run: objectOf(keys, values), kind: "map", inner: "none" };
    }
    case "choice": {
      const then = compileResult(node.then, context), otherwise = compileResult(node.otherwise, context);
      const kind = then.kind === otherwise.kind ? then.kind : "any";
      return { run: chosen(node, context, then.run, otherwise.run), kind, inner: "none" };
    }
  }
  const code = context.compile(node);
  return code.inner === "none" ? code : { run: leavingRun(code), kind: code.kind, inner: "none" };
}

function leavingRun(code: Code): Run {
  const { run, inner, constant } = code;
  if (inner === "deep") return (slots) => leaveDeep(run(slots));
  if (constant === undefined) return code.leaving ?? ((slots) => leave(run(slots)));
  const left = leave(constant.value);
  return () => left;
}

/** `[a, b]` */
export function list(node: ListNode, context: Context): Code {
  const items = node.items.map((item) => context.compile(item));
  const code: Code = { run: listOf(items.map((item) => item.run)), kind: "list", inner: innerOf(items) };
  if (!items.every((item) => item.constant !== undefined)) return code;
  return { ...code, constant: { value: items.map((item) => item.constant!.value) } };
}

function listOf(items: readonly Run[]): Run {
  return (slots) => {
    const out: unknown[] = [];
    for (let i = 0; i < items.length; i++) out.push(items[i]!(slots));
    return out;
  };
}

/** `{a: b}` */
export function map(node: MapNode, context: Context): Code {
  const values = node.entries.map(([, value]) => context.compile(value));
  const texts = textKeys(node, context);
  if (texts !== undefined) {
    return { run: objectOf(texts, values.map((value) => value.run)), kind: "map", inner: innerOf(values) };
  }
  const keys = node.entries.map(([key]) => ({ run: context.compile(key).run, part: context.part(key) }));
  const run: Run = (slots) => {
    let out: object = {};
    for (let i = 0; i < keys.length; i++) {
      const { run, part } = keys[i]!;
      out = put(out, run(slots), values[i]!.run(slots), part);
    }
    return out;
  };
  return { run, kind: "map", inner: "deep" };
}

/** Adds a member; the first key that is no text makes a plain object a {@link KeyedMap}. */
function put(target: object, key: unknown, value: unknown, part: Part): object {
  const kind = kindOf(key);
  if (kind !== "text" && kind !== "int" && kind !== "uint" && kind !== "bool") {
    throw failure(`a key of a map cannot be ${kind}: ${part}`);
  }
  if (mapGet(target, key) !== undefined) throw failure(`two keys of one map are equal: ${part}`);
  if (target instanceof KeyedMap) target.set(key, value);
  else if (typeof key === "string") setOwn(target, key, value);
  else {
    const keyed = new KeyedMap();
    for (const [name, inner] of Object.entries(target)) keyed.set(name, inner);
    keyed.set(key, value);
    return keyed;
  }
  return target;
}

/** The keys where all are written out as text. Reports one that is there twice. */
function textKeys(node: MapNode, context: Context): string[] | undefined {
  const keys: string[] = [];
  for (const [key] of node.entries) {
    if (key.kind !== "literal" || typeof key.value !== "string") return undefined;
    if (keys.includes(key.value)) {
      context.problem(key.start, `the key ${JSON.stringify(key.value)} is there twice`);
    }
    keys.push(key.value);
  }
  return keys;
}

/**
 * Objects with these keys. The first four have a place in the code each, where the engine can learn the key: several
 * times faster than a loop.
 */
function objectOf(names: readonly string[], values: readonly Run[]): Run {
  const keys = names.map(interned);
  if (keys.length === 0 || keys.includes("__proto__")) return (slots) => fill({}, slots, keys, values, 0);
  const [k0, k1, k2, k3] = keys as [string, string, string, string];
  const [v0, v1, v2, v3] = values as [Run, Run, Run, Run];
  type Made = Record<string, unknown>;
  switch (keys.length) {
    case 1:
      return (slots) => {
        const out: Made = {};
        out[k0] = v0(slots);
        return out;
      };
    case 2:
      return (slots) => {
        const out: Made = {};
        out[k0] = v0(slots);
        out[k1] = v1(slots);
        return out;
      };
    case 3:
      return (slots) => {
        const out: Made = {};
        out[k0] = v0(slots);
        out[k1] = v1(slots);
        out[k2] = v2(slots);
        return out;
      };
    default:
      return (slots) => {
        const out: Made = {};
        out[k0] = v0(slots);
        out[k1] = v1(slots);
        out[k2] = v2(slots);
        out[k3] = v3(slots);
        return fill(out, slots, keys, values, 4);
      };
  }
}

function fill(
  out: object,
  slots: Slots,
  keys: readonly string[],
  values: readonly Run[],
  from: number,
): object {
  for (let i = from; i < keys.length; i++) setOwn(out, keys[i]!, values[i]!(slots));
  return out;
}

function innerOf(children: readonly Code[]): Inner {
  return children.some((child) => child.inner !== "none") ? "deep" : "none";
}
