/**
 * Documents with tests of a workflow (`FILE.test.yaml`), read as strictly as workflows.
 *
 * @module
 */
import { NODE_KEYS } from "./document.ts";
import { type AnyFields, types } from "./field_type.ts";
import { type Path, pathText, type Place, type Problem, TOP } from "./problem.ts";
import { readFields } from "./read_field.ts";
import { childOf, mismatch, misshapen, type ReadContext, valueOf } from "./reader.ts";
import { openDocument, type ParseOptions, readContext } from "./validate.ts";
import type { DocumentNode, ListNode, MapNode } from "./tree.ts";

/** All tests of a workflow. */
export interface TestDocument {
  readonly file: string;
  /** Path of the workflow, relative to this document. */
  readonly workflow: string;
  readonly cases: readonly TestCase[];
}

/** One test. */
export interface TestCase {
  readonly name: string;
  readonly place: Place;
  /** Path in the document: `cases[0]`. */
  readonly path: string;
  /** Input in place of the workflow's own; empty = the workflow's sources are read. */
  readonly input: readonly TestInput[];
  readonly expect: readonly TestExpectation[];
  /** Whether the input ends, which closes open windows. */
  readonly end: boolean;
}

/** What stands in for a source. */
export interface TestInput {
  /** Id of the source; absent = the only one. */
  readonly source?: string;
  readonly place: Place;
  readonly path: string;
  /** What it gives: entries in order, or a file, relative to this document. */
  readonly content: { readonly entries: readonly TestEntry[] } | { readonly file: string };
}

/** A record, or a watermark; with a watermark among them only those advance event time. */
export type TestEntry =
  | {
    readonly kind: "record";
    readonly place: Place;
    /** Event time in ms; it beats the workflow's timestamp. */
    readonly at?: number;
    readonly key?: unknown;
    readonly value: unknown;
    readonly headers: Readonly<Record<string, string>>;
    readonly split?: string;
  }
  /** What the source reads, before it is decoded. */
  | {
    readonly kind: "text";
    readonly place: Place;
    readonly at?: number;
    readonly key?: unknown;
    readonly text: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly split?: string;
  }
  | { readonly kind: "watermark"; readonly place: Place; /** ms */ readonly time: number };

/** What has to come out at a place: a sink, `dlq`, or a side output such as `per-minute.late`. */
export interface TestExpectation {
  /** As written. */
  readonly name: string;
  readonly place: Place;
  readonly path: string;
  /** `anyOrder` and `inOrder`: exactly these rows; `contains`: these among others. */
  readonly mode: "anyOrder" | "inOrder" | "contains";
  readonly rows: readonly { readonly value: unknown; readonly place: Place }[];
}

/** What reading a test document gave. */
export interface ParsedTests {
  /** There if and only if there are no problems. */
  readonly tests: TestDocument | undefined;
  readonly problems: readonly Problem[];
}

const TOP_FIELDS: AnyFields = {
  workflow: {
    type: types.matching(/./, "the path of a workflow"),
    summary: "Workflow under test, relative to this document",
    required: true,
    example: "order-totals.yaml",
  },
  cases: { type: types.any(), summary: "Tests", required: true },
};
const CASE_FIELDS: AnyFields = {
  name: {
    type: types.matching(/./, "a name"),
    summary: "What the test shows",
    required: true,
    example: "late records",
  },
  input: {
    type: types.any(),
    summary: "Records and watermarks, or a file; by source where there are several",
  },
  expect: { type: types.any(), summary: "Rows by id of the sink", required: true, example: "{ sink: [] }" },
  end: { type: types.boolean(), summary: "Whether the input ends, which closes windows", default: true },
};
const ENTRY_FIELDS: AnyFields = {
  at: { type: types.any(), summary: "Event time" },
  key: { type: types.any(), summary: "Key" },
  value: { type: types.any(), summary: "Value" },
  text: { type: types.text(), summary: "What the source reads, instead of a value" },
  headers: { type: types.map(types.text()), summary: "Headers", default: {} },
  split: { type: types.text(), summary: "Split it comes from" },
  watermark: { type: types.any(), summary: "Event time that is complete" },
};
const MODES = ["anyOrder", "inOrder", "contains"] as const;

