/**
 * `mailer test`.
 *
 * @module
 */
import { dirname, isAbsolute, join } from "node:path";
import { checkTestNames, maskOf, parseTests, type Problem, type TestDocument } from "../../workflow/mod.ts";
import type { WorkflowSpec } from "../../workflow/mod.ts";
import { connectorTypes } from "../../workflow/registry.ts";
import type { Command } from "../command.ts";
import { parseOptions, printProblems, readText, readWorkflow, type WorkflowFile } from "../documents.ts";
import { EXIT } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { runCase } from "./run_case.ts";
import { type Verdict, verdictJson, verdictText } from "./verdict.ts";

interface Suite {
  readonly file: string;
  readonly folder: string;
  readonly tests: TestDocument;
  readonly workflow: WorkflowFile & { readonly spec: WorkflowSpec };
}

/** Runs test documents, one case after the other. */
export const test: Command = async ({ args, flags }, host) => {
  const form = flags.json === true ? "json" : "text";
  const read = await Promise.all(args.map((file) => readSuite(file, host)));
  const problems = read.flatMap((one) => one.problems);
  if (problems.length > 0) {
    printProblems(problems, form, form === "json" ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  const connectors = await host.connectors(connectorTypes(read.map(({ suite }) => suite!.workflow.spec)));
  let passed = 0, failed = 0;
  for (const { suite } of read) {
    const { file, folder, tests, workflow } = suite!;
    if (form === "text") host.stdout.write(`${file}\n`);
    const mask = maskOf(workflow.secrets);
    for (const one of tests.cases) {
      const verdict: Verdict = {
        file,
        test: one,
        problems: await runCase(one, { host, connectors, workflow, folder }),
      };
      if (verdict.problems.length === 0) passed++;
      else failed++;
      host.stdout.write(mask(form === "json" ? verdictJson(verdict) : verdictText(verdict)));
    }
  }
  (form === "json" ? host.stderr : host.stdout).write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 ? EXIT.done : EXIT.failed;
};

async function readSuite(
  file: string,
  host: Host,
): Promise<{ readonly suite: Suite | undefined; readonly problems: readonly Problem[] }> {
  const { folder, text, problems } = await readText(file, host.cwd);
  if (text === undefined) return { suite: undefined, problems };
  const { tests, problems: own } = parseTests(text, parseOptions(file, folder, host));
  if (tests === undefined) return { suite: undefined, problems: own };
  const { workflow: path } = tests;
  const workflow = await readWorkflow(isAbsolute(path) ? path : join(dirname(file), path), host);
  const { spec } = workflow;
  if (spec === undefined) return { suite: undefined, problems: workflow.problems };
  const names = checkTestNames(tests, spec);
  return { suite: { file, folder, tests, workflow: { ...workflow, spec } }, problems: names };
}
