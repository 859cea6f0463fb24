/**
 * One partition in the hands of this process: commands, timers and answers become decisions, in order for each execution.
 *
 * P1 Decisions of one execution are made one after the other, each on the state the one before left. Those of different executions
 *    are under way together, and share commits.
 * P2 Whoever handed in a command hears of its decision only when that is durable.
 * P3 A command that can never be carried out becomes a dead letter; one whose failure may pass is tried again, later and later.
 * P4 When the partition is lost nothing more is committed, and those who wait are told so.
 * P5 An execution that cannot go on is parked with what there is for it, and the others go on; see `quarantine.ts`.
 *
 * @module
 */
import { asError, codeOf, MailerError } from "../../errors.ts";
import {
  type Command,
  type CommandOf,
  decide,
  decideFork,
  decideMigration,
  decodeCommand,
  type Outcome,
  type Refusal,
  type State,
  type Verdict,
} from "../fold/mod.ts";
import type { Commit, CommitOutcome, Delivery, DueTimer, Ownership } from "../store/port.ts";
import { answeredJob, EXPIRY, newCommand, partsOf, stopsOf } from "./commit_of.ts";
import type { EngineCore } from "./core.ts";
import type { Execution, Executions } from "./executions.ts";
import { archive, continueHistory, remove } from "./history.ts";
import { cancelParked, decided, isLasting, letGo, park, parkedError } from "./quarantine.ts";

/** What became of a command. */
export type Answer = Answered | Refusal;

/** A command that was carried out, or came too late or again. */
export interface Answered {
  /** It was not refused. */
  readonly ok: true;
  /** The state behind it; undefined where the execution has been deleted. */
  readonly state: State | undefined;
  /** Sequence of the last decision. */
  readonly seq: number;
  /** Whether it led to anything. */
  readonly changed: boolean;
  /** A start or fork that found its execution there. */
  readonly joined?: true;
}

/** Times a decision is made again because somebody else wrote. */
const CONFLICTS = 8;
/** Deliveries of a command until it is given up: about half an hour. */
const DELIVERIES = 64;
/** Deliveries after which what is not there is not expected to come any more. */
const MISSING_DELIVERIES = 3;
const LONGEST_WAIT = 30_000;
/** Types of commands whose repetitions neither the state nor the events tell: what they ask for could be done again. */
const UNREMEMBERED: readonly Command["type"][] = ["resume", "pause", "unpause", "migrate"];
/** Most commands and timers taken in at once. */
const ROOM = 512;

/** Something to be decided. */
interface Item {
  readonly execId: string;
  readonly from:
    | { readonly kind: "command"; readonly command: Command; readonly answer: PromiseWithResolvers<Answer> }
    | { readonly kind: "delivery"; readonly delivery: Delivery }
    | { readonly kind: "timer"; readonly timer: DueTimer };
}

/** Runs a partition. */
export class PartitionRunner {
  readonly #core: EngineCore;
  readonly #ownership: Ownership;
  readonly #stop = new AbortController();
  /** What is to be decided, by execution. An execution is in it while it is worked on. */
  readonly #queues = new Map<string, Item[]>();
  /** How often the decision of a timer has failed, by the timer's key. */
  readonly #tries = new Map<string, number>();
  /** What is there for executions that are parked, by execution: the store has it handed out. */
  readonly #parked = new Map<string, Item[]>();
  #size = 0;
  #idle: (() => void) | undefined;
  #roomy: (() => void) | undefined;
  readonly #taking: Promise<void>;

  constructor(core: EngineCore, ownership: Ownership) {
    this.#core = core;
    this.#ownership = ownership;
    this.#taking = this.#take();
  }

  /** The right this works by. */
  get ownership(): Ownership {
    return this.#ownership;
  }

