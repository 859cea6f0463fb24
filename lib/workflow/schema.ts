/**
 * The JSON Schema (2020-12) of a workflow document, for completion and checking in editors.
 *
 * S1 It comes from the descriptions alone. What it accepts may still fail rules that concern several nodes; what
 *    validation accepts, it accepts.
 * S2 A text with `${…}` is accepted wherever its value may be right.
 *
 * @module
 */
import { componentsFor, LISTED_SINK_FIELDS, NAMED_SOURCE_FIELDS, type Role } from "./node.ts";
import type { Component } from "./component.ts";
import {
  COMPONENTS,
  DLQ_FIELDS,
  NAME,
  OPERATOR_FIELDS,
  SINK_FIELDS,
  SOURCE_FIELDS,
} from "./components/mod.ts";
import { NODE_KEYS, TOP_FIELDS } from "./document.ts";
import type { AnyFields, Condition, Field, FieldType, Rule } from "./field_type.ts";

/** A JSON Schema, or a part of one. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The schema of a whole workflow document. */
export function workflowSchema(): JsonSchema {
  const roles: readonly (readonly [string, Role, AnyFields])[] = [
    ["source", "source", SOURCE_FIELDS],
    ["namedSource", "source", NAMED_SOURCE_FIELDS],
    ["operator", "operator", OPERATOR_FIELDS],
    ["sink", "sink", SINK_FIELDS],
    ["listedSink", "sink", LISTED_SINK_FIELDS],
    ["dlq", "dlq", DLQ_FIELDS],
  ];
  const definitions: Record<string, JsonSchema> = {};
  for (const [name, role, fields] of roles) {
    definitions[name] = nodeSchema(role, fields, (type) => `${name}.${type}`);
    for (const component of componentsFor(role)) {
      definitions[`${name}.${component.type}`] = componentSchema(component, fields);
    }
  }
  for (const { kind, type, block } of COMPONENTS) {
    if (block !== undefined) definitions[`block.${kind}.${type}`] = typeSchema(block);
  }
  const top = blockSchema(TOP_FIELDS, []);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Mailer workflow",
    description: "A stream pipeline: sources, operators and sinks",
    ...top,
    properties: {
      ...top.properties as JsonSchema,
      env: { anyOf: [(top.properties as Record<string, unknown>).env, { type: "null" }] },
      source: { $ref: "#/$defs/source", description: NODE_KEYS.source },
      sources: { ...listOf({ $ref: "#/$defs/sourceEntry" }, 1), description: NODE_KEYS.sources },
      pipeline: {
        anyOf: [listOf({ $ref: "#/$defs/operator" }, 0), { type: "null" }],
        description: NODE_KEYS.pipeline,
      },
      sink: { $ref: "#/$defs/sink", description: NODE_KEYS.sink },
      sinks: { ...listOf({ $ref: "#/$defs/listedSink" }, 1), description: NODE_KEYS.sinks },
      dlq: { $ref: "#/$defs/dlq", description: NODE_KEYS.dlq },
    },
    allOf: [
      { oneOf: [{ required: ["source"] }, { required: ["sources"] }] },
      { oneOf: [{ required: ["sink"] }, { required: ["sinks"] }] },
    ],
    $defs: {
      sourceEntry: {
        type: "object",
        properties: {
          name: { ...typeSchema(NAME), description: "Id of the source" },
          source: { $ref: "#/$defs/namedSource" },
        },
        required: ["name", "source"],
        additionalProperties: false,
      },
      ...definitions,
    },
  };
}

function listOf(items: JsonSchema, minItems: number): JsonSchema {
  return { type: "array", items, ...(minItems === 0 ? {} : { minItems }) };
}

