/**
 * `mailer new`.
 *
 * @module
 */
import { basename, resolve } from "node:path";
import { MailerError } from "../errors.ts";
import { template, templateKinds } from "../workflow/mod.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit_code.ts";
import type { Host } from "./host.ts";

/** Starts a document, or lists what can be started. */
export const newDocument: Command = async ({ args }, host) => {
  const [kind, name] = args;
  if (kind === undefined) host.stdout.write(kinds());
  else if (name === undefined) host.stdout.write(template(kind));
  else await write(named(template(kind), kind, name), fileOf(kind, name), host);
  return EXIT.done;
};

function kinds(): string {
  const all = templateKinds();
  const width = Math.max(...all.map(({ kind }) => kind.length));
  return all.map(({ kind, summary }) => `${kind.padEnd(width)}  ${summary}\n`).join("");
}

const EXTENSION = /(\.test)?\.ya?ml$/i;

function fileOf(kind: string, name: string): string {
  if (EXTENSION.test(name)) return name;
  return kind === "test" ? `${name}.test.yaml` : `${name}.yaml`;
}

/** The document with its own name in place of the template's. */
function named(text: string, kind: string, name: string): string {
  const own = basename(name).replace(EXTENSION, "");
  return kind === "test"
    ? text.replace(/^workflow: .*$/m, () => `workflow: ${JSON.stringify(`${own}.yaml`)}`)
    : text.replace(/^name: .*$/m, () => `name: ${/^[A-Za-z][\w-]*$/.test(own) ? own : JSON.stringify(own)}`);
}

async function write(text: string, file: string, host: Host): Promise<void> {
  try {
    await Deno.writeTextFile(resolve(host.cwd, file), text, { createNew: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw new MailerError("file_exists", `${file} is there already`, {
      hint: "choose another name, or remove it first",
    });
  }
  host.stderr.write(`wrote ${file}\n`);
}
