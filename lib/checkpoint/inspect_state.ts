/**
 * What a checkpoint holds of the keys of an operator, read out of its runs: nothing is opened for writing, nothing is deleted.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { nearest } from "../expr/mod.ts";
import { keyGroup, type KeyIdentity, keyIdentity } from "../key.ts";
import { PageCache, type Section } from "../state/log/mod.ts";
import { valueBytes } from "../state/log/codec.ts";
import { EntryHead } from "../state/log/entry.ts";
import { type Found, lookUp } from "../state/log/lookup.ts";
import { Merge } from "../state/log/merge.ts";
import { Places } from "../state/log/place.ts";
import { Run } from "../state/log/run.ts";
import type { StoredPiece, StoredTable } from "../state/log/section.ts";
import { Space, type StoredEntry, StoredValue } from "../state/log/space.ts";
import type { PageStore } from "../state/pages/port.ts";
import { labelOf } from "./manifest.ts";
import type { Manifest, OperatorState } from "./manifest.ts";

/** A space of an operator in numbers. */
export interface SpaceFacts {
  readonly space: string;
  readonly kind: "table" | "queue";
  /** Number of its tables: of windows, one a window. */
  readonly tables: number;
  /** Number of keys in all of them together. */
  readonly keys: number;
}

/** What one table, or queue, holds of a key. */
export interface HeldState {
  readonly space: string;
  /** Which table: the start of a window, say. Of a queue: the time of the entry. */
  readonly order: number;
  readonly value: unknown;
  /** When it is gone, by the time of its space, ms; undefined: never. What has expired may still be there. */
  readonly expires: number | undefined;
}

/** The spaces of an operator, by name. */
export function spacesOf({ tables }: Section): SpaceFacts[] {
  const spaces = new Map<string, SpaceFacts>();
  for (const { space, kind, pieces } of tables) {
    const name = `${kind} ${space}`, before = spaces.get(name);
    const keys = pieces.reduce((sum, piece) => sum + piece.keys, before?.keys ?? 0);
    spaces.set(name, { space, kind, tables: (before?.tables ?? 0) + 1, keys });
  }
  return [...spaces.values()]
    .map((facts) => ({ ...facts, keys: Math.round(facts.keys) }))
    .sort((a, b) => a.space < b.space ? -1 : 1);
}

/**
 * The keyed state of an operator.
 *
 * @throws {MailerError} `no_keyed_state` with the operators that have some.
 */
export function stateOf(
  manifest: Manifest,
  operator: string,
): OperatorState & { readonly section: Section } {
  const own = Object.hasOwn(manifest.operators, operator) ? manifest.operators[operator] : undefined;
  if (own?.section !== undefined) return { ...own, section: own.section };
  const keyed = Object.entries(manifest.operators)
    .flatMap(([id, { section }]) => section === undefined ? [] : [id]);
  const near = nearest(operator, keyed);
  throw new MailerError("no_keyed_state", `${labelOf(manifest)} has no keyed state of "${operator}"`, {
    hint: keyed.length === 0
      ? "no operator has any"
      : `${near === undefined ? "" : `did you mean "${near}"? `}operators with keyed state: ${
        keyed.join(", ")
      }`,
  });
}

/**
 * All that is held of a key, by space and order.
 *
 * @param operator Names the operator, for errors.
 * @throws {MailerError} `page_missing`, `page_corrupt`, `page_format`
 */
export async function stateOfKey(
  operator: string,
  { snapshots, section }: OperatorState & { readonly section: Section },
  key: unknown,
  pages: PageStore,
): Promise<HeldState[]> {
  const identity = keyIdentity(key), group = keyGroup(identity, section.maxKeyGroups);
  const runs = await Run.open(section.runs, pages, new PageCache(2 ** 20)), held: HeldState[] = [];
  const sought: Sought = {
    identity,
    place: new Places(section.maxKeyGroups).of(identity),
    runs,
    pages,
  };
  const tables = section.tables.toSorted((a, b) =>
    a.space === b.space ? a.order - b.order : a.space < b.space ? -1 : 1
  );
  for (const table of tables) {
    const piece = table.pieces.find(({ from, to }) => group >= from && group < to);
    if (piece === undefined) continue;
    const space = new Space(operator, table.space, { late: true });
    held.push(...await (table.kind === "table" ? inTable : inQueue)(table, piece, space, sought));
  }
  const maps = mapsOf(snapshots);
  return held.map((one) => maps.has(one.space) ? { ...one, value: mapContent(one.value) } : one);
}

interface Sought {
  readonly identity: KeyIdentity;
  readonly place: number;
  /** The newest first. */
  readonly runs: readonly Run[];
  readonly pages: PageStore;
}

async function inTable(
  { space: name, order }: StoredTable,
  { instance }: StoredPiece,
  space: Space,
  { identity, place, runs, pages }: Sought,
): Promise<HeldState[]> {
  const places: Found[] = [];
  const wanted = { instance, place, identity: valueBytes(identity) };
  await lookUp([wanted], runs.filter(({ spans }) => spans.has(instance)), pages, (_, found) => {
    places.push(found);
  });
  const [found] = places, head = new EntryHead();
  if (found === undefined) return [];
  const { run, page, index } = found;
  if (head.read(page.bytes, page.view, page.start(index)).isTombstone) return [];
  const { value, expires } = await space.read(head, page, index, run);
  return [{ space: name, order, value: unwrapped(value), expires: finite(expires) }];
}

/** A queue is sorted by time, so all of it is read. */
async function inQueue(
  { space: name }: StoredTable,
  { instance, floor }: StoredPiece,
  space: Space,
  { identity, place, runs }: Sought,
): Promise<HeldState[]> {
  const merge = new Merge(runs.filter(({ spans }) => spans.has(instance)), {
    from: { instance, order: floor, place: 0 },
    to: { instance: instance + 1, order: -Infinity, place: 0 },
  });
  const held: HeldState[] = [], head = new EntryHead();
  for (let step = merge.next(); step !== "end"; step = merge.next()) {
    if (step === "wait") {
      await merge.wait();
      continue;
    }
    const { page, index, run } = merge.top;
    if (merge.top.place !== place) continue;
    if (head.read(page.bytes, page.view, page.start(index)).isTombstone) continue;
    const { value }: StoredEntry = await space.read(head, page, index, run);
    const [time, own, tag] = unwrapped(value) as [number, KeyIdentity, unknown];
    if (own === identity) held.push({ space: name, order: time, value: tag, expires: undefined });
  }
  return held;
}

function unwrapped(value: unknown): unknown {
  return value instanceof StoredValue ? value.value : value;
}

function finite(time: number): number | undefined {
  return Number.isFinite(time) ? time : undefined;
}

/** Spaces of the states that user code has asked for as maps. */
function mapsOf(snapshots: readonly unknown[]): Set<string> {
  const maps = new Set<string>();
  for (const snapshot of snapshots) {
    const states = (snapshot as { readonly own?: { readonly states?: unknown } } | undefined)?.own?.states;
    if (!Array.isArray(states)) continue;
    for (const { name, kind } of states as { name: string; kind: string }[]) {
      if (kind === "map") maps.add(`state:${name}`);
    }
  }
  return maps;
}

/** The entries of a map state as a map, in the order in which they were first set. */
function mapContent(value: unknown): unknown {
  const { entries } = (value ?? {}) as {
    readonly entries?: ReadonlyMap<KeyIdentity, readonly [key: unknown, value: unknown, order: number]>;
  };
  if (!(entries instanceof Map)) return value;
  return new Map([...entries.values()].sort((a, b) => a[2] - b[2]).map(([key, held]) => [key, held]));
}
