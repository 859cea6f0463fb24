/**
 * `mailer lint`.
 *
 * @module
 */
import { lintWorkflow, type Problem } from "../workflow/mod.ts";
import type { Command } from "./command.ts";
import { printProblems, readWorkflows, type WorkflowFile } from "./documents.ts";
import { EXIT } from "./exit_code.ts";

/** Prints warnings; an invalid document has problems instead, and is an error. */
export const lint: Command = async ({ args, flags }, host) => {
  const form = flags.json === true ? "json" : "text";
  const documents = await readWorkflows(args, host, { allowUnset: flags.allowUnset === true });
  const problems = documents.flatMap((document) => document.problems);
  const warnings = documents.flatMap(warningsOf);
  printProblems([...problems, ...warnings], form, host.stdout);
  if (problems.length > 0) return EXIT.usage;
  if (form === "text") {
    host.stdout.write(`${warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}\n`);
  }
  return flags.strict === true && warnings.length > 0 ? EXIT.failed : EXIT.done;
};

function warningsOf({ spec, tree, mask }: WorkflowFile): Problem[] {
  if (spec === undefined || tree === undefined) return [];
  return lintWorkflow(spec, tree).map((warning) => ({
    ...warning,
    message: mask(warning.message),
    hint: warning.hint === undefined ? undefined : mask(warning.hint),
  }));
}
