/**
 * Relations between the fields of a block.
 *
 * @module
 */
import type { Condition, Rule } from "./field_type.ts";
import type { ReadContext, Site } from "./reader.ts";
import type { MapNode } from "./tree.ts";

/** A block that was read field by field. */
export interface ReadFields {
  readonly values: Record<string, unknown>;
  /** Fields that stand in the document, right or wrong. */
  readonly present: ReadonlySet<string>;
  /** Fields whose value could not be read, or is not known yet. */
  readonly unsure: ReadonlySet<string>;
  readonly complete: boolean;
}

/** Applies a rule to what was read. */
export function applyRule(
  rule: Rule,
  read: ReadFields,
  map: MapNode,
  site: Site,
  context: ReadContext,
): void {
  const missing = (field: string, message: string, hint?: string) => {
    context.problems.add(site.at, [...site.path, field], "missing", message, hint);
  };
  switch (rule.kind) {
    case "anyOf":
      if (!rule.fields.some((field) => read.present.has(field))) {
        missing(rule.fields[0]!, `needs ${rule.fields.join(" or ")}`);
      }
      return;
    case "oneOf": {
      const groups = rule.groups.map(({ required, optional = [] }) => ({
        required,
        all: [...required, ...optional],
      }));
      const touched = groups.filter(({ all }) => all.some((field) => read.present.has(field)));
      if (touched.length === 0) {
        const ways = groups.map(({ required }) => required.join(" and "));
        missing(groups[0]!.required[0]!, `needs ${ways.join(", or ")}`);
      } else if (touched.length > 1) {
        const keys = map.entries.filter(({ key }) => touched.some(({ all }) => all.includes(key)));
        const first = keys[0]!, group = touched.find(({ all }) => all.includes(first.key))!;
        const other = keys.find(({ key }) => !group.all.includes(key))!;
        const path = [...site.path, other.key];
        context.problems.add(
          other.place,
          path,
          "excluded",
          `"${other.key}" cannot stand beside "${first.key}"`,
        );
      } else {
        for (const field of touched[0]!.required) {
          if (!read.present.has(field)) {
            missing(field, `needs ${field} beside ${firstPresent(touched[0]!.all, read)}`);
          }
        }
      }
      return;
    }
    case "requires":
    case "forbids": {
      const value = holds(rule.when, read);
      if (value === undefined) return;
      const because = rule.because.replace("{value}", String(value));
      for (const field of rule.fields) {
        if (rule.kind === "requires" && !read.present.has(field)) missing(field, because);
        else if (rule.kind === "forbids" && read.present.has(field)) {
          const { place } = map.entries.find(({ key }) => key === field)!;
          context.problems.add(place, [...site.path, field], "excluded", `${field} does not fit: ${because}`);
        }
      }
    }
  }
}

function firstPresent(fields: readonly string[], read: ReadFields): string {
  return fields.find((field) => read.present.has(field))!;
}

/** The value for which a condition holds; `undefined` where it does not, or where that cannot be told. */
function holds(when: Condition, read: ReadFields): unknown {
  if (read.unsure.has(when.field)) return undefined;
  const value = read.values[when.field];
  if (value === undefined) return undefined;
  const fits = when.in !== undefined ? when.in.includes(value) : !when.notIn!.includes(value);
  return fits ? value : undefined;
}
