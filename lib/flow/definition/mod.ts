/**
 * Definitions of flows: from YAML, JSON or TypeScript to a validated definition with its hash.
 *
 * @module
 */
export { defineFlow, FlowError, type TypedFlow } from "./builder.ts";
export type * from "./builder_types.ts";
export { canonicalForm, flowDocument, flowYaml, hashOf } from "./canonical.ts";
export { compileFlow } from "./compile.ts";
export { type ParsedFlow, parseFlow, type ParseFlowOptions } from "./parse.ts";
export { TOKEN_PATTERN } from "./fields.ts";
export { flowReference } from "./reference.ts";
export { flowSchema } from "./schema.ts";
export * from "./types.ts";
export type { Duration } from "../../duration.ts";
export { MailerError } from "../../errors.ts";
export { type Place, type Problem, problemJson, problemText } from "../../workflow/problem.ts";
export type { JsonSchema } from "../../workflow/schema.ts";
