/**
 * What programs ask of executions: start, signal, look, wait, fork and the rest. It works on a store; with an engine in the process
 * it asks that, which answers at once. Where another process carries commands out they are stored for it, and the client looks for
 * what they lead to.
 *
 * L1 What a client has acknowledged is durable.
 * L2 Whatever is repeated with the same id happens once.
 * L3 Ids and names are checked before anything else: none of them reaches further than the one thing it names.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { asError, codeOf } from "../../errors.ts";
import { type CompiledFlow, type Flow, TOKEN_PATTERN } from "../definition/mod.ts";
import { newCommand } from "../engine/commit_of.ts";
import { Executions } from "../engine/executions.ts";
import { Flows } from "../engine/flows.ts";
import { isLasting } from "../engine/quarantine.ts";
import type { Answer, Execution, FlowEngine } from "../engine/mod.ts";
import {
  type Command,
  decide,
  decideFork,
  decodeEvents,
  hasEnded,
  migrationProblems,
  type State,
} from "../fold/mod.ts";
import type { FlowStore, Head, Page, Query } from "../store/port.ts";
import { type BulkAction, type BulkOptions, type BulkResult, runBulk } from "./bulk.ts";
import {
  checkCommandId,
  checkSeq,
  checkToken,
  commandOf,
  type Instant,
  instantMs,
  invalid,
  newId,
} from "./commands.ts";
import { type DeadLetterView, letterView, redriven, valueOf } from "./dead_letters.ts";
import { ended, FlowClientError, notFound, outcomeUnknown, refusalError } from "./errors.ts";
import {
  type HistoryOptions,
  isEnd,
  outputsOf,
  Reader,
  type RecordedEvent,
  type RecordedOutput,
  type WaitOptions,
} from "./reading.ts";
import { type ExecutionView, type ListedExecution, listedView, stateView, viewOf } from "./view.ts";

/** Settings of a client. */
export interface FlowClientOptions {
  /** Where everything lies. The client does not close it. */
  readonly store: FlowStore;
  /** An engine of this process on the same store. */
  readonly engine?: FlowEngine;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** How long to wait for another process to carry out what was asked, ms. Default 30,000. */
  readonly timeoutMs?: number;
}

/** A signal that comes with a start. */
export interface NewSignal {
  /** Name of the signal. */
  readonly name: string;
  /** What it brings. Default null. */
  readonly payload?: unknown;
  /** Tells repetitions. Default: a new one. */
  readonly id?: string;
}

/** How an execution is started. */
export interface StartOptions {
  /** Its id: 1 to 128 letters, digits, `_` and `-`. Default: a new one. */
  readonly id?: string;
  /** Hash of the version it runs on. Default: the newest. */
  readonly version?: string;
  /** Its first node is entered then. Default: at once. */
  readonly startAt?: Instant;
  /** It fails then, unless it has ended. The flow's own deadline holds too. */
  readonly deadline?: Instant;
  /** They reach it in the same decision, or the one that is there already. */
  readonly signals?: readonly NewSignal[];
  /** Whether an execution of the flow that has this id already is as good. Default true. */
  readonly joinExisting?: boolean;
  /** W3C trace context. */
  readonly traceparent?: string;
}

/** An execution that was started, or found. */
export interface Started {
  /** Its id. */
  readonly id: string;
  /** Whether it was there already. */
  readonly joined: boolean;
}

/** A command that was stored. */
export interface Sent {
  /** Its id: asking again with it changes nothing more. */
  readonly id: string;
  /** Whether it led to anything; absent where another process is to carry it out. */
  readonly changed?: boolean;
}

/** How a command is told from others. */
export interface CommandOptions {
  /** Tells repetitions. Default: a new one. */
  readonly id?: string;
}

/** How an execution is forked. */
export interface ForkOptions {
  /** Id of the new execution. Default: a new one. */
  readonly id?: string;
  /** Writes to channels, made before anything goes on. */
  readonly writes?: Readonly<Record<string, unknown>>;
}

/** An execution that was forked off. */
export interface Forked extends Started {
  /** Execution it was forked from. */
  readonly from: string;
  /** Decision behind which it goes on. */
  readonly seq: number;
}

