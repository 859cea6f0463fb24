/**
 * The functions and methods of the language, and calls of them.
 *
 * @module
 */
import type { CallNode } from "./ast.ts";
import type { Code, Context, Run } from "./code.ts";
import {
  toBool,
  toBytes,
  toDoubleValue,
  toInt,
  toText,
  toTimeSpan,
  toTimestamp,
  toUint,
  typeOf,
} from "./convert.ts";
import { failure, type Part, quoted } from "./errors.ts";
import { mapSize } from "./members.ts";
import { MACRO_NAMES } from "./macros.ts";
import { compilePattern, patternCache } from "./pattern.ts";
import type { Inner } from "./result.ts";
import { nearest } from "./suggest.ts";
import { DATE_PARTS, localDate, SPAN_PARTS } from "./times.ts";
import { type Kind, kindOf, TimeSpan, Timestamp } from "./values.ts";

/** A function of one or two values; of a method, the first is what it is called on. */
interface Callable {
  /** How it is written: `f(x)`, `x.f()`, or either. */
  readonly style: "function" | "method" | "either";
  readonly kind: Kind;
  readonly inner: Inner;
  readonly one?: (x: unknown, part: Part) => unknown;
  readonly two?: (x: unknown, y: unknown, part: Part) => unknown;
}

function conversion(kind: Kind, inner: Inner, one: (x: unknown, part: Part) => unknown): Callable {
  return { style: "function", kind, inner, one };
}

function textTest(name: string, test: (text: string, part: string) => boolean): Callable {
  const two = (x: unknown, y: unknown, part: Part): boolean => {
    if (typeof x === "string" && typeof y === "string") return test(x, y);
    throw failure(`${name} takes texts, found ${kindOf(x)} and ${kindOf(y)} in ${part}`);
  };
  return { style: "method", kind: "bool", inner: "none", two };
}

function timePart(name: string): Callable {
  const read = (x: unknown, zone: string | undefined, part: Part): number => {
    if (x instanceof Timestamp) {
      const local = localDate(x, zone);
      if (local === undefined) throw failure(`unknown time zone in ${part}`);
      return DATE_PARTS[name]!(local);
    }
    const span = SPAN_PARTS[name];
    if (x instanceof TimeSpan && span !== undefined && zone === undefined) return span(x);
    const takes = span === undefined ? "a timestamp" : "a timestamp or a duration";
    throw failure(`${name} takes ${takes}, found ${kindOf(x)} in ${part}`);
  };
  return {
    style: "method",
    kind: "int",
    inner: "none",
    one: (x, part) => read(x, undefined, part),
    two: (x, zone, part) => {
      if (typeof zone !== "string") throw failure(`a time zone is text, found ${kindOf(zone)} in ${part}`);
      return read(x, zone, part);
    },
  };
}

const SIZE: Callable = {
  style: "either",
  kind: "int",
  inner: "none",
  one: (x, part) => {
    if (typeof x === "string") return countCharacters(x);
    if (Array.isArray(x) || x instanceof Uint8Array) return x.length;
    if (kindOf(x) === "map") return mapSize(x as object);
    throw failure(`${kindOf(x)} has no size in ${part}`);
  },
};

const FUNCTIONS: ReadonlyMap<string, Callable> = new Map(Object.entries({
  size: SIZE,
  contains: textTest("contains", (text, piece) => text.includes(piece)),
  startsWith: textTest("startsWith", (text, piece) => text.startsWith(piece)),
  endsWith: textTest("endsWith", (text, piece) => text.endsWith(piece)),
  int: conversion("int", "none", toInt),
  uint: conversion("uint", "itself", toUint),
  double: conversion("double", "itself", toDoubleValue),
  string: conversion("text", "none", toText),
  bytes: conversion("bytes", "none", toBytes),
  bool: conversion("bool", "none", toBool),
  timestamp: conversion("timestamp", "itself", toTimestamp),
  duration: conversion("duration", "itself", toTimeSpan),
  type: conversion("type", "itself", typeOf),
  ...Object.fromEntries(Object.keys(DATE_PARTS).map((name) => [name, timePart(name)])),
}));
/** Only in the `flows` dialect. */
const FLOW_FUNCTIONS: ReadonlyMap<string, Callable> = new Map([["len", SIZE]]);
/** Compiled by hand below, or macros. */
const OTHERS = ["matches", "dyn", "has"];

