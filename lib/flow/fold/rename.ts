/**
 * A state with other names for its nodes.
 *
 * @module
 */
import type { State } from "./state.ts";
import { VersionedMap } from "./versioned_map.ts";

/** New names of nodes by their old ones; who is not named keeps his. */
export type NodeNames = Readonly<Record<string, string>>;

/** The name a node has after a migration. */
export function renamed(names: NodeNames, id: string): string {
  return Object.hasOwn(names, id) ? names[id]! : id;
}

/** The key of a task, which may be that of an item, after a migration. */
export function renamedKey(names: NodeNames, key: string): string {
  const at = key.indexOf("#");
  return at < 0 ? renamed(names, key) : renamed(names, key.slice(0, at)) + key.slice(at);
}

/** What changes of a state when nodes get new names. */
export function withRenamedNodes(state: State, names: NodeNames): Partial<State> {
  if (Object.keys(names).length === 0) return {};
  const name = (id: string): string => renamed(names, id);
  const key = (id: string): string => renamedKey(names, id);
  const place = <T extends Place>(thing: T): T => ({
    ...thing,
    ...(thing.key === undefined ? {} : { key: key(thing.key) }),
    ...(thing.node === undefined ? {} : { node: name(thing.node) }),
    ...(thing.owner === undefined ? {} : { owner: name(thing.owner) }),
  });
  const keyed = <V>(map: VersionedMap<V>): VersionedMap<V> => remade(map, name, (value) => value);
  const placed = <V extends Place>(map: VersionedMap<V>): VersionedMap<V> => remade(map, key, place);
  return {
    results: keyed(state.results),
    visits: keyed(state.visits),
    branches: keyed(state.branches),
    errors: keyed(state.errors),
    tasks: placed(state.tasks),
    maps: placed(state.maps),
    awaits: placed(state.awaits),
    sleeps: placed(state.sleeps),
    fans: remade(state.fans, name, (fan) => ({
      node: name(fan.node),
      join: name(fan.join),
      branches: fan.branches.map(name),
    })),
    children: remade(state.children, (id) => id, place),
    timers: remade(state.timers, (id) => id, place),
    held: state.held.map(name),
    ...(state.lastNode === undefined ? {} : { lastNode: name(state.lastNode) }),
  };
}

interface Place {
  readonly key?: string;
  readonly node?: string;
  readonly owner?: string;
}

function remade<V>(
  map: VersionedMap<V>,
  keyOf: (key: string) => string,
  valueOf: (value: V) => V,
): VersionedMap<V> {
  let result = VersionedMap.empty<V>();
  for (const key of map.keys()) result = result.set(keyOf(key), valueOf(map.get(key)!));
  return result;
}
