/**
 * Documents with tests of flows (`FILE.test.yaml`), read as strictly as flows.
 *
 * @module
 */
import { type AnyFields, types } from "../../workflow/field_type.ts";
import { type Path, pathText, type Place, type Problem, Problems, TOP } from "../../workflow/problem.ts";
import { readFields } from "../../workflow/read_field.ts";
import { childOf, misshapen, nodeAt, type ReadContext } from "../../workflow/reader.ts";
import { Secrets } from "../../workflow/secrets.ts";
import type { DocumentNode, MapNode } from "../../workflow/tree.ts";
import { didYouMean } from "../../workflow/suggest.ts";
import { parseTree } from "../../workflow/yaml.ts";
import type { CompiledFlow, FlowNode } from "../definition/mod.ts";
import type { CommandData } from "../fold/mod.ts";
import type { Answer } from "./answers.ts";

/** All tests of a flow. */
export interface FlowTests {
  /** Path of the flow, relative to this document. */
  readonly flow: string;
  /** Paths of other flows it needs. */
  readonly others: readonly string[];
  readonly cases: readonly FlowTest[];
}

/** One test. */
export interface FlowTest {
  readonly name: string;
  readonly place: Place;
  /** Path in the document: `cases[0]`. */
  readonly path: string;
  readonly input: unknown;
  /** Answers by id of a node or by kind, and where they stand. */
  readonly tasks: ReadonlyMap<string, readonly Answer[]>;
  readonly taskPlaces: ReadonlyMap<string, Place>;
  readonly signals: readonly { readonly after: number; readonly name: string; readonly payload: unknown }[];
  readonly commands: readonly TestCommand[];
  /** Most virtual time to let pass, ms; Infinity: until it settles. */
  readonly limit: number;
  readonly expect: Expected;
}

/** A command of a test. */
export type TestCommand = {
  [T in "cancel" | "resume" | "update" | "pause" | "unpause"]: {
    readonly after: number;
    readonly type: T;
    readonly data: CommandData[T];
  };
}["cancel" | "resume" | "update" | "pause" | "unpause"];

/** How an execution may stand when a test is over; `rejected`: it was not started. */
export const OUTCOMES = ["completed", "failed", "cancelled", "waiting", "rejected"] as const;

/** What is to come out. Absent = not looked at. */
export interface Expected {
  readonly status?: typeof OUTCOMES[number];
  readonly output?: unknown;
  readonly visited?: readonly string[];
  readonly attempts?: Readonly<Record<string, number>>;
  /** ms */
  readonly elapsed?: number;
  readonly channels?: unknown;
  readonly counters?: unknown;
  readonly reason?: string;
}

/** What reading a test document gave. */
export interface ParsedFlowTests {
  /** There if and only if there are no problems. */
  readonly tests: FlowTests | undefined;
  readonly problems: readonly Problem[];
}

