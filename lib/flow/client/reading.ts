/**
 * Reading executions: states, histories, and what happens as it happens.
 *
 * R1 What was written is read: a read never shows less than the one before.
 * R2 A watch gives each event once, in order, and ends with the execution; begun again from where it was it goes on there.
 *
 * @module
 */
import { type Clock, delay } from "../../clock.ts";
import { asError, codeOf, MailerError } from "../../errors.ts";
import type { Execution, FlowEngine } from "../engine/mod.ts";
import type { Executions } from "../engine/executions.ts";
import { isLasting } from "../engine/quarantine.ts";
import { decodeEvents, type FlowEvent, isTerminal } from "../fold/mod.ts";
import type { FlowStore, Head, StoredDecision } from "../store/port.ts";
import { archivedError, FlowClientError, notFound } from "./errors.ts";

/** An event and the decision it belongs to. */
export type RecordedEvent = FlowEvent & {
  /** Sequence of the decision. */
  readonly seq: number;
  /** Whether it is the last of its decision. */
  readonly last: boolean;
};

/** Which part of a history. */
export interface HistoryOptions {
  /** First decision. Default 1. */
  readonly from?: number;
  /** Most decisions. Default: all. */
  readonly limit?: number;
}

/** An output that a node gave. */
export interface RecordedOutput {
  /** Sequence of the decision. */
  readonly seq: number;
  /** Number of the event. */
  readonly i: number;
  /** ms */
  readonly time: number;
  /** The output; `null` where there was none. */
  readonly output: unknown;
}

/** How long to wait. */
export interface WaitOptions {
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal;
  /** Default: for ever. ms */
  readonly timeoutMs?: number;
}

/** An execution as it was. */
export interface PastExecution extends Pick<Execution, "state" | "flow"> {
  /** Sequence of the decision behind which it was so. */
  readonly seq: number;
  /** Whether it is archived now. */
  readonly archived: boolean;
}

const PAGE = 256;
const FIRST_PAUSE = 50, LONGEST_PAUSE = 2000;

/** Reads executions from a store. */
export class Reader {
  readonly #store: FlowStore;
  readonly #clock: Clock;
  readonly #own: Executions;
  readonly #engine: FlowEngine | undefined;

  /** @param engine One in this process, which knows much without looking. */
  constructor(store: FlowStore, clock: Clock, own: Executions, engine: FlowEngine | undefined) {
    this.#store = store;
    this.#clock = clock;
    this.#own = own;
    this.#engine = engine;
  }

  /** As it is now; undefined where there is none. */
  async look(execId: string): Promise<Execution | undefined> {
    const now = this.#engine?.known(execId);
    if (now !== undefined) return now;
    const head = await this.#store.executions.head(execId);
    if (head === undefined) return undefined;
    for (const executions of [this.#engine?.core.executions, this.#own]) {
      const known = executions?.known(execId);
      if (known?.head.version === head.version) return known;
    }
    let read: Execution | undefined;
    try {
      read = await this.#own.read(execId);
    } catch (error) {
      if (!isLasting(error)) throw error;
      return await this.#asFar(execId, head, error);
    }
    if (read !== undefined) this.#own.keep(execId, read);
    return read;
  }

  /** A parked execution, as it was behind its last good decision. One that is not marked is not shown as what it may not be. */
  async #asFar(execId: string, head: Head, error: unknown): Promise<Execution> {
    if (head.summary.quarantined !== true) throw error;
    const { state, flow } = await this.#own.asFar(execId, head);
    if (state !== undefined && flow !== undefined) return { head, state, flow };
    const { reason } = await this.#store.quarantines.get(execId) ?? { reason: asError(error).message };
    throw new FlowClientError("execution_quarantined", `execution "${execId}" is parked: ${reason}`, {
      cause: error,
    });
  }

  /** The end of its log. */
  async head(execId: string): Promise<Head> {
    const head = this.#engine?.known(execId)?.head ?? await this.#store.executions.head(execId);
    if (head === undefined) throw notFound(execId);
    return head;
  }

  /**
   * Throws what keeps it from being read.
   *
   * @throws {MailerError} see `isLasting`.
   */
  async check(execId: string): Promise<void> {
    await this.#own.read(execId);
  }

  /** Its decisions as they are stored, as far as they can be had. */
  async readable(execId: string): Promise<StoredDecision[]> {
    const decisions = await this.#own.readable(execId);
    if (decisions.length === 0) await this.head(execId);
    return decisions;
  }

  /** As it is now. */
  async get(execId: string): Promise<Execution> {
    const execution = await this.look(execId);
    if (execution === undefined) throw notFound(execId);
    return execution;
  }

  /** As it ended; undefined while it has not. */
  async ended(execId: string): Promise<Execution | undefined> {
    const now = this.#engine?.known(execId);
    if (now !== undefined) return isEnd(now.head.summary.status) ? now : undefined;
    const head = await this.#store.executions.head(execId);
    if (head === undefined) throw notFound(execId);
    return isEnd(head.summary.status) ? await this.get(execId) : undefined;
  }

  /** One that may still change. */
  async live(execId: string): Promise<Execution> {
    const execution = await this.get(execId);
    if (execution.head.summary.archived === true) throw archivedError(execId);
    return execution;
  }