/** Any component of a role: the branch is chosen by its `type`. */
function nodeSchema(role: Role, fields: AnyFields, nameOf: (type: string) => string): JsonSchema {
  const components = componentsFor(role);
  return {
    type: "object",
    properties: {
      type: { enum: components.map(({ type }) => type), description: `Which ${role} it is` },
      ...propertiesOf(fields),
    },
    required: ["type"],
    oneOf: components.map(({ type }) => ({ $ref: `#/$defs/${nameOf(type)}` })),
  };
}

function componentSchema(component: Component, common: AnyFields): JsonSchema {
  const { type, summary, block, blockRequired, outer = {}, carried } = component;
  const base = blockSchema({ ...common, ...outer }, []);
  const required = [
    "type",
    ...base.required as string[] ?? [],
    ...(block && blockRequired !== false ? [type] : []),
  ];
  return {
    ...base,
    title: type,
    description: carried ? summary : `${summary} This build describes it and does not run it yet.`,
    properties: {
      ...base.properties as JsonSchema,
      type: { const: type },
      ...(block === undefined ? {} : { [type]: { $ref: `#/$defs/block.${component.kind}.${type}` } }),
    },
    required,
  };
}

function propertiesOf(fields: AnyFields): JsonSchema {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)]));
}

function fieldSchema(field: Field): JsonSchema {
  return {
    ...typeSchema(field.type),
    description: field.summary,
    ...(field.default === undefined ? {} : { default: field.default }),
    ...(field.example === undefined ? {} : { examples: [field.example] }),
  };
}

function blockSchema(fields: AnyFields, rules: readonly Rule[]): JsonSchema {
  const required = Object.entries(fields).filter(([, field]) => field.required === true).map(([name]) =>
    name
  );
  return {
    type: "object",
    properties: propertiesOf(fields),
    ...(required.length === 0 ? {} : { required }),
    ...(rules.length === 0 ? {} : { allOf: rules.map((rule) => ruleSchema(rule, fields)) }),
    additionalProperties: false,
  };
}

function ruleSchema(rule: Rule, fields: AnyFields): JsonSchema {
  switch (rule.kind) {
    case "anyOf":
      return { anyOf: rule.fields.map((field) => ({ required: [field] })) };
    case "oneOf":
      return {
        oneOf: rule.groups.map(({ required, optional = [] }) => {
          const others = rule.groups.flatMap((group) => [...group.required, ...group.optional ?? []])
            .filter((name) => !required.includes(name) && !optional.includes(name));
          const none = others.map((name) => ({ required: [name] }));
          return { required, ...(none.length === 0 ? {} : { not: { anyOf: none } }) };
        }),
      };
    case "requires":
      return { if: conditionSchema(rule.when, fields), then: { required: rule.fields } };
    case "forbids":
      return {
        if: conditionSchema(rule.when, fields),
        then: { not: { anyOf: rule.fields.map((field) => ({ required: [field] })) } },
      };
  }
}

/** Whether the condition's field has such a value, by itself or by its default; a text with `${…}` has none yet. */
function conditionSchema(when: Condition, fields: AnyFields): JsonSchema {
  const { field } = when, { type, default: standard } = fields[field]!;
  const written = (values: readonly unknown[]) =>
    values.flatMap((value) => [value, ...spellings(type, value)]);
  const value = when.in !== undefined
    ? { enum: written(when.in) }
    : { not: { anyOf: [{ enum: written(when.notIn!) }, { type: "string", pattern: REFERENCE }] } };
  const byDefault = standard !== undefined &&
    (when.in !== undefined ? when.in.includes(standard) : !when.notIn!.includes(standard));
  return { properties: { [field]: value }, ...(byDefault ? {} : { required: [field] }) };
}

function spellings(type: FieldType, value: unknown): string[] {
  if (type.kind !== "enum" || type.same === undefined) return [];
  return Object.keys(type.same).filter((spelling) => type.same![spelling] === value);
}

const REFERENCE = "\\$\\{";
const DURATION_UNITS = "(?:ns|us|µs|ms|s|m|h|d)";
const DURATION = `(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+)${DURATION_UNITS})+`;
const NOT_ZERO = "(?=.*[1-9])";

