/**
 * States of executions: folded from the store, and remembered.
 *
 * X1 What is remembered only saves time: every commit compares the head it was decided on.
 * X2 What is read belongs together, whoever writes, cuts or archives the history meanwhile: a state is the one of its head, and a
 *    history has no gap.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseExact, parseJson } from "../../json.ts";
import type { CompiledFlow } from "../definition/mod.ts";
import { apply, decodeEvents, decodeState, type FlowEvent, type State } from "../fold/mod.ts";
import type { FlowStore, Head, StoredDecision } from "../store/port.ts";
import type { Flows } from "./flows.ts";

/** An execution as it is known. */
export interface Execution {
  /** The end of its log. */
  readonly head: Head;
  /** What its events add up to. */
  readonly state: State;
  /** The version it runs on. */
  readonly flow: CompiledFlow;
}

/** The decisions of a stored object: a segment of a history, or an archive. */
export interface StoredHistory {
  readonly decisions: readonly StoredDecision[];
}

/** How far a history can be followed. */
export interface AsFar {
  /** Behind its last good decision; undefined where there is none. */
  readonly state: State | undefined;
  /** The version that state is of. */
  readonly flow: CompiledFlow | undefined;
  /** Sequence of the last good decision; 0 = none. */
  readonly seq: number;
  /** What is wrong with the next one; undefined where all are good. */
  readonly problem:
    | { readonly seq: number; readonly node: string | undefined; readonly error: unknown }
    | undefined;
}

/** Name of the object an archived execution lies in. */
export const ARCHIVE = "archive";

/** Most executions that are remembered. */
const REMEMBERED = 10_000;
/** Times something is read that others go on writing. */
const ROUNDS = 10;
/** Decisions that are read at once. */
const PAGE = 256;

/** Loads executions. */
export class Executions {
  readonly #store: FlowStore;
  readonly #flows: Flows;
  readonly #most: number;
  /** The one used last at the end. */
  readonly #known = new Map<string, Execution>();

  constructor(store: FlowStore, flows: Flows, most = REMEMBERED) {
    this.#store = store;
    this.#flows = flows;
    this.#most = most;
  }

  /** As remembered, else from the store; undefined where there is none. */
  async get(execId: string): Promise<Execution | undefined> {
    const known = this.#known.get(execId);
    if (known !== undefined) return known;
    const loaded = await this.read(execId);
    if (loaded !== undefined) this.keep(execId, loaded);
    return loaded;
  }

  /** As remembered, whether that is still so or not. */
  known(execId: string): Execution | undefined {
    return this.#known.get(execId);
  }