/** How an execution is moved to another version. */
export interface MigrateOptions extends CommandOptions {
  /** Hash of the version. Default: the newest. */
  readonly version?: string;
  /** New names of nodes, by their old ones. */
  readonly nodes?: Readonly<Record<string, string>>;
  /** Only says what keeps it from going on there. */
  readonly dryRun?: boolean;
}

/** What became of a migration. */
export interface Migrated {
  /** Version it ran on. */
  readonly from: string;
  /** Version it is to run on. */
  readonly to: string;
  /** What keeps it from that; empty where nothing does. */
  readonly problems: readonly string[];
  /** Whether it runs on it. */
  readonly migrated: boolean;
}

/** An execution that is parked. */
export interface QuarantinedExecution {
  /** Its id. */
  readonly id: string;
  /** Sequence of the decision that cannot be carried out. */
  readonly seq: number;
  /** What is wrong with it, for a person. */
  readonly reason: string;
}

/** A decision as it is stored. */
export interface RawDecision {
  /** Its sequence. */
  readonly seq: number;
  /** Its events as JSON, or a text where they are none. */
  readonly events: unknown;
}

/** A version of a flow. */
export interface ListedFlow {
  /** Its name. */
  readonly name: string;
  /** Its version. */
  readonly hash: string;
  /** Whether it is the newest of its name. */
  readonly latest: boolean;
}

const TIMEOUT_MS = 30_000;
/** Executions a client remembers itself. */
const REMEMBERED = 256;
/** Codes of refusals that may be those of a command that has been carried out. */
const WAS_DONE = ["rejected", "execution_ended"];
const STATUSES = ["running", "waiting", "completed", "failed", "cancelled"];

/** Asks an engine, or the store that engines work on. Any number of calls may be under way together. */
export class FlowClient {
  readonly #store: FlowStore;
  readonly #engine: FlowEngine | undefined;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #flows: Flows;
  readonly #executions: Executions;
  readonly #reader: Reader;

  /** Opens nothing. */
  constructor({ store, engine, clock = systemClock, timeoutMs = TIMEOUT_MS }: FlowClientOptions) {
    this.#store = store;
    this.#engine = engine;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#flows = engine?.core.flows ?? new Flows(store.definitions, clock);
    this.#executions = new Executions(store, this.#flows, REMEMBERED);
    this.#reader = new Reader(store, clock, this.#executions, engine);
  }

  /**
   * Starts an execution; resolves when it exists.
   *
   * @throws {FlowClientError} `invalid_argument`; `unknown_flow`; `execution_conflict` where the id belongs to another flow;
   * `execution_exists` with `joinExisting: false`; `outcome_unknown`.
   */
  async start(flow: string, input?: unknown, options: StartOptions = {}): Promise<Started> {
    const { id = newId(), version, startAt, deadline, signals = [], joinExisting = true, traceparent } =
      options;
    checkToken(flow, "name of a flow");
    checkToken(id, "id of an execution");
    const given = signals.map((signal) => ({ id: newId(), ...signal }));
    for (const signal of given) {
      checkCommandId(signal.id);
      checkToken(signal.name, "name of a signal");
    }
    const command = commandOf("start", `start.${id}.${newId()}`, id, {
      flow,
      ...(version === undefined ? {} : { version }),
      ...(input === undefined ? {} : { input }),
      ...(startAt === undefined ? {} : { start_at: instantMs(startAt, "startAt") }),
      ...(deadline === undefined ? {} : { deadline_at: instantMs(deadline, "deadline") }),
      ...(given.length === 0 ? {} : { signals: given }),
    }, traceparent);
    const compiled = await this.#compiled(flow, version);
    // Its own engine says all that is looked at here.
    const isOwn = this.#engine?.owns(id) === true, before = isOwn ? undefined : await this.#reader.look(id);
    if (before !== undefined) {
      if (before.state.flow !== flow) throw conflict(id, before.state.flow);
      if (!joinExisting) throw exists(id);
      if (given.length === 0 || hasEnded(before.state)) return { id, joined: true };
    } else if (!isOwn) {
      const verdict = decide(compiled, undefined, command, this.#clock.now());
      if (!verdict.ok) throw refusalError(verdict);
    }
    const answer = await this.#ask(command);
    if (answer !== undefined) {
      const joined = answer.joined === true;
      if (joined && !joinExisting) throw exists(id);
      return { id, joined };
    }
    await this.#started(id, flow, given.map((signal) => signal.id));
    if (!joinExisting && await this.#isOthers(id, command.id)) throw exists(id);
    return { id, joined: before !== undefined };
  }

  /** Waits until another process has carried out a start. */
  async #started(id: string, flow: string, signals: readonly string[]): Promise<void> {
    const found = await this.#effect(`the start of "${id}"`, id, async () => {
      const state = (await this.#reader.look(id))?.state;
      if (state === undefined) return undefined;
      if (state.flow !== flow || hasEnded(state)) return state;
      return signals.every((signal) => state.signalIds.has(signal)) ? state : undefined;
    });
    if (found.flow !== flow) throw conflict(id, found.flow);
  }