const DOCUMENT: AnyFields = {
  flow: {
    type: types.matching(/./, "the path of a flow"),
    summary: "Flow under test, relative to this document",
    required: true,
    example: "order-saga.yaml",
  },
  flows: {
    type: types.list(types.matching(/./, "the path of a flow")),
    summary: "Other flows it starts",
    default: [],
  },
  cases: { type: types.any(), summary: "Tests", required: true },
};
const CASE: AnyFields = {
  name: {
    type: types.matching(/./, "a name"),
    summary: "What the test shows",
    required: true,
    example: "refused",
  },
  input: { type: types.any(), summary: "Input of the execution" },
  tasks: { type: types.any(), summary: "What workers answer, by id of a node or by kind" },
  signals: { type: types.any(), summary: "Signals that come" },
  commands: { type: types.any(), summary: "Commands that come" },
  for: { type: types.duration(), summary: "Most virtual time to let pass; until it settles unless given" },
  expect: {
    type: types.any(),
    summary: "What is to come out",
    required: true,
    example: "{ status: completed }",
  },
};
const ANSWER: AnyFields = {
  output: { type: types.any(), summary: "Output of the task" },
  writes: { type: types.any(), summary: "What is written to channels" },
  next: { type: types.text(), summary: "Node the worker chooses" },
  usage: { type: types.any(), summary: "Amounts by counter" },
  error: { type: types.text(), summary: "The attempt fails with this message" },
  name: { type: types.text(), summary: "Name of the error" },
  permanent: { type: types.boolean(), summary: "Whether it fails for good", default: false },
  interrupt: { type: types.any(), summary: "The attempt waits for a person, and asks this" },
  takes: { type: types.duration(), summary: "How long the worker works", default: "0s" },
  hangs: { type: types.boolean(), summary: "Whether no answer ever comes", default: false },
};
const SIGNAL: AnyFields = {
  after: { type: types.duration(), summary: "Time from the start", required: true, example: "10m" },
  name: { type: types.text(), summary: "Name of the signal", required: true, example: "approval" },
  payload: { type: types.any(), summary: "What it brings" },
};
const COMMANDS = {
  cancel: {
    type: types.any(),
    summary: "Cancels the execution: true, or { reason }",
    fields: { reason: { type: types.text(), summary: "Why" } } as AnyFields,
  },
  pause: {
    type: types.any(),
    summary: "Pauses the execution: true, or { reason }",
    fields: { reason: { type: types.text(), summary: "Why" } } as AnyFields,
  },
  unpause: { type: types.any(), summary: "Lets it go on: true", fields: {} as AnyFields },
  resume: {
    type: types.any(),
    summary: "Answers an interrupt",
    fields: {
      node: { type: types.text(), summary: "Interrupted node", required: true, example: "ask" },
      key: { type: types.text(), summary: "Item of a map: node#0" },
      value: { type: types.any(), summary: "The answer" },
    } as AnyFields,
  },
  update: {
    type: types.any(),
    summary: "Writes to channels",
    fields: {
      writes: { type: types.any(), summary: "Values by channel", required: true, example: "{}" },
    } as AnyFields,
  },
} as const;
const COMMAND: AnyFields = {
  after: { type: types.duration(), summary: "Time from the start", required: true, example: "20m" },
  ...Object.fromEntries(
    Object.entries(COMMANDS).map(([name, { type, summary }]) => [name, { type, summary }]),
  ),
};
const EXPECT: AnyFields = {
  status: { type: types.oneOf(...OUTCOMES), summary: "How it stands at the end" },
  output: { type: types.any(), summary: "Its output" },
  visited: { type: types.list(types.text()), summary: "Nodes in the order they were entered" },
  attempts: { type: types.map(types.int({ min: 0 })), summary: "Attempts of the last round, by node" },
  elapsed: { type: types.duration(), summary: "Virtual time until it settled" },
  channels: { type: types.any(), summary: "Its channels" },
  counters: { type: types.any(), summary: "Its counters" },
  reason: { type: types.text(), summary: "Why it failed" },
};

/** Reads and validates the tests of a flow; the flows themselves are not looked at. */
export function parseFlowTests(text: string, file: string): ParsedFlowTests {
  const problems = new Problems(file);
  const { root, problems: syntax } = parseTree(text);
  for (const { place, path, code, message, hint } of syntax) problems.add(place, path, code, message, hint);
  const tests = root === undefined && problems.size > 0 ? undefined : new Reader(problems).document(root);
  return { tests: problems.size > 0 ? undefined : tests, problems: problems.list((line) => line) };
}

/** What a case names and its flows do not have, and what nobody would answer. */
export function checkFlowTests(
  tests: FlowTests,
  flows: readonly CompiledFlow[],
  file: string,
): readonly Problem[] {
  const problems = new Problems(file);
  const nodes = flows.flatMap(({ definition }) => definition.nodes), kinds = new Set(nodes.flatMap(kindOf));
  const names = new Set([...nodes.filter((node) => kindOf(node).length > 0).map(({ id }) => id), ...kinds]);
  for (const [i, { tasks, taskPlaces, place }] of tests.cases.entries()) {
    for (const name of tasks.keys()) {
      if (names.has(name)) continue;
      const message = `no node and no kind of these flows is called "${name}"`;
      const path = ["cases", i, "tasks", name];
      problems.add(taskPlaces.get(name)!, path, "unknown_task", message, didYouMean(name, [...names]));
    }
    for (const node of nodes) {
      const [kind] = kindOf(node);
      const isBuiltIn = (kind === "http" || kind === "emit") && "with" in node && node.with !== undefined;
      if (!isBuiltIn || tasks.has(node.id) || tasks.has(kind!)) continue;
      const message = `node "${node.id}" (kind ${kind}) would reach outside: give it an answer`;
      problems.add(
        place,
        ["cases", i, "tasks"],
        "unmocked",
        message,
        `tasks: { ${node.id}: { output: {} } }`,
      );
    }
  }
  return problems.list((line) => line);
}