  /** From the store, as it is now. */
  async read(execId: string): Promise<Execution | undefined> {
    return await this.#whole(execId, async (head) => {
      const state = await this.#stateOf(execId, head), flow = await this.flowOf(execId, state);
      return { head, state, flow };
    });
  }

  /** Reads what belongs to a head; anew where others have written meanwhile what it lies in. */
  async #whole<T>(execId: string, read: (head: Head) => Promise<T>): Promise<T | undefined> {
    for (let head = await this.#store.executions.head(execId), round = 1; head !== undefined; round++) {
      try {
        return await read(head);
      } catch (error) {
        const now = await this.#store.executions.head(execId);
        if (now?.version === head.version || round === ROUNDS) throw error;
        head = now;
      }
    }
    return undefined;
  }

  /** Remembers how an execution stands. */
  keep(execId: string, execution: Execution): void {
    this.#known.delete(execId);
    this.#known.set(execId, execution);
    if (this.#known.size <= this.#most) return;
    const { value: oldest } = this.#known.keys().next();
    this.#known.delete(oldest!);
  }

  /** Forgets it: somebody else has written. */
  drop(execId: string): void {
    this.#known.delete(execId);
  }

  /** Forgets those that others may have written. */
  forget(isOthers: (execId: string) => boolean): void {
    for (const execId of [...this.#known.keys()]) if (isOthers(execId)) this.#known.delete(execId);
  }

  /**
   * The state behind a decision.
   *
   * @param seq Sequence of the decision, or of one before the next.
   * @throws {MailerError} `no_such_decision`
   */
  async at(
    execId: string,
    seq: number,
  ): Promise<{ readonly state: State; readonly seq: number } | undefined> {
    const history = await this.history(execId);
    if (history === undefined) return undefined;
    const upTo = history.filter((decision) => decision.seq <= seq), last = upTo.at(-1);
    if (last === undefined) {
      throw new MailerError("no_such_decision", `execution "${execId}" has no decision ${seq}`, {
        hint: `its decisions are ${history[0]?.seq ?? 0} to ${history.at(-1)?.seq ?? 0}`,
      });
    }
    return { state: await this.#fold(upTo.map(({ events }) => decodeEvents(events))), seq: last.seq };
  }

  /** All decisions of an execution, the archived and the live ones; undefined where there is no execution. */
  async history(execId: string): Promise<StoredDecision[] | undefined> {
    return await this.#whole(execId, async (head) => {
      const decisions: StoredDecision[] = [];
      for await (const decision of this.#decisions(execId, head)) decisions.push(decision);
      return decisions;
    });
  }

  /** Follows a history from its beginning until something of it cannot be carried out. */
  async asFar(execId: string, head: Head): Promise<AsFar> {
    let state: State | undefined, seq = 0;
    const at = async (problem?: AsFar["problem"]): Promise<AsFar> => {
      const flow = state && await this.#flows.find(state.flow, state.flowHash).catch(() => undefined);
      return { state, flow, seq, problem };
    };
    try {
      for await (const decision of this.#decisions(execId, head)) {
        let node: string | undefined;
        try {
          let next = state;
          for (const event of decodeEvents(decision.events)) {
            node = "node" in event.data ? String(event.data.node) : undefined;
            next = await this.#fold([[event]], next);
          }
          state = next;
          seq = decision.seq;
        } catch (error) {
          return await at({ seq: decision.seq, node, error });
        }
      }
    } catch (error) {
      return await at({ seq: seq + 1, node: undefined, error });
    }
    return await at();
  }

  /** Decisions until one cannot be had; what they say may make no sense. */
  async readable(execId: string): Promise<StoredDecision[]> {
    const decisions: StoredDecision[] = [], head = await this.#store.executions.head(execId);
    if (head === undefined) return decisions;
    try {
      for await (const decision of this.#decisions(execId, head)) decisions.push(decision);
    } catch (error) {
      if (head.summary.quarantined !== true) throw error; // a mark says what is wrong with it
    }
    return decisions;
  }

  /** Decisions of a history, the archived ones and those in segments as well. */
  async *#decisions(execId: string, head: Head): AsyncGenerator<StoredDecision> {
    const { executions } = this.#store;
    if (head.summary.archived === true) return yield* await this.#object(execId, ARCHIVE);
    const names = (await executions.objects(execId)).filter((name) => name.startsWith(SEGMENT_PREFIX));
    let last = 0;
    for (const name of names.sort()) {
      for (const decision of await this.#object(execId, name)) {
        yield decision;
        last = decision.seq;
      }
    }
    yield* this.#live(execId, last + 1, head.seq);
  }

  /** The version a state runs on. */
  async flowOf(execId: string, { flow: name, flowHash }: State): Promise<CompiledFlow> {
    const flow = await this.#flows.find(name, flowHash);
    if (flow !== undefined) return flow;
    throw new MailerError(
      "unknown_flow",
      `execution "${execId}" runs on ${name}@${flowHash}, which is not stored`,
    );
  }

  async #stateOf(execId: string, head: Head): Promise<State> {
    if (head.summary.archived === true) return await this.#fold(await this.#decoded(execId, ARCHIVE));
    const snapshot = head.snapshotSeq === undefined
      ? undefined
      : await this.#store.executions.snapshot(execId);
    const base = snapshot === undefined || snapshot.seq > head.seq || snapshot.seq < head.firstSeq - 1
      ? undefined
      : { state: decodeState(parseExact(snapshot.text)), seq: snapshot.seq };
    const decisions: FlowEvent[][] = [];
    const from = base === undefined ? head.firstSeq : base.seq + 1;
    for await (const { events } of this.#live(execId, from, head.seq)) {
      decisions.push(decodeEvents(events));
    }
    return await this.#fold(decisions, base?.state);
  }

  /** Decisions of the live log, the last one included. */
  async *#live(execId: string, from: number, to: number): AsyncGenerator<StoredDecision> {
    for (let next = from; next <= to;) {
      const decisions = await this.#store.executions.log(execId, next, Math.min(PAGE, to - next + 1));
      for (const decision of decisions) {
        if (decision.seq !== next++) throw damaged(execId, decision.seq);
        yield decision;
      }
      if (decisions.length === 0) throw damaged(execId, next);
    }
  }

  async #decoded(execId: string, name: string): Promise<FlowEvent[][]> {
    return (await this.#object(execId, name)).map(({ events }) => decodeEvents(events));
  }

  async #object(execId: string, name: string): Promise<StoredDecision[]> {
    const text = await this.#store.executions.object(execId, name);
    if (text !== undefined) return (parseJson(text) as StoredHistory).decisions as StoredDecision[];
    throw new MailerError(
      "history_damaged",
      `"${name}" of the history of execution "${execId}" is not there`,
    );
  }

  /** Folds decisions, each event with the version it was made with. */
  async #fold(decisions: readonly (readonly FlowEvent[])[], from?: State): Promise<State> {
    let state = from, flow = from === undefined ? undefined : await this.#version(from.flow, from.flowHash);
    for (const event of decisions.flat()) {
      const other = versionOf(event, state);
      if (other !== undefined) flow = await this.#version(other.flow, other.flow_hash);
      if (flow === undefined) throw new MailerError("history_damaged", `a history begins with ${event.type}`);
      state = apply(flow, state, event);
    }
    if (state !== undefined) return state;
    throw new MailerError("history_damaged", "an execution has no events");
  }

  async #version(name: string, hash: string): Promise<CompiledFlow> {
    const flow = await this.#flows.find(name, hash);
    if (flow !== undefined) return flow;
    throw new MailerError("unknown_flow", `an execution runs on ${name}@${hash}, which is not stored`);
  }
}

function damaged(execId: string, seq: number): MailerError {
  return new MailerError(
    "history_damaged",
    `execution "${execId}" has a gap in its history at decision ${seq}`,
  );
}

/** Begins the names of the segments of a history; the index of the first event follows, at full width. */
export const SEGMENT_PREFIX = "seg.";

/** The version an event brings, if it brings one; what follows runs on it. */
function versionOf(
  event: FlowEvent,
  state: State | undefined,
): { readonly flow: string; readonly flow_hash: string } | undefined {
  switch (event.type) {
    case "ExecutionStarted":
      return event.data;
    case "ExecutionForked":
    case "ExecutionContinued": {
      const { flow, flowHash } = event.data.state as { readonly flow: string; readonly flowHash: string };
      return { flow, flow_hash: flowHash };
    }
    case "ExecutionMigrated":
      return { flow: state!.flow, flow_hash: event.data.flow_hash };
    default:
      return undefined;
  }
}
