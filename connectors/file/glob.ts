/**
 * Finds files by a path or pattern.
 *
 * Patterns: `*` any text within a name, `?` one character, `[a-z]` and `[!a-z]` one of a set, `{a,b}` either, `**` any
 * number of folders. Wildcards do not match a leading dot; `**` does not follow links to folders. Separator: `/`.
 *
 * @module
 */
import { MailerError } from "../../lib/errors.ts";

/** A file that was found. */
export interface FoundFile {
  /** Its path, written the way the pattern is: relative where that is relative. */
  readonly name: string;
  /** Where it is opened. */
  readonly path: string;
}

/** Whether `pattern` is more than a path. */
export function isPattern(pattern: string): boolean {
  return /[*?[{]/.test(pattern);
}

/**
 * The files that match, in the order of their names by UTF-16 code units; none where nothing matches.
 *
 * @param pattern A path that exists is that file, whatever characters are in it.
 * @param base Folder of relative patterns; "" = the working directory.
 * @throws {MailerError} `not_a_file` where a path without wildcards is no file.
 */
export async function findFiles(pattern: string, base: string): Promise<FoundFile[]> {
  const itself = await kindOf(pathIn(base, pattern));
  if (itself === "file") return [{ name: pattern, path: pathIn(base, pattern) }];
  if (!isPattern(pattern)) {
    if (itself === undefined) return [];
    throw new MailerError("not_a_file", `"${pattern}" is a folder`, {
      hint: `write "${pattern}/*" to read the files in it`,
    });
  }
  const names = new Set<string>();
  for (const plain of alternatives(pattern)) {
    const root = plain.startsWith("/") ? "/" : "";
    await walk(base, root, plain.slice(root.length).split("/").filter((part) => part !== ""), names);
  }
  return [...names].sort(byCodeUnits).map((name) => ({ name, path: pathIn(base, name) }));
}

/** A name's path under a folder. */
export function pathIn(base: string, name: string): string {
  return base === "" || name.startsWith("/") ? name : `${base.replace(/\/$/, "")}/${name}`;
}

/** Order by UTF-16 code units: the same on every machine. */
export function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The patterns without braces that one with braces stands for. */
function alternatives(pattern: string): string[] {
  const close = pattern.indexOf("}");
  const open = close === -1 ? -1 : pattern.lastIndexOf("{", close); // innermost first
  if (open === -1) return [pattern];
  const before = pattern.slice(0, open), behind = pattern.slice(close + 1);
  return pattern.slice(open + 1, close).split(",").flatMap((part) => alternatives(before + part + behind));
}

/** Adds the names of files below `folder` that match the parts. */
async function walk(
  base: string,
  folder: string,
  parts: readonly string[],
  names: Set<string>,
): Promise<void> {
  const [part, ...rest] = parts;
  if (part === undefined) return;
  if (part === "**") {
    await walk(base, folder, rest.length === 0 ? ["*"] : rest, names);
    for (const { name, isFolder, isLink } of await entries(base, folder)) {
      if (isFolder && !isLink && !name.startsWith(".")) await walk(base, `${folder}${name}/`, parts, names);
    }
    return;
  }
  if (!isPattern(part)) {
    const kind = await kindOf(pathIn(base, folder + part));
    if (rest.length === 0 ? kind === "file" : kind === "folder") {
      if (rest.length === 0) names.add(folder + part);
      else await walk(base, `${folder}${part}/`, rest, names);
    }
    return;
  }
  const matches = matcher(part);
  for (const { name, isFolder } of await entries(base, folder)) {
    if (!matches.test(name) || (name.startsWith(".") && !part.startsWith("."))) continue;
    if (rest.length > 0) {
      if (isFolder) await walk(base, `${folder}${name}/`, rest, names);
    } else if (!isFolder) names.add(folder + name);
  }
}

interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
  readonly isLink: boolean;
}

async function entries(base: string, folder: string): Promise<Entry[]> {
  const path = pathIn(base, folder), found: Entry[] = [];
  try {
    for await (const { name, isDirectory, isSymlink } of Deno.readDir(path === "" ? "." : path)) {
      const kind = isSymlink ? await kindOf(pathIn(base, folder + name)) : isDirectory ? "folder" : "file";
      if (kind !== undefined) found.push({ name, isFolder: kind === "folder", isLink: isSymlink });
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory)) throw error;
  }
  return found;
}

/** What is at a path, links followed; undefined where nothing is. */
async function kindOf(path: string): Promise<"file" | "folder" | undefined> {
  try {
    return (await Deno.stat(path)).isDirectory ? "folder" : "file";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}

/** The expression of one part of a pattern. */
function matcher(part: string): RegExp {
  let source = "";
  for (let i = 0; i < part.length; i++) {
    const character = part[i]!;
    if (character === "*") source += ".*";
    else if (character === "?") source += ".";
    else if (character === "[") {
      const close = part.indexOf("]", i + (part[i + 1] === "!" || part[i + 1] === "^" ? 3 : 2));
      if (close === -1) source += "\\[";
      else {
        const negated = part[i + 1] === "!" || part[i + 1] === "^";
        const set = part.slice(i + (negated ? 2 : 1), close).replace(/[\\\]^[&]/g, "\\$&");
        source += `[${negated ? "^" : ""}${set}]`;
        i = close;
      }
    } else source += character.replace(/[\\^$.|+(){}\]/]/, "\\$&");
  }
  return new RegExp(`^${source}$`, "su");
}
