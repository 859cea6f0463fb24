/**
 * The JSON Schemas of a flow, compiled. The only file that imports `ajv`.
 *
 * J1 A schema refers to nothing outside of itself, and nothing is ever fetched.
 * J2 Patterns are those of RE2 and run in linear time, whatever the text.
 * J3 Numbers are compared as doubles: what has more digits passes as its nearest double.
 *
 * @module
 */
import type { AnySchemaObject, ErrorObject, Options, ValidateFunction } from "ajv";
import Ajv7 from "ajv";
import Ajv2019 from "ajv/dist/2019.js";
import Ajv2020 from "ajv/dist/2020.js";
import { compilePattern } from "../../expr/pattern.ts";
import { asError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { Problems } from "../../workflow/problem.ts";
import { valueOf } from "../../workflow/reader.ts";
import type { Draft } from "./read.ts";

/** What does not fit about a value, or nothing. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** The parts of the package's classes that are used. Being CommonJS, their modules are their default exports. */
type AjvClass = new (options: Options) => {
  compile(schema: AnySchemaObject): ValidateFunction;
  removeSchema(schema: AnySchemaObject): unknown;
  errorsText(errors: readonly ErrorObject[], options: { readonly dataVar: string }): string;
};

const DRAFTS: readonly (readonly [prefix: string, class_: AjvClass])[] = [
  ["https://json-schema.org/draft/2020-12/schema", Ajv2020 as unknown as AjvClass],
  ["https://json-schema.org/draft/2019-09/schema", Ajv2019 as unknown as AjvClass],
  ["http://json-schema.org/draft-07/schema", Ajv7 as unknown as AjvClass],
];

/** A compiled schema, or what is wrong with it. */
export type CompiledSchema = SchemaCheck | { readonly problem: string };

const compiled = new WeakMap<object, CompiledSchema>();

/** A check of outputs, or what is wrong with the schema, an object that is not changed. */
export function compileSchema(schema: object): CompiledSchema {
  const known = compiled.get(schema) ?? compile(plainNumbers(schema) as AnySchemaObject);
  compiled.set(schema, known);
  return known;
}

function compile(schema: AnySchemaObject): CompiledSchema {
  const draft = typeof schema.$schema === "string" ? schema.$schema.replace(/#$/, "") : DRAFTS[0]![0];
  const ajv = compilerOf(draft, hasIds(schema));
  if (ajv === undefined) return { problem: "$schema is none of 2020-12, 2019-09 and draft-07" };
  try {
    const validate = ajv.compile(schema);
    return (value) => {
      if (validate(plainNumbers(value))) return undefined;
      return ajv.errorsText(validate.errors!, { dataVar: "output" });
    };
  } catch (thrown) {
    return { problem: asError(thrown).message };
  } finally {
    ajv.removeSchema(schema); // which it would keep for good
  }
}

const compilers = new Map<string, InstanceType<AjvClass>>();

/** Whether a schema names parts of itself for all to see: what compiles it would know them for good. */
function hasIds(schema: AnySchemaObject): boolean {
  return /"\$(?:id|anchor|dynamicAnchor|recursiveAnchor)"/.test(JSON.stringify(schema));
}

/**
 * What compiles the schemas of a draft. Making one takes longer than compiling does, so one is kept for those that leave
 * nothing behind.
 */
function compilerOf(draft: string, alone: boolean): InstanceType<AjvClass> | undefined {
  const Ajv = DRAFTS.find(([name]) => name === draft)?.[1];
  if (Ajv === undefined) return undefined;
  const kept = alone ? undefined : compilers.get(draft);
  const ajv = kept ?? new Ajv({
    strict: false,
    validateFormats: false,
    logger: false,
    addUsedSchema: false,
    code: { regExp: Object.assign(linear, { code: "linear" }) },
  });
  if (!alone) compilers.set(draft, ajv);
  return ajv;
}

/** A pattern that runs in linear time (J2). */
function linear(source: string): RegExp {
  const pattern = compilePattern(source);
  if (typeof pattern !== "function") throw new TypeError(pattern.problem);
  // All that compiled schemas ask of a pattern; its text is what they are told apart by.
  return { test: pattern, toString: () => `/${source}/` } as RegExp;
}

/** A copy in which every number is a double (J3). */
function plainNumbers(value: unknown): unknown {
  return JSON.parse(stringifyJson(value));
}

/** Reports schemas that are none. */
export function checkOutputSchemas({ nodes }: Draft, problems: Problems): void {
  for (const { map, path, node } of nodes) {
    const entry = map?.entries.find(({ key }) => key === "output_schema");
    if (entry?.value.kind !== "map") continue;
    // The object of the node, where there is one: what is compiled here is there when the flow is.
    const schema = node !== undefined && "outputSchema" in node ? node.outputSchema : valueOf(entry.value);
    const checked = compileSchema(schema as object);
    if (typeof checked === "function") continue;
    const hint = "a schema refers to its own parts only, as #/$defs/…";
    const help = /reference|\$ref/.test(checked.problem) ? hint : undefined;
    problems.add(
      entry.place,
      [...path, "output_schema"],
      "bad_schema",
      `no JSON Schema: ${checked.problem}`,
      help,
    );
  }
}
