/**
 * What must hold of every history, checked on a log of decisions: the oracle of tests and of the testing kit.
 *
 * N1 A history begins with a start, a fork or the state it was continued with; indexes have no gap.
 * N2 It ends at most once, and nothing comes behind its end; the state has ended exactly then.
 * N3 No attempt is scheduled twice, none is settled that was not scheduled, and none is settled twice.
 * N4 Who completes leaves nothing open, and every attempt has been settled or its task cancelled.
 * N5 Steps and visits are the entries; steps never decrease.
 * N6 The result of a task is the newest output it gave.
 * N7 A fan-out has at most one join. Signals are taken once, the oldest of a name first. Timers fire once, when set.
 * N8 Numbers given to generations, children and timers never repeat.
 * N9 At the end of every decision something is still to come, unless the execution has ended.
 * N10 Folding a snapshot goes on exactly as folding the log does.
 *
 * @module
 */
import { isDeepStrictEqual } from "node:util";
import { asError } from "../../errors.ts";
import { parseExact, stringifyJson } from "../../json.ts";
import { apply, versionFor, type Versions } from "./apply.ts";
import { hasCause } from "./effects.ts";
import { decodeEvents, encodeEvents, type FlowEvent, isTerminal } from "./events.ts";
import { type NodeNames, renamed, renamedKey } from "./rename.ts";
import { decodeState, encodeState } from "./snapshot.ts";
import { hasEnded, type State } from "./state.ts";

/** What is wrong with a history: one sentence each; empty where nothing is. */
export interface Checked {
  /** In the order they were found. */
  readonly problems: readonly string[];
  /** The state it adds up to; `undefined` where it cannot be folded. */
  readonly state: State | undefined;
}

/**
 * Checks a history.
 *
 * @param versions The version it runs on, or where versions are found.
 * @param decisions The whole log, or what is live of it, a list of events each.
 */
export function checkHistory(
  versions: Versions,
  decisions: readonly (readonly FlowEvent[])[],
): Checked {
  const checker = new HistoryChecker(versions);
  try {
    for (const decision of decisions) checker.decision(decision);
  } catch (error) {
    checker.problem(`the log cannot be folded: ${asError(error).message}`);
    return { problems: checker.problems, state: undefined };
  }
  checker.finish();
  return { problems: checker.problems, state: checker.state };
}

/** Behind how many decisions the snapshot is checked, besides the last one. */
const SNAPSHOTS = 64;

/** Goes along a history. */
class HistoryChecker {
  readonly problems: string[] = [];
  state: State | undefined;
  readonly #versions: Versions;
  /** Attempts without an answer, by key. */
  readonly #open = new Map<string, { readonly generation: number; readonly attempt: number }>();
  readonly #attempts = new Set<string>();
  readonly #fans = new Set<string>();
  readonly #signals = new Map<string, string[]>();
  readonly #timers = new Set<string>();
  readonly #outputs = new Map<string, unknown>();
  #decisions = 0;
  #steps = 0;
  #number = 0;
  #end: FlowEvent | undefined;

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  problem(message: string): void {
    this.problems.push(message);
  }

