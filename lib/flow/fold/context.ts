/**
 * What expressions, templates and workers see of a state.
 *
 * @module
 */
import type { FlowContext, NodeError } from "../definition/types.ts";
import type { State } from "./state.ts";
import type { VersionedMap } from "./versioned_map.ts";

/** The item of a map an expression is about. */
export interface Item {
  /** The element. */
  readonly item: unknown;
  /** Its position, from 0 on. */
  readonly index: number;
}

/** The context for conditions and texts: nothing is copied, so nothing of it may outlive the evaluation. */
export function passingContext(state: State): FlowContext {
  return new StateContext(state, false);
}

/** The context for values, which may hold parts of it: each part is copied when it is asked for. */
export function contextOf(state: State, item?: Item): FlowContext {
  const context = new StateContext(state, true);
  return item === undefined ? context : Object.assign(context, { item: item.item, index: item.index });
}

/** Parts are read when an expression asks for them. */
class StateContext implements FlowContext {
  readonly #state: State;
  readonly #copies: boolean;

  constructor(state: State, copies: boolean) {
    this.#state = state;
    this.#copies = copies;
  }

  #part<V>(map: VersionedMap<V>): Readonly<Record<string, V>> {
    return this.#copies ? map.toObject() : map.peek();
  }

  get input(): unknown {
    return this.#state.input;
  }
  get channels(): Readonly<Record<string, unknown>> {
    return this.#part(this.#state.channels);
  }
  get results(): Readonly<Record<string, unknown>> {
    return this.#part(this.#state.results);
  }
  // deno-lint-ignore camelcase -- a name of the documents
  get last_node(): string {
    return this.#state.lastNode!; // undefined before the first node has settled; expressions read that as null
  }
  get visits(): Readonly<Record<string, number>> {
    return this.#part(this.#state.visits);
  }
  get signals(): Readonly<Record<string, unknown>> {
    return this.#part(this.#state.signals);
  }
  get branches(): Readonly<Record<string, string>> {
    return this.#part(this.#state.branches);
  }
  get counters(): Readonly<Record<string, number>> {
    return this.#part(this.#state.counters);
  }
  get errors(): Readonly<Record<string, NodeError>> {
    return this.#part(this.#state.errors);
  }
}

/** The context as an object of plain data, as workers get it. */
export function contextData(state: State, item?: Item): FlowContext {
  return {
    input: state.input,
    channels: state.channels.toObject(),
    results: state.results.toObject(),
    ...(state.lastNode === undefined ? {} : { last_node: state.lastNode }),
    visits: state.visits.toObject(),
    signals: state.signals.toObject(),
    branches: state.branches.toObject(),
    counters: state.counters.toObject(),
    errors: state.errors.toObject(),
    ...item,
  };
}
