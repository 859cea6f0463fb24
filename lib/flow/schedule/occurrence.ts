/**
 * Occurrences: what follows from the name of a schedule and an instant alone.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { CommandOf } from "../fold/mod.ts";
import type { CheckedSpec } from "./spec.ts";

/** Id of the execution of an occurrence: `nightly-20261025T013000Z`, with milliseconds where there are some. */
export function occurrenceId(name: string, occurrence: number): string {
  return `${name}-${instantText(occurrence).replace(/[-+:.]/g, "")}`;
}

/** When an occurrence is started, ms: at its time, or later by its jitter. */
export function dueAt({ name, jitter }: Pick<CheckedSpec, "name" | "jitter">, occurrence: number): number {
  if (jitter === 0) return occurrence;
  const hash = createHash("sha256").update(`${name}\n${occurrence}`).digest();
  return occurrence + Math.floor(hash.readUInt32BE() / 2 ** 32 * (jitter + 1));
}

/** RFC 3339 in UTC, without milliseconds where there are none. */
export function instantText(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}

/** Starts the execution of an occurrence; one that was started is joined. */
export function startCommand(spec: CheckedSpec, occurrence: number): CommandOf<"start"> {
  const id = occurrenceId(spec.name, occurrence), { flow, version, occurrenceField } = spec;
  const input = occurrenceField === undefined
    ? spec.input
    : { ...spec.input, [occurrenceField]: instantText(occurrence) };
  return {
    id: `schedule.${id}`,
    type: "start",
    exec_id: id,
    data: {
      flow,
      ...(version === undefined ? {} : { version }),
      ...(input === undefined ? {} : { input }),
    },
  };
}

/** Cancels what an occurrence has started, for the sake of a later one. */
export function cancelCommand(execId: string, occurrence: number): CommandOf<"cancel"> {
  return {
    id: `schedule.cancel.${execId}`,
    type: "cancel",
    exec_id: execId,
    data: { reason: `the occurrence of ${instantText(occurrence)} is due` },
  };
}