  decision(events: readonly FlowEvent[]): void {
    if (events.length === 0) this.problem("an empty decision was stored");
    for (const event of events) this.#event(event);
    const { state } = this;
    if (state === undefined) return;
    if (!hasCause(state)) this.problem(`behind event ${state.events} nothing is to come`);
    if (++this.#decisions <= SNAPSHOTS) this.#snapshot(state);
  }

  finish(): void {
    const { state } = this;
    if (state === undefined) return;
    this.#snapshot(state);
    const ended = this.#end !== undefined;
    if (hasEnded(state) !== ended) {
      this.problem(`the state is ${state.phase}, the log ${ended ? "has" : "has not"} ended`);
    }
    if (this.#end?.type === "ExecutionCompleted") this.#answered();
    if (state.steps !== this.#steps) this.problem(`${this.#steps} entries, and steps is ${state.steps}`);
    for (const [node, output] of this.#outputs) {
      if (stringifyJson(state.results.get(node)) !== stringifyJson(output)) {
        this.problem(`the result of "${node}" is not its newest output`);
      }
    }
  }

  #event(event: FlowEvent): void {
    const { state: before } = this;
    const at = `event ${event.i} (${event.type})`;
    if (this.#end !== undefined) this.problem(`${at} comes behind the end`);
    const visits = event.type === "NodeEntered" ? before?.visits.get(event.data.node) ?? 0 : 0;
    this.state = apply(versionFor(this.#versions, before, event), before, event);
    if (before === undefined) this.#inherit(this.state);
    else if (this.state.steps < before.steps) this.problem(`${at} lets steps decrease`);
    if (event.type === "NodeEntered") {
      this.#steps++;
      if (this.state.visits.get(event.data.node) !== visits + 1) {
        this.problem(`${at} is not counted as a visit`);
      }
    }
    if (isTerminal(event)) this.#end = event;
    if (event.type === "ExecutionCompleted" && before !== undefined) this.#closed(before);
    this.#attempt(event, at);
    this.#structure(event, at);
  }

  /** What a fork or a continued history begins with. */
  #inherit(state: State): void {
    this.#steps = state.steps;
    this.#number = state.n;
    if (state.phase !== "running" && state.phase !== "delayed") {
      this.#end = {
        type: "ExecutionCancelled",
        v: 1,
        time: state.updatedAt,
        i: 0,
        data: { cancel_children: [] },
      };
    }
    for (const { key, generation, attempt } of state.tasks.values()) {
      this.#open.set(key, { generation, attempt });
      this.#attempts.add(`${key} ${generation} ${attempt}`);
    }
    for (const fan of state.fans.keys()) this.#fans.add(fan);
    for (const timer of state.timers.keys()) this.#timers.add(timer);
    for (const name of state.inbox.keys()) {
      this.#signals.set(name, state.inbox.get(name)!.items().map(({ id }) => id));
    }
  }

  #attempt(event: FlowEvent, at: string): void {
    switch (event.type) {
      case "NodeScheduled": {
        const { key, generation, attempt } = event.data, id = `${key} ${generation} ${attempt}`;
        if (this.#attempts.has(id)) this.problem(`${at}: attempt ${id} was scheduled before`);
        if (attempt === 1) this.#fresh(generation, at);
        this.#attempts.add(id);
        this.#open.set(key, { generation, attempt });
        return;
      }
      case "NodeCompleted":
      case "NodeFailed": {
        const { key, generation, attempt } = event.data;
        this.#settle(at, key, generation, attempt);
        if (event.type === "NodeCompleted" && !key.includes("#")) {
          this.#outputs.set(event.data.node, event.data.output ?? null);
        }
        return;
      }
      case "NodeInterrupted":
        this.#settle(at, event.data.key, event.data.generation);
        return;
      case "NodeCancelled":
        this.#open.delete(event.data.key);
        return;
      default:
        return;
    }
  }

  #settle(at: string, key: string, generation: number, attempt?: number): void {
    const open = this.#open.get(key);
    if (open?.generation !== generation || (attempt !== undefined && open.attempt !== attempt)) {
      this.problem(`${at}: the attempt ${key} ${generation} ${attempt ?? ""} was not open`);
    }
    this.#open.delete(key);
  }

  #structure(event: FlowEvent, at: string): void {
    switch (event.type) {
      case "FanoutStarted":
        this.#fans.add(event.data.node);
        return;
      case "JoinCompleted":
        if (!this.#fans.delete(event.data.fanout)) this.problem(`${at} settles a join that is not open`);
        return;
      case "SignalReceived": {
        const { name, id } = event.data, waiting = this.#signals.get(name);
        if (waiting === undefined) this.#signals.set(name, [id]);
        else waiting.push(id);
        return;
      }
      case "SignalConsumed":
        if (this.#signals.get(event.data.name)?.shift() !== event.data.id) {
          this.problem(`${at} takes a signal that is not the oldest there`);
        }
        return;
      case "TimerScheduled":
        this.#fresh(event.data.n, at);
        this.#timers.add(event.data.id);
        return;
      case "TimerFired":
        if (!this.#timers.delete(event.data.id)) this.problem(`${at} is of a timer that was not set`);
        return;
      case "ChildStarted":
        this.#fresh(event.data.child_n, at);
        return;
      case "ExecutionMigrated":
        this.#rename(event.data.nodes ?? {});
        return;
      default:
        return;
    }
  }

  #rename(names: NodeNames): void {
    rekey(this.#open, (key) => renamedKey(names, key));
    rekey(this.#outputs, (id) => renamed(names, id));
    for (const fan of [...this.#fans]) {
      this.#fans.delete(fan);
      this.#fans.add(renamed(names, fan));
    }
  }

  #fresh(n: number, at: string): void {
    if (n <= this.#number) this.problem(`${at}: the number ${n} was given before`);
    this.#number = Math.max(this.#number, n);
  }

  /** What is open in front of the completion. */
  #closed({ tasks, fans, maps, awaits, sleeps, children, timers }: State): void {
    const open = tasks.size + fans.size + maps.size + awaits.size + sleeps.size + children.size;
    const left = timers.values().filter((timer) => timer.purpose !== "deadline");
    if (open + left.length > 0) this.problem("it has completed, and something is open");
  }

  #answered(): void {
    for (const [key, { generation, attempt }] of this.#open) {
      this.problem(`it has completed, and attempt ${key} ${generation} ${attempt} has no answer`);
    }
  }

  /** The state and its events survive being written and read. */
  #snapshot(state: State): void {
    if (!sameState(state, decodeState(written(state)))) {
      this.problem(`the snapshot behind event ${state.events} reads back otherwise`);
    }
  }
}

/** Puts what a map holds under other keys. */
function rekey<V>(map: Map<string, V>, keyOf: (key: string) => string): void {
  const entries = [...map];
  map.clear();
  for (const [key, value] of entries) map.set(keyOf(key), value);
}

/** Whether events come back the same from their JSON. */
export function survivesJson(events: readonly FlowEvent[]): boolean {
  return isDeepStrictEqual(decodeEvents(encodeEvents(events)), events);
}

/** Whether two states are the same to the last digit. */
export function sameState(a: State, b: State): boolean {
  return isDeepStrictEqual(written(a), written(b));
}

/** What is read of a state that was written. */
function written(state: State): unknown {
  return parseExact(stringifyJson(encodeState(state)));
}
