/**
 * The stateless operators of workflows as functions of a record.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { deletePath, getter, parsePath, picker, setPath } from "../../path.ts";
import type { RecordContext } from "../../record.ts";
import { copyValue, setOwn } from "../../value.ts";
import type { ExplodeBlock, FieldsBlock, FilterBlock, RenameFieldsBlock, SetFieldsBlock } from "../blocks.ts";
import { comparatorTest } from "./comparator.ts";
import { expressionOf } from "./expression.ts";

type Fn<R> = (value: unknown, record: RecordContext) => R;

/** Whether a value is a JSON object: not a list, not bytes. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** `filter` by a field. `onOther` counts what is no object, and is left out. */
export function fieldFilter({ field, operator, value }: FilterBlock, onOther: () => void): Fn<boolean> {
  const get = getter(parsePath(field!)), test = comparatorTest(operator!, value);
  return (record) => {
    if (isObject(record)) return test(get(record));
    onOther();
    return false;
  };
}

/** `selectFields`: the fields named, where they are there, with their nesting. */
export function selectFields({ fields }: FieldsBlock): Fn<unknown> {
  const pick = picker(fields.map(parsePath));
  return (value) => isObject(value) ? pick(value) : value;
}

/** `dropFields`. */
export function dropFields({ fields }: FieldsBlock): Fn<unknown> {
  const paths = fields.map(parsePath);
  return (value) =>
    isObject(value) ? paths.reduce<unknown>((rest, path) => deletePath(rest, path), value) : value;
}

/** `renameFields`: in their order; what is not there is passed over. */
export function renameFields({ renames }: RenameFieldsBlock): Fn<unknown> {
  const steps = renames.map(({ from, to }) => {
    const path = parsePath(from);
    return { path, get: getter(path), to: parsePath(to) };
  });
  return (value) => {
    if (!isObject(value)) return value;
    let renamed: unknown = value;
    for (const { path, get, to } of steps) {
      const found = get(renamed);
      if (found !== undefined) renamed = setPath(deletePath(renamed, path), to, found);
    }
    return renamed;
  };
}

/** `setFields`: constants and expressions, in their order; an expression sees what was set before it. */
export function setFields({ sets }: SetFieldsBlock, rows: "windowed" | "plain"): Fn<unknown> {
  const steps = sets.map(({ field, value, expr }) => {
    const made: Fn<unknown> = expr === undefined ? () => copyValue(value) : expressionOf(expr, rows);
    return { path: parsePath(field), made };
  });
  return (value, record) => {
    if (!isObject(value)) return value;
    let changed: unknown = value;
    for (const { path, made } of steps) changed = setPath(changed, path, made(changed, record));
    return changed;
  };
}

/** `explode`: a record per element; the list goes, unless the element has its name. */
export function explode({ field, as }: ExplodeBlock): Fn<Iterable<unknown>> {
  const path = parsePath(field), get = getter(path);
  return (value) => {
    const list = get(value);
    if (!Array.isArray(list)) {
      throw new MailerError(
        "not_a_list",
        list === undefined ? `explode: ${field} is missing` : `explode: ${field} is not a list`,
      );
    }
    const rest = deletePath(value, path);
    return list.map((element) => {
      const made = copyValue(rest) as object;
      setOwn(made, as, element);
      return made;
    });
  };
}

/** `flatMap` by an expression: a list of new values. */
export function listOf(made: Fn<unknown>): Fn<Iterable<unknown>> {
  return (value, record) => {
    const list = made(value, record);
    if (Array.isArray(list)) return list;
    throw new MailerError("not_a_list", "flatMap: the expression must give a list");
  };
}
