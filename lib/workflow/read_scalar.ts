/**
 * Reading of scalar fields.
 *
 * @module
 */
import { Decimal } from "../json.ts";
import { MailerError } from "../errors.ts";
import type { WindowLength } from "./blocks.ts";
import { parsePath } from "../path.ts";
import type { FieldType } from "./field_type.ts";
import { found, mismatch, type ReadContext, type Site } from "./reader.ts";
import { numberIn, readSize, readTime } from "./read_units.ts";
import { didYouMean } from "./suggest.ts";
import { checkTimeFormat, checkTimezone } from "./time_names.ts";
import type { ScalarNode } from "./tree.ts";
import { wordsOf } from "./words.ts";

/** A type whose values are written as one scalar. */
export type ScalarType = Extract<
  FieldType,
  {
    kind:
      | "text"
      | "int"
      | "number"
      | "boolean"
      | "duration"
      | "size"
      | "path"
      | "enum"
      | "expression"
      | "ref"
      | "timezone"
      | "timeFormat"
      | "windowLength";
  }
>;

/** The value of a scalar field; `undefined` after a problem was reported. */
export function readScalar(type: ScalarType, site: Site, context: ReadContext): unknown {
  const { node } = site;
  if (node.kind !== "scalar" || node.value === null) return mismatch(site, context, wordsOf(type));
  if (node.reference?.unset === true) return placeholder(type, node.reference.written);
  switch (type.kind) {
    case "int":
    case "number":
      return readNumber(type, node, site, context);
    case "boolean": {
      const value = node.reference === undefined ? node.value : boolean(node.value);
      return typeof value === "boolean" ? value : mismatch(site, context, wordsOf(type));
    }
    case "size":
      return readSize(node, site, context);
    case "duration":
    case "windowLength":
      return readTime(type, node, site, context);
  }
  const text = node.value;
  if (typeof text !== "string") {
    const hint = typeof text === "boolean" || site.secret ? undefined : `put it in quotes: "${node.raw}"`;
    return mismatch(site, context, wordsOf(type), hint);
  }
  switch (type.kind) {
    case "text":
      if (type.pattern !== undefined && !new RegExp(type.pattern).test(text)) {
        return mismatch(site, context, wordsOf(type));
      }
      return text;
    case "enum":
      return readEnum(type, text, site, context);
    case "path":
      return attempt(site, context, () => {
        parsePath(text);
        return text;
      });
    case "expression":
      if (text.trim() === "") return mismatch(site, context, wordsOf(type));
      context.expressions.push({ node, path: site.path, text, gives: type.gives });
      return text;
    case "ref":
      return readRef(text, site, context);
    case "timezone":
      return attempt(site, context, () => checkTimezone(text));
    case "timeFormat":
      return attempt(site, context, () => checkTimeFormat(text));
  }
}

/** A value of the type for a text whose `${…}` has none: the document is not run. */
function placeholder(type: ScalarType, written: string): unknown {
  switch (type.kind) {
    case "int":
    case "number":
      return type.min ?? 1;
    case "duration":
      return type.min ?? 0;
    case "size":
      return 0;
    case "boolean":
      return false;
    case "enum":
      return type.values[0];
    case "ref":
      return { name: written };
    case "windowLength":
      return { kind: "fixed", ms: 1 } satisfies WindowLength;
    case "timezone":
      return "UTC";
    case "timeFormat":
      return "auto";
    default:
      return written;
  }
}

function readNumber(
  type: Extract<FieldType, { kind: "int" | "number" }>,
  node: ScalarNode,
  site: Site,
  context: ReadContext,
): number | undefined {
  const value = node.reference === undefined ? node.value : numberIn(node.value);
  const isNumber = typeof value === "number" || typeof value === "bigint" || value instanceof Decimal;
  if (!isNumber) return mismatch(site, context, wordsOf(type));
  const number = Number(value);
  const fits = (type.min === undefined || number >= type.min) &&
    (type.max === undefined || number <= type.max) &&
    (type.kind === "int" ? Number.isSafeInteger(number) : type.above === undefined || number > type.above) &&
    Number.isFinite(number);
  return fits ? number : mismatch(site, context, wordsOf(type));
}

function boolean(value: ScalarNode["value"]): ScalarNode["value"] {
  return value === "true" ? true : value === "false" ? false : value;
}

function readEnum(
  type: Extract<FieldType, { kind: "enum" }>,
  text: string,
  site: Site,
  context: ReadContext,
): string | undefined {
  const value = type.same !== undefined && Object.hasOwn(type.same, text) ? type.same[text]! : text;
  if (!type.values.includes(value)) {
    const message = `${found(site)} is not known here, expected ${wordsOf(type)}`;
    const hint = didYouMean(text, type.values);
    const near = hint?.startsWith("did") === true ? hint : undefined;
    context.problems.add(site.node.place, site.path, "unknown_value", message, near);
    return undefined;
  }
  if (type.carried !== undefined && !type.carried.includes(value)) {
    const what = `${site.path.slice(-2).join(" ")} ${value}`;
    context.uncarried.push({ place: site.node.place, path: site.path, what });
  }
  return value;
}

function readRef(
  text: string,
  site: Site,
  context: ReadContext,
): { module?: string; name: string } | undefined {
  const [, module, name] = /^(?:(.+)#)?([A-Za-z_$][\w$.-]*)$/s.exec(text) ?? [];
  if (name === undefined || module === "") {
    return mismatch(
      site,
      context,
      wordsOf({ kind: "ref" }),
      "name the module and what it exports: ./ops.ts#name",
    );
  }
  if (module === undefined) return { name };
  context.files.push({ place: site.node.place, path: site.path, file: module, use: "ref" });
  return { module, name };
}

/** The value of `make`, or its error as a problem. */
function attempt<T>(site: Site, context: ReadContext, make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof MailerError)) throw error;
    const shown = site.secret || (site.node.kind === "scalar" && site.node.reference !== undefined);
    const message = shown ? `not valid: ${error.code}` : error.message;
    context.problems.add(site.node.place, site.path, error.code, message, error.hint);
    return undefined;
  }
}
