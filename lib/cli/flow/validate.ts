/**
 * `mailer flow validate`.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Command } from "../command.ts";
import { printProblems } from "../documents.ts";
import { EXIT } from "../exit_code.ts";
import { readFlow } from "./documents.ts";

/** Reports everything that is wrong with flows, without opening anything. */
export const validate: Command = async ({ args, flags }, host) => {
  if (args.length === 0) throw new MailerError("usage", "mailer flow validate takes the files of flows");
  const isJson = flags.json === true;
  let isGood = true;
  for (const file of await Promise.all(args.map((file) => readFlow(file, host.cwd)))) {
    const { flow, problems, warnings } = file;
    if (flow === undefined) isGood = false;
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    for (const { line, message } of isJson ? [] : warnings) {
      host.stderr.write(`${file.file}:${line}: warning: ${message}\n`);
    }
    if (flow === undefined || isJson) continue;
    const { name, hash, definition: { nodes } } = flow;
    const size = nodes.length === 1 ? "1 node" : `${nodes.length} nodes`;
    host.stdout.write(`${file.file}: valid: ${name}@${hash}, ${size}\n`);
  }
  return isGood ? EXIT.done : EXIT.usage;
};
