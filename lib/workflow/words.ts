/**
 * Words for types, in messages and on the reference page.
 *
 * @module
 */
import type { FieldType } from "./field_type.ts";

/** Words for a type, to complete "expected …". */
export function wordsOf(type: FieldType): string {
  switch (type.kind) {
    case "text":
      return type.what ?? "a text";
    case "int":
      return `a whole number${range(type.min, type.max)}`;
    case "number":
      return `a number${type.above === undefined ? "" : ` above ${type.above}`}${range(type.min, type.max)}`;
    case "boolean":
      return "true or false";
    case "duration":
      return (type.min ?? 0) > 0 ? "a duration above zero such as 30s" : "a duration such as 30s";
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
      return `${type.what ?? "a JSON Schema"} or the path of a file with one`;
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
