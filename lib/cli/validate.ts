/**
 * `mailer validate`.
 *
 * @module
 */
import type { Command } from "./command.ts";
import { printProblems, readWorkflows, type WorkflowFile } from "./documents.ts";
import { EXIT } from "./exit_code.ts";

/** Reports all problems of all documents. */
export const validate: Command = async ({ args, flags }, host) => {
  const documents = await readWorkflows(args, host, { allowUnset: flags.allowUnset === true });
  const problems = documents.flatMap((document) => document.problems);
  printProblems(problems, flags.json === true ? "json" : "text", host.stdout);
  if (flags.json !== true) { for (const document of documents) host.stdout.write(verdict(document)); }
  return problems.length === 0 ? EXIT.done : EXIT.usage;
};

/** What is to be said of a document besides its problems. */
function verdict({ file, spec }: WorkflowFile): string {
  if (spec === undefined) return "";
  const { name, operators, guarantee, uncarried } = spec;
  const size = operators.length === 1 ? "1 operator" : `${operators.length} operators`;
  const notes = uncarried.map(({ line, label, what }) =>
    `  line ${line}: ${label}: this build does not run ${what} yet\n`
  );
  return `${file}: valid: ${name}, ${size}, ${guarantee}\n${notes.join("")}`;
}
