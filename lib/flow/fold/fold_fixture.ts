/**
 * Driving the fold in tests: one execution, command by command, with everything checked that must hold after each.
 *
 * @module
 */
import assert from "node:assert/strict";
import { parseExact, stringifyJson } from "../../json.ts";
import { type CompiledFlow, compileFlow, parseFlow } from "../definition/mod.ts";
import {
  applyAll,
  checkHistory,
  type Command,
  type CommandData,
  type CommandType,
  decide,
  type DecideOptions,
  decisionEffects,
  decodeState,
  type Effect,
  encodeState,
  type FlowEvent,
  sameState,
  type State,
  survivesJson,
  type Verdict,
} from "./mod.ts";

/** When tests begin. */
export const T0 = Date.parse("2026-03-01T10:00:00Z");

/** A flow of YAML text. */
export function flowOf(yaml: string): CompiledFlow {
  const { flow, problems } = parseFlow(yaml, { file: "flow.yaml" });
  assert.deepEqual(problems.map((problem) => problem.message), []);
  return compileFlow(flow!);
}

/** A flow of nodes written one a line: `a: task, kind: k, next: b`. */
export function nodesOf(...nodes: readonly string[]): CompiledFlow {
  return flowOf(`name: f\nnodes:\n${nodes.map((node) => `  - { ${node} }\n`).join("")}`);
}

/** An event in a few words. */
export function brief(event: FlowEvent): string {
  const { type, data } = event;
  switch (type) {
    case "NodeScheduled":
      return `${type} ${data.key} ${data.generation}.${data.attempt}`;
    case "NodeFailed":
      return `${type} ${data.key} ${data.reason}${data.will_retry ? " again" : ""}`;
    case "NodeCompleted":
    case "NodeInterrupted":
    case "NodeCancelled":
      return `${type} ${data.key}`;
    case "TimerScheduled":
      return `${type} ${data.purpose} ${data.at - event.time}`;
    case "ExecutionFailed":
      return `${type} ${data.reason}${data.node === undefined ? "" : ` ${data.node}`}`;
    case "ChoiceEvaluated":
      return `${type} ${data.to ?? "-"}`;
    case "JoinCompleted":
      return `${type} ${data.node} ${data.ok ? "ok" : "not met"}`;
    case "SignalReceived":
      return `${type} ${data.name}`;
    case "SignalConsumed":
      return `${type} ${data.node} ${data.name}`;
    case "ChildStarted":
      return `${type} ${data.key} ${data.child_id}`;
    case "ChildCompleted":
      return `${type} ${data.key} ${data.status}`;
    case "RouteHeld":
      return `${type} ${data.to}`;
    default:
      return "node" in data ? `${type} ${data.node}` : type;
  }
}

/** One execution. */
export class Run {
  readonly flow: CompiledFlow;
  readonly execId: string;
  readonly log: (readonly FlowEvent[])[] = [];
  readonly effects: Effect[] = [];
  state: State | undefined;
  now = T0;
  /** Whether everything is checked after every command, or only when asked. */
  readonly #thorough: boolean;
  /** Whether every command meets a state that was written and read. */
  readonly #reload: boolean;
  readonly #options: DecideOptions;
  #commands = 0;

  constructor(
    flow: CompiledFlow,
    { execId = "x", thorough = true, reload = false, ...options }: DecideOptions & {
      readonly execId?: string;
      readonly thorough?: boolean;
      readonly reload?: boolean;
    } = {},
  ) {
    this.flow = flow;
    this.execId = execId;
    this.#thorough = thorough;
    this.#reload = reload;
    this.#options = options;
  }

  /** The verdict on a command; what it leads to is kept. */
  ask<T extends CommandType>(type: T, data: CommandData[T], id = `c${++this.#commands}`): Verdict {
    return this.decide({ id, type, exec_id: this.execId, data } as unknown as Command);
  }

