/**
 * The fold of the flow engine: what commands lead to, and what their events add up to.
 *
 * ```ts
 * const verdict = decide(flow, state, command, clock.now());
 * if (verdict.ok && verdict.events.length > 0) {
 *   // In one atomic operation, if nothing was appended since `state` was read:
 *   // the decision (verdict.events), its effects (verdict.effects), and that the command is done.
 *   state = verdict.state;
 * }
 * ```
 *
 * Everything here is a function of its arguments: no clock, no chance, nothing read or written. {@link decide} and
 * {@link apply} are the two halves; `decide` applies each event as it goes, so its state is the one its events fold to.
 *
 * @module
 */
export { apply, applyAll, hashFor, type Versions } from "./apply.ts";
export {
  type Command,
  COMMAND_TYPES,
  type CommandData,
  type CommandOf,
  type CommandType,
  decodeCommand,
  encodeCommand,
  MAX_COMMAND_ID,
  MAX_NESTING,
  OPERATIONAL,
  type ReportedReason,
  type StartSignal,
} from "./commands.ts";
export { contextData, type Item } from "./context.ts";
export { abort, decide, type DecideOptions } from "./decide.ts";
export { MAX_DECISION_EVENTS, type Outcome } from "./decision.ts";
export * from "./effects.ts";
export {
  type ChildStatus,
  type ClosePolicy,
  decodeEvent,
  decodeEvents,
  encodeEvents,
  EVENT_TYPES,
  type EventData,
  type EventOf,
  type EventType,
  type FailureReason,
  type FlowEvent,
  isTerminal,
  type ParentRef,
  type Segment,
  type TimerPurpose,
  type UnreadSignals,
  type Usage,
} from "./events.ts";
export { decideFork } from "./fork.ts";
export * from "./ids.ts";
export { type Checked, checkHistory, sameState, survivesJson } from "./invariants.ts";
export { cacheKey, itemOf, type JobBody, jobBody, type JobContext, liveTask } from "./job.ts";
export { decideMigration, migrationProblems } from "./migrate.ts";
export type { Fields } from "./fields.ts";
export { ID_TTL, IdMemory, MAX_IDS, Queue } from "./queue.ts";
export { isHeld } from "./timers.ts";
export type { Refusal, RefusalCode, Verdict } from "./verdict.ts";
export { VersionedMap } from "./versioned_map.ts";
export type { NodeNames } from "./rename.ts";
export { decodeState, encodeState } from "./snapshot.ts";
export {
  type Await,
  type BranchStatus,
  type BufferedSignal,
  type Child,
  type Failure,
  type Fan,
  hasEnded,
  type MapRun,
  type Phase,
  type Sleep,
  type State,
  type Status,
  statusOf,
  type Task,
  type Timer,
} from "./state.ts";
