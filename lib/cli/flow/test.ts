/**
 * `mailer flow test`.
 *
 * @module
 */
import { dirname, isAbsolute, join } from "node:path";
import { MailerError } from "../../errors.ts";
import { type CompiledFlow, compileFlow } from "../../flow/definition/mod.ts";
import {
  checkFlowTests,
  type FlowTestReport,
  type FlowTests,
  parseFlowTests,
  runFlowTest,
} from "../../flow/testing/mod.ts";
import { stringifyJson } from "../../json.ts";
import type { Problem } from "../../workflow/mod.ts";
import type { Command } from "../command.ts";
import { printProblems, readText } from "../documents.ts";
import { EXIT } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { readFlow } from "./documents.ts";

interface Suite {
  readonly file: string;
  readonly tests: FlowTests;
  /** The one under test first. */
  readonly flows: readonly CompiledFlow[];
}

/** Runs tests of flows on virtual time, one case after the other. */
export const test: Command = async ({ args, flags }, host) => {
  if (args.length === 0) throw new MailerError("usage", "mailer flow test takes the files of tests");
  const isJson = flags.json === true;
  const read = await Promise.all(args.map((file) => readSuite(file, host)));
  const problems = read.flatMap((one) => one.problems);
  if (problems.length > 0) {
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  let passed = 0, failed = 0;
  for (const { suite } of read) {
    const { file, tests, flows } = suite!;
    if (!isJson) host.stdout.write(`${file}\n`);
    const byName = new Map(flows.map((flow) => [flow.definition.name, flow]));
    for (const one of tests.cases) {
      const report = runFlowTest(one, flows[0]!.definition.name, byName);
      if (report.ok) passed++;
      else failed++;
      host.stdout.write(
        isJson ? `${stringifyJson(report)}\n` : reportText(report, `${file}:${one.place.line}`),
      );
    }
  }
  (isJson ? host.stderr : host.stdout).write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 ? EXIT.done : EXIT.failed;
};

function reportText({ case: name, ok, problems }: FlowTestReport, at: string): string {
  if (ok) return `  ok      ${name}\n`;
  return [`  FAILED  ${name}   (${at})`, ...problems.map((problem) => `    ${problem}`)]
    .map((line) => `${line}\n`).join("");
}

async function readSuite(
  file: string,
  host: Host,
): Promise<{ readonly suite: Suite | undefined; readonly problems: readonly Problem[] }> {
  const { text, problems } = await readText(file, host.cwd);
  if (text === undefined) return { suite: undefined, problems };
  const { tests, problems: own } = parseFlowTests(text, file);
  if (tests === undefined) return { suite: undefined, problems: own };
  const paths = [tests.flow, ...tests.others];
  const files = await Promise.all(
    paths.map((path) => readFlow(isAbsolute(path) ? path : join(dirname(file), path), host.cwd)),
  );
  const wrong = files.flatMap((one) => one.problems);
  if (wrong.length > 0) return { suite: undefined, problems: wrong };
  const flows = files.map(({ flow }) => compileFlow(flow!));
  return { suite: { file, tests, flows }, problems: checkFlowTests(tests, flows, file) };
}