  /** As it was behind a decision. */
  async at(execId: string, seq: number): Promise<PastExecution> {
    const head = await this.head(execId), archived = head.summary.archived === true;
    if (seq > head.seq) throw noDecision(execId, seq, head.seq);
    if (seq === head.seq && head.summary.quarantined !== true) {
      const now = await this.get(execId);
      if (now.head.seq === seq) return { state: now.state, flow: now.flow, seq, archived };
    }
    const past = await this.#own.at(execId, seq);
    if (past === undefined) throw notFound(execId);
    return { ...past, flow: await this.#own.flowOf(execId, past.state), archived };
  }

  /** Its decisions. */
  async decisions(
    execId: string,
    { from = 1, limit = Infinity }: HistoryOptions = {},
  ): Promise<StoredDecision[]> {
    const { summary } = await this.head(execId), isParked = summary.quarantined === true;
    const all = isParked ? await this.#own.readable(execId) : await this.#own.history(execId);
    if (all === undefined) throw notFound(execId);
    return all.filter(({ seq }) => seq >= from).slice(0, limit);
  }

  /** Events of its decisions; of one that is parked, those in front of the first that nobody can read. */
  async events(execId: string, options: HistoryOptions): Promise<RecordedEvent[]> {
    const decisions = await this.decisions(execId, options), events: RecordedEvent[] = [];
    for (const decision of decisions) {
      try {
        events.push(...recorded(decision));
      } catch (error) {
        if (!isLasting(error) || (await this.head(execId)).summary.quarantined !== true) throw error;
        return events;
      }
    }
    return events;
  }

  /** Its events, until it ends. */
  async *watch(execId: string, { from = 1, signal }: {
    readonly from?: number;
    readonly signal?: AbortSignal;
  } = {}): AsyncGenerator<RecordedEvent, void, undefined> {
    const watch = this.#store.watch([`exec:${execId}`]);
    try {
      for (let next = from;;) {
        signal?.throwIfAborted();
        const head = await this.#store.executions.head(execId);
        if (head === undefined) throw notFound(execId);
        for (const decision of next > head.seq ? [] : await this.#some(execId, head, next)) {
          for (const event of recorded(decision)) {
            yield event;
            if (isTerminal(event)) return;
          }
          next = decision.seq + 1;
        }
        if (next <= head.seq) continue;
        if (isEnd(head.summary.status)) return;
        await watch.next(signal);
      }
    } finally {
      watch.close();
    }
  }

  /** Decisions from one on; none where the history was cut meanwhile. */
  async #some(execId: string, head: Head, from: number): Promise<readonly StoredDecision[]> {
    const isLive = head.summary.archived !== true && from >= head.firstSeq;
    if (!isLive) return await this.decisions(execId, { from });
    const decisions = await this.#store.executions.log(execId, from, PAGE);
    return decisions[0]?.seq === from ? decisions : [];
  }

  /**
   * Waits until a look finds something.
   *
   * @returns undefined where the time is up.
   */
  async until<T>(
    execId: string,
    { signal, timeoutMs }: WaitOptions,
    look: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const watch = this.#store.watch([`exec:${execId}`]);
    // The store tells of a commit before the engine knows it.
    const ignore = this.#engine?.core.listen(execId, () => watch.wake());
    const timeUp = timeoutMs === undefined ? undefined : new AbortController();
    const alarm = timeoutMs === undefined
      ? undefined
      : this.#clock.schedule(timeoutMs, () => timeUp!.abort(new MailerError("time_up", "the time is up")));
    const over = timeUp === undefined
      ? signal
      : signal === undefined
      ? timeUp.signal
      : AbortSignal.any([timeUp.signal, signal]);
    try {
      for (let pause = FIRST_PAUSE;;) {
        signal?.throwIfAborted();
        try {
          const found = await look();
          if (found !== undefined) return found;
          if (timeUp?.signal.aborted) return undefined;
          pause = FIRST_PAUSE;
          await watch.next(over);
        } catch (error) {
          if (over?.aborted) continue; // the caller's reason is thrown; where the time is up there is a last look
          if (!mayPass(error)) throw error;
          await delay(this.#clock, pause, over).catch(() => undefined);
          pause = Math.min(2 * pause, LONGEST_PAUSE);
        }
      }
    } finally {
      alarm?.cancel();
      ignore?.();
      watch.close();
    }
  }
}

/** Whether reading again may go well. */
function mayPass(error: unknown): boolean {
  const code = codeOf(error);
  return code === "error" || code === "store_busy";
}

/** Whether a status is an end. */
export function isEnd(status: string): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The events of a decision. */
export function recorded({ seq, events }: StoredDecision): RecordedEvent[] {
  const all = decodeEvents(events);
  return all.map((event, i) => ({ ...event, seq, last: i === all.length - 1 }));
}

/** What a node gave, each time: of tasks (not of the items of a map), subflows and joins. */
export function outputsOf(events: readonly RecordedEvent[], node: string): RecordedOutput[] {
  return events.flatMap((event) => {
    const { seq, i, time, data } = event;
    switch (event.type) {
      case "NodeCompleted":
      case "ChildCompleted": {
        if (event.data.key !== node) return [];
        if (event.type === "ChildCompleted" && event.data.status !== "completed") return [];
        return [{ seq, i, time, output: event.data.output ?? null }];
      }
      case "JoinCompleted":
        return "node" in data && data.node === node ? [{ seq, i, time, output: event.data.output }] : [];
      default:
        return [];
    }
  });
}

/** There is no such decision. */
export function noDecision(execId: string, seq: number, last: number): FlowClientError {
  return new FlowClientError("invalid_argument", `execution "${execId}" has no decision ${seq}`, {
    hint: `its decisions are 1 to ${last}`,
  });
}
