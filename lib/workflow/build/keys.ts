/**
 * The key of a workflow's `keyBy`.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { getter, parsePath } from "../../path.ts";
import type { RecordContext } from "../../record.ts";
import type { KeyByBlock } from "../blocks.ts";
import { expressionOf } from "./expression.ts";

/** Takes the key out of a record; several fields are a list in their order. */
export function keyOf(
  { field, fields, expr }: KeyByBlock,
  rows: "windowed" | "plain",
): (value: unknown, record: RecordContext) => unknown {
  if (expr !== undefined) return expressionOf(expr, rows);
  if (fields === undefined) return fieldKey(field!);
  const parts = fields.map(fieldKey);
  return (value) => parts.map((part) => part(value));
}

function fieldKey(field: string): (value: unknown) => unknown {
  const get = getter(parsePath(field));
  return (value) => {
    const key = get(value);
    if (key === undefined) {
      throw new MailerError("missing_key", `the record has no ${field}, which is its key`);
    }
    return key;
  };
}
