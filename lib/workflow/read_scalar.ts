/**
 * Reading of scalar fields.
 *
 * @module
 */
import { Decimal, exactNumber } from "../json.ts";
import { MailerError } from "../errors.ts";
import { parseDuration } from "../duration.ts";
import type { WindowLength } from "./blocks.ts";
import { parseFieldPath } from "./field_path.ts";
import type { FieldType } from "./field_type.ts";
import { found, mismatch, type ReadContext, type Site } from "./reader.ts";
import { didYouMean } from "./suggest.ts";
import { checkTimeFormat, checkTimezone } from "./time_names.ts";
import type { ScalarNode } from "./yaml.ts";

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

const LARGEST_DURATION = Number.MAX_SAFE_INTEGER;
const DURATION_HINT = "write a number with a unit, such as 500ms, 30s, 5m, 1h30m or 1d";

/** Words for a type, to complete "expected …". */
export function wordsOf(type: FieldType): string {
  switch (type.kind) {
    case "text":
      return type.what === undefined ? "a text" : `a text: ${type.what}`;
    case "int":
      return `a whole number${range(type.min, type.max)}`;
    case "number":
      return `a number${type.above === undefined ? "" : ` above ${type.above}`}${range(type.min, type.max)}`;
    case "boolean":
      return "true or false";
    case "duration":
      return type.min === 1 ? "a duration above zero such as 30s" : "a duration such as 30s";
    case "size":
      return "a number of bytes or a size such as 64MiB";
    case "path":
      return "a field path such as customer.id";
    case "enum":
      return `one of ${type.values.join(", ")}`;
    case "expression":
      return "an expression (a text)";
    case "ref":
      return "code such as ./ops.ts#name";
    case "timezone":
      return "an IANA time zone such as Europe/Berlin";
    case "timeFormat":
      return "a time format";
    case "windowLength":
      return "a length such as 5m, 1h, 1d, 1w or 1mo";
    case "from":
      return "the id of a node, or a list of ids";
    case "schema":
      return "a JSON Schema or the path of a file with one";
    case "list":
      return "a list";
    case "map":
    case "block":
    case "variants":
      return "a block";
    case "any":
      return "a value";
  }
}

function range(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? "" : ` of at most ${max}`;
}

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
        parseFieldPath(text);
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

/** What a text that came out of `${…}` is as a number. */
function numberIn(value: ScalarNode["value"]): ScalarNode["value"] {
  if (typeof value !== "string") return value;
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(value) ? exactNumber(value) : value;
}

function boolean(value: ScalarNode["value"]): ScalarNode["value"] {
  return value === "true" ? true : value === "false" ? false : value;
}

const SIZE = /^(\d+(?:\.\d+)?) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$/;
const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

function readSize(node: ScalarNode, site: Site, context: ReadContext): number | undefined {
  const value = node.reference === undefined ? node.value : numberIn(node.value);
  const parts = typeof value === "string" ? SIZE.exec(value) : null;
  const bytes = typeof value === "number"
    ? value
    : parts === null
    ? NaN
    : Number(parts[1]) * UNITS[parts[2]!]!;
  if (Number.isSafeInteger(bytes) && bytes >= 1) return bytes;
  return mismatch(site, context, "a number of bytes or a size such as 64MiB");
}

const CALENDAR = /^(\d+)(d|w|mo)$/;
const CALENDAR_UNITS = { d: "day", w: "week", mo: "month" } as const;

function readTime(
  type: Extract<FieldType, { kind: "duration" | "windowLength" }>,
  node: ScalarNode,
  site: Site,
  context: ReadContext,
): number | WindowLength | undefined {
  const wrong = (hint?: string) => mismatch(site, context, wordsOf(type), hint);
  if (node.value === 0 && type.kind === "duration" && (type.min ?? 0) <= 0) return 0;
  if (typeof node.value !== "string") return wrong(DURATION_HINT);
  const text = node.value;
  if (type.kind === "windowLength") {
    const calendar = CALENDAR.exec(text);
    if (calendar !== null) {
      const count = Number(calendar[1]);
      const unit = CALENDAR_UNITS[calendar[2] as keyof typeof CALENDAR_UNITS];
      return count >= 1 && count <= 10_000 ? { kind: "calendar", unit, count } : wrong();
    }
    if (/\dd|\dw|\dmo/.test(text)) {
      return wrong("days, weeks and months stand alone; 36h is a day and a half");
    }
  }
  let ms: number;
  try {
    ms = parseDuration(text);
  } catch (error) {
    if (!(error instanceof MailerError)) throw error;
    return wrong(DURATION_HINT);
  }
  const least = type.kind === "windowLength" ? 1 : type.min;
  if (Math.abs(ms) > LARGEST_DURATION || (least !== undefined && ms < least)) return wrong();
  if (type.kind === "duration") return ms;
  return Number.isSafeInteger(ms) ? { kind: "fixed", ms } : wrong("whole milliseconds");
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
    const what = `${site.path.at(-1)} ${value}`;
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
