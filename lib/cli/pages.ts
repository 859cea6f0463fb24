/**
 * `mailer schema` and `mailer reference`: pages made from the descriptions of the components.
 *
 * @module
 */
import { workflowReference, workflowSchema } from "../workflow/mod.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit_code.ts";

/** The JSON Schema of workflows. */
export const schema: Command = (_, host) => {
  host.stdout.write(`${JSON.stringify(workflowSchema(), undefined, 2)}\n`);
  return EXIT.done;
};

/** The reference of workflows. */
export const reference: Command = (_, host) => {
  host.stdout.write(workflowReference());
  return EXIT.done;
};
