/**
 * Field paths: `customer.id`, `items[0].price`, `"odd name".x`, `a["odd name"]`.
 *
 * @module
 */
import { MailerError } from "../errors.ts";

const STEP =
  /(?:^|\.)([^.[\]"'\s][^.[\]"']*)|(?:^|\.)("(?:[^"\\]|\\.)*"|'[^']*')|\[(\d+)\]|\[("(?:[^"\\]|\\.)*"|'[^']*')\]/y;

/**
 * Steps of a field path: names of keys, and numbers for positions in lists.
 *
 * @throws {MailerError} `invalid_path` naming the text and the column that cannot be read.
 */
export function parseFieldPath(text: string): (string | number)[] {
  const steps: (string | number)[] = [];
  STEP.lastIndex = 0;
  let end = 0;
  for (let match = STEP.exec(text); match !== null; match = STEP.exec(text)) {
    const [, plain, quotedName, index, quotedKey] = match;
    end = STEP.lastIndex;
    if (index !== undefined) steps.push(Number(index));
    else if (plain !== undefined) steps.push(plain);
    else {
      const name = unquote((quotedName ?? quotedKey)!);
      if (name === undefined) break;
      steps.push(name);
    }
  }
  if (end !== text.length || steps.length === 0 || typeof steps[0] === "number") {
    throw new MailerError(
      "invalid_path",
      `"${text}" is no field path: it cannot be read from character ${end + 1} on`,
      {
        hint:
          "write names with points between them, such as customer.id or items[0].price, and odd names in quotes",
      },
    );
  }
  return steps;
}

function unquote(quoted: string): string | undefined {
  if (quoted.startsWith("'")) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined; // a bad escape: the caller reports the path as a whole
  }
}
