/**
 * A JSON value as YAML text, for people: one key or element a line.
 *
 * @module
 */
import { stringifyJson } from "../../json.ts";
import { plainScalar } from "../../workflow/plain_scalar.ts";

/** YAML of a value; what it reads as is that value again. */
export function yamlOf(value: unknown): string {
  return `${write(value, 0, "top")}\n`.trimStart();
}

/** `after`: what stands in front of it on its line. */
function write(value: unknown, depth: number, after: "top" | "key" | "dash"): string {
  const lines = Array.isArray(value)
    ? value.map((item) => `-${write(item, depth + 1, "dash")}`)
    : isObject(value)
    ? Object.entries(value).map(([key, item]) => `${scalar(key)}:${write(item, depth + 1, "key")}`)
    : undefined;
  if (lines === undefined) return ` ${scalar(value)}`;
  if (lines.length === 0) return Array.isArray(value) ? " []" : " {}";
  const indent = "  ".repeat(depth);
  const text = lines.join(`\n${indent}`);
  return after === "dash" ? ` ${text}` : `\n${indent}${text}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

const PLAIN = /^[A-Za-z_$](?:[\w$./-]*(?: [\w$./()]+)*)$|^(?:\d+(?:\.\d+)?(?:h|ms|m|s))+$/;
/** Words that YAML 1.1 takes for something else than texts. */
const WORDS = /^(?:y|n|yes|no|on|off)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return stringifyJson(value);
  if (PLAIN.test(value) && !WORDS.test(value) && plainScalar(value).value === value) return value;
  if (/^[ -&(-~]*$/.test(value) && value.includes('"')) return `'${value}'`;
  // What JSON may write as it is and YAML may not: control characters and what some take for line ends.
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
