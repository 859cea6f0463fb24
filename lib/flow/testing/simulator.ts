/**
 * Flows on virtual time: executions folded in memory, workers that answer as they are told. No clock, no store, no worker runs.
 *
 * S1 At one instant come: answers of workers, starts and ends of children, until none is due; then signals; then commands; then
 *    timers. Among equals what was asked for first comes first.
 * S2 Time stands still while anything is due, and then goes on to the next thing that is.
 * S3 A worker takes up its job at once, whatever limits of concurrency or rate the node has, and is silent only where its answer is
 *    that it hangs: then it is given up after the node's heartbeat, if that has one.
 *
 * @module
 */
import { formatDuration } from "../../duration.ts";
import type { CompiledFlow } from "../definition/mod.ts";
import {
  checkHistory,
  type Command,
  type CommandData,
  type CommandOf,
  decide,
  type Effect,
  type FlowEvent,
  hasEnded,
  type JobEffect,
  type State,
} from "../fold/mod.ts";
import type { Answer, Answers } from "./answers.ts";

/** When a simulation begins, ms since the epoch: 2026-01-01T00:00:00Z. */
export const BEGINNING: number = Date.UTC(2026, 0, 1);

/** Most commands of a simulation: a flow that never settles ends there. */
const MOST_COMMANDS = 1_000_000;

/** Classes of what is due at one instant, in their order: S1. */
const TURN = { answer: 0, signal: 1, command: 2, timer: 3 } as const;

interface Due {
  readonly at: number;
  readonly turn: number;
  readonly sequence: number;
  readonly command: Command;
}

/** One execution. */
export interface Simulated {
  readonly id: string;
  readonly flow: CompiledFlow;
  readonly state: State;
  /** The events of each decision. */
  readonly decisions: readonly (readonly FlowEvent[])[];
}

/** Runs an execution and its children. */
export class Simulation {
  /** Virtual time, ms since the epoch. */
  now: number = BEGINNING;
  /** What went wrong with the test itself, one sentence each. */
  readonly problems: string[] = [];
  readonly #flows: ReadonlyMap<string, CompiledFlow>;
  readonly #answers: Answers;
  readonly #executions = new Map<string, Simulated & { state: State; readonly decisions: FlowEvent[][] }>();
  readonly #agenda: Due[] = [];
  /** Results kept for a later attempt with the same key. */
  readonly #cache = new Map<string, { readonly result: object; readonly expiresAt: number }>();
  #sequence = 0;
  #commands = 0;

  /** @param flows By name; children are looked up among them. */
  constructor(flows: ReadonlyMap<string, CompiledFlow>, answers: Answers) {
    this.#flows = flows;
    this.#answers = answers;
  }

