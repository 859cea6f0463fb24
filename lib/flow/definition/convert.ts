/**
 * From the values of a document, named as there, to the values of a definition; and names both ways.
 *
 * @module
 */
import type { AnyFields, FieldType } from "../../workflow/field_type.ts";
import { objectOf } from "../../workflow/reader.ts";
import type { Values } from "./node_kinds.ts";
import type { FlowNode, NodeType } from "./types.ts";

/** `max_attempts` → `maxAttempts` */
export function camelOf(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `maxAttempts` → `max_attempts` */
export function snakeOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The value of a definition for one that was read from a document. */
export function converted(type: FieldType, value: unknown): unknown {
  switch (type.kind) {
    case "duration":
      return Math.ceil(value as number); // D3; nothing is ever too early
    case "list":
      return (value as readonly unknown[]).map((item) => converted(type.of, item));
    case "map":
      return objectOf(Object.entries(value as Values).map(([key, item]) => [key, converted(type.of, item)]));
    case "block":
      return convertedFields(type.fields, value as Values);
    default:
      return value;
  }
}

/** The same for the fields of a block; what is not there stays away. */
export function convertedFields(fields: AnyFields, values: Values): Record<string, unknown> {
  return objectOf(
    Object.entries(fields).filter(([name]) => values[name] !== undefined)
      .map(([name, field]) => [camelOf(name), converted(field.type, values[name])]),
  );
}

type Record_ = Record<string, unknown>;

/** What is left to do to make a node of the values of its fields. */
const FINISH: Readonly<Partial<Record<NodeType, (node: Record_) => Record_>>> = {
  task: (node) => ({ ...withPolicy(node), dynamic: node.dynamic ?? [] }),
  map(node) {
    const { maxParallel, ...rest } = node;
    const width = { maxParallel: maxParallel === 0 ? 100 : maxParallel };
    if (node.flow === undefined) {
      const { onParentClose: _, ...task } = rest;
      return { ...withPolicy(task), ...width };
    }
    const { priority: _, ...children } = rest;
    return { ...children, ...width };
  },
  choice({ rules, onError, ...rest }) {
    return {
      ...rest,
      rules: (rules as Record_[]).map(({ when, to, default: isDefault }) =>
        isDefault === true ? { default: true, to } : { when, to }
      ),
      ...(onError === "fail" ? { onError } : {}),
    };
  },
  await({ signal, ...rest }) {
    return signal === undefined ? rest : { ...rest, signals: [signal] };
  },
};

/** A node of a definition. `settings` are those of a built-in kind. */
export function nodeOf(type: NodeType, fields: AnyFields, values: Values, settings?: object): FlowNode {
  const { with: _, ...rest } = values;
  const node: Record_ = { id: values.id, type, ...convertedFields(fields, rest) };
  if (settings !== undefined && Object.keys(settings).length > 0) node.with = settings;
  if (node.meta !== undefined && Object.keys(node.meta as object).length === 0) delete node.meta;
  return (FINISH[type]?.(node) ?? node) as unknown as FlowNode;
}

function withPolicy(node: Record_): Record_ {
  const { retry, outputSchema, ...rest } = node;
  const policy = retry as { maxAttempts: number; delay: number; maxDelay: number } & Record_ | undefined;
  const schema = outputSchema !== undefined && Object.keys(outputSchema as object).length > 0;
  return {
    ...rest,
    ...(schema ? { outputSchema } : {}),
    ...(policy === undefined || policy.maxAttempts < 2
      ? {}
      : { retry: { except: [], ...policy, maxDelay: Math.max(policy.delay, policy.maxDelay) } }),
  };
}

/** Makes lists and plain objects unchangeable, all the way down. */
export function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