function kindOf(node: FlowNode): string[] {
  return "kind" in node && node.kind !== undefined ? [node.kind] : [];
}

class Reader {
  readonly #problems: Problems;
  readonly #context: ReadContext;

  constructor(problems: Problems) {
    this.#problems = problems;
    this.#context = {
      problems,
      secrets: new Secrets(),
      expressions: [],
      files: [],
      uncarried: [],
      allowUnset: false,
    };
  }

  document(root: DocumentNode | undefined): FlowTests | undefined {
    if (root?.kind !== "map") {
      this.#problems.add(root?.place ?? TOP, [], "wrong_type", "tests are a block with flow and cases");
      return undefined;
    }
    if (childOf(root, "nodes") !== undefined && childOf(root, "cases") === undefined) {
      const hint = "tests are a document of their own, with flow and cases";
      this.#problems.add(TOP, [], "not_tests", "this document is a flow, and holds no tests", hint);
      return undefined;
    }
    const { values } = this.#fields(DOCUMENT, root, [], TOP);
    const cases = this.#list(root, "cases", []).map(({ node, path }) => this.#case(node, path));
    const seen = new Set<string>();
    for (const [i, one] of cases.entries()) {
      if (one === undefined) continue;
      if (seen.has(one.name)) {
        this.#problems.add(
          one.place,
          ["cases", i, "name"],
          "duplicate",
          `there is already a case "${one.name}"`,
        );
      }
      seen.add(one.name);
    }
    return {
      flow: values.flow as string,
      others: values.flows as readonly string[],
      cases: cases.filter((one) => one !== undefined),
    };
  }

  #case(node: DocumentNode, path: Path): FlowTest | undefined {
    const map = this.#block(node, path, "a block with name, tasks and expect");
    if (map === undefined) return undefined;
    const { values } = this.#fields(CASE, map, path, node.place);
    const tasks = this.#tasks(childOf(map, "tasks"), [...path, "tasks"]);
    return {
      name: values.name as string,
      place: node.place,
      path: pathText(path),
      input: values.input,
      tasks: new Map(tasks.map(({ name, answers }) => [name, answers])),
      taskPlaces: new Map(tasks.map(({ name, place }) => [name, place])),
      signals: this.#list(map, "signals", path).flatMap(({ node, path }) => {
        const signal = this.#valuesOf(SIGNAL, node, path, "a block with after and name");
        return signal === undefined
          ? []
          : [{ after: signal.after as number, name: signal.name as string, payload: signal.payload }];
      }),
      commands: this.#list(map, "commands", path).flatMap(({ node, path }) => this.#command(node, path)),
      limit: values.for as number | undefined ?? Infinity,
      expect:
        (this.#valuesOf(EXPECT, childOf(map, "expect"), [...path, "expect"], "a block") ?? {}) as Expected,
    };
  }

  #tasks(
    node: DocumentNode | undefined,
    path: Path,
  ): { readonly name: string; readonly place: Place; readonly answers: readonly Answer[] }[] {
    const map = node === undefined
      ? undefined
      : this.#block(node, path, "a block of answers by node or kind");
    return map?.entries.map(({ key: name, place, value }) => {
      const at = [...path, name], isList = value.kind === "list";
      if (isList && value.items.length === 0) {
        this.#problems.add(place, at, "too_few", "expected at least one answer, found none");
      }
      const nodes = isList ? value.items : [value];
      const answers = nodes.flatMap((one, i) => this.#answer(one, isList ? [...at, i] : at));
      return { name, place, answers };
    }) ?? [];
  }

  #answer(node: DocumentNode, path: Path): Answer[] {
    const map = this.#block(node, path, "an answer such as { output: {} } or { error: text }");
    if (map === undefined) return [];
    const { values, present } = this.#fields(ANSWER, map, path, node.place);
    const kinds = ["error", "interrupt", "hangs"].filter((name) => present.has(name));
    const outcome = kinds[0] ?? "output";
    for (const { key, place } of map.entries) {
      if (Object.hasOwn(ANSWER, key) && !FITTING[outcome]!.includes(key)) {
        this.#problems.add(place, [...path, key], "excluded", `"${key}" cannot stand beside "${outcome}"`);
      }
    }
    const takes = values.takes as number;
    const given = (...names: string[]) =>
      Object.fromEntries(names.filter((name) => present.has(name)).map((name) => [name, values[name]]));
    switch (outcome) {
      case "hangs":
        return values.hangs === true
          ? [{ kind: "hangs" }]
          : [{ kind: "complete", takes, data: given("output", "writes", "next", "usage") }];
      case "error": {
        const data = { error: values.error as string, retryable: values.permanent !== true };
        return [{ kind: "fail", takes, data: { ...data, ...given("usage", "name") } }];
      }
      case "interrupt":
        return [{ kind: "interrupt", takes, data: { payload: values.interrupt, ...given("usage") } }];
      default:
        return [{ kind: "complete", takes, data: given("output", "writes", "next", "usage") }];
    }
  }

  #command(node: DocumentNode, path: Path): TestCommand[] {
    const map = this.#block(node, path, "a block with after and a command");
    if (map === undefined) return [];
    const { values, present } = this.#fields(COMMAND, map, path, node.place);
    const names = (Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]).filter((name) => present.has(name));
    if (names.length !== 1) {
      const found = names.length === 0 ? "none" : names.join(" and ");
      const message = `needs one of ${Object.keys(COMMANDS).join(", ")}, found ${found}`;
      this.#problems.add(node.place, path, names.length === 0 ? "missing" : "excluded", message);
      return [];
    }
    const name = names[0]!, at = [...path, name], given = childOf(map, name)!;
    const isBare = given.kind === "scalar" && given.value === true && name !== "resume" && name !== "update";
    const what = name === "resume" || name === "update" ? "a block" : "true, or a block";
    const data = isBare ? {} : this.#valuesOf(COMMANDS[name].fields, given, at, what);
    if (data === undefined) return [];
    const known = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined));
    return [{ after: values.after as number, type: name, data: known } as TestCommand];
  }

  #valuesOf(
    fields: AnyFields,
    node: DocumentNode | undefined,
    path: Path,
    what: string,
  ): Readonly<Record<string, unknown>> | undefined {
    const map = node === undefined ? undefined : this.#block(node, path, what);
    if (map === undefined) return undefined;
    const { values, present } = this.#fields(fields, map, path, map.place);
    return Object.fromEntries(Object.entries(values).filter(([name]) => present.has(name)));
  }

  #fields(fields: AnyFields, map: MapNode, path: Path, at: Place): ReturnType<typeof readFields> {
    return readFields(fields, map, { node: map, path, at, secret: false }, this.#context);
  }

  #block(node: DocumentNode, path: Path, what: string): MapNode | undefined {
    if (node.kind === "map") return node;
    return misshapen({ node, path, at: node.place, secret: false }, this.#context, what);
  }

  #list(map: MapNode, key: string, path: Path): { readonly node: DocumentNode; readonly path: Path }[] {
    const node = nodeAt(map, [key]), at = [...path, key];
    if (node === undefined) return [];
    if (node.kind !== "list") {
      misshapen({ node, path: at, at: node.place, secret: false }, this.#context, "a list");
      return [];
    }
    return node.items.map((item, i) => ({ node: item, path: [...at, i] }));
  }
}

/** What may be said of each kind of answer. */
const FITTING: Readonly<Record<string, readonly string[]>> = {
  output: ["output", "writes", "next", "usage", "takes"],
  error: ["error", "name", "permanent", "usage", "takes"],
  interrupt: ["interrupt", "usage", "takes"],
  hangs: ["hangs", "output", "writes", "next", "usage", "takes"],
};