  /** All executions, in the order they were started. */
  get executions(): readonly Simulated[] {
    return [...this.#executions.values()];
  }

  /** An execution; undefined where it was never started. */
  execution(id: string): Simulated | undefined {
    return this.#executions.get(id);
  }

  /** Starts an execution now. @returns Why it was refused, if it was. */
  start(id: string, flow: string, input: unknown): string | undefined {
    return this.#carryOut({
      id: `start.${id}`,
      type: "start",
      exec_id: id,
      data: { flow, ...(input === undefined ? {} : { input }) },
    });
  }

  /** Has a signal come `after` ms from now. */
  signal(id: string, after: number, name: string, payload: unknown): void {
    const data = { name, ...(payload === undefined ? {} : { payload }) };
    this.#add(this.now + after, TURN.signal, {
      id: `signal-${this.#sequence}`,
      type: "signal",
      exec_id: id,
      data,
    });
  }

  /** Has a command come `after` ms from now. */
  command<T extends CommandOf<"cancel" | "resume" | "update" | "pause" | "unpause">["type"]>(
    id: string,
    after: number,
    type: T,
    data: CommandData[T],
  ): void {
    const command = { id: `${type}-${this.#sequence}`, type, exec_id: id, data } as Command;
    this.#add(this.now + after, TURN.command, command);
  }

  /**
   * Lets time go on until an execution has ended, nothing is due any more, or `limit` is over.
   *
   * @param limit ms from now; what is due just then still comes.
   */
  run(id: string, limit: number): void {
    const until = this.now + limit;
    for (;;) {
      const next = this.#next();
      if (next === undefined) return;
      // What is due at the instant at which the execution ended still belongs to it.
      if (next.at > this.now && this.#isOver(id)) return;
      if (next.at > until) {
        this.now = until;
        return;
      }
      this.now = Math.max(this.now, next.at);
      this.#agenda.splice(this.#agenda.indexOf(next), 1);
      const refusal = this.#carryOut(next.command);
      if (refusal !== undefined && next.turn === TURN.command) {
        this.problems.push(
          `${next.command.type} after ${formatDuration(this.now - BEGINNING)} was refused: ${refusal}`,
        );
      }
      if (this.#commands >= MOST_COMMANDS) {
        this.problems.push(`the flow does not settle: ${MOST_COMMANDS} commands were carried out`);
        return;
      }
    }
  }

  /** What the invariants of the engine say of all histories. */
  check(): string[] {
    return this.executions.flatMap(({ id, flow, decisions }) =>
      checkHistory(flow, decisions).problems.map((problem) => `execution "${id}": ${problem}`)
    );
  }

  #isOver(id: string): boolean {
    const execution = this.#executions.get(id);
    return execution === undefined || hasEnded(execution.state);
  }

  #next(): Due | undefined {
    let first: Due | undefined;
    for (const due of this.#agenda) if (first === undefined || comesBefore(due, first)) first = due;
    return first;
  }

  #add(at: number, turn: number, command: Command): void {
    this.#agenda.push({ at, turn, sequence: this.#sequence++, command });
  }

  #remove(which: (command: Command) => boolean): void {
    const at = this.#agenda.findIndex(({ command }) => which(command));
    if (at >= 0) this.#agenda.splice(at, 1);
  }

  /** @returns Why it was refused, if it was. */
  #carryOut(command: Command): string | undefined {
    this.#commands++;
    const { exec_id: id } = command;
    const execution = this.#executions.get(id);
    const flow = execution?.flow ??
      (command.type === "start" ? this.#flows.get(command.data.flow) : undefined);
    if (flow === undefined) {
      return command.type === "start" ? this.#unknownFlow(command) : `there is no execution "${id}"`;
    }
    const verdict = decide(flow, execution?.state, command, this.now);
    if (!verdict.ok) return verdict.message;
    if (verdict.events.length === 0) return undefined;
    if (execution === undefined) {
      this.#executions.set(id, { id, flow, state: verdict.state, decisions: [[...verdict.events]] });
    } else {
      execution.state = verdict.state;
      execution.decisions.push([...verdict.events]);
    }
    for (const effect of verdict.effects) this.#take(id, effect, verdict.state);
    return undefined;
  }

  /** A child of a flow that is not there fails, and its parent hears of it. */
  #unknownFlow({ exec_id, data: { flow, parent } }: CommandOf<"start">): string {
    const message = `there is no flow "${flow}"`;
    if (parent === undefined) return message;
    this.#add(this.now, TURN.answer, {
      id: `child-done.${exec_id}`,
      type: "child_done",
      exec_id: parent.exec_id,
      data: { child_id: exec_id, status: "failed", error: message },
    });
    return message;
  }

  #take(id: string, effect: Effect, state: State): void {
    switch (effect.type) {
      case "job":
        return this.#job(id, effect, state);
      case "timer_set":
        this.#remove((command) => command.type === "timer" && command.id === effect.command.id);
        return this.#add(effect.at, TURN.timer, effect.command);
      case "timer_delete":
        return this.#remove((command) =>
          command.type === "timer" && command.exec_id === id && command.data.timer_id === effect.id
        );
      case "child_start":
      case "child_cancel":
      case "parent_notice":
        return this.#add(this.now, TURN.answer, effect.command);
      case "cache_put":
        this.#cache.set(effect.key, effect);
        return;
      case "stop": // its answer comes too late, and changes nothing
      case "index": // nothing is listed
      case "expire": // nobody asks for what has ended
        return;
    }
  }

  #job(id: string, job: JobEffect, state: State): void {
    const { key, generation, attempt } = job, cached = this.#cached(job);
    const about = { key, generation, attempt };
    if (cached !== undefined) {
      this.#answer(id, 0, "complete", { ...about, ...cached, cached: true });
      return;
    }
    const answer = this.#answers.next(job.node, job.kind);
    if (answer === undefined) {
      this.problems.push(`nothing answers attempt ${attempt} of "${key}" (kind ${job.kind})`);
      return;
    }
    this.#reply(id, job, answer, {
      ...about,
      ...(job.cache === undefined ? {} : { cache_key: job.cache.key }),
    });
    void state;
  }

  #cached({ cache }: JobEffect): object | undefined {
    const kept = cache === undefined ? undefined : this.#cache.get(cache.key);
    return kept === undefined || kept.expiresAt <= this.now ? undefined : kept.result;
  }

  #reply(
    id: string,
    job: JobEffect,
    answer: Answer,
    about: {
      readonly key: string;
      readonly generation: number;
      readonly attempt: number;
      readonly cache_key?: string;
    },
  ): void {
    const { cache_key, ...attempt } = about;
    switch (answer.kind) {
      case "complete":
        return this.#answer(id, answer.takes, "complete", {
          ...attempt,
          ...answer.data,
          ...(cache_key === undefined ? {} : { cache_key }),
        });
      case "fail":
        return this.#answer(id, answer.takes, "fail", { ...attempt, ...answer.data });
      case "interrupt":
        return this.#answer(id, answer.takes, "interrupt", { ...attempt, ...answer.data });
      case "hangs": {
        if (job.heartbeat === undefined) return;
        const error = `no sign of life for ${formatDuration(job.heartbeat)}`;
        const data = { ...attempt, error, retryable: true, reason: "heartbeat_timeout" as const };
        return this.#add(this.now + job.heartbeat, TURN.timer, this.#command(id, "fail", data));
      }
    }
  }

  #answer<T extends "complete" | "fail" | "interrupt">(
    id: string,
    takes: number,
    type: T,
    data: CommandData[T],
  ): void {
    this.#add(this.now + takes, TURN.answer, this.#command(id, type, data));
  }

  #command<T extends "complete" | "fail" | "interrupt">(id: string, type: T, data: CommandData[T]): Command {
    const { key, generation, attempt } = data;
    return { id: `w.${id}.${key}.${generation}.${attempt}`, type, exec_id: id, data } as Command;
  }
}

function comesBefore(a: Due, b: Due): boolean {
  return a.at - b.at < 0 || (a.at === b.at && (a.turn - b.turn || a.sequence - b.sequence) < 0);
}
