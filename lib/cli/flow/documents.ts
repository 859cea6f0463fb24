/**
 * Reading flows named on the command line.
 *
 * @module
 */
import { type Flow, parseFlow } from "../../flow/definition/mod.ts";
import type { Problem } from "../../workflow/mod.ts";
import { readText } from "../documents.ts";

/** A flow on disk, and what reading it gave. */
export interface FlowFile {
  readonly file: string;
  /** There if and only if there are no problems. */
  readonly flow: Flow | undefined;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Reads and validates a flow. */
export async function readFlow(file: string, cwd: string): Promise<FlowFile> {
  const { text, problems } = await readText(file, cwd);
  if (text === undefined) return { file, flow: undefined, problems, warnings: [] };
  return { file, ...parseFlow(text, { file }) };
}