  /** Decides a command and answers when the decision is durable. */
  submit(command: Command): Promise<Answer> {
    if (this.#stop.signal.aborted) return Promise.reject(this.#lost());
    const answer = Promise.withResolvers<Answer>();
    this.#add({ execId: command.exec_id, from: { kind: "command", command, answer } });
    return answer.promise;
  }

  /** Takes nothing more in, and works off what is there. */
  async drain(): Promise<void> {
    this.#stop.abort(new MailerError("stopped", "the engine stops"));
    await this.#taking;
    if (this.#size > 0) await new Promise<void>((resolve) => this.#idle = resolve);
  }

  /** The partition is another's now. */
  lose(): void {
    this.#stop.abort(this.#lost());
  }

  #lost(): MailerError {
    return new MailerError("partition_lost", `partition ${this.#ownership.partition} is not this process's`);
  }

  /** Takes commands and timers in, as long as there is room. */
  async #take(): Promise<void> {
    const { store, clock, logger } = this.#core, { partition } = this.#ownership, { signal } = this.#stop;
    const watch = store.watch([`inbox:${partition}`, `timers:${partition}`]);
    try {
      while (!signal.aborted) {
        if (this.#size >= ROOM) await new Promise<void>((resolve) => this.#roomy = resolve);
        try {
          if (await this.#takeSome(ROOM - this.#size) > 0) continue;
          const next = await store.timers.next(this.#ownership);
          const soon = new AbortController(), wait = next === undefined ? undefined : next - clock.now();
          const alarm = wait === undefined ? undefined : clock.schedule(wait, () => soon.abort());
          try {
            await watch.next(AbortSignal.any([signal, soon.signal]));
          } catch (error) {
            if (!soon.signal.aborted && !signal.aborted) throw error;
          } finally {
            alarm?.cancel();
          }
        } catch (error) {
          if (signal.aborted) return;
          if (this.#ownership.lost) return this.lose();
          logger.log("warn", "a partition could not be read, trying again", {
            partition,
            error: asError(error).message,
          });
          await this.#core.pause(1000, signal);
        }
      }
    } finally {
      watch.close();
    }
  }

  async #takeSome(room: number): Promise<number> {
    const { store } = this.#core;
    const [pulled, due] = await Promise.allSettled([
      store.inbox.pull(this.#ownership, room),
      store.timers.due(this.#ownership, room),
    ]);
    // What one of them has handed out is not handed out again, whatever became of the other.
    const deliveries = pulled.status === "fulfilled" ? pulled.value : [];
    const timers = due.status === "fulfilled" ? due.value : [];
    for (const delivery of deliveries) {
      this.#add({ execId: delivery.execId, from: { kind: "delivery", delivery } });
    }
    for (const timer of timers) this.#add({ execId: timer.execId, from: { kind: "timer", timer } });
    if (pulled.status === "rejected") throw pulled.reason;
    if (due.status === "rejected") throw due.reason;
    return deliveries.length + timers.length;
  }

  #add(item: Item): void {
    this.#size++;
    const queue = this.#queues.get(item.execId);
    if (queue !== undefined) queue.push(item);
    else {
      this.#queues.set(item.execId, [item]);
      void this.#work(item.execId); // it ends by itself, and throws nothing
    }
  }

  /** Works off the queue of an execution. */
  async #work(execId: string): Promise<void> {
    const queue = this.#queues.get(execId)!;
    for (let item = queue[0]; item !== undefined; item = queue[0]) {
      try {
        await this.#handle(item);
      } catch (error) {
        this.#core.executions.drop(execId);
        await this.#failed(item, await this.#judged(execId, error));
      }
      queue.shift();
      this.#size--;
      if (this.#size < ROOM) this.#roomy?.();
    }
    this.#queues.delete(execId);
    if (this.#size === 0) this.#idle?.();
  }

  async #handle(item: Item): Promise<void> {
    const { from, execId } = item;
    if (from.kind === "command") return from.answer.resolve(await this.#carryOut(from.command, undefined));
    if (from.kind === "delivery") return await this.#delivered(from.delivery);
    const { timer } = from, { counters, clock } = this.#core;
    if (timer.id === EXPIRY) return await this.#expire(timer);
    const command: CommandOf<"timer"> = {
      id: `timer.${execId}.${timer.id}`,
      type: "timer",
      exec_id: execId,
      data: { timer_id: timer.id },
    };
    const lateness = Math.max(0, Math.floor(clock.now()) - timer.at);
    const answer = await this.#carryOut(command, undefined);
    this.#tries.delete(timer.key);
    counters.timers++;
    counters.timerLateMs += lateness;
    // What a timer came too late for, or what a pause holds, is not asked for again: an unpause sets it anew.
    if (!answer.ok || !answer.changed) await this.#core.store.timers.drop(this.#ownership, timer);
  }

  async #delivered(delivery: Delivery): Promise<void> {
    const { store } = this.#core;
    let command: Command;
    try {
      command = decodeCommand(delivery.text);
    } catch (error) {
      await this.#deadLetter(delivery, asError(error).message);
      return;
    }
    const answer = await this.#carryOut(command, delivery);
    if (answer.ok) {
      if (!answer.changed) await store.inbox.remove(this.#ownership, delivery);
      return;
    }
    if (command.type === "start" && command.data.parent !== undefined && answer.code !== "rejected") {
      return await this.#childRefused(command, command.data.parent.exec_id, answer, delivery);
    }
    const isMissing = answer.code === "not_found";
    if (isMissing && delivery.deliveries < MISSING_DELIVERIES) {
      return await store.inbox.release(this.#ownership, delivery, 1000);
    }
    // Refused in the state the execution is in: that is an answer, not a fault.
    if (answer.code === "rejected" || answer.code === "conflict") {
      await store.inbox.remove(this.#ownership, delivery);
    } else await this.#deadLetter(delivery, answer.message);
  }

  /** A child that cannot be started has failed, and its parent hears of it. */
  async #childRefused(
    { exec_id: child, id }: Command,
    parent: string,
    { message }: Refusal,
    delivery: Delivery,
  ): Promise<void> {
    const { store } = this.#core;
    const notice: CommandOf<"child_done"> = {
      id: `child-done.${child}`,
      type: "child_done",
      exec_id: parent,
      data: { child_id: child, status: "failed", error: message },
    };
    await store.inbox.push([newCommand(notice)]);
    await store.inbox.remove(this.#ownership, delivery, {
      kind: "cmd",
      key: child,
      text: JSON.stringify({ command: id, reason: message, body: delivery.text }),
    });
  }

  async #deadLetter(delivery: Delivery, reason: string): Promise<void> {
    const { execId: key, id, deliveries, text } = delivery;
    const letter = {
      kind: "cmd",
      key,
      text: JSON.stringify({ command: id, reason, deliveries, body: text }),
    };
    await this.#core.store.inbox.remove(this.#ownership, delivery, letter);
    this.#core.logger.log("warn", "a command could not be carried out", {
      execution: key,
      command: id,
      reason,
    });
    this.#core.counters.deadLetters++;
  }

  /** Makes decisions until one is stored. */
  async #carryOut(command: Command, delivery: Delivery | undefined): Promise<Answer> {
    const { executions, counters } = this.#core;
    counters.commands++;
    if (command.type === "archive" || command.type === "delete") return await this.#operate(command);
    if (command.type === "redispatch") return await this.#letGo(command.exec_id, delivery);
    for (let round = 0; round < CONFLICTS; round++) {
      const before = await this.#before(command);
      if (before === "parked") {
        if (command.type !== "cancel") throw parkedError(command.exec_id);
        const answer = await cancelParked(this.#core, this.#ownership, command);
        if (delivery !== undefined && answer.ok && answer.changed) {
          await this.#core.store.inbox.remove(this.#ownership, delivery);
        }
        return answer;
      }
      if (before?.head.summary.archived === true) return archived(before, command);
      const verdict = await this.#decide(command, before);
      if (!verdict.ok) return verdict;
      const { events, state, joined } = verdict;
      if (events.length === 0) {
        await this.#settleNothing(command, before);
        return { ok: true, state, seq: before?.head.seq ?? 0, changed: false, ...(joined ? { joined } : {}) };
      }
      const outcome = await this.#commit(command, before, verdict, delivery);
      switch (outcome.kind) {
        case "committed":
          return await this.#committed(command, before, verdict, outcome);
        case "conflict":
          counters.conflicts++;
          executions.drop(command.exec_id);
          break;
        case "duplicate":
          return { ok: true, state: before?.state, seq: before?.head.seq ?? 0, changed: false };
        case "fenced":
          this.lose();
          throw this.#lost();
      }
    }
    throw new MailerError(
      "too_many_conflicts",
      `execution "${command.exec_id}" is written by others all the time`,
    );
  }

  /** What a command is decided on. */
  async #before({ exec_id: execId, type }: Command): Promise<Execution | "parked" | undefined> {
    const { executions } = this.#core;
    try {
      const before = await executions.get(execId);
      return before?.head.summary.quarantined === true ? "parked" : before;
    } catch (error) {
      // A cancel needs no more than the mark; everything else waits behind it.
      if (type === "cancel" && isLasting(error) && await park(this.#core, this.#ownership, execId, error)) {
        return "parked";
      }
      throw error;
    }
  }

  /** Parks an execution whose decision will fail whenever it is tried. */
  async #judged(execId: string, error: unknown): Promise<unknown> {
    if (!isLasting(error) || this.#ownership.lost) return error;
    try {
      return await park(this.#core, this.#ownership, execId, error) ? parkedError(execId) : error;
    } catch (cause) {
      this.#core.logger.log("warn", "an execution could not be parked", {
        execution: execId,
        error: asError(cause).message,
      });
      return error;
    }
  }

  /** Lets a parked execution go on, with what has come for it meanwhile. */
  async #letGo(execId: string, delivery: Delivery | undefined): Promise<Answer> {
    const answer = await letGo(this.#core, this.#ownership, execId);
    if (!answer.ok) return answer;
    this.#takeUp(execId);
    if (delivery !== undefined && answer.changed) {
      await this.#core.store.inbox.remove(this.#ownership, delivery);
    }
    return answer;
  }

  /** What came for a parked execution comes next. */
  #takeUp(execId: string): void {
    const items = this.#parked.get(execId) ?? [];
    this.#parked.delete(execId);
    this.#queues.get(execId)!.splice(1, 0, ...items);
    this.#size += items.length;
  }

