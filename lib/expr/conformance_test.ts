/**
 * The CEL specification's own cases, against our numbers and dialect. Where we differ on purpose, the case is in
 * {@link DEVIATIONS} with the reason, and must really differ.
 */
import assert from "node:assert/strict";
import { tests } from "@bufbuild/cel-spec/testdata/conformance.js";
import { compileExpression, ExpressionError } from "./mod.ts";
import { MailerError } from "../errors.ts";

/** Suites that need no protobuf messages and no extensions. */
const SUITES = [
  "basic",
  "comparisons",
  "conversions",
  "fields",
  "fp_math",
  "integer_math",
  "lists",
  "logic",
  "macros",
  "parse",
  "plumbing",
  "string",
  "timestamps",
];
/** Cases with messages, wrappers and their like are out: records are JSON. */
const MESSAGES = /TestAllTypes|google\.protobuf\.\w+\s*\{|objectValue|enumValue/;

const EXACT = "an int beside a double is ordered exactly, not after rounding it to a double";
const CHECKED = "unknown names and functions are mistakes when compiled, even where || could pass over them";
const NO_NAMESPACES = "variables have no dots in their names";

/** By path; `/*` at the end stands for all cases there. */
const DEVIATIONS: Readonly<Record<string, string>> = {
  "basic/variables/unbound_is_runtime_error": CHECKED,
  "basic/functions/unbound_is_runtime_error": CHECKED,
  "parse/receiver_function_names/*": CHECKED,
  "comparisons/lt_literal/not_lt_dyn_int_big_lossy_double": EXACT,
  "comparisons/gt_literal/not_gt_dyn_big_double_int": EXACT,
  "comparisons/lte_literal/lte_dyn_big_double_int": EXACT,
  "comparisons/gte_literal/gte_dyn_int_big_lossy_double": EXACT,
  "fields/qualified_identifier_resolution/qualified_ident": NO_NAMESPACES,
  "fields/qualified_identifier_resolution/map_field_select": NO_NAMESPACES,
  "fields/qualified_identifier_resolution/qualified_identifier_resolution_unchecked": NO_NAMESPACES,
  "fields/qualified_identifier_resolution/ident_with_longest_prefix_check": NO_NAMESPACES,
};
const deviationOf = (path: string): string | undefined =>
  Object.hasOwn(DEVIATIONS, path)
    ? path
    : Object.keys(DEVIATIONS).find((key) => key.endsWith("/*") && path.startsWith(key.slice(0, -1)));

interface Case {
  readonly path: string;
  readonly expr: string;
  readonly bindings: Readonly<Record<string, unknown>>;
  /** Expected value, or nothing where it has to fail. */
  readonly expected: { readonly value: unknown; readonly type: string | undefined } | undefined;
}

// deno-lint-ignore no-explicit-any -- the data is protobuf's JSON, described by no type we want to depend on
type Json = any;

function* casesOf(suite: Json, path: string): Generator<Case> {
  for (const { original } of suite.tests ?? []) {
    const text = JSON.stringify(original);
    if (MESSAGES.test(text)) continue;
    const bindings = Object.fromEntries(
      Object.entries(original.bindings ?? {}).map(([name, bound]) => [name, valueOf((bound as Json).value)]),
    );
    const expected = original.evalError === undefined
      ? {
        value: valueOf(original.value ?? { boolValue: true }),
        type: typeOf(original.value ?? { boolValue: true }),
      }
      : undefined;
    yield { path: `${path}/${original.name}`, expr: original.expr, bindings, expected };
  }
  for (const inner of suite.suites ?? []) yield* casesOf(inner, `${path}/${inner.name}`);
}

/** A value of the data as it leaves an expression of ours. */
function valueOf(value: Json): unknown {
  const [[kind, inner]] = Object.entries(value) as [[string, Json]];
  switch (kind) {
    case "int64Value":
    case "uint64Value": {
      const integer = BigInt(inner);
      return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
    }
    case "doubleValue":
      return Number(inner);
    case "bytesValue":
      return Uint8Array.from(atob(inner), (c) => c.charCodeAt(0));
    case "nullValue":
      return null;
    case "listValue":
      return (inner.values ?? []).map(valueOf);
    case "mapValue":
      return Object.fromEntries(
        (inner.entries ?? []).map((entry: Json) => [String(valueOf(entry.key)), valueOf(entry.value)]),
      );
    default:
      return inner;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  int64Value: "int",
  uint64Value: "uint",
  doubleValue: "double",
  boolValue: "bool",
  stringValue: "string",
  bytesValue: "bytes",
  nullValue: "null_type",
  listValue: "list",
  mapValue: "map",
  typeValue: "type",
};
const typeOf = (value: Json): string | undefined => TYPES[Object.keys(value)[0]!];

function check({ expr, bindings, expected }: Case): void {
  const options = { dialect: "streams", variables: Object.keys(bindings) } as const;
  if (expected === undefined) {
    assert.throws(
      () => compileExpression(expr, options).evaluate(bindings),
      (error) =>
        error instanceof ExpressionError ||
        (error instanceof MailerError && error.code === "expression_failed"),
    );
    return;
  }
  assert.deepEqual(compileExpression(expr, options).evaluate(bindings), expected.value);
  if (Object.keys(bindings).length > 0) return; // a bound 1.0 is an int here
  assert.equal(compileExpression(`type(${expr})`, options).evaluate({}), expected.type, "type");
}

for (const suite of tests.suites!.filter(({ name }) => SUITES.includes(name))) {
  Deno.test(`CEL conformance: ${suite.name}`, async (t) => {
    let steps = 0;
    for (const one of casesOf(suite, suite.name)) {
      steps++;
      const deviation = deviationOf(one.path);
      if (deviation === undefined) await t.step(one.path, () => check(one));
      else {
        await t.step(`${one.path} differs: ${DEVIATIONS[deviation]}`, () => {
          // Not just any error: a wrong value or a refusal, as the reason says.
          assert.throws(
            () => check(one),
            (error) => error instanceof assert.AssertionError || error instanceof MailerError,
            "this case agrees with the specification: take it off the list",
          );
        });
      }
    }
    assert.ok(steps > 0);
  });
}

Deno.test("every listed deviation is a case of the data", () => {
  const cases = tests.suites!.flatMap((suite) => [...casesOf(suite, suite.name)]);
  const met = new Set(cases.map(({ path }) => deviationOf(path)));
  assert.deepEqual(Object.keys(DEVIATIONS).filter((deviation) => !met.has(deviation)), []);
});