/** `f(x)`, `x.f(y)` */
export function call(node: CallNode, context: Context): Code {
  if (MACRO_NAMES.includes(node.name)) {
    return context.problem(node.nameAt, `${node.name}() takes a list, a variable and an expression`, {
      hint: `write list.${node.name}(item, …)`,
    });
  }
  const nodes = node.target === undefined ? node.args : [node.target, ...node.args];
  const args = nodes.map((arg) => context.compile(arg));
  const part = context.part(node);
  if (node.name === "dyn" && node.target === undefined && args.length === 1) {
    return { ...args[0]!, kind: "any" };
  }
  if (node.name === "matches" && args.length === 2) return matches(node, args[0]!, args[1]!, context);
  const known = FUNCTIONS.get(node.name) ??
    (context.dialect === "flows" ? FLOW_FUNCTIONS.get(node.name) : undefined);
  if (known === undefined) return unknown(node, context);
  const wrongStyle = node.target === undefined ? known.style === "method" : known.style === "function";
  const { one, two, kind, inner } = known;
  if (wrongStyle || (args.length === 1 ? one : args.length === 2 ? two : undefined) === undefined) {
    return misused(node, known, context);
  }
  const x = args[0]!.run, y = args[1]?.run;
  const run: Run = y === undefined
    ? (slots) => one!(x(slots), part)
    : (slots) => two!(x(slots), y(slots), part);
  return { run, kind, inner };
}

/** `text.matches(pattern)`; a pattern that is written out is compiled once and checked with the expression. */
function matches(node: CallNode, text: Code, pattern: Code, context: Context): Code {
  const part = context.part(node), x = text.run, y = pattern.run;
  const fixed = pattern.constant?.value;
  const wrong = (value: unknown, source: unknown): Error =>
    failure(`matches takes texts, found ${kindOf(value)} and ${kindOf(source)} in ${part}`);
  if (typeof fixed === "string") {
    const compiled = compilePattern(fixed);
    if (typeof compiled !== "function") return context.problem(node.args.at(-1)!.start, compiled.problem);
    const run: Run = (slots) => {
      const value = x(slots);
      if (typeof value !== "string") throw wrong(value, fixed);
      return compiled(value);
    };
    return { run, kind: "bool", inner: "none" };
  }
  const patterns = patternCache();
  const run: Run = (slots) => {
    const value = x(slots), source = y(slots);
    if (typeof value !== "string" || typeof source !== "string") throw wrong(value, source);
    return patterns(source, part)(value);
  };
  return { run, kind: "bool", inner: "none" };
}

function unknown(node: CallNode, context: Context): Code {
  const { name, nameAt } = node;
  const method = node.target !== undefined;
  const style = method ? "function" : "method";
  const names = [...FUNCTIONS].filter(([, known]) => known.style !== style).map(([known]) => known);
  const more = method
    ? [...MACRO_NAMES, "matches"]
    : context.dialect === "flows"
    ? [...OTHERS, "len"]
    : OTHERS;
  if (OTHERS.includes(name)) return context.problem(nameAt, `${name}() is not used like this`);
  const suggestion = name === "len" ? "size" : nearest(name, [...names, ...more]);
  return context.problem(nameAt, `there is no ${method ? "method" : "function"} ${quoted(name)}`, {
    suggestion,
  });
}

function misused(node: CallNode, known: Callable, context: Context): Code {
  const { name, nameAt } = node;
  const method = known.style === "method" || (known.style === "either" && node.target !== undefined);
  const counts = [known.one && 1, known.two && 2].filter((n) => n !== undefined).map((n) =>
    method ? n - 1 : n
  );
  const takes = `${counts.join(" or ")} argument${counts.at(-1) === 1 ? "" : "s"}`;
  const written = method ? `value.${name}(…)` : `${name}(…)`;
  return context.problem(nameAt, `${name} is written ${written} with ${takes}`);
}

/** Characters (code points) of a text. */
function countCharacters(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    const unit = text.charCodeAt(i), before = text.charCodeAt(i - 1);
    if (unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff) count--;
  }
  return count;
}
