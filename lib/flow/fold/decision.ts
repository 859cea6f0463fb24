/**
 * A decision in the making: the events so far, and the state they lead to.
 *
 * @module
 */
import type { CompiledFlow, CompiledNode } from "../definition/types.ts";
import { apply } from "./apply.ts";
import type { DataOf, EventType, FailureReason, FlowEvent, TimerPurpose } from "./events.ts";
import { type Effect, effectsOf, netEffects } from "./effects.ts";
import { timerId } from "./ids.ts";
import { childrenToCancel, hasEnded, type State, unreadSignals } from "./state.ts";

/** Most events of a decision. */
export const MAX_DECISION_EVENTS = 1000;

/** Stops a decision that grew too large; never leaves the fold. */
export class DecisionTooLarge extends Error {}

/** What a command has led to. */
export interface Outcome {
  /** It was. */
  readonly ok: true;
  /** Empty where the command came too late or again. */
  readonly events: readonly FlowEvent[];
  /** What they ask for, as `decisionEffects` gives it. */
  readonly effects: readonly Effect[];
  /** The state after them. */
  readonly state: State;
  /** A start or fork that found its execution there already. */
  readonly joined?: true;
}

/** What a decision is made for. */
export interface Cause {
  /** Id of the command. */
  readonly id: string;
  /** Trace context. */
  readonly trace?: string;
}

/** Collects events and applies each at once, so what is decided next is decided on what was decided before. */
export class Decision {
  readonly flow: CompiledFlow;
  /** Time of all its events, ms. */
  readonly now: number;
  readonly events: FlowEvent[] = [];
  readonly #cause: Cause;
  readonly #limit: number;
  readonly #before: State | undefined;
  readonly #effects: Effect[] = [];
  #state: State | undefined;

  constructor(
    flow: CompiledFlow,
    state: State | undefined,
    cause: Cause,
    now: number,
    limit: number = MAX_DECISION_EVENTS,
  ) {
    this.flow = flow;
    this.now = now;
    this.#before = state;
    this.#state = state;
    this.#cause = cause;
    this.#limit = limit;
  }

  /** The state as it is by now. Only asked when there is one. */
  get state(): State {
    return this.#state!;
  }

  /** Whether the execution has ended. */
  get ended(): boolean {
    return hasEnded(this.state);
  }

  /** Adds an event. */
  emit<T extends EventType>(type: T, data: DataOf<T>): void {
    if (this.events.length >= this.#limit) throw new DecisionTooLarge();
    const { id, trace } = this.#cause;
    const event = {
      type,
      v: 1,
      time: this.now,
      i: (this.#state?.events ?? 0) + 1,
      cmd_id: id,
      ...(trace === undefined ? {} : { trace }),
      data,
    } as unknown as FlowEvent;
    const before = this.#state;
    const after = this.#state = apply(this.flow, before, event);
    this.events.push(event);
    for (const effect of effectsOf(this.flow, event, before, after)) this.#effects.push(effect);
  }

  /** What has come of it. */
  outcome(): Outcome {
    const { events, state } = this;
    return { ok: true, events, effects: netEffects(this.#effects, this.#before, state), state };
  }

  /** A node with its expressions. */
  node(id: string): CompiledNode {
    return this.flow.nodes.get(id)!;
  }

  /** The next number for a generation, child or timer. */
  nextNumber(): number {
    return this.state.n + 1;
  }

  /** Sets a timer. */
  timer(
    purpose: TimerPurpose,
    at: number,
    about: Omit<DataOf<"TimerScheduled">, "id" | "n" | "at" | "purpose"> = {},
  ): void {
    const n = this.nextNumber();
    this.emit("TimerScheduled", { id: timerId(n), n, at: latest(at), purpose, ...about });
  }

  /** Ends the execution as failed. */
  fail(reason: FailureReason, error: string, node?: string): void {
    const unread = unreadSignals(this.state);
    this.emit("ExecutionFailed", {
      error,
      reason,
      ...(node === undefined ? {} : { node }),
      cancel_children: childrenToCancel(this.state),
      ...(unread === undefined ? {} : { unread }),
    });
  }
}

/** Instants beyond the range of dates are cut to its end. */
function latest(at: number): number {
  return Math.min(Math.ceil(at), 8.64e15);
}
