/**
 * Expressions of a workflow as functions of a record.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { compileExpression } from "../../expr/mod.ts";
import type { Headers, RecordContext } from "../../record.ts";
import { streamVariables } from "../expressions.ts";
import { windowField } from "./rows.ts";

/** What an expression sees: the record's value and, only when it asks, the rest of the record. */
class Activation {
  value: unknown;
  record!: RecordContext;

  get key(): unknown {
    return this.record.key;
  }
  get timestamp(): number {
    return this.record.timestamp;
  }
  get headers(): object {
    return headersAsMap(this.record.headers);
  }
  get source(): string {
    return this.record.source;
  }
  get split(): string {
    return this.record.split;
  }
  get offset(): number | null {
    return this.record.offset ?? null;
  }
  get window(): object {
    return this.record.window === undefined ? {} : windowField(this.record.window);
  }
}

/** Headers by name as text; of a name that repeats, the last. */
function headersAsMap(headers: Headers): object {
  return Object.fromEntries(headers.map(([name, value]) => [name, Buffer.from(value).toString("utf8")]));
}

/** The value of an expression for each record. */
export function expressionOf(
  text: string,
  rows: "windowed" | "plain",
): (value: unknown, record: RecordContext) => unknown {
  const { evaluate } = compileExpression(text, { dialect: "streams", variables: streamVariables(rows) });
  const activation = new Activation();
  return (value, record) => {
    activation.value = value;
    activation.record = record;
    return evaluate(activation);
  };
}

/** An expression as a condition. */
export function conditionOf(
  text: string,
  rows: "windowed" | "plain",
): (value: unknown, record: RecordContext) => boolean {
  const { test } = compileExpression(text, { dialect: "streams", variables: streamVariables(rows) });
  const activation = new Activation();
  return (value, record) => {
    activation.value = value;
    activation.record = record;
    return test(activation);
  };
}
