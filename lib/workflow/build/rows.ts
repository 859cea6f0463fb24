/**
 * The form of the rows that aggregations give in workflows: the key's fields under their paths, the results, and the window.
 *
 * @module
 */
import { parsePath, setPath } from "../../path.ts";
import type { WindowOfRow } from "../../record.ts";
import { copyValue, setOwn } from "../../value.ts";
import { formatInstant } from "../../window/mod.ts";
import type { KeyByBlock } from "../blocks.ts";

/** Makes a new object with the key in it. */
export type KeyPart = (key: unknown) => object;

/** The key under the paths it was taken from; an expression's under `key`. */
export function keyPart(block: KeyByBlock): KeyPart {
  const { field, fields } = block;
  if (fields !== undefined) {
    const paths = fields.map(parsePath);
    return (key) => {
      const parts = key as readonly unknown[];
      return paths.reduce<unknown>((row, path, i) => setPath(row, path, copyValue(parts[i])), {}) as object;
    };
  }
  const path = parsePath(field ?? "key");
  const [first] = path;
  if (path.length === 1 && typeof first === "string") {
    return (key) => {
      const row = {};
      setOwn(row, first, copyValue(key));
      return row;
    };
  }
  return (key) => setPath({}, path, copyValue(key)) as object;
}

/** The window as rows and expressions have it. */
export interface WindowField {
  readonly start: string;
  readonly end: string;
  readonly early?: true;
}

// The rows of one firing share their window: it is printed once.
let lastWindow: WindowOfRow | undefined, lastField: WindowField | undefined;

/** A window with its times printed. */
export function windowField(window: WindowOfRow): WindowField {
  if (window !== lastWindow) {
    const { start, end, timezone, early } = window;
    lastField = {
      start: formatInstant(start, timezone),
      end: formatInstant(end, timezone),
      ...(early === undefined ? {} : { early }),
    };
    lastWindow = window;
  }
  return { ...lastField! };
}

/** Adds the window to a row, where there is one. */
export function withWindow(row: object, window: WindowOfRow | undefined): object {
  if (window !== undefined) setOwn(row, "window", windowField(window));
  return row;
}