  /** The verdict on a whole command. */
  decide(command: Command): Verdict {
    const verdict = decide(this.flow, this.state, command, this.now, this.#options);
    if (verdict.ok) this.keep(verdict);
    return verdict;
  }

  /** Takes in what was decided, after checking it. */
  keep({ events, effects, state }: Extract<Verdict, { readonly ok: true }>): void {
    if (events.length === 0) {
      assert.ok(this.state === undefined || state === this.state);
      assert.deepEqual(effects, []);
      return;
    }
    if (this.#thorough) {
      const folded = applyAll(this.flow, this.state, events)!;
      assert.ok(sameState(folded, state), "the events fold to the state that was decided");
      assert.deepEqual(decisionEffects(this.flow, this.state, events), effects);
      assert.ok(survivesJson(events));
    }
    this.log.push(events);
    this.effects.push(...effects);
    this.state = this.#reload ? decodeState(parseExact(stringifyJson(encodeState(state)))) : state;
    if (this.#thorough) this.check();
  }

  /** Checks the whole history. */
  check(): void {
    const checked = checkHistory(this.flow, this.log);
    assert.deepEqual(checked.problems, []);
    assert.ok(sameState(checked.state!, this.state!), "the log folds to the state");
  }

  /** The events of a command, in a few words. */
  send<T extends CommandType>(type: T, data: CommandData[T], id?: string): string[] {
    const verdict = this.ask(type, data, id);
    assert.ok(verdict.ok, verdict.ok ? "" : `${verdict.code}: ${verdict.message}`);
    return verdict.events.map(brief);
  }

  /** The code a command is refused with. */
  refused<T extends CommandType>(type: T, data: CommandData[T], id?: string): string {
    const verdict = this.ask(type, data, id);
    assert.ok(!verdict.ok, "it was not refused");
    return verdict.code;
  }

  start(input?: unknown, more: Partial<CommandData["start"]> = {}): string[] {
    const { definition: { name } } = this.flow;
    return this.send("start", { flow: name, ...(input === undefined ? {} : { input }), ...more });
  }

  /** The live attempt of a key. */
  attempt(key: string): { readonly key: string; readonly generation: number; readonly attempt: number } {
    const task = this.state!.tasks.get(key);
    assert.ok(task !== undefined, `nothing is open at ${key}`);
    return { key, generation: task.generation, attempt: task.attempt };
  }

  complete(
    key: string,
    output?: unknown,
    more: Partial<CommandData["complete"]> = {},
  ): string[] {
    return this.send("complete", {
      ...this.attempt(key),
      ...(output === undefined ? {} : { output }),
      ...more,
    });
  }

  fail(key: string, error = "broken", more: Partial<CommandData["fail"]> = {}): string[] {
    return this.send("fail", { ...this.attempt(key), error, retryable: true, ...more });
  }

  signal(name: string, payload?: unknown, id?: string): string[] {
    return this.send("signal", { name, ...(payload === undefined ? {} : { payload }) }, id);
  }

  childDone(key: string, more: Partial<CommandData["child_done"]> = {}): string[] {
    const child = this.state!.children.values().find((open) => open.key === key);
    assert.ok(child !== undefined, `no child is open at ${key}`);
    return this.send("child_done", { child_id: child.childId, status: "completed", ...more });
  }

  /** Lets time pass to the next timer and fires it. */
  fire(purpose?: string): string[] {
    const due =
      this.state!.timers.values().filter((timer) => purpose === undefined || timer.purpose === purpose)
        .sort((a, b) => a.at - b.at || a.n - b.n)[0];
    assert.ok(due !== undefined, "no timer is set");
    this.now = Math.max(this.now, due.at);
    return this.send("timer", { timer_id: due.id });
  }

  /** All events so far, in a few words. */
  get history(): string[] {
    return this.log.flat().map(brief);
  }

  /** Effects of the last command of a type. */
  effectsOf<T extends Effect["type"]>(type: T): Extract<Effect, { readonly type: T }>[] {
    return this.effects.filter((effect): effect is Extract<Effect, { readonly type: T }> =>
      effect.type === type
    );
  }
}
