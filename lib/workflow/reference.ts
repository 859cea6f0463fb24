/**
 * The reference page of workflow documents, as Markdown, from the descriptions of the components.
 *
 * @module
 */
import { componentsFor, LISTED_SINK_FIELDS, type Role } from "./node.ts";
import type { Component } from "./component.ts";
import { DLQ_FIELDS, ENV, OPERATOR_FIELDS, SINK_FIELDS, SOURCE_FIELDS } from "./components/mod.ts";
import { NODE_KEYS, TOP_FIELDS } from "./document.ts";
import type { AnyFields, FieldType, Rule, Variant } from "./field_type.ts";
import { wordsOf } from "./words.ts";

/** The page. */
export function workflowReference(): string {
  const { env: _own, ...top } = TOP_FIELDS;
  return [
    "# Workflow documents",
    "Generated from the descriptions that validation uses. Fields marked * are required.",
    "Any text may hold `${NAME}` or `${NAME:-default}` from the environment; `$${` stands for `${`.",
    "## Top level",
    table(top, topRows()),
    "## env",
    fieldTables(ENV.type, "env"),
    ...section("Sources", "source", SOURCE_FIELDS),
    ...section("Operators", "operator", OPERATOR_FIELDS),
    ...section("Sinks", "sink", { ...SINK_FIELDS, id: { ...SINK_FIELDS.id!, summary: ID_OF_SINK } }),
    "## Dead letters",
    `\`dlq\` takes the sinks ${componentsFor("dlq").map(({ type }) => `\`${type}\``).join(" and ")}.`,
    table(DLQ_FIELDS),
  ].join("\n\n") + "\n";
}

const ID_OF_SINK = `${LISTED_SINK_FIELDS.id!.summary}; required in a list of sinks`;

function topRows(): string[] {
  return Object.entries({ env: ENV.summary, ...NODE_KEYS }).map(([key, summary]) =>
    row(`\`${key}\``, "", "", summary)
  );
}

function section(title: string, role: Role, common: AnyFields): string[] {
  return [
    `## ${title}`,
    `Every ${role} has a \`type\`, and:`,
    table(common),
    ...inner(common, role),
    ...componentsFor(role).flatMap((component) => componentText(component, role)),
  ];
}

function componentText(component: Component, role: Role): string[] {
  const { type, summary, carried, outer, block, example } = component;
  return [
    `### ${role} ${type}`,
    carried ? summary : `${summary} *Described and validated; this build does not run it yet.*`,
    ...(outer === undefined ? [] : [table(outer)]),
    ...(block === undefined ? [] : [fieldTables(block, type)]),
    "```yaml\n" + example + "```",
  ].filter((text) => text !== "");
}

/** Tables of a block, and of the blocks inside it; nothing for what is none. */
export function fieldTables(type: FieldType, name: string): string {
  switch (type.kind) {
    case "block": {
      const parts = Object.keys(type.fields).length === 0
        ? []
        : [table(type.fields), ...rulesText(type.rules)];
      return [...parts, ...inner(type.fields, name)].join("\n\n");
    }
    case "variants":
      return [
        `\`${type.by}\`${
          type.default === undefined ? " *" : ` (default \`${type.default}\`)`
        }: ${type.summary}.`,
        ...(Object.keys(type.common).length === 0 ? [] : [table(type.common), ...inner(type.common, name)]),
        ...variantsText(type.variants, name, type.by),
      ].join("\n\n");
    case "list":
    case "map":
      return fieldTables(type.of, type.kind === "list" ? `${name}[]` : `${name}.*`);
    default:
      return "";
  }
}

function variantsText(variants: Readonly<Record<string, Variant>>, name: string, by: string): string[] {
  const seen = new Set<unknown>();
  return Object.entries(variants).flatMap(([value, { summary, fields, rules }]) => {
    const fresh = Object.fromEntries(Object.entries(fields).filter(([, { type }]) => !seen.has(type)));
    for (const { type } of Object.values(fields)) seen.add(type);
    return [
      `**${by}: ${value}** ${summary}.`,
      ...(Object.keys(fields).length === 0 ? [] : [table(fields), ...rulesText(rules)]),
      ...inner(fresh, name),
    ];
  });
}

function inner(fields: AnyFields, name: string): string[] {
  return Object.entries(fields).flatMap(([key, { type }]) => {
    const text = fieldTables(type, `${name}.${key}`);
    return text === "" ? [] : [`\`${name}.${key}\``, text];
  });
}

/** Rules of a block, a sentence each. */
export function rulesText(rules: readonly Rule[] = []): string[] {
  return rules.map((rule) => {
    switch (rule.kind) {
      case "anyOf":
        return `At least one of ${names(rule.fields)}.`;
      case "oneOf":
        return `Exactly one of: ${rule.groups.map(({ required }) => names(required, " with ")).join("; ")}.`;
      case "requires":
      case "forbids": {
        const { field, in: some, notIn } = rule.when;
        const values = (some ?? notIn)!.map((value) => `\`${value}\``).join(", ");
        const verb = rule.kind === "requires" ? "needed" : "not allowed";
        return `${names(rule.fields)}: ${verb} when \`${field}\` is ${
          some === undefined ? "not " : ""
        }${values}.`;
      }
    }
  });
}

function names(fields: readonly string[], between = ", "): string {
  return fields.map((field) => `\`${field}\``).join(between);
}

/** A table of fields. */
export function fieldTable(fields: AnyFields): string {
  return table(fields);
}

function table(fields: AnyFields, more: readonly string[] = []): string {
  const rows = Object.entries(fields).map(
    ([name, { type, summary, required, default: standard, carried }]) => {
      const shown = standard === undefined
        ? ""
        : `\`${typeof standard === "string" ? standard : JSON.stringify(standard)}\``;
      const note = carried === false ? `${summary} (not run by this build yet)` : summary;
      return row(
        `\`${name}\`${required === true ? " *" : ""}`,
        typeText(type),
        shown === "``" ? '`""`' : shown,
        note,
      );
    },
  );
  return [row("field", "value", "default", "meaning"), "|---|---|---|---|", ...rows, ...more].join("\n");
}

function typeText(type: FieldType): string {
  if (type.kind === "list") return `list of ${typeText(type.of).replace(/^an? /, "")}`;
  if (type.kind === "map") return `block of ${typeText(type.of).replace(/^an? /, "")}`;
  return wordsOf(type);
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
