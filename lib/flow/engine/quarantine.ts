/**
 * Executions that cannot go on, whatever is tried: each is parked alone, with all that is its own.
 *
 * Q1 Only what fails the same way each time parks an execution; a store that does not answer never does.
 * Q2 A parked execution loses nothing: its history, commands, timers and jobs stay until it is let go or cancelled.
 * Q3 It keeps nobody else waiting.
 * Q4 It can be cancelled without its state: its end is written behind what cannot be read.
 *
 * @module
 */
import { asError, codeOf, MailerError } from "../../errors.ts";
import { type CommandOf, encodeEvents, type FlowEvent } from "../fold/mod.ts";
import type { Head, NewCommand, Ownership, Summary } from "../store/port.ts";
import { newCommand } from "./commit_of.ts";
import type { EngineCore } from "./core.ts";
import type { Answer } from "./partition.ts";

/** Codes of errors that come again however often it is tried. */
const LASTING: ReadonlySet<string> = new Set([
  "broken_history",
  "history_damaged",
  "not_json",
  "unknown_event",
  "invalid_event",
  "unknown_state",
  "invalid_state",
  "unknown_flow",
  "flow_damaged",
  "text_missing",
  "invalid_commit",
  "decision_failed",
]);

/** Whether trying again is of no use. */
export function isLasting(error: unknown): boolean {
  return LASTING.has(codeOf(error));
}

/** What is said of an execution that is parked. */
export function parkedError(execId: string): MailerError {
  return new MailerError(
    "quarantined",
    `execution "${execId}" is parked: something of it cannot be carried out`,
    {
      hint: "mailer flow quarantined says what; when that is mended, mailer flow unquarantine lets it go on",
    },
  );
}

/** Makes a decision; what it throws is thrown each time. */
export function decided<T>(execId: string, decide: () => T): T {
  try {
    return decide();
  } catch (cause) {
    throw new MailerError(
      "decision_failed",
      `a decision of execution "${execId}" cannot be made: ${asError(cause).message}`,
      { cause },
    );
  }
}

/**
 * Parks an execution. False: it is not there, or was written meanwhile.
 *
 * @param error Why; see {@link isLasting}.
 */
export async function park(
  core: EngineCore,
  ownership: Ownership,
  execId: string,
  error: unknown,
): Promise<boolean> {
  const { store, executions, counters, logger } = core, head = await store.executions.head(execId);
  if (head === undefined) return false;
  if (head.summary.quarantined === true) return true;
  const far = await executions.asFar(execId, head);
  const seq = far.problem?.seq ?? head.seq + 1, { flow, flowHash } = head.summary;
  const { message, hint } = asError(far.problem?.error ?? error) as MailerError;
  const place = far.problem?.node === undefined ? "" : `, node "${far.problem.node}"`;
  const reason = `flow ${flow}@${flowHash}${place}, decision ${seq}: ${message}${hint ? `; ${hint}` : ""}`;
  const outcome = await store.executions.commit({
    execId,
    ownership,
    head,
    summary: { ...head.summary, quarantined: true },
    quarantine: { seq, reason },
  });
  executions.drop(execId);
  if (outcome.kind !== "committed") return false;
  counters.quarantined++;
  logger.log("warn", "an execution was parked", { execution: execId, reason });
  return true;
}

/** Lets a parked execution go on, where it can be read again. */
export async function letGo(
  { store, executions }: EngineCore,
  ownership: Ownership,
  execId: string,
): Promise<Answer> {
  const head = await store.executions.head(execId);
  if (head === undefined) {
    return { ok: false, code: "not_found", message: `there is no execution "${execId}"` };
  }
  if (head.summary.quarantined !== true) return { ok: true, state: undefined, seq: head.seq, changed: false };
  executions.drop(execId);
  let state;
  try {
    state = (await executions.read(execId))?.state;
  } catch (error) {
    if (!isLasting(error)) throw error;
    return {
      ok: false,
      code: "rejected",
      message: `execution "${execId}" stays parked: ${asError(error).message}`,
    };
  }
  const { quarantined: _, ...summary } = head.summary;
  const outcome = await store.executions.commit({ execId, ownership, head, summary, quarantine: null });
  if (outcome.kind === "committed") return { ok: true, state, seq: head.seq, changed: true };
  return { ok: false, code: "rejected", message: `execution "${execId}" was written meanwhile` };
}

/** Cancels a parked execution, and all it has begun, by what can still be read. */
export async function cancelParked(
  core: EngineCore,
  ownership: Ownership,
  { id, exec_id: execId, data: { reason } }: CommandOf<"cancel">,
): Promise<Answer> {
  const { store, executions, clock, counters, jobs } = core, head = await store.executions.head(execId);
  if (head === undefined) {
    return { ok: false, code: "not_found", message: `there is no execution "${execId}"` };
  }
  if (head.summary.endedAt !== undefined) {
    return { ok: true, state: undefined, seq: head.seq, changed: false };
  }
  const children = await childrenOf(core, execId), time = Math.floor(clock.now());
  const event: FlowEvent = {
    type: "ExecutionCancelled",
    v: 1,
    time,
    i: head.events + 1,
    cmd_id: id,
    data: { ...(reason === undefined ? {} : { reason }), cancel_children: children },
  };
  const outcome = await store.executions.commit({
    execId,
    ownership,
    head,
    events: encodeEvents([event]),
    lastIndex: event.i,
    note: event.type,
    summary: cancelled(head, time, reason),
    removeJobs: "all",
    clearTimers: "all",
    send: [...children.map((child) => closing(execId, child)), ...noticeOf(execId, head)],
  });
  if (outcome.kind !== "committed") {
    throw new MailerError("store_busy", `execution "${execId}" was written meanwhile`);
  }
  executions.drop(execId);
  counters.decisions++;
  counters.events++;
  for (const job of Object.keys(head.jobs)) jobs.stop(job);
  return { ok: true, state: undefined, seq: outcome.head.seq, changed: true };
}

function cancelled({ summary }: Head, time: number, reason: string | undefined): Summary {
  return {
    ...summary,
    status: "cancelled",
    updatedAt: time,
    endedAt: time,
    more: { ...summary.more, ...(reason === undefined ? {} : { reason }) },
  };
}

function closing(execId: string, child: string): NewCommand {
  return newCommand({
    id: `parent-closed.${child}`,
    type: "cancel",
    exec_id: child,
    data: { reason: `the parent "${execId}" no longer waits for it` },
  });
}

function noticeOf(execId: string, { summary: { more } }: Head): NewCommand[] {
  const parent = more?.["parent"];
  if (typeof parent !== "string") return [];
  return [newCommand({
    id: `child-done.${execId}`,
    type: "child_done",
    exec_id: parent,
    data: { child_id: execId, status: "cancelled" },
  })];
}

/** Children that end with their parent, as far as events can be read; those that have ended hear nothing new. */
async function childrenOf({ executions }: EngineCore, execId: string): Promise<string[]> {
  const children: string[] = [];
  for (const { events } of await executions.readable(execId)) {
    for (const event of jsonList(events)) {
      const { type, data } = event as { readonly type?: unknown; readonly data?: Record<string, unknown> };
      const child = data?.["child_id"];
      if (type === "ChildStarted" && typeof child === "string" && data!["policy"] === "cancel") {
        children.push(child);
      }
    }
  }
  return children;
}

function jsonList(text: string): readonly object[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((each) => typeof each === "object" && each !== null) : [];
  } catch {
    return []; // what cannot be read has parked the execution
  }
}
