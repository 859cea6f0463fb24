/**
 * The JSON Schema (2020-12) of a flow, for completion and checking in editors.
 *
 * S1 It comes from the descriptions alone. What it accepts may still fail rules that concern several nodes; what
 *    validation accepts, it accepts, but for the whole nanoseconds a JSON document may give as durations.
 *
 * @module
 */
import { type JsonSchema, typeSchema } from "../../workflow/schema.ts";
import { BUILT_IN_KINDS, TOKEN_PATTERN } from "./fields.ts";
import { FLOW } from "./flow_fields.ts";
import { NODE, NODE_KINDS } from "./node_kinds.ts";

/** The schema of a flow's document. */
export function flowSchema(): JsonSchema {
  const flow = typeSchema(FLOW), node = typeSchema(NODE);
  const forms = node.oneOf as readonly JsonSchema[];
  const kinds = NODE_KINDS.map(({ type }, i) => [type, withSettings(forms[i]!)] as const);
  const properties = flow.properties as Readonly<Record<string, JsonSchema>>;
  return withoutReferences({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Mailer flow",
    description: "A durable workflow: nodes, and the ways between them",
    ...flow,
    properties: {
      ...properties,
      ...Object.fromEntries(["channels", "budget", "search_attributes"].map((name) => {
        return [name, { ...properties[name]!, propertyNames: { pattern: TOKEN_PATTERN.source } }] as const;
      })),
      version: { ...properties.version!, enum: ["1", "", 1] },
      nodes: { ...properties.nodes!, items: { $ref: "#/$defs/node" } },
    },
    dependentRequired: { on_expire: ["retention"] },
    $defs: {
      node: { ...node, oneOf: kinds.map(([type]) => ({ $ref: `#/$defs/${type}` })) },
      ...Object.fromEntries(kinds),
      ...Object.fromEntries(BUILT_IN_KINDS.map(({ kind, settings, summary }) => {
        return [`with.${kind}`, { ...typeSchema(settings), description: summary }] as const;
      })),
    },
  }) as JsonSchema;
}

/** The form of a node in which `with` is that of its kind. */
function withSettings(form: JsonSchema): JsonSchema {
  if (!Object.hasOwn(form.properties as object, "with")) return form;
  const names = BUILT_IN_KINDS.map(({ kind }) => kind);
  const rules = names.map((kind) => ({
    if: { properties: { kind: { const: kind } }, required: ["kind"] },
    then: { properties: { with: { $ref: `#/$defs/with.${kind}` } } },
  }));
  const others = {
    if: { not: { properties: { kind: { enum: names } }, required: ["kind"] } },
    then: { not: { required: ["with"] } },
  };
  return { ...form, allOf: [...form.allOf as readonly unknown[] ?? [], ...rules, others] };
}

/** The rest of a pattern that lets `${…}` of workflows pass; flows have none. */
const REFERENCE = "\\$\\{";

/** A schema in which no text passes for holding `${…}`. */
function withoutReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutReferences);
  if (typeof schema !== "object" || schema === null) return schema;
  const { anyOf, ...rest } = schema as { anyOf?: readonly JsonSchema[] } & Record<string, unknown>;
  const others = anyOf?.filter(({ pattern }) => pattern !== REFERENCE);
  const all = others?.length === 1
    ? { ...others[0], ...rest }
    : { ...rest, ...(others && { anyOf: others }) };
  return Object.fromEntries(
    Object.entries(all).map(([key, value]) => {
      return [key, key === "pattern" ? withoutReference(String(value)) : withoutReferences(value)] as const;
    }),
  );
}

function withoutReference(pattern: string): string {
  return /^\(\?:([^]*)\)\|\\\$\\\{$/.exec(pattern)?.[1] ?? pattern;
}
