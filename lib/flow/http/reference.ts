/**
 * The page about the interface, made from the table of routes.
 *
 * @module
 */
import { ERROR_STATUSES } from "./errors.ts";
import type { FieldsOf } from "./fields.ts";
import type { Route } from "./route.ts";

const HEAD = `# The HTTP API of flows

\`mailer serve\` and \`serveFlows\` serve it. This page is made from the table of routes, as is the OpenAPI document at
\`GET /v1/openapi.json\`; do not edit it. Workers have a page of their own: [flow-workers.md](flow-workers.md).

**Who may call.** With a token every call needs \`authorization: Bearer TOKEN\`. Without one only programs on this machine
are served, by \`127.0.0.1\`, \`localhost\` or \`[::1]\`. \`/healthz\` and \`/readyz\` answer anybody.

**Bodies** are JSON objects in UTF-8 with \`content-type: application/json\`, at most 4 MiB, nested at most 500 deep; an
empty body is an empty object. A field nobody knows is an error. Integers beyond 2^53 come and go digit for digit.

**Once.** What a call has acknowledged is durable. Whoever does not hear an answer may ask again: with the same \`id\` it
happens once.

**Errors** are \`{"error": {"code", "message", "hint"}}\`: \`code\` is for programs and stays, \`message\` and \`hint\` are for
people.
`;

/** Markdown. */
export function apiReference(routes: readonly Route[]): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  return [
    HEAD,
    table(["status", "when"], Object.entries(ERROR_STATUSES)),
    ...tags.map((tag) =>
      [`## ${title(tag)}`, ...routes.filter((one) => one.tag === tag).map(section)].join("\n\n")
    ),
  ].join("\n") + "\n";
}

function section({ method, path, summary, query = {}, body = {}, answers }: Route): string {
  const { status = 200, summary: what } = answers;
  return [
    `### \`${method} ${path}\``,
    `${summary}.`,
    ...fields("In the query", query),
    ...fields("In the body", body),
    `Answers ${status}: ${what}`,
  ].join("\n\n");
}

function fields(where: string, given: FieldsOf): string[] {
  const rows = Object.entries(given).map(([name, { summary, expected, required, schema }]) => {
    const byDefault = schema["default"] === undefined ? "" : ` Default ${schema["default"]}.`;
    return [`\`${name}\`${required ? " (needed)" : ""}`, `${ended(summary)}${byDefault}`, expected];
  });
  return rows.length === 0 ? [] : [table([where, "", "takes"], rows)];
}

function ended(text: string): string {
  return /[.;:]$/.test(text) ? text : `${text}.`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => " --- ").join("|")}|`, ...rows.map(line)].join("\n") + "\n";
}

function title(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
