/**
 * The closing line of a run.
 *
 * @module
 */
import type { RunStatus } from "../../stream/handle.ts";
import { countText, spanText } from "./amounts.ts";

/** How a run ended: `aborted` after a second interrupt, `stopped` when it was asked to. */
export type Outcome = "finished" | "stopped" | "failed" | "aborted";

/** What there is to say of a run that is over. */
export interface Closing {
  readonly status: RunStatus;
  readonly outcome: Outcome;
  readonly elapsedMs: number;
  /** What it failed of. */
  readonly error: unknown;
}

/** `copy: finished: 1,234 read, 56 written, 3 dead letters, 20 late dropped in 1.2 s` */
export function closingText({ status, outcome, elapsedMs }: Closing): string {
  const { name, recordsIn, recordsOut, deadLetters, restarts } = status;
  const parts = [`${countText(recordsIn)} read`, `${countText(recordsOut)} written`];
  if (deadLetters > 0) {
    parts.push(deadLetters === 1 ? "1 dead letter" : `${countText(deadLetters)} dead letters`);
  }
  for (const [reason, count] of droppedByReason(status)) {
    parts.push(`${countText(count)} ${WORDS[reason] ?? reason.replaceAll("_", " ")} dropped`);
  }
  if (restarts > 0) parts.push(restarts === 1 ? "1 restart" : `${countText(restarts)} restarts`);
  return `${name}: ${outcome}: ${parts.join(", ")} in ${spanText(elapsedMs)}`;
}

/** The same as one JSON value. */
export function closingJson({ status, outcome, elapsedMs }: Closing): Record<string, unknown> {
  return {
    workflow: status.name,
    outcome,
    read: status.recordsIn,
    written: status.recordsOut,
    deadLetters: status.deadLetters,
    dropped: Object.fromEntries(droppedByReason(status)),
    restarts: status.restarts,
    elapsedMs: Math.round(elapsedMs),
  };
}

/** Reasons in other words than their names. */
const WORDS: Readonly<Record<string, string>> = {
  error: "failed",
  filtered_non_object: "non-object",
};

/** Records left out on purpose, all operators together. */
function droppedByReason({ dropped }: RunStatus): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { reason, count } of dropped) counts.set(reason, (counts.get(reason) ?? 0) + count);
  return counts;
}
