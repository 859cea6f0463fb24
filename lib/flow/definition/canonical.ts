/**
 * The canonical form of a definition, its hash, and the definition as a document.
 *
 * C1 Two documents that mean the same have one canonical form: fields stand in the order of their descriptions, keys of
 *    maps and of free values by their code points, durations in one spelling, and what is as without saying so is left out.
 * C2 The canonical form is itself a document of the flow, in JSON.
 * C3 A new field or kind changes no hash of flows that do not use it.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { parseExact, stringifyJson } from "../../json.ts";
import { compareTexts } from "../../text_order.ts";
import type { AnyFields, Field, FieldType } from "../../workflow/field_type.ts";
import { camelOf } from "./convert.ts";
import { builtInKind } from "./fields.ts";
import { FLOW_FIELDS } from "./flow_fields.ts";
import { NODE, NODE_FIELDS, nodeKind, type Values } from "./node_kinds.ts";
import type { AwaitNode, FlowDefinition, FlowNode } from "./types.ts";
import { yamlOf } from "./yaml_text.ts";

/** Number of hex digits of a hash. */
const HASH_LENGTH = 16;

/** The canonical form: compact JSON. */
export function canonicalForm(definition: FlowDefinition): string {
  return block(FLOW_FIELDS, definition as unknown as Values);
}

/** The hash that names a version: the first 8 bytes, in hex, of the SHA-256 of the canonical form. */
export function hashOf(canonical: string): string {
  return createHash("sha256").update(canonical).digest("hex").slice(0, HASH_LENGTH);
}

/** The definition as the value of a document. */
export function flowDocument(definition: FlowDefinition): Readonly<Record<string, unknown>> {
  return parseExact(canonicalForm(definition)) as Record<string, unknown>;
}

/** The definition as a YAML document. */
export function flowYaml(definition: FlowDefinition): string {
  return yamlOf(flowDocument(definition));
}

/** Canonical text of a value of a type. */
function text(type: FieldType, value: unknown): string {
  switch (type.kind) {
    case "duration":
      return JSON.stringify(durationText(value as number));
    case "list":
      return listOf((value as readonly unknown[]).map((item) => text(type.of, item)));
    case "map":
      return mapOf(Object.entries(value as Values).map(([key, item]) => [key, text(type.of, item)]));
    case "variants":
      return type === NODE ? nodeText(value as FlowNode) : free(value);
    case "block":
      return block(type.fields, value as Values);
    default:
      return free(value);
  }
}

function block(fields: AnyFields, values: Values): string {
  return objectOf(
    Object.entries(fields).flatMap(([name, field]): [string, string][] => {
      const value = values[camelOf(name)];
      if (value === undefined) return [];
      const written = text(field.type, value);
      return isImplied(field, written) ? [] : [[name, written]];
    }),
  );
}

/** Whether a field means the same where it is left out. */
function isImplied(field: Field, written: string): boolean {
  if (field.required === true) return false;
  if (field.default !== undefined) return written === free(field.default);
  return (field.type.kind === "list" && written === "[]") || (field.type.kind === "map" && written === "{}");
}

function nodeText(node: FlowNode): string {
  const { type } = node;
  const { fields } = nodeKind(type)!;
  const values = (type === "await" ? awaitValues(node) : node) as Values;
  const settings = builtInKind(values.kind)?.settings;
  const own = settings === undefined || values.with === undefined
    ? fields
    : { ...fields, with: { ...fields.with!, type: settings } };
  const { id: idField, ...rest } = { ...NODE_FIELDS, type: TYPE, ...own };
  return block({ id: idField, ...rest }, values);
}

const TYPE: Field = { type: { kind: "text" }, summary: "Kind of node", required: true };

function awaitValues(node: AwaitNode): Values {
  const { signals, ...rest } = node;
  return signals.length === 1 ? { ...rest, signal: signals[0] } : { ...rest, signals };
}

/** A free value, with its keys in order. */
function free(value: unknown): string {
  if (Array.isArray(value)) return listOf(value.map(free));
  if (isPlain(value)) return mapOf(Object.entries(value).map(([key, item]) => [key, free(item)]));
  return stringifyJson(value);
}

/** Objects as documents have them; a number of many digits is an object too, and none of these. */
function isPlain(value: unknown): value is Values {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function listOf(items: readonly string[]): string {
  return `[${items.join(",")}]`;
}

function mapOf(entries: readonly (readonly [string, string])[]): string {
  return objectOf(entries.toSorted(([a], [b]) => compareTexts(a, b)));
}

function objectOf(entries: readonly (readonly [string, string])[]): string {
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${item}`).join(",")}}`;
}

const UNITS = [["h", 3_600_000], ["m", 60_000]] as const;

/** The one spelling of a duration of whole milliseconds: hours, minutes and seconds, or `250ms` below one second. */
export function durationText(ms: number): string {
  if (ms < 1000) return ms === 0 ? "0s" : `${ms}ms`;
  let rest = ms, written = "";
  for (const [unit, size] of UNITS) {
    const whole = Math.floor(rest / size);
    if (whole > 0) written += `${whole}${unit}`;
    rest -= whole * size;
  }
  if (rest === 0) return written;
  const fraction = rest % 1000;
  const tail = fraction === 0 ? "" : `.${String(fraction).padStart(3, "0").replace(/0+$/, "")}`;
  return `${written}${Math.floor(rest / 1000)}${tail}s`;
}
