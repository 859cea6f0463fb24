/**
 * Templates: text with `{{ expression }}` in it, and shapes: values whose texts are expressions.
 *
 * T1 The end of an expression is the first `}}` behind which it is one, so `{{ {a: {b: 1}} }}` needs no escape.
 *    `{{ "{{" }}` writes the two characters.
 *
 * @module
 */
import { ExpressionError } from "../../expr/mod.ts";
import { MailerError } from "../../errors.ts";
import { Decimal, stringifyJson } from "../../json.ts";
import { objectOf } from "../../workflow/reader.ts";
import { compileFor, type Scope } from "./scope.ts";
import type { Evaluate, Fill, FlowContext, Shape, TemplateText } from "./types.ts";

/** A part of a template: text as it is, or an expression and where it begins. */
export type TemplatePart =
  | { readonly text: string }
  | { readonly expression: string; readonly offset: number };

/**
 * The parts of a template. An expression that is none at any of its possible ends is given up to the first of them.
 *
 * @throws {ExpressionError} Where a `{{` is never closed.
 */
export function templateParts(template: TemplateText, scope: Scope): readonly TemplatePart[] {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (let open = template.indexOf("{{"); open !== -1; open = template.indexOf("{{", at)) {
    if (open > at) parts.push({ text: template.slice(at, open) });
    const offset = open + 2, end = endOf(template, offset, scope);
    if (end === -1) throw unclosed(template, open);
    parts.push({ expression: template.slice(offset, end), offset });
    at = end + 2;
  }
  if (at < template.length) parts.push({ text: template.slice(at) });
  return parts;
}

/** Ends that are tried: a text with more of them is no expression. */
const MOST_ENDS = 50;

function endOf(template: string, from: number, scope: Scope): number {
  const first = template.indexOf("}}", from);
  let end = first;
  for (let tries = 0; end !== -1 && tries < MOST_ENDS; tries++) {
    if (isExpression(template.slice(from, end), scope)) return end;
    end = template.indexOf("}}", end + 1);
  }
  return first;
}

function isExpression(text: string, scope: Scope): boolean {
  try {
    compileFor(text, scope);
    return true;
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return false;
  }
}

function unclosed(template: string, offset: number): ExpressionError {
  const lines = template.slice(0, offset).split("\n");
  return new ExpressionError([{
    message: "the {{ here is not closed",
    offset,
    line: lines.length,
    column: lines.at(-1)!.length + 1,
    suggestion: undefined,
    hint: 'write }} behind the expression, or {{ "{{" }} for the characters themselves',
  }]);
}

/**
 * How a value becomes part of a text: `text` writes null as null, in the others null fails; `url` percent-encodes what
 * does not stand at its beginning.
 */
export type FillMode = "text" | "header" | "url";

/** A function that fills a template in. */
export function compileTemplate(template: TemplateText, scope: Scope, mode: FillMode = "text"): Fill {
  const parts = templateParts(template, scope).map((part) => {
    if ("text" in part) return part.text;
    const { evaluate } = compileFor(part.expression, scope);
    const name = part.expression.trim();
    const isEncoded = mode === "url" && part.offset > 2;
    return (context: FlowContext): string => {
      const text = textOf(evaluate(context), name, mode);
      return isEncoded ? encodeURIComponent(text.toWellFormed()) : text;
    };
  });
  return (context) => parts.map((part) => typeof part === "string" ? part : part(context)).join("");
}

function textOf(value: unknown, expression: string, mode: FillMode): string {
  if (value === null && mode !== "text") {
    throw new MailerError("expression_failed", `${expression} is null and cannot be put into a ${mode}`);
  }
  return typeof value === "string" ? value : stringifyJson(value);
}

/** A function that evaluates a shape. */
export function compileShape(shape: Shape, scope: Scope): Evaluate {
  if (typeof shape === "string") return compileFor(shape, scope).evaluate;
  if (Array.isArray(shape)) {
    const items = shape.map((item) => compileShape(item, scope));
    return (context) => items.map((item) => item(context));
  }
  if (typeof shape === "object" && shape !== null && !(shape instanceof Decimal)) {
    const fields = Object.entries(shape).map(([key, item]) => [key, compileShape(item, scope)] as const);
    return (context) => objectOf(fields.map(([key, item]) => [key, item(context)] as const));
  }
  return () => shape;
}
