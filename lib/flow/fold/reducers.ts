/**
 * Channels: how a write meets what is there. The same functions check writes before they are recorded and fold them.
 *
 * @module
 */
import type { Channel, FlowDefinition } from "../definition/types.ts";
import { Decimal, stringifyJson } from "../../json.ts";
import { isNumeric, type Numeric, toDouble } from "../../numeric.ts";
import { setOwn } from "../../value.ts";
import { type Fields, isObject } from "./fields.ts";
import type { VersionedMap } from "./versioned_map.ts";

/** What a write comes to, or why it does not fit. */
export type Reduced = { readonly value: unknown } | { readonly problem: string };

/** What a channel holds after a write; null and nothing count as empty. */
export function reduce(channel: Channel, current: unknown, delta: unknown): Reduced {
  switch (channel.reducer) {
    case "replace":
      return { value: delta };
    case "append":
      return append(current ?? [], delta);
    case "merge":
      return merge(current ?? {}, delta);
    case "sum":
      return sum(current ?? 0, delta);
  }
}

/**
 * What is wrong with writes, one sentence; `undefined` where nothing is.
 *
 * @param writes As a worker or a client gave them.
 */
export function writesProblem(
  definition: FlowDefinition,
  channels: VersionedMap<unknown>,
  writes: unknown,
): string | undefined {
  if (!isObject(writes)) return `writes are no object but ${shown(writes)}`;
  for (const name of Object.keys(writes).sort()) {
    const channel = channelOf(definition, name);
    if (channel === undefined) return `the channel "${name}" is not declared`;
    const reduced = reduce(channel, channels.get(name), writes[name]);
    if ("problem" in reduced) return `channel "${name}": ${reduced.problem}`;
  }
  return undefined;
}

/** The channels after writes, in the order of their names. A write that does not fit changes nothing. */
export function applyWrites(
  definition: FlowDefinition,
  channels: VersionedMap<unknown>,
  writes: Fields | undefined,
): VersionedMap<unknown> {
  if (writes === undefined) return channels;
  let result = channels;
  for (const name of Object.keys(writes).sort()) {
    const channel = channelOf(definition, name);
    if (channel === undefined) continue;
    const reduced = reduce(channel, result.get(name), writes[name]);
    if ("value" in reduced) result = result.set(name, reduced.value);
  }
  return result;
}

function channelOf({ channels }: FlowDefinition, name: string): Channel | undefined {
  return Object.hasOwn(channels, name) ? channels[name] : undefined;
}

function append(current: unknown, delta: unknown): Reduced {
  if (!Array.isArray(current)) return { problem: `append needs a list, there is ${shown(current)}` };
  return { value: Array.isArray(delta) ? [...current, ...delta] : [...current, delta] };
}

function merge(current: unknown, delta: unknown): Reduced {
  if (!isObject(current)) return { problem: `merge needs an object, there is ${shown(current)}` };
  if (!isObject(delta)) return { problem: `merge takes an object, not ${shown(delta)}` };
  const value: Record<string, unknown> = {};
  for (const part of [current, delta]) {
    for (const key of Object.keys(part)) setOwn(value, key, part[key]);
  }
  return { value };
}

function sum(current: unknown, delta: unknown): Reduced {
  if (!isNumeric(current)) return { problem: `sum needs a number, there is ${shown(current)}` };
  if (!isNumeric(delta)) return { problem: `sum takes a number, not ${shown(delta)}` };
  const value = add(current, delta);
  return Number.isFinite(toDouble(value)) ? { value } : { problem: "the sum is beyond the range of doubles" };
}

/** Whole numbers exactly, others as doubles. */
function add(a: Numeric, b: Numeric): Numeric {
  const x = wholeOf(a), y = wholeOf(b);
  if (x === undefined || y === undefined) return toDouble(a) + toDouble(b);
  const total = x + y;
  return total >= -SAFE && total <= SAFE ? Number(total) : total;
}

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function wholeOf(value: Numeric): bigint | undefined {
  if (typeof value === "bigint") return value;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

/** A value as messages show it, cut after 60 characters. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = textOf(value);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

function textOf(value: unknown): string {
  try {
    return value instanceof Decimal ? value.text : stringifyJson(value);
  } catch (error) {
    if (error instanceof RangeError) return "something nested too deeply";
    throw error;
  }
}