/** Reads and validates the tests of a workflow; the workflow itself is not looked at. */
export function parseTests(text: string, options: ParseOptions): ParsedTests {
  const { tree, problems } = openDocument(text, options);
  const context = readContext(problems, options);
  const isRead = tree !== undefined || problems.size === 0;
  const tests = isRead ? readTests(tree, options.file, context) : undefined;
  return { tests: problems.size > 0 ? undefined : tests, problems: problems.list((line) => line) };
}

function readTests(
  tree: DocumentNode | undefined,
  file: string,
  context: ReadContext,
): TestDocument | undefined {
  if (tree?.kind !== "map") {
    context.problems.add(tree?.place ?? TOP, [], "wrong_type", "tests are a block with workflow and cases");
    return undefined;
  }
  if (isWorkflow(tree)) {
    const message = "this document is a workflow, and holds no tests";
    const hint = `mailer run ${file} runs it; its tests are a document of their own: mailer new test`;
    context.problems.add(TOP, [], "not_tests", message, hint);
    return undefined;
  }
  const { values } = readFields(TOP_FIELDS, tree, { node: tree, path: [], at: TOP, secret: false }, context);
  const list = listAt(tree, "cases", [], context);
  const cases = list?.items.map((node, i) => readCase(node, ["cases", i], context)) ?? [];
  const seen = new Set<string>();
  for (const one of cases) {
    if (one === undefined) continue;
    if (seen.has(one.name)) {
      context.problems.add(
        one.place,
        [...pathSteps(one), "name"],
        "duplicate",
        `there is already a case "${one.name}"`,
      );
    }
    seen.add(one.name);
  }
  return { file, workflow: values.workflow as string, cases: cases.filter((one) => one !== undefined) };
}

/** Whether nothing of tests is there, and something of a workflow. */
function isWorkflow(root: MapNode): boolean {
  return !root.entries.some(({ key }) => Object.hasOwn(TOP_FIELDS, key)) &&
    root.entries.some(({ key }) => Object.hasOwn(NODE_KEYS, key));
}

function pathSteps({ path }: TestCase): Path {
  return ["cases", Number(/\d+/.exec(path)![0])];
}

/** A list with at least one element under a key that is there. */
function listAt(map: MapNode, key: string, path: Path, context: ReadContext): ListNode | undefined {
  const entry = map.entries.find((one) => one.key === key);
  if (entry === undefined) return undefined;
  const site = { node: entry.value, path: [...path, key], at: entry.place, secret: false };
  if (entry.value.kind !== "list") return misshapen(site, context, "a list");
  if (entry.value.items.length > 0) return entry.value;
  context.problems.add(entry.value.place, site.path, "too_few", "expected at least one element, found none");
  return undefined;
}

function readCase(node: DocumentNode, path: Path, context: ReadContext): TestCase | undefined {
  const site = { node, path, at: node.place, secret: false };
  if (node.kind !== "map") return misshapen(site, context, "a block with name, input and expect");
  const { values } = readFields(CASE_FIELDS, node, site, context);
  const input = childOf(node, "input"), expect = childOf(node, "expect");
  return {
    name: values.name as string,
    place: node.place,
    path: pathText(path),
    input: input === undefined ? [] : readInputs(input, [...path, "input"], context),
    expect: expect === undefined ? [] : readExpectations(expect, [...path, "expect"], context),
    end: values.end as boolean,
  };
}

function readInputs(node: DocumentNode, path: Path, context: ReadContext): readonly TestInput[] {
  if (node.kind !== "map") {
    const content = readContent(node, path, context);
    return content === undefined ? [] : [{ place: node.place, path: pathText(path), content }];
  }
  return node.entries.flatMap(({ key, place, value }) => {
    const content = readContent(value, [...path, key], context);
    return content === undefined ? [] : [{ source: key, place, path: pathText([...path, key]), content }];
  });
}

function readContent(node: DocumentNode, path: Path, context: ReadContext): TestInput["content"] | undefined {
  if (node.kind === "scalar" && typeof node.value === "string" && node.value !== "") {
    return { file: node.value };
  }
  const site = { node, path, at: node.place, secret: false };
  if (node.kind !== "list") return misshapen(site, context, "a list of records, or the path of a file");
  const entries = node.items.map((item, i) => readEntry(item, [...path, i], context));
  return { entries: entries.filter((entry) => entry !== undefined) };
}

