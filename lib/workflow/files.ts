/**
 * Files a document names, as far as validation may look at them: it reads, and opens and creates nothing else.
 *
 * @module
 */
import { asError, MailerError } from "../errors.ts";
import { parseJson } from "../json.ts";
import type { Problems } from "./problem.ts";
import type { FileSite } from "./reader.ts";

/** The text of a file named in a document, relative to the document; throws where it cannot be read. */
export type ReadFile = (path: string) => string;

/** Reports files that are not there, and schemas that are none. */
export function checkFiles(sites: readonly FileSite[], readFile: ReadFile, problems: Problems): void {
  for (const { place, path, file, use, what = "a JSON Schema" } of sites) {
    if (use === "ref" && !/^(\.{0,2}\/|[A-Za-z]:[\\/])/.test(file)) continue; // npm:, jsr:, https:
    let text: string;
    try {
      text = readFile(file);
    } catch (thrown) {
      const [reason, hint] = thrown instanceof MailerError
        ? [thrown.message, thrown.hint]
        : [asError(thrown).name, undefined];
      const message = `the file ${JSON.stringify(file)} cannot be read: ${reason}`;
      problems.add(place, path, "unreadable_file", message, hint);
      continue;
    }
    if (use !== "schema") continue;
    if (!isSchema(text)) {
      problems.add(
        place,
        path,
        "bad_schema",
        `the file ${JSON.stringify(file)} is not ${what}`,
        "a JSON object",
      );
    }
  }
}

function isSchema(text: string): boolean {
  try {
    const value = parseJson(text);
    return typeof value === "boolean" ||
      (typeof value === "object" && value !== null && !Array.isArray(value));
  } catch {
    return false; // no JSON at all
  }
}
