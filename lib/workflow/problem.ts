/**
 * Problems of a document: where they are, what they say, and their two written forms.
 *
 * P1 Problems come in the order of the document: by line, then column, then as they were found.
 * P2 No text of a problem holds a secret: every message and hint passes the mask before it leaves the collector.
 * P3 The same thing said twice of one place is said once.
 *
 * @module
 */

/** A place in a text; both count from 1, columns in UTF-16 units. */
export interface Place {
  /** Line of the text. */
  readonly line: number;
  /** Column in that line. */
  readonly column: number;
}

/** The way to a value inside a document: keys and list positions from the top. */
export type Path = readonly (string | number)[];

/** One thing that is wrong, or that `lint` points out. */
export interface Problem extends Place {
  /** The file as the caller named it. */
  readonly file: string;
  /** The way to the value, without ids: `pipeline[2].reduce.field`. */
  readonly path: string;
  /** The same with the ids of list elements, for people: `pipeline[2] "totals".reduce.field`. */
  readonly label: string;
  /** Stable, lower_snake_case; safe to branch on. */
  readonly code: string;
  /** What is wrong, without the place. */
  readonly message: string;
  /** What to do about it, where that is known. */
  readonly hint: string | undefined;
}

/** The document's top, where a missing top-level block is reported. */
export const TOP: Place = { line: 1, column: 1 };

/** One line for people: `file.yaml:12:5: pipeline[2] "totals".reduce.field: sum needs a field (did you mean "amount"?)`. */
export function problemText(problem: Problem): string {
  const { file, line, column, label, message, hint } = problem;
  const subject = label === "" ? "" : `${label}: `;
  return `${file}:${line}:${column}: ${subject}${message}${hint === undefined ? "" : ` (${hint})`}`;
}

/** One line of JSON for machines; `hint` is null where there is none. */
export function problemJson(problem: Problem): string {
  const { file, line, column, path, code, message, hint } = problem;
  return JSON.stringify({ file, line, column, path, code, message, hint: hint ?? null });
}

/** `pipeline[2].reduce.field`; keys that are no plain names are quoted in brackets. */
export function pathText(
  path: Path,
  idOf: (list: string, index: number) => string | undefined = noId,
): string {
  let text = "";
  path.forEach((step, at) => {
    if (typeof step === "number") {
      const list = path[at - 1];
      const id = at === 1 && typeof list === "string" ? idOf(list, step) : undefined;
      text += `[${step}]${id === undefined ? "" : ` ${JSON.stringify(id)}`}`;
    } else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  });
  return text;
}

function noId(): undefined {
  return undefined;
}

/** Gathers the problems of one document. */
export class Problems {
  readonly file: string;
  readonly #found: Problem[] = [];
  #idOf: (list: string, index: number) => string | undefined = noId;

  constructor(file: string) {
    this.file = file;
  }

  /** How elements of the lists at the top are called in {@link Problem.label}. */
  nameElements(idOf: (list: string, index: number) => string | undefined): void {
    this.#idOf = idOf;
  }

  /** Notes one problem at a place. */
  add(place: Place, path: Path, code: string, message: string, hint?: string): void {
    const { line, column } = place;
    const [plain, label] = [pathText(path), pathText(path, this.#idOf)];
    this.#found.push({ file: this.file, line, column, path: plain, label, code, message, hint });
  }

  get size(): number {
    return this.#found.length;
  }

  /** All of them, in document order, each once. `mask` hides what must not be shown. */
  list(mask: (text: string) => string): Problem[] {
    const seen = new Set<string>();
    const inOrder = this.#found.map((problem) => ({
      ...problem,
      path: mask(problem.path),
      label: mask(problem.label),
      message: mask(problem.message),
      hint: problem.hint === undefined ? undefined : mask(problem.hint),
    })).sort((a, b) => a.line - b.line || a.column - b.column);
    return inOrder.filter(({ line, column, code, message }) => {
      const text = `${line}:${column}:${code}:${message}`;
      if (seen.has(text)) return false;
      seen.add(text);
      return true;
    });
  }
}