function readEntry(node: DocumentNode, path: Path, context: ReadContext): TestEntry | undefined {
  const site = { node, path, at: node.place, secret: false };
  if (node.kind !== "map") return misshapen(site, context, "a record ({ value: … }) or { watermark: … }");
  const { values, present } = readFields(ENTRY_FIELDS, node, site, context);
  const { problems } = context;
  if (present.has("watermark")) {
    for (const { key, place } of node.entries) {
      if (key === "watermark" || !present.has(key)) continue;
      problems.add(place, [...path, key], "excluded", `"${key}" cannot stand beside "watermark"`);
    }
    const time = readTime(childOf(node, "watermark")!, [...path, "watermark"], context);
    return time === undefined ? undefined : { kind: "watermark", place: node.place, time };
  }
  const at = childOf(node, "at");
  const time = at === undefined ? undefined : readTime(at, [...path, "at"], context);
  const common = {
    place: node.place,
    ...(time === undefined ? {} : { at: time }),
    ...(present.has("key") ? { key: values.key } : {}),
    headers: values.headers as Readonly<Record<string, string>>,
    ...(values.split === undefined ? {} : { split: values.split as string }),
  };
  if (present.has("value") === present.has("text")) {
    const both = present.has("value");
    const place = both ? node.entries.find(({ key }) => key === "text")!.place : node.place;
    const message = both ? `"text" cannot stand beside "value"` : "needs value, or text, or watermark";
    problems.add(place, [...path, both ? "text" : "value"], both ? "excluded" : "missing", message);
    return undefined;
  }
  if (present.has("text")) return { kind: "text", ...common, text: values.text as string };
  return { kind: "record", ...common, value: values.value };
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Event time in ms. */
function readTime(node: DocumentNode, path: Path, context: ReadContext): number | undefined {
  const value = valueOf(node);
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  const ms = typeof value === "string" && RFC_3339.test(value) ? Date.parse(value.replace(" ", "T")) : NaN;
  if (!Number.isNaN(ms)) return ms;
  const site = { node, path, at: node.place, secret: false };
  return mismatch(site, context, "a time such as 2026-03-01T10:00:00Z, or milliseconds since 1970");
}

function readExpectations(node: DocumentNode, path: Path, context: ReadContext): readonly TestExpectation[] {
  const site = { node, path, at: node.place, secret: false };
  if (node.kind !== "map") return misshapen(site, context, "a block of rows by id of the sink") ?? [];
  if (node.entries.length === 0) {
    context.problems.add(node.place, path, "too_few", "expected at least one entry, found none");
  }
  return node.entries.flatMap(({ key, place, value }): TestExpectation[] => {
    const keyPath = [...path, key];
    const rows = readRows(value, keyPath, place, context);
    return rows === undefined ? [] : [{ name: key, place, path: pathText(keyPath), ...rows }];
  });
}

function readRows(
  node: DocumentNode,
  path: Path,
  at: Place,
  context: ReadContext,
): Pick<TestExpectation, "mode" | "rows"> | undefined {
  if (node.kind === "list") return { mode: "anyOrder", rows: rowsOf(node) };
  const site = { node, path, at, secret: false };
  if (node.kind !== "map") return misshapen(site, context, "a list of rows");
  const fields = Object.fromEntries(
    MODES.map((mode) => [mode, { type: types.list(types.any()), summary: "Rows" }]),
  );
  const { present } = readFields(fields, node, site, context);
  const modes = MODES.filter((mode) => present.has(mode));
  if (modes.length === 1) {
    const list = childOf(node, modes[0]!)!;
    return list.kind === "list" ? { mode: modes[0]!, rows: rowsOf(list) } : undefined; // else reported already
  }
  const message = `needs one of ${MODES.join(", ")}, found ${
    modes.length === 0 ? "none" : modes.join(" and ")
  }`;
  context.problems.add(at, path, modes.length === 0 ? "missing" : "excluded", message);
  return undefined;
}

function rowsOf(list: ListNode): TestExpectation["rows"] {
  return list.items.map((item) => ({ value: valueOf(item), place: item.place }));
}
