/**
 * The same for all executions that fit a query.
 *
 * B1 What has been done is counted, what failed is named; one failure keeps no other from being tried.
 * B2 Broken off and begun again it does nothing twice.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { asError, codeOf } from "../../errors.ts";
import { MAX_EXECUTION_ID } from "../fold/mod.ts";
import type { Query } from "../store/port.ts";
import type { FlowClient } from "./client.ts";
import { newId } from "./commands.ts";
import { FlowClientError } from "./errors.ts";
import { isEnd } from "./reading.ts";
import type { ListedExecution } from "./view.ts";

/** What is to be done with each. */
export type BulkAction =
  | { readonly do: "cancel"; readonly reason?: string }
  /** `id` tells repetitions of the whole; default: a new one. */
  | { readonly do: "signal"; readonly name: string; readonly payload?: unknown; readonly id?: string }
  | { readonly do: "rerun"; readonly node: string }
  | { readonly do: "archive" }
  | { readonly do: "delete" };

/** How it is done. */
export interface BulkOptions {
  /** Only counts. */
  readonly dryRun?: boolean;
  /** Has to be set for a query without a condition. */
  readonly all?: boolean;
  /** Most executions. Default: all. */
  readonly limit?: number;
  /** Ends it early, between two executions. */
  readonly signal?: AbortSignal;
}

/** What was done. */
export interface BulkResult {
  /** Executions that fit the query. */
  readonly matched: number;
  /** Of these: done, or in a dry run to be done. */
  readonly done: number;
  /** Of these: there is nothing to do, as they have ended, or have not. */
  readonly skipped: number;
  /** Of these: it went wrong. */
  readonly failed: number;
  /** The first hundred of those. */
  readonly failures: readonly { readonly id: string; readonly code: string; readonly message: string }[];
  /** Whether it was a dry run. */
  readonly dryRun: boolean;
}

const PAGE = 200;
const AT_ONCE = 16;
const MOST_FAILURES = 100;

/** See {@link FlowClient.bulk}. */
export async function runBulk(
  client: FlowClient,
  query: Query,
  action: BulkAction,
  { dryRun = false, all = false, limit = Infinity, signal }: BulkOptions,
): Promise<BulkResult> {
  const { status, flow, attrs = [], from, to } = query;
  const isAll = status === undefined && flow === undefined && attrs.length === 0 && from === undefined &&
    to === undefined;
  if (isAll && !all) {
    throw new FlowClientError("invalid_argument", `${action.do}: the query fits every execution`, {
      hint: "name a condition, or say that all are meant",
    });
  }
  const act = actOf(client, action);
  let matched = 0, done = 0, skipped = 0, failed = 0;
  const failures: BulkResult["failures"][number][] = [];
  const one = async (execution: ListedExecution): Promise<void> => {
    if (!isFit(execution, action)) skipped++;
    else if (dryRun) done++;
    else {
      try {
        await act(execution.id);
        done++;
      } catch (error) {
        if (isPassed(error)) skipped++;
        else {
          failed++;
          if (failures.length < MOST_FAILURES) {
            failures.push({ id: execution.id, code: codeOf(error), message: asError(error).message });
          }
        }
      }
    }
  };
  for (let cursor: string | undefined = query.cursor;;) {
    const page = await client.list({ ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
    const wanted = page.items.slice(0, limit - matched);
    matched += wanted.length;
    for (let i = 0; i < wanted.length; i += AT_ONCE) {
      signal?.throwIfAborted();
      await Promise.all(wanted.slice(i, i + AT_ONCE).map(one));
    }
    ({ cursor } = page);
    if (cursor === undefined || matched >= limit) {
      return { matched, done, skipped, failed, failures, dryRun };
    }
  }
}

/** Whether there is something to do. */
function isFit({ status, archived }: ListedExecution, { do: what }: BulkAction): boolean {
  switch (what) {
    case "cancel":
    case "signal":
      return !isEnd(status);
    case "archive":
      return isEnd(status) && !archived;
    case "delete":
      return isEnd(status);
    case "rerun":
      return true;
  }
}

/** It ended, or went, between being listed and being dealt with. */
function isPassed(error: unknown): boolean {
  return ["execution_not_found", "execution_ended", "execution_archived"].includes(codeOf(error));
}

function actOf(client: FlowClient, action: BulkAction): (execId: string) => Promise<unknown> {
  switch (action.do) {
    case "cancel":
      return (execId) => client.cancel(execId, action.reason);
    case "signal": {
      const { name, payload, id = newId() } = action;
      return (execId) => client.signal(execId, name, payload, { id });
    }
    case "rerun":
      return (execId) => client.rerun(execId, action.node, { id: rerunId(execId, action.node) });
    case "archive":
      return (execId) => client.archive(execId);
    case "delete":
      return (execId) => client.delete(execId);
  }
}

/** The same each time, so that what was rerun is not rerun again. */
function rerunId(execId: string, node: string): string {
  const id = `${execId}-rerun-${node}`;
  return id.length <= MAX_EXECUTION_ID ? id : createHash("sha256").update(id).digest("hex").slice(0, 32);
}
