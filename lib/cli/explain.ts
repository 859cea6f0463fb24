/**
 * `mailer explain`.
 *
 * @module
 */
import { buildWorkflow } from "../workflow/build/mod.ts";
import { connectorTypes } from "../workflow/registry.ts";
import type { Command } from "./command.ts";
import { dataDirOf, printProblems, readWorkflow } from "./documents.ts";
import { errorText } from "./error_text.ts";
import { EXIT, exitCodeOf } from "./exit_code.ts";

/** Shows what a workflow becomes; opens nothing. */
export const explain: Command = async ({ args, flags }, host) => {
  const [file] = args;
  const { spec, problems, folder, mask } = await readWorkflow(file!, host);
  if (spec === undefined) {
    printProblems(
      problems,
      flags.json === true ? "json" : "text",
      flags.json === true ? host.stdout : host.stderr,
    );
    return EXIT.usage;
  }
  try {
    const env = await buildWorkflow(spec, {
      connectors: await host.connectors(connectorTypes([spec])),
      loadCode: host.loadCode,
      folder,
      dataDir: dataDirOf(flags, host),
    });
    host.stdout.write(
      flags.json === true ? `${maskedJson(env.describe(), mask)}\n` : `${mask(env.explain())}\n`,
    );
    return EXIT.done;
  } catch (error) {
    host.stderr.write(errorText(error, { mask, detail: flags.debug === true ? "stack" : "message" }));
    return exitCodeOf(error);
  }
};

/** JSON in which every text has been masked. */
function maskedJson(value: unknown, mask: (text: string) => string): string {
  return JSON.stringify(value, (_, part) => typeof part === "string" ? mask(part) : part, 2);
}
