/**
 * Looking whether a pipeline could start, without starting it.
 *
 * @module
 */
import type { CheckContext, Finding } from "../connector.ts";
import { asError, MailerError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";

/** What a source or sink found when it checked itself. */
export interface CheckedPart {
  /** Its id. */
  readonly id: string;
  /** What it is. */
  readonly kind: "source" | "sink";
  /** Its kind of source or sink, e.g. `kafka`. */
  readonly type: string;
  /** Whether a run can do with all that was found. */
  readonly ok: boolean;
  /** What was found; empty where there is nothing to look at. */
  readonly findings: readonly Finding[];
}

/** Has all sources and sinks check themselves, one after the other. */
export async function checkParts(
  plan: Plan,
  context: Omit<CheckContext, "id">,
): Promise<readonly CheckedPart[]> {
  const checked: CheckedPart[] = [];
  for (const node of plan.nodes) {
    if (node.kind !== "source" && node.kind !== "sink") continue;
    const part = node.kind === "source" ? node.source : node.sink;
    const findings = await findingsOf(part, { ...context, id: node.id });
    const { id, kind, type } = node;
    checked.push({ id, kind, type, ok: findings.every(({ ok }) => ok), findings });
  }
  return checked;
}

async function findingsOf(
  part: { check?(context: CheckContext): Promise<readonly Finding[]> },
  context: CheckContext,
): Promise<readonly Finding[]> {
  try {
    return await part.check?.(context) ?? [];
  } catch (thrown) {
    const error = asError(thrown), hint = error instanceof MailerError ? error.hint : undefined;
    return [{ ok: false, text: error.message, ...(hint === undefined ? {} : { hint }) }];
  }
}
