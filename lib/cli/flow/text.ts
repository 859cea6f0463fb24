/**
 * Executions and their histories as people read them.
 *
 * @module
 */
import { stringifyJson } from "../../json.ts";
import type { ExecutionView, ListedExecution, RecordedEvent, Waiting } from "../../flow/client/mod.ts";
import { tableText } from "../durable/text.ts";
import type { Output } from "../host.ts";

/** A JSON value as lines for people. */
export function pretty(value: unknown): string {
  return `${stringifyIndented(value)}\n`;
}

function stringifyIndented(value: unknown): string {
  try {
    return JSON.stringify(value, undefined, 2) ?? "null";
  } catch {
    return stringifyJson(value); // numbers beyond 2^53, which only the compact form writes
  }
}

/** RFC 3339 text, to the millisecond. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** An execution in a few lines. */
export function executionText(execution: ExecutionView): string {
  const { id, flow, flowHash, status, paused, archived, createdAt, endedAt, failure, cancelReason } =
    execution;
  const { parent, forkedFrom, attrs, input, output, channels, counters, errors, unread, seq, steps } =
    execution;
  const state = [status, ...(paused ? ["paused"] : []), ...(archived ? ["archived"] : [])].join(", ");
  const lines: (readonly [string, string])[] = [
    ["execution", id],
    ["flow", `${flow}@${flowHash}`],
    ["status", state],
    ["started", timeText(createdAt)],
    ...(endedAt === undefined ? [] : [["ended", timeText(endedAt)] as const]),
    ["decisions", `${seq}, ${steps} steps`],
    ...(parent === undefined ? [] : [["parent", `${parent.id}, node ${parent.node}`] as const]),
    ...(forkedFrom === undefined ? [] : [["fork of", `${forkedFrom.id} at ${forkedFrom.seq}`] as const]),
    ...value("attributes", attrs),
    ["input", stringifyJson(input)],
    ...(failure === undefined ? [] : [["failure", failureText(failure)] as const]),
    ...(cancelReason === undefined ? [] : [["cancelled", cancelReason] as const]),
    ...(output === undefined ? [] : [["output", stringifyJson(output)] as const]),
    ...value("channels", channels),
    ...value("counters", counters),
    ...value("errors", errors),
    ...value("unread signals", unread),
    ...waitingLines(execution.waiting).map((line, i) => [i === 0 ? "waits for" : "", line] as const),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, text]) => `${name.padEnd(width)}  ${text}\n`).join("");
}

function value(name: string, object: Readonly<Record<string, unknown>>): (readonly [string, string])[] {
  return Object.keys(object).length === 0 ? [] : [[name, stringifyJson(object)]];
}

/** Why it failed. */
export function failureText({ error, reason, node }: NonNullable<ExecutionView["failure"]>): string {
  return `${error} (${reason}${node === undefined ? "" : ` at ${node}`})`;
}

/** What an execution waits for, a line each. */
export function waitingLines(
  { tasks, retries, interrupts, awaits, sleeps, children, start, held }: Waiting,
): string[] {
  const until = (at: number | undefined): string => at === undefined ? "" : ` until ${timeText(at)}`;
  return [
    ...tasks.map(({ key, kind, attempt, until: at }) =>
      `a worker of kind ${kind}: ${key}, attempt ${attempt}${until(at)}`
    ),
    ...retries.map(({ key, attempt, at }) =>
      `the attempt behind ${attempt} of ${key}${at === undefined ? "" : ` at ${timeText(at)}`}`
    ),
    ...interrupts.map(({ key, payload }) => `an answer to ${key}: ${stringifyJson(payload)}`),
    ...awaits.map(({ node, signals, policy, until: at }) =>
      `signals at ${node}: ${signals.join(policy === "any" ? " or " : " and ")}${until(at)}`
    ),
    ...sleeps.map(({ node, until: at }) => `the end of the sleep ${node} at ${timeText(at)}`),
    ...children.map(({ node, id, flow }) => `the child ${id} of ${flow}, node ${node}`),
    ...(start === undefined ? [] : [`its start at ${timeText(start)}`]),
    ...held.map((way) => `the end of the pause, to go on to ${way}`),
  ];
}

/** An event on one line. */
export function eventText({ seq, i, time, type, data }: RecordedEvent): string {
  const { state: _state, ...rest } = data as Record<string, unknown>; // a whole state is no line
  return `${String(seq).padStart(5)} ${String(i).padStart(6)}  ${timeText(time)}  ${type}  ${
    stringifyJson(rest)
  }\n`;
}

/** An execution of a list, as cells. */
export function listedCells(execution: ListedExecution): string[] {
  const { id, flow, status, paused, archived, createdAt, attrs, error, reason } = execution;
  const state = [status, ...(paused ? ["paused"] : []), ...(archived ? ["archived"] : [])].join(", ");
  return [
    id,
    flow,
    state,
    timeText(createdAt),
    Object.entries(attrs).map(([name, value]) => `${name}=${value}`).join(" "),
    error ?? reason ?? "",
  ];
}

/** A table; nothing where there are no rows. */
export function rowsText(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? "" : tableText(titles.map((title) => ({ title })), rows);
}

/** Writes a value as one line of JSON. */
export function writeJson(output: Output, value: unknown): void {
  output.write(`${stringifyJson(value)}\n`);
}
