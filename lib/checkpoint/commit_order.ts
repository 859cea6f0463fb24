/**
 * In which order the sinks of a pipeline commit.
 *
 * @module
 */
import type { SinkCommits } from "../connector.ts";

/**
 * Sinks in the order in which a checkpoint is committed. What an atomic sink has prepared can get lost until it is committed, and
 * then the checkpoint counts for nothing: so nothing else may have been committed before. What is two-phase cannot get lost.
 */
export function atomicFirst<S extends { readonly commits?: SinkCommits | undefined }>(
  sinks: readonly S[],
): S[] {
  return sinks.toSorted((a, b) => Number(b.commits === "atomic") - Number(a.commits === "atomic"));
}
