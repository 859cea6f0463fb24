/**
 * Reading documents named on the command line: the one way in which every command does it.
 *
 * D1 A document that cannot be read is one problem more, and does not keep the others from being looked at.
 * D2 What a document's secret fields hold is known to whoever shows something of it.
 *
 * @module
 */
import { dirname, resolve } from "node:path";
import { asError, MailerError } from "../errors.ts";
import {
  maskOf,
  type ParsedWorkflow,
  type ParseOptions,
  parseWorkflow,
  type Problem,
  problemJson,
  problemText,
} from "../workflow/mod.ts";
import type { Flags } from "./command.ts";
import type { Host, Output } from "./host.ts";
import { refusalOf } from "./permission.ts";

/** A document as text. */
export interface DocumentText {
  /** As named on the command line. */
  readonly file: string;
  /** Where it lies; relative paths inside it start here. */
  readonly folder: string;
  /** Undefined where it cannot be read. */
  readonly text: string | undefined;
  readonly problems: readonly Problem[];
}

/** A workflow on disk, and what reading it gave. */
export interface WorkflowFile extends ParsedWorkflow {
  readonly file: string;
  readonly folder: string;
  /** Hides the document's secrets in a text. */
  readonly mask: (text: string) => string;
}

/** Folder of state and checkpoints: `--data-dir`, by default `data`, from where the user stands. */
export function dataDirOf({ dataDir = "data" }: Flags, host: Host): string {
  return resolve(host.cwd, dataDir);
}

/** Settings of {@link readWorkflow}. */
export type ReadOptions = Pick<ParseOptions, "allowUnset">;

/** Reads a file. */
export async function readText(file: string, cwd: string): Promise<DocumentText> {
  const path = resolve(cwd, file);
  const found = { file, folder: dirname(path) };
  try {
    const bytes = await Deno.readFile(path);
    return { ...found, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), problems: [] };
  } catch (error) {
    const message = `cannot read ${file}: ${reasonOf(error)}`;
    const hint = refusalOf(error)?.hint ?? `looked for ${path}`;
    const problem: Problem = {
      file,
      line: 1,
      column: 1,
      path: "",
      label: "",
      code: UNREADABLE,
      message,
      hint,
    };
    return { ...found, text: undefined, problems: [problem] };
  }
}

const UNREADABLE = "unreadable_document";

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "there is no such file";
  if (error instanceof Deno.errors.IsADirectory) return "it is a folder";
  if (error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotCapable) {
    return "no permission";
  }
  if (error instanceof TypeError) return "it is not UTF-8 text";
  return asError(error).message;
}

/** Options that every document is read with. */
export function parseOptions(file: string, folder: string, host: Host): ParseOptions {
  return {
    file,
    resolveSecret: (name) => host.env(name),
    readFile: (path) => readNamed(resolve(folder, path)),
  };
}

/** A file that a document names; what keeps it from being read comes as words for people. */
function readNamed(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    const hint = refusalOf(cause)?.hint ?? `looked for ${path}`;
    throw new MailerError("unreadable_file", reasonOf(cause), { cause, hint });
  }
}

/** Reads and validates a workflow. */
export async function readWorkflow(
  file: string,
  host: Host,
  options: ReadOptions = {},
): Promise<WorkflowFile> {
  const { folder, text, problems } = await readText(file, host.cwd);
  if (text === undefined) {
    return { file, folder, spec: undefined, problems, secrets: [], tree: undefined, mask: maskOf([]) };
  }
  const parsed = parseWorkflow(text, { ...parseOptions(file, folder, host), ...options });
  return { ...parsed, file, folder, mask: maskOf(parsed.secrets) };
}

/** Reads several, all of them, in order. */
export function readWorkflows(
  files: readonly string[],
  host: Host,
  options: ReadOptions = {},
): Promise<WorkflowFile[]> {
  return Promise.all(files.map((file) => readWorkflow(file, host, options)));
}

/** Prints problems for people, or one JSON value a line. */
export function printProblems(problems: readonly Problem[], form: "text" | "json", output: Output): void {
  output.write(
    problems.map((problem) => `${form === "json" ? problemJson(problem) : textLine(problem)}\n`).join(""),
  );
}

function textLine(problem: Problem): string {
  const { code, message, hint } = problem;
  return code === UNREADABLE ? `error: ${message}\nhint: ${hint}` : problemText(problem);
}
