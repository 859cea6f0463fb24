/**
 * `mailer dry-run`.
 *
 * @module
 */
import type { CheckedPart } from "../stream/check.ts";
import { buildWorkflow } from "../workflow/build/mod.ts";
import { connectorTypes } from "../workflow/registry.ts";
import type { Command } from "./command.ts";
import { dataDirOf, printProblems, readWorkflows, type WorkflowFile } from "./documents.ts";
import { errorText } from "./error_text.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit_code.ts";
import type { Host } from "./host.ts";

/** Has the sources and sinks of workflows look whether a run could start; changes nothing. */
export const dryRun: Command = async ({ args, flags }, host) => {
  const documents = await readWorkflows(args, host), isJson = flags.json === true;
  const problems = documents.flatMap((document) => document.problems);
  if (problems.length > 0) {
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  let worst: ExitCode = EXIT.done;
  for (const document of documents) {
    try {
      const parts = await checked(document, dataDirOf(flags, host), host);
      const print = isJson ? partJson : partText;
      for (const part of parts) host.stdout.write(document.mask(print(document.spec!.name, part)));
      if (parts.some(({ ok }) => !ok)) worst = EXIT.failed;
    } catch (error) {
      const detail = flags.debug === true ? "stack" : "message";
      host.stderr.write(errorText(error, { about: document.spec!.name, mask: document.mask, detail }));
      worst = exitCodeOf(error);
    }
  }
  return worst;
};

async function checked(document: WorkflowFile, dataDir: string, host: Host): Promise<readonly CheckedPart[]> {
  const { spec, folder } = document, { clock, loadCode } = host;
  const connectors = await host.connectors(connectorTypes([spec!]));
  const env = await buildWorkflow(spec!, { connectors, loadCode, folder, clock, dataDir });
  return await env.check();
}

function partText(workflow: string, { id, kind, type, ok, findings }: CheckedPart): string {
  const verdict = findings.length === 0 ? "nothing to check" : ok ? "ok" : "not ok";
  const lines = findings.flatMap((finding) => [
    `  ${finding.ok ? "ok" : "NOT OK"}: ${finding.text}`,
    ...(finding.hint === undefined ? [] : [`    hint: ${finding.hint}`]),
  ]);
  return [`${workflow}: ${kind} ${id} (${type}): ${verdict}`, ...lines].map((line) => `${line}\n`).join("");
}

function partJson(workflow: string, part: CheckedPart): string {
  return `${JSON.stringify({ workflow, ...part })}\n`;
}
