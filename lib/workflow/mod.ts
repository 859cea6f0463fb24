/**
 * Workflow documents: YAML or JSON in, a validated spec out, or everything that is wrong with it.
 *
 * ```ts
 * const text = "name: copy\nsource: { type: stdin }\nsnk: { type: stdout }\n";
 * const { spec, problems } = parseWorkflow(text, { file: "copy.yaml", resolveSecret: () => undefined });
 * console.log(spec, problems.map(problemText)); // copy.yaml:3:1: snk: "snk" is not known here (did you mean "sink"?) …
 * ```
 *
 * @module
 */
export type * from "./blocks.ts";
export type {
  Component,
  ComponentKind,
  OperatorComponent,
  SinkComponent,
  SourceComponent,
} from "./component.ts";
export { COMPONENTS } from "./components/mod.ts";
export { type CheckExpression, type ExpressionReport, streamVariables } from "./expressions.ts";
export type { ReadFile } from "./files.ts";
export type { ResolveSecret } from "./interpolate.ts";
export { lintWorkflow } from "./lint.ts";
export { type Place, type Problem, problemJson, problemText } from "./problem.ts";
export { workflowReference } from "./reference.ts";
export { type JsonSchema, workflowSchema } from "./schema.ts";
export { MASK, maskOf } from "./secrets.ts";
export { sideOutputsOf } from "./side_outputs.ts";
export type * from "./spec.ts";
export { template, type TemplateKind, templateKinds } from "./template.ts";
export {
  type ParsedTests,
  parseTests,
  type TestCase,
  type TestDocument,
  type TestEntry,
  type TestExpectation,
  type TestInput,
} from "./test_document.ts";
export { checkTestNames } from "./test_names.ts";
export type { DocumentNode } from "./tree.ts";
export { type ParsedWorkflow, type ParseOptions, parseWorkflow } from "./validate.ts";
