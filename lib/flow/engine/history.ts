/**
 * What becomes of histories: long ones are begun anew, finished ones are archived or deleted.
 *
 * H1 A history that is begun anew has lost nothing: what was moved out of the live log lies in segments.
 * H2 Each step can be interrupted and made again.
 * H3 An id is free again only when nothing in the store remembers it.
 *
 * @module
 */
import { type CommandOf, decide, hasEnded } from "../fold/mod.ts";
import type { Ownership } from "../store/port.ts";
import { EXPIRY, partsOf } from "./commit_of.ts";
import type { EngineCore } from "./core.ts";
import { ARCHIVE, type Execution, SEGMENT_PREFIX, type StoredHistory } from "./executions.ts";
import type { Answer } from "./partition.ts";

/** Moves the live log of a running execution into a segment, where it has become long. */
export async function continueHistory(
  core: EngineCore,
  ownership: Ownership,
  execution: Execution,
): Promise<void> {
  const { historyLimit, store, clock, executions } = core, { state, head, flow } = execution;
  if (historyLimit <= 0 || hasEnded(state) || state.events - state.base + 1 < historyLimit) return;
  const { execId } = state, decisions = await liveDecisions(core, execId, head.firstSeq);
  const object = `${SEGMENT_PREFIX}${String(state.base).padStart(12, "0")}`;
  await putHistory(core, ownership, execId, object, { decisions });
  const command: CommandOf<"continue"> = {
    id: `continue.${execId}.${state.events}`,
    type: "continue",
    exec_id: execId,
    data: {
      segment: {
        object,
        first_index: state.base,
        last_index: state.events,
        first_seq: head.firstSeq,
        last_seq: head.seq,
      },
    },
  };
  const verdict = decide(flow, state, command, Math.floor(clock.now()));
  if (!verdict.ok || verdict.events.length === 0) return;
  const parts = partsOf(command, execution, verdict, {
    now: Math.floor(clock.now()),
    snapshotEvery: 1,
    reserve: () => undefined,
  });
  const outcome = await store.executions.commit({
    execId,
    ownership,
    head,
    ...parts,
    firstSeq: head.seq + 1,
  });
  if (outcome.kind !== "committed") return executions.drop(execId); // the next decision tries again
  const continued = { head: outcome.head, state: verdict.state, flow };
  executions.keep(execId, continued);
  core.counters.continued++;
  core.changed(execId, continued, verdict.events);
  await store.executions.truncate(ownership, execId);
}

/** Puts a finished execution away: it can be read and forked, and changes no more. */
export async function archive(
  core: EngineCore,
  ownership: Ownership,
  execId: string,
  { head, state, flow }: Execution,
): Promise<Answer> {
  const { store, executions, clock } = core, { archiveRetention } = flow.definition;
  const done: Answer = { ok: true, state, seq: head.seq, changed: false };
  if (head.summary.archived === true) return done;
  if (!hasEnded(state)) {
    return { ok: false, code: "rejected", message: `execution "${execId}" has not ended` };
  }
  const decisions = await executions.history(execId);
  await putHistory(core, ownership, execId, ARCHIVE, { decisions: decisions! });
  const outcome = await store.executions.commit({
    execId,
    ownership,
    head,
    summary: { ...head.summary, archived: true },
    snapshot: null,
    firstSeq: head.seq + 1,
    ...(archiveRetention === undefined ? {} : {
      timers: [{ id: EXPIRY, at: Math.floor(clock.now()) + archiveRetention, text: "delete" }],
    }),
  });
  executions.drop(execId);
  if (outcome.kind !== "committed") {
    return { ok: false, code: "rejected", message: `execution "${execId}" was written meanwhile` };
  }
  core.counters.archived++;
  await store.executions.truncate(ownership, execId);
  for (const name of await store.executions.objects(execId)) {
    if (name.startsWith(SEGMENT_PREFIX)) await store.executions.deleteObject(ownership, execId, name);
  }
  return { ...done, changed: true };
}

/** Deletes a finished execution with all that is its own. */
export async function remove(
  core: EngineCore,
  ownership: Ownership,
  execId: string,
  { head, state }: Execution,
): Promise<Answer> {
  if (!hasEnded(state)) {
    return { ok: false, code: "rejected", message: `execution "${execId}" has not ended` };
  }
  await core.store.executions.delete(ownership, execId);
  core.executions.drop(execId);
  core.counters.deleted++;
  return { ok: true, state: undefined, seq: head.seq, changed: true };
}

async function putHistory(
  { store }: EngineCore,
  ownership: Ownership,
  execId: string,
  name: string,
  history: StoredHistory,
): Promise<void> {
  await store.executions.putObject(ownership, execId, name, JSON.stringify(history));
}

async function liveDecisions(
  { store }: EngineCore,
  execId: string,
  from: number,
): Promise<StoredHistory["decisions"]> {
  const all = [];
  for (let next = from;;) {
    const some = await store.executions.log(execId, next);
    if (some.length === 0) return all;
    all.push(...some);
    next = some.at(-1)!.seq + 1;
  }
}
