/**
 * What an unquoted YAML scalar stands for: the core schema of YAML 1.2, with numbers that lose no digit.
 *
 * @module
 */
import { exactNumber } from "../json.ts";
import type { ScalarValue } from "./tree.ts";

/** Longest number that is read as one, in characters. */
const LONGEST_NUMBER = 1000;

/** The value of a plain scalar, or why it has none. */
export function plainScalar(
  text: string,
): {
  readonly value: ScalarValue;
  readonly problem?: { readonly code: string; readonly message: string; readonly hint: string };
} {
  switch (text) {
    case "":
    case "~":
    case "null":
    case "Null":
    case "NULL":
      return { value: null };
    case "true":
    case "True":
    case "TRUE":
      return { value: true };
    case "false":
    case "False":
    case "FALSE":
      return { value: false };
  }
  const first = text.charCodeAt(0);
  if (first > 57 || first < 43) return { value: text }; // no sign, point or digit
  if (/^[-+]?(?:\.\d+|\d+\.?\d*)(?:[eE][-+]?\d+)?$/.test(text)) return decimal(text);
  if (/^0o[0-7]+$|^0x[0-9a-fA-F]+$/.test(text)) return based(text);
  if (/^[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)$/.test(text)) {
    return refuse(
      "not_json",
      "infinity and NaN are no JSON values",
      "put it in quotes if it is meant as text",
    );
  }
  return { value: text };
}

function decimal(text: string) {
  if (text.length > LONGEST_NUMBER) return tooLong();
  const [, sign, whole, fraction = "", exponent = ""] = /^([-+]?)(\d*)(?:\.(\d*))?([eE][-+]?\d+)?$/.exec(
    text,
  )!;
  if (/^0\d/.test(whole!)) {
    const hint = "quote it if it is a text such as a code, or drop the zero";
    return refuse("leading_zero", "a number does not start with a zero", hint);
  }
  const json = (sign === "-" ? "-" : "") + (whole === "" ? "0" : whole) +
    (fraction === "" ? "" : `.${fraction}`) +
    exponent;
  return { value: exactNumber(json) };
}

function based(text: string) {
  return text.length > LONGEST_NUMBER ? tooLong() : { value: exactNumber(String(BigInt(text))) };
}

function tooLong() {
  return refuse(
    "long_number",
    `a number has at most ${LONGEST_NUMBER} characters`,
    "quote it if it is meant as text",
  );
}

function refuse(code: string, message: string, hint: string) {
  return { value: null, problem: { code, message, hint } };
}