  async #decide(command: Command, before: Execution | undefined): Promise<Verdict> {
    const { flows, executions, clock, maxEvents } = this.#core;
    const { exec_id: execId } = command;
    const now = Math.floor(clock.now()); // as it is written: what is remembered is what will be read
    switch (command.type) {
      case "start": {
        const flow = before?.flow ?? await flows.find(command.data.flow, command.data.version);
        if (flow === undefined) return unknownFlow(command.data.flow, command.data.version);
        return decided(execId, () => decide(flow, before?.state, command, now, { maxEvents }));
      }
      case "fork": {
        if (before !== undefined) {
          return decided(execId, () => decideFork(before.flow, before.state, before.state, command, now));
        }
        const source = await sourceOf(executions, command);
        if ("ok" in source) return source;
        const flow = await executions.flowOf(command.data.from, source.state);
        return decided(execId, () => decideFork(flow, undefined, source.state, command, now, { maxEvents }));
      }
      case "migrate": {
        if (before === undefined) return missing(execId);
        const to = await flows.find(before.state.flow, command.data.flow_hash);
        if (to === undefined) return unknownFlow(before.state.flow, command.data.flow_hash);
        return decided(execId, () => decideMigration(before.flow, to, before.state, command, now));
      }
      default:
        if (before === undefined) return missing(execId);
        return decided(execId, () => decide(before.flow, before.state, command, now, { maxEvents }));
    }
  }

  async #commit(
    command: Command,
    before: Execution | undefined,
    verdict: Outcome,
    delivery: Delivery | undefined,
  ): Promise<CommitOutcome> {
    const { store, jobs, clock, snapshotEvery } = this.#core;
    const reserved: string[] = [];
    const parts = partsOf(command, before, verdict, {
      now: Math.floor(clock.now()),
      snapshotEvery,
      reserve: (job) => {
        const lease = jobs.reserve(job);
        if (lease !== undefined) reserved.push(job.kind);
        return lease;
      },
    });
    const commit: Commit = {
      execId: command.exec_id,
      ownership: this.#ownership,
      ...parts,
      ...(before === undefined ? {} : { head: before.head }),
      ...(delivery === undefined ? {} : { command: delivery }),
      ...(UNREMEMBERED.includes(command.type) ? { dedup: [`done.${command.id}`] } : {}),
    };
    let outcome: CommitOutcome | undefined;
    try {
      return outcome = await store.executions.commit(commit);
    } finally {
      const leased = outcome?.kind === "committed" ? outcome.leased.length : 0;
      for (let i = leased; i < reserved.length; i++) jobs.unreserve(reserved[i]!);
    }
  }

  async #committed(
    command: Command,
    before: Execution | undefined,
    { events, effects, state, joined }: Outcome,
    { head, leased }: CommitOutcome & { readonly kind: "committed" },
  ): Promise<Answered> {
    const { executions, counters, jobs } = this.#core, { exec_id: execId } = command;
    let execution: Execution;
    try {
      const migrated = command.type === "migrate" || before === undefined;
      const flow = migrated ? await executions.flowOf(execId, state) : before.flow;
      execution = { head, state, flow };
      executions.keep(execId, execution);
    } finally {
      // Not before it is known what they are about: their workers look there.
      for (const job of leased) jobs.take(job);
    }
    counters.decisions++;
    counters.events += events.length;
    for (const id of stopsOf(effects)) jobs.stop(id);
    this.#core.changed(execId, execution, events);
    await this.#continue(execution);
    return { ok: true, state, seq: head.seq, changed: true, ...(joined ? { joined } : {}) };
  }

  /** The decision is made: what keeps its history from being begun anew is tried again with the next one. */
  async #continue(execution: Execution): Promise<void> {
    const { execId } = execution.state;
    try {
      await continueHistory(this.#core, this.#ownership, execution);
    } catch (error) {
      this.#core.executions.drop(execId);
      this.#core.logger.log("warn", "a history could not be begun anew", {
        execution: execId,
        error: asError(error).message,
      });
    }
  }

  /** A command that led to nothing still settles its job. */
  async #settleNothing(
    command: Command,
    before: Execution | undefined,
  ): Promise<void> {
    const removeJobs = answeredJob(command, before);
    if (removeJobs.length === 0 || before === undefined) return;
    const { store, executions } = this.#core, { exec_id: execId } = command;
    const commit: Commit = { execId, ownership: this.#ownership, head: before.head, removeJobs };
    const outcome = await store.executions.commit(commit);
    if (outcome.kind === "committed") executions.keep(execId, { ...before, head: outcome.head });
    else executions.drop(execId); // whoever wrote has settled it
  }

  async #operate(command: CommandOf<"archive"> | CommandOf<"delete">): Promise<Answer> {
    const { executions, store, counters } = this.#core, { exec_id: execId, type } = command;
    const head = await store.executions.head(execId);
    if (head?.summary.quarantined === true) {
      if (type !== "delete" || head.summary.endedAt === undefined) {
        return { ok: false, code: "rejected", message: parkedError(execId).message };
      }
      await store.executions.delete(this.#ownership, execId);
      executions.drop(execId);
      this.#takeUp(execId);
      counters.deleted++;
      return { ok: true, state: undefined, seq: head.seq, changed: true };
    }
    const execution = await executions.read(execId);
    if (execution === undefined) return missing(execId);
    const operation = type === "archive" ? archive : remove;
    return await operation(this.#core, this.#ownership, execId, execution);
  }

  /** The time a finished execution is kept for is over. */
  async #expire(timer: DueTimer): Promise<void> {
    const { execId, text: type } = timer, { store, executions } = this.#core;
    const execution = await executions.read(execId);
    if (execution !== undefined) {
      const operation = type === "archive" ? archive : remove;
      const answer = await operation(this.#core, this.#ownership, execId, execution);
      if (!answer.ok && answer.code === "rejected") return store.timers.release(this.#ownership, timer);
    }
    await store.timers.drop(this.#ownership, timer);
  }

  /** A timer whose decision failed comes again, later and later; it stays handed out until then. */
  #putOff(timer: DueTimer): void {
    const { clock, store } = this.#core, { signal } = this.#stop;
    if (signal.aborted) return; // the next owner gets it
    const tries = (this.#tries.get(timer.key) ?? 0) + 1;
    this.#tries.set(timer.key, tries);
    const alarm = clock.schedule(Math.min(LONGEST_WAIT, 1000 * 2 ** (tries - 1)), () => {
      signal.removeEventListener("abort", alarm.cancel);
      store.timers.release(this.#ownership, timer);
    });
    signal.addEventListener("abort", alarm.cancel, { once: true });
  }

  /** A command that failed for now is tried again; whoever waits for one is told. */
  async #failed({ from, execId }: Item, error: unknown): Promise<void> {
    const { store, logger } = this.#core, isLost = this.#ownership.lost || codeOf(error) === "partition_lost";
    if (from.kind === "command") return from.answer.reject(error);
    if (isLost) return this.lose();
    if (codeOf(error) === "quarantined") {
      const parked = this.#parked.get(execId) ?? [];
      this.#parked.set(execId, parked);
      return void parked.push({ execId, from });
    }
    logger.log("warn", "a decision could not be made, trying again", {
      execution: execId,
      error: asError(error).message,
    });
    try {
      if (from.kind === "timer") return this.#putOff(from.timer);
      const { delivery } = from;
      if (delivery.deliveries >= DELIVERIES) return await this.#deadLetter(delivery, asError(error).message);
      const wait = Math.min(LONGEST_WAIT, 1000 * 2 ** (delivery.deliveries - 1));
      await store.inbox.release(this.#ownership, delivery, wait);
    } catch (again) {
      // The store has it handed out; it comes again when the partition is taken over, or after its time.
      logger.log("error", "the store does not answer", { execution: execId, error: asError(again).message });
    }
  }
}

function missing(execId: string): Refusal {
  return { ok: false, code: "not_found", message: `there is no execution "${execId}"` };
}

/** What a fork begins with. */
async function sourceOf(
  executions: Executions,
  { data: { from, seq } }: CommandOf<"fork">,
): Promise<{ readonly state: State } | Refusal> {
  try {
    return await executions.at(from, seq) ?? missing(from);
  } catch (error) {
    if (codeOf(error) !== "no_such_decision") throw error;
    return { ok: false, code: "invalid", message: asError(error).message };
  }
}

function unknownFlow(name: string, version: string | undefined): Refusal {
  const which = version === undefined ? `"${name}"` : `"${name}" with the hash ${version}`;
  return { ok: false, code: "not_found", message: `there is no flow ${which}` };
}

/** Archived executions change no more: a start joins, everything else comes too late. */
function archived({ state, head }: Execution, command: Command): Answer {
  if (command.type === "start" && command.data.flow === state.flow) {
    return { ok: true, state, seq: head.seq, changed: false, joined: true };
  }
  const { exec_id: id } = command;
  if (command.type === "start") {
    return {
      ok: false,
      code: "conflict",
      message: `the id "${id}" belongs to an execution of "${state.flow}"`,
    };
  }
  return { ok: false, code: "rejected", message: `execution "${id}" is archived` };
}
