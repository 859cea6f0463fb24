/**
 * What comes of a command: an outcome, or a refusal.
 *
 * @module
 */
import type { CompiledFlow } from "../definition/types.ts";
import type { Outcome } from "./decision.ts";
import type { State } from "./state.ts";

/** Why a command was refused. */
export type RefusalCode =
  /** There is no such execution. */
  | "not_found"
  /** It can never apply. */
  | "invalid"
  /** It does not apply to the execution as it is. */
  | "rejected"
  /** The id belongs to an execution of another flow. */
  | "conflict";

/** A command that was refused: nothing has happened. */
export interface Refusal {
  /** It was not. */
  readonly ok: false;
  /** Why. */
  readonly code: RefusalCode;
  /** One sentence. */
  readonly message: string;
}

/** What a command leads to. */
export type Verdict = Outcome | Refusal;

/** A refusal. */
export function refused(code: RefusalCode, message: string): Refusal {
  return { ok: false, code, message };
}

/** A refusal where the version is not the one the execution runs on. */
export function wrongVersion({ hash }: CompiledFlow, { execId, flowHash }: State): Refusal | undefined {
  if (hash === flowHash) return undefined;
  return refused("invalid", `"${execId}" runs on version ${flowHash}, the one given is ${hash}`);
}