  /** Whether an execution began with another command. */
  async #isOthers(id: string, commandId: string): Promise<boolean> {
    const [first] = await this.#reader.decisions(id, { limit: 1 });
    return first === undefined || decodeEvents(first.events)[0]?.cmd_id !== commandId;
  }

  /**
   * Sends a signal. One that nobody waits for yet is kept.
   *
   * @throws {FlowClientError} `execution_not_found`; `execution_archived`; `execution_ended`.
   */
  async signal(
    execId: string,
    name: string,
    payload?: unknown,
    { id = newId() }: CommandOptions = {},
  ): Promise<Sent> {
    checkToken(execId, "id of an execution");
    checkToken(name, "name of a signal");
    checkCommandId(id);
    const command = commandOf("signal", id, execId, { name, ...(payload === undefined ? {} : { payload }) });
    const { state } = await this.#reader.live(execId);
    if (state.signalIds.has(id)) return { id, changed: false };
    if (hasEnded(state)) throw ended(execId, state.phase);
    const answer = await this.#ask(command), now = answer?.state;
    if (answer?.changed === false && now !== undefined && hasEnded(now) && !now.signalIds.has(id)) {
      throw ended(execId, now.phase);
    }
    return sent(id, answer);
  }

  /**
   * Answers an interrupted task: the first of the node, or the one with `key`.
   *
   * @throws {FlowClientError} `rejected` where nothing is interrupted there, or the execution is paused.
   */
  async resume(
    execId: string,
    node: string,
    value?: unknown,
    { id, key }: CommandOptions & { readonly key?: string } = {},
  ): Promise<Sent> {
    checkToken(node, "id of a node");
    return await this.#send("resume", execId, id ?? newId(), {
      node,
      ...(key === undefined ? {} : { key }),
      ...(value === undefined ? {} : { value }),
    }, id !== undefined);
  }

  /** Ends an execution, and what it has begun. One that has ended stays as it is. */
  async cancel(execId: string, reason?: string, { id = newId() }: CommandOptions = {}): Promise<Sent> {
    checkToken(execId, "id of an execution");
    checkCommandId(id);
    const command = commandOf("cancel", id, execId, reason === undefined ? {} : { reason });
    const { summary } = await this.#reader.head(execId);
    if (isEnd(summary.status)) return { id, changed: false };
    return sent(id, await this.#ask(command));
  }

  /** Holds the way on, retries and waiting; what is under way goes on. */
  async pause(execId: string, reason?: string, { id }: CommandOptions = {}): Promise<Sent> {
    const data = reason === undefined ? {} : { reason };
    return await this.#send("pause", execId, id ?? newId(), data, id !== undefined);
  }

  /** Lets go on what a pause held. */
  async unpause(execId: string, { id }: CommandOptions = {}): Promise<Sent> {
    return await this.#send("unpause", execId, id ?? newId(), {}, id !== undefined);
  }

  /**
   * Writes to channels; resolves with the execution behind that.
   *
   * @throws {FlowClientError} `invalid_argument` where the writes do not fit their channels; `execution_ended`.
   */
  async update(
    execId: string,
    writes: Readonly<Record<string, unknown>>,
    { id = newId() }: CommandOptions = {},
  ): Promise<ExecutionView> {
    checkToken(execId, "id of an execution");
    checkCommandId(id);
    const command = commandOf("update", id, execId, { writes });
    const before = await this.#reader.live(execId);
    if (before.state.updateIds.has(id)) return viewOf(before);
    if (hasEnded(before.state)) throw ended(execId, before.state.phase);
    this.#preview(before, command);
    const answer = await this.#ask(command);
    if (answer?.state !== undefined) return stateView(answer.state, answer.seq, false);
    const after = await this.#effect(`the update of "${execId}"`, execId, async () => {
      const execution = await this.#reader.get(execId), { state } = execution;
      return state.updateIds.has(id) || hasEnded(state) ? execution : undefined;
    });
    if (!after.state.updateIds.has(id)) throw ended(execId, after.state.phase);
    return viewOf(after);
  }

  /** An execution as it is now. */
  async get(execId: string): Promise<ExecutionView> {
    checkToken(execId, "id of an execution");
    return viewOf(await this.#reader.get(execId));
  }

  /** An execution as it was behind a decision. */
  async stateAt(execId: string, seq: number): Promise<ExecutionView> {
    checkToken(execId, "id of an execution");
    checkSeq(seq);
    const past = await this.#reader.at(execId, seq);
    return stateView(past.state, past.seq, past.archived);
  }

  /** What has happened, in order, whether it is archived or not. */
  async history(execId: string, options: HistoryOptions = {}): Promise<RecordedEvent[]> {
    checkToken(execId, "id of an execution");
    return await this.#reader.events(execId, options);
  }

  /** Its decisions as they are stored, whether anybody can make sense of them or not: JSON, or a text where it is none. */
  async rawHistory(execId: string): Promise<RawDecision[]> {
    checkToken(execId, "id of an execution");
    return (await this.#reader.readable(execId)).map(({ seq, events }) => ({ seq, events: valueOf(events) }));
  }

  /** All outputs of a node: of tasks (not of the items of a map), subflows and joins. */
  async outputHistory(execId: string, node: string): Promise<RecordedOutput[]> {
    checkToken(node, "id of a node");
    return outputsOf(await this.history(execId), node);
  }

  /**
   * What happens, as it happens, until the execution has ended.
   *
   * @param options `from`: first decision, default 1; a watch that was broken off goes on at the sequence behind its last event's.
   */
  watch(
    execId: string,
    options: { readonly from?: number; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<RecordedEvent, void, undefined> {
    checkToken(execId, "id of an execution");
    return this.#reader.watch(execId, options);
  }

  /**
   * Waits for the end of an execution.
   *
   * @throws {FlowClientError} `execution_not_found`; `wait_timed_out`.
   */
  async wait(execId: string, options: WaitOptions = {}): Promise<ExecutionView> {
    checkToken(execId, "id of an execution");
    const found = await this.#reader.until(execId, options, () => this.#reader.ended(execId));
    if (found === undefined) throw timedOut(`execution "${execId}" has not ended`, options);
    return viewOf(found);
  }

  /**
   * Waits until something is so.
   *
   * @throws {FlowClientError} `execution_ended`, with the execution, where it ended and it is not so; `execution_not_found`;
   * `wait_timed_out`.
   */
  async waitUntil(
    execId: string,
    predicate: (execution: ExecutionView) => boolean,
    options: WaitOptions = {},
  ): Promise<ExecutionView> {
    checkToken(execId, "id of an execution");
    let seen: string | undefined;
    const found = await this.#reader.until(execId, options, async () => {
      const execution = await this.#reader.get(execId);
      if (execution.head.version === seen) return undefined;
      seen = execution.head.version;
      const view = viewOf(execution);
      return predicate(view) || isEnd(view.status) ? view : undefined;
    });
    if (found === undefined) throw timedOut(`execution "${execId}" is not what was waited for`, options);
    if (predicate(found)) return found;
    throw new FlowClientError("execution_ended", `execution "${execId}" has ended: ${found.status}`, {
      execution: found,
    });
  }

  /**
   * A new execution that goes on from how another was behind a decision. The other one is left alone; it may be archived.
   *
   * @throws {FlowClientError} `invalid_argument` for a decision that is not there, or writes that do not fit; `execution_exists`.
   */
  async fork(execId: string, seq: number, { id = newId(), writes }: ForkOptions = {}): Promise<Forked> {
    checkToken(execId, "id of an execution");
    checkToken(id, "id of an execution");
    checkSeq(seq);
    const command = commandOf("fork", `fork.${id}.${newId()}`, id, {
      from: execId,
      seq,
      ...(writes === undefined ? {} : { writes }),
    });
    const source = await this.#reader.at(execId, seq), before = await this.#reader.look(id);
    const verdict = decideFork(source.flow, undefined, source.state, command, this.#clock.now());
    if (!verdict.ok) throw refusalError(verdict);
    const forked = { id, from: execId, seq, joined: before !== undefined };
    if (before !== undefined) return this.#sameFork(forked, before.state);
    const answer = await this.#ask(command);
    const state = answer?.state ?? await this.#effect(`the fork "${id}"`, id, async () => {
      return (await this.#reader.look(id))?.state;
    });
    return this.#sameFork({ ...forked, joined: answer?.joined ?? false }, state);
  }

  #sameFork(forked: Forked, { forkedFrom, forkSeq }: State): Forked {
    if (forkedFrom === forked.from && forkSeq === forked.seq) return forked;
    throw exists(forked.id);
  }

  /**
   * A fork that does a node again, as it was entered last.
   *
   * @throws {FlowClientError} `rejected` where the node was never entered, or was over in the decision that entered it.
   */
  async rerun(execId: string, node: string, options: ForkOptions = {}): Promise<Forked> {
    checkToken(node, "id of a node");
    return await this.fork(execId, await this.#entryOf(execId, node), options);
  }

  /** The decision that entered a node last. */
  async #entryOf(execId: string, node: string): Promise<number> {
    const history = await this.history(execId);
    const entry = history.findLast(({ type, data }) => type === "NodeEntered" && data.node === node);
    if (entry === undefined) {
      throw new FlowClientError("rejected", `execution "${execId}" has not entered a node "${node}"`);
    }
    const { state } = await this.#reader.at(execId, entry.seq);
    if (isOpen(state, node)) return entry.seq;
    throw new FlowClientError("rejected", `the node "${node}" was over in the decision that entered it`, {
      hint: "rerun a node in front of it, or fork behind a decision",
    });
  }

  /**
   * Moves an execution to another version of its flow.
   *
   * @throws {FlowClientError} `rejected` with all that keeps it from that; `unknown_flow`; `execution_ended`.
   */
  async migrate(
    execId: string,
    { id = newId(), version, nodes, dryRun = false }: MigrateOptions = {},
  ): Promise<Migrated> {
    checkToken(execId, "id of an execution");
    checkCommandId(id);
    const before = await this.#reader.live(execId), { state, flow: from } = before;
    if (hasEnded(state)) throw ended(execId, state.phase);
    const to = await this.#compiled(state.flow, version), found = { from: from.hash, to: to.hash };
    if (from.hash === to.hash) return { ...found, problems: [], migrated: !dryRun };
    const problems = migrationProblems(from, to, state, nodes);
    if (dryRun) return { ...found, problems, migrated: false };
    if (problems.length > 0) {
      throw new FlowClientError(
        "rejected",
        `execution "${execId}" cannot go on there: ${problems.join("; ")}`,
      );
    }
    const command = commandOf("migrate", id, execId, {
      flow_hash: to.hash,
      ...(nodes === undefined ? {} : { nodes }),
    });
    const answer = await this.#ask(command);
    if (answer === undefined) {
      await this.#effect(`the migration of "${execId}"`, execId, async () => {
        const { state } = await this.#reader.get(execId);
        if (state.flowHash === to.hash) return true;
        if (hasEnded(state)) throw ended(execId, state.phase);
        return undefined;
      });
    }
    return { ...found, problems: [], migrated: true };
  }

  /** Puts an execution that has ended away: it can be read and forked, and changes no more. */
  async archive(execId: string): Promise<Sent> {
    return await this.#operate("archive", execId, ({ summary }) => summary.archived === true);
  }

  /** Removes an execution that has ended, and all that is its own. */
  async delete(execId: string): Promise<Sent> {
    return await this.#operate("delete", execId, () => false);
  }

  async #operate(
    type: "archive" | "delete",
    execId: string,
    isDone: (head: Head) => boolean,
  ): Promise<Sent> {
    checkToken(execId, "id of an execution");
    const id = `${type}.${execId}.${newId()}`, before = await this.#reader.head(execId);
    if (isDone(before)) return { id, changed: false };
    if (!isEnd(before.summary.status)) {
      throw new FlowClientError(
        "rejected",
        `execution "${execId}" has not ended: ${before.summary.status}`,
        {
          hint: "cancel it first",
        },
      );
    }
    const answer = await this.#ask(commandOf(type, id, execId, {}));
    if (answer !== undefined) return sent(id, answer);
    await this.#effect(`to ${type} "${execId}"`, execId, async () => {
      const now = await this.#store.executions.head(execId);
      return now === undefined || isDone(now) ? true : undefined;
    });
    return { id, changed: true };
  }

  /** Executions that are parked, as something of them cannot be carried out, and what that is. */
  async quarantined(): Promise<readonly QuarantinedExecution[]> {
    const parked = await this.#store.quarantines.list();
    return parked.map(({ execId: id, seq, reason }) => ({ id, seq, reason }));
  }

  /**
   * Lets a parked execution go on, with all that has come for it meanwhile.
   *
   * @throws {FlowClientError} `rejected` where it still cannot be read; `execution_not_found`.
   */
  async unquarantine(execId: string, { id = newId() }: CommandOptions = {}): Promise<Sent> {
    checkToken(execId, "id of an execution");
    checkCommandId(id);
    if ((await this.#reader.head(execId)).summary.quarantined !== true) return { id, changed: false };
    try {
      await this.#reader.check(execId);
    } catch (cause) {
      if (!isLasting(cause)) throw cause;
      throw new FlowClientError("rejected", `execution "${execId}" stays parked: ${asError(cause).message}`, {
        cause,
      });
    }
    const answer = await this.#ask(commandOf("redispatch", id, execId, {}));
    if (answer !== undefined) return sent(id, answer);
    await this.#effect(`to let "${execId}" go on`, execId, async () => {
      return (await this.#reader.head(execId)).summary.quarantined === true ? undefined : true;
    });
    return { id, changed: true };
  }

  /** Lists executions, a page at a time. */
  async list(query: Query = {}): Promise<Page<ListedExecution>> {
    checkQuery(query);
    const { items, cursor } = await this.#store.index.list(query);
    return { items: items.map(listedView), ...(cursor === undefined ? {} : { cursor }) };
  }

  /** Does the same with all executions that fit a query. */
  async bulk(query: Query, action: BulkAction, options: BulkOptions = {}): Promise<BulkResult> {
    checkQuery(query);
    return await runBulk(this, query, action, options);
  }

  /** Stores a version of a flow, and makes it the newest of its name. */
  async register(flow: Flow): Promise<ListedFlow> {
    const { hash } = await this.#flows.register(flow);
    return { name: flow.name, hash, latest: true };
  }

  /** Versions of flows. */
  async flows(): Promise<readonly ListedFlow[]> {
    return await this.#store.definitions.list();
  }

  /** A version of a flow; without a hash the newest. */
  async flow(name: string, version?: string): Promise<Pick<CompiledFlow, "definition" | "hash">> {
    checkToken(name, "name of a flow");
    const { definition, hash } = await this.#compiled(name, version);
    return { definition, hash };
  }

  /** What could not be done, the newest first. */
  async deadLetters(
    options: { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<Page<DeadLetterView>> {
    const { items, cursor } = await this.#store.deadLetters.list(options);
    return { items: items.map(letterView), ...(cursor === undefined ? {} : { cursor }) };
  }

  /**
   * Has what a dead letter is about done again; the letter goes.
   *
   * @throws {FlowClientError} `dead_letter_not_found`; `rejected` for letters of jobs, whose attempts have failed long since.
   */
  async redrive(id: string): Promise<{ readonly execution: string }> {
    const letter = await this.#store.deadLetters.get(id);
    const command = letter === undefined ? undefined : redriven(letter);
    if (command === undefined || !await this.#store.deadLetters.remove(id, [command])) {
      throw new FlowClientError("dead_letter_not_found", `there is no dead letter "${id}"`);
    }
    return { execution: command.execId };
  }

  async #compiled(name: string, version: string | undefined): Promise<CompiledFlow> {
    if (version !== undefined && !TOKEN_PATTERN.test(version)) {
      throw invalid(`${JSON.stringify(version)} is no version of a flow`);
    }
    const flow = await this.#flows.find(name, version);
    if (flow !== undefined) return flow;
    const which = version === undefined ? `"${name}"` : `"${name}" with the hash ${version}`;
    throw new FlowClientError("unknown_flow", `there is no flow ${which}`);
  }

  /** Sends a command to an execution that has to be alive. */
  async #send<T extends "resume" | "pause" | "unpause">(
    type: T,
    execId: string,
    id: string,
    data: Parameters<typeof commandOf<T>>[3],
    isGiven: boolean,
  ): Promise<Sent> {
    checkToken(execId, "id of an execution");
    checkCommandId(id);
    const command = commandOf(type, id, execId, data) as Command;
    try {
      const execution = await this.#reader.live(execId);
      if (hasEnded(execution.state)) throw ended(execId, execution.state.phase);
      this.#preview(execution, command);
      return sent(id, await this.#ask(command));
    } catch (error) {
      // What was done before is not refused because of what has come of it.
      if (isGiven && WAS_DONE.includes(codeOf(error)) && await this.#wasDone(execId, id)) {
        return { id, changed: false };
      }
      throw error;
    }
  }

  /** Whether a command has led to something. */
  async #wasDone(execId: string, id: string): Promise<boolean> {
    return (await this.history(execId)).some((event) => event.cmd_id === id);
  }

  /** Refuses what would be refused as things stand: where another process decides it, nobody would hear of it. */
  #preview({ flow, state }: Execution, command: Command): void {
    const verdict = decide(flow, state, command, this.#clock.now());
    if (!verdict.ok) throw refusalError(verdict);
  }

  /** Has a command carried out; undefined where another process is to do that. */
  async #ask(command: Command): Promise<(Answer & { readonly ok: true }) | undefined> {
    let answer: Answer | undefined;
    try {
      if (this.#engine !== undefined) answer = await this.#engine.submit(command);
      else await this.#store.inbox.push([newCommand(command)]);
    } catch (cause) {
      const why = `${command.type} of "${command.exec_id}": ${asError(cause).message} (${codeOf(cause)})`;
      throw new FlowClientError("outcome_unknown", why, {
        cause,
        hint: "it may have been stored or not; the same id is safe to use again",
      });
    }
    if (answer === undefined || answer.ok) return answer;
    if (answer.code !== "rejected") throw refusalError(answer);
    const now = await this.#reader.look(command.exec_id);
    if (now === undefined) throw notFound(command.exec_id);
    if (now.head.summary.archived === true) throw new FlowClientError("execution_archived", answer.message);
    throw hasEnded(now.state) ? ended(command.exec_id, now.state.phase) : refusalError(answer);
  }

  /** Waits for what another process does about a command. */
  async #effect<T>(what: string, execId: string, look: () => Promise<T | undefined>): Promise<T> {
    const found = await this.#reader.until(execId, { timeoutMs: this.#timeoutMs }, look);
    if (found === undefined) throw outcomeUnknown(what, this.#timeoutMs);
    return found;
  }
}

