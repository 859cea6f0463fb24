/**
 * The names of run files.
 *
 * N1 Different runs have different files, on file systems that do not tell upper from lower case, too.
 * N2 A file's name says which run it is, unless that is too long for a name: then it ends in a digest, and the file itself says it.
 *
 * @module
 */
import { createHash } from "node:crypto";

const SUFFIX = ".run";
/** What every file system allows, less the suffix. */
const LONGEST = 240;
const DIGEST = 32;

/** A run's name in letters, digits, `-`, `_`, `.`, `%`; everything else as its UTF-16 units. */
export function encodeName(name: string): string {
  return name.replace(/[^a-z0-9_.-]/g, (unit) => {
    const hex = unit.charCodeAt(0).toString(16);
    return hex.length <= 2 ? `%${hex.padStart(2, "0")}` : `%u${hex.padStart(4, "0")}`;
  });
}

/** The name that {@link encodeName} was given; `undefined` where it made no such text. */
export function decodeName(encoded: string): string | undefined {
  const name = encoded.replace(
    /%(?:u([0-9a-f]{4})|([0-9a-f]{2}))/g,
    (_, four, two) => String.fromCharCode(parseInt(four ?? two, 16)),
  );
  return encodeName(name) === encoded ? name : undefined;
}

/** The name of a run's file. */
export function fileNameOf(run: string): string {
  const encoded = encodeName(run);
  if (encoded.length <= LONGEST) return encoded + SUFFIX;
  const digest = createHash("sha256").update(encoded).digest("hex").slice(0, DIGEST);
  return `${encoded.slice(0, LONGEST - DIGEST - 1)}~${digest}${SUFFIX}`;
}

/** The run whose file has this name; `"inside"`: the file says it; `undefined`: it is no run's file. */
export function runOf(fileName: string): { readonly run: string } | "inside" | undefined {
  if (!fileName.endsWith(SUFFIX)) return undefined;
  const encoded = fileName.slice(0, -SUFFIX.length);
  if (encoded.includes("~")) return "inside";
  const run = decodeName(encoded);
  return run === undefined ? undefined : { run };
}