/** A text of a pattern, or one whose value is not written here. */
function textOr(pattern: string, ...others: readonly JsonSchema[]): JsonSchema {
  return { anyOf: [{ type: "string", pattern: `(?:${pattern})|${REFERENCE}` }, ...others] };
}

/** The schema of a type. */
export function typeSchema(type: FieldType): JsonSchema {
  switch (type.kind) {
    case "text":
      return type.pattern === undefined ? { type: "string" } : textOr(type.pattern);
    case "int":
    case "number": {
      const number = {
        type: type.kind === "int" ? "integer" : "number",
        ...(type.min === undefined ? {} : { minimum: type.min }),
        ...(type.max === undefined ? {} : { maximum: type.max }),
        ...(type.kind === "number" && type.above !== undefined ? { exclusiveMinimum: type.above } : {}),
      };
      return { anyOf: [number, { type: "string", pattern: REFERENCE }] };
    }
    case "boolean":
      return { anyOf: [{ type: "boolean" }, { type: "string", pattern: REFERENCE }] };
    case "duration": {
      const sign = type.min === undefined ? "[-+]?" : "\\+?";
      const above = (type.min ?? 0) > 0 ? NOT_ZERO : "";
      const zero = (type.min ?? 0) > 0 ? [] : [{ const: 0 }];
      return textOr(`^\\s*${above}${sign}${DURATION}\\s*$${above === "" ? "|^\\s*0\\s*$" : ""}`, ...zero);
    }
    case "windowLength":
      return textOr(
        `^\\s*\\+?${NOT_ZERO}(?:\\d+(?:d|w|mo)|(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:ns|us|µs|ms|s|m|h))+)\\s*$`,
      );
    case "size":
      return textOr("^\\d+(?:\\.\\d+)? ?(?:B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$", {
        type: "integer",
        minimum: 1,
      });
    case "path":
    case "ref":
    case "timezone":
    case "timeFormat":
      return { type: "string", minLength: 1 };
    case "expression":
      return { type: "string", minLength: 1, pattern: "\\S" };
    case "enum":
      return {
        anyOf: [{ enum: [...type.values, ...Object.keys(type.same ?? {})] }, {
          type: "string",
          pattern: REFERENCE,
        }],
      };
    case "list":
      return listOf(typeSchema(type.of), type.min ?? 0);
    case "map":
      return {
        type: "object",
        additionalProperties: typeSchema(type.of),
        ...((type.min ?? 0) === 0 ? {} : { minProperties: type.min }),
      };
    case "block":
      return blockSchema(type.fields, type.rules ?? []);
    case "variants":
      return variantsSchema(type);
    case "any":
      return {};
    case "from":
      return {
        anyOf: [{ type: "string" }, {
          type: "array",
          items: { type: "string" },
          minItems: 1,
          uniqueItems: true,
        }],
      };
    case "schema":
      return { anyOf: [{ type: "string", minLength: 1 }, { type: "object" }] };
  }
}

function variantsSchema(type: Extract<FieldType, { kind: "variants" }>): JsonSchema {
  const { by, default: standard } = type;
  return {
    type: "object",
    properties: { [by]: { enum: Object.keys(type.variants), description: type.summary } },
    ...(standard === undefined ? { required: [by] } : {}),
    oneOf: Object.entries(type.variants).map(([name, variant]) => {
      const block = blockSchema({ ...type.common, ...variant.fields }, [
        ...type.rules ?? [],
        ...variant.rules ?? [],
      ]);
      const required = [...name === standard ? [] : [by], ...block.required as string[] ?? []];
      return {
        ...block,
        title: name,
        description: variant.summary,
        properties: { [by]: { const: name }, ...block.properties as JsonSchema },
        ...(required.length === 0 ? {} : { required }),
      };
    }),
  };
}