function timedOut(what: string, { timeoutMs }: WaitOptions): FlowClientError {
  return new FlowClientError("wait_timed_out", `${what} within ${timeoutMs} ms`);
}

function sent(id: string, answer: { readonly changed: boolean } | undefined): Sent {
  return answer === undefined ? { id } : { id, changed: answer.changed };
}

function conflict(id: string, flow: string): FlowClientError {
  return new FlowClientError("execution_conflict", `the id "${id}" belongs to an execution of "${flow}"`);
}

function exists(id: string): FlowClientError {
  return new FlowClientError("execution_exists", `there is already an execution "${id}"`);
}

/** Whether a node is still at work in a state. */
function isOpen(state: State, node: string): boolean {
  const { tasks, maps, awaits, sleeps, children, fans } = state;
  const isOf = (open: { readonly node: string }): boolean => open.node === node;
  return maps.has(node) || awaits.has(node) || sleeps.has(node) || fans.has(node) ||
    tasks.values().some(isOf) || children.values().some(isOf);
}

function checkQuery({ status, flow, attrs = [] }: Query): void {
  if (status !== undefined && !STATUSES.includes(status)) {
    throw invalid(`${JSON.stringify(status)} is no status: ${STATUSES.join(", ")}`);
  }
  if (flow !== undefined) checkToken(flow, "name of a flow");
  for (const { name } of attrs) checkToken(name, "name of an attribute");
}
