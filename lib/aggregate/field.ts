/**
 * What an aggregate function reads from a record: a field by its path, or whatever a function returns.
 *
 * Missing (`undefined`) is an error of the record, null is a value that says nothing and is skipped.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { stringifyJson } from "../json.ts";
import { isNumeric, type Numeric } from "../numeric.ts";
import { getter, parsePath } from "../path.ts";

/** A field path such as `order.amount`, or a function of the record's value. */
export type Field<In> = string | ((value: In) => unknown);

/** A {@link Field} made ready. */
export interface FieldReader<In> {
  readonly get: (value: In) => unknown;
  /** For messages: `"order.amount"`. */
  readonly label: string;
}

/** @throws {MailerError} `invalid_path` */
export function fieldReader<In>(field: Field<In>): FieldReader<In> {
  if (typeof field === "function") return { get: field, label: "what it reads from the record" };
  return { get: getter(parsePath(field)) as (value: In) => unknown, label: `"${field}"` };
}

/** The record's value itself. */
export function wholeRecord<In>(): FieldReader<In> {
  return { get: (value) => value, label: "the record" };
}

/** Error of a record that lacks a field. */
export function missingField(name: string, label: string): MailerError {
  return new MailerError("missing_field", `${name}: ${label} is missing`);
}

/** The value as a finite number, or null for null. */
export function numberOrNull(value: unknown, name: string, label: string): Numeric | null {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (value === null) return null;
  if (value === undefined) throw missingField(name, label);
  if (isNumeric(value) && typeof value !== "number") return value;
  throw new MailerError("not_a_number", `${name}: ${label} is not a number: ${excerpt(value)}`);
}

/** The value as a number or text, which have an order, or null for null. */
export function orderedOrNull(value: unknown, name: string, label: string): Numeric | string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isFinite(value) || value === null) return value;
  if (value === undefined) throw missingField(name, label);
  if (isNumeric(value) && typeof value !== "number") return value;
  throw new MailerError(
    "not_a_number",
    `${name}: ${label} is neither a number nor a text: ${excerpt(value)}`,
  );
}

/** Error of numbers and texts that meet where an order is needed. */
export function notComparable(name: string, a: unknown, b: unknown): MailerError {
  const [x, y] = [excerpt(a), excerpt(b)];
  return new MailerError(
    "not_comparable",
    `${name}: numbers and texts have no order among each other: ${x} and ${y}`,
  );
}

/** The beginning of a value, for messages. */
function excerpt(value: unknown): string {
  const text = typeof value === "number" ? String(value) : stringifyJson(value);
  return text.length <= 60 ? text : text.slice(0, 57) + "…";
}
