/**
 * What `mailer serve` reads: flows in files and folders, and the token.
 *
 * @module
 */
import { basename, join, resolve } from "node:path";
import { asError, MailerError } from "../../errors.ts";
import type { Flow } from "../../flow/definition/mod.ts";
import type { Problem } from "../../workflow/mod.ts";
import { readFlow } from "../flow/documents.ts";

/** Flows, and all that is wrong with them. */
export interface FlowFiles {
  readonly flows: readonly Flow[];
  readonly problems: readonly Problem[];
}

const DOCUMENT = /\.(ya?ml|json)$/i;
const TESTS = /\.test\.(ya?ml|json)$/i;

/**
 * Reads flows. In a folder: every `.yaml`, `.yml` and `.json`, but no tests.
 *
 * @throws {MailerError} `usage` where two have one name, or a folder has none.
 */
export async function readFlows(paths: readonly string[], cwd: string): Promise<FlowFiles> {
  const files = (await Promise.all(paths.map((path) => filesAt(path, cwd)))).flat();
  const read = await Promise.all(files.map((file) => readFlow(file, cwd)));
  const byName = new Map<string, string>(), flows: Flow[] = [];
  for (const { file, flow } of read) {
    if (flow === undefined) continue;
    const other = byName.get(flow.name);
    if (other !== undefined) {
      throw new MailerError("usage", `${other} and ${file} both have a flow "${flow.name}"`, {
        hint: "a flow is in one file; versions follow each other by registering them",
      });
    }
    byName.set(flow.name, file);
    flows.push(flow);
  }
  return { flows, problems: read.flatMap(({ problems }) => problems) };
}

async function filesAt(path: string, cwd: string): Promise<string[]> {
  const names = await namesIn(resolve(cwd, path));
  if (names === undefined) return [path];
  const documents = names.filter((name) => DOCUMENT.test(name) && !TESTS.test(name)).sort();
  if (documents.length === 0) {
    throw new MailerError("usage", `there is no flow in ${path}`, {
      hint: "a flow is a .yaml, .yml or .json file",
    });
  }
  return documents.map((name) => join(path, name));
}

/** Names of files in a folder; undefined where it is none, which reading it will explain. */
async function namesIn(path: string): Promise<string[] | undefined> {
  const names: string[] = [];
  try {
    for await (const { name, isFile, isSymlink } of Deno.readDir(path)) {
      if (isFile || isSymlink) names.push(name);
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotADirectory || error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  return names;
}

/**
 * The token in a file: its text, without the blanks around it.
 *
 * @throws {MailerError} `usage`; the token is in no message.
 */
export async function readToken(path: string, cwd: string): Promise<string> {
  let text: string;
  try {
    text = (await Deno.readTextFile(resolve(cwd, path))).trim();
  } catch (cause) {
    const why = cause instanceof Deno.errors.NotFound ? "there is no such file" : asError(cause).message;
    throw new MailerError("usage", `cannot read the token in ${path}: ${why}`, { cause });
  }
  if (/^\S{16,}$/.test(text)) return text;
  throw new MailerError("usage", `${basename(path)} holds no token: 16 characters or more, without blanks`, {
    hint: `make one: openssl rand -hex 32 > ${path}`,
  });
}
