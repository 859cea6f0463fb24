/**
 * Operators between values, compiled: arithmetic, comparison, `in`, and what stands in front of one.
 *
 * O1 Two plain numbers are compared, added and so on without leaving the closure or one call; all else goes to the
 *    functions of `arithmetic.ts` and `compare.ts`.
 * O2 A constant on the right makes a closure of its own for comparisons and `in`.
 *
 * @module
 */
import type { BinaryNode, UnaryNode } from "./ast.ts";
import { add, divide, multiply, negate, PLAIN, remainder, subtract } from "./arithmetic.ts";
import type { Code, Context, Run } from "./code.ts";
import { equals, order } from "./compare.ts";
import { failure, type Part } from "./errors.ts";
import { isKey, type Missing } from "./members.ts";
import { type Inner, leave } from "./result.ts";
import { type Kind, kindOf } from "./values.ts";

/** `a + b`, `a < b`, `a in b` … */
export function binary(node: BinaryNode, context: Context): Code {
  const left = context.compile(node.left), right = context.compile(node.right);
  const part = context.part(node);
  switch (node.operator) {
    case "+":
    case "-":
    case "*":
    case "/":
    case "%":
      return arithmetic(node.operator, left, right, part);
    case "==":
      return bool(equality(left, right));
    case "!=":
      return bool(inequality(left, right));
    case "in":
      return bool(membership(left, right, context.missing(node.right), part));
    default:
      return bool(comparison(node.operator, left, right, part));
  }
}

/** `!a`, `-a` */
export function unary(node: UnaryNode, context: Context): Code {
  const { run, kind } = context.compile(node.operand);
  const part = context.part(node), operandPart = context.part(node.operand);
  if (node.operator === "-") {
    return {
      run: (slots) => negate(run(slots), part),
      kind: kind === "any" ? "number" : kind,
      inner: "itself",
    };
  }
  return bool((slots) => {
    const value = run(slots);
    if (value === true) return false;
    if (value === false) return true;
    throw failure(`! takes a bool, ${operandPart} is ${kindOf(value)}`);
  });
}

function bool(run: Run): Code {
  return { run, kind: "bool", inner: "none" };
}

function arithmetic(operator: "+" | "-" | "*" | "/" | "%", left: Code, right: Code, part: Part): Code {
  const a = left.run, b = right.run;
  const kind = kindOfArithmetic(operator, left.kind, right.kind);
  const inner: Inner = left.inner === "deep" || right.inner === "deep"
    ? "deep"
    : kind === "text"
    ? "none"
    : "itself";
  const code = (run: Run, leaving?: Run): Code =>
    leaving === undefined || inner !== "itself" ? { run, kind, inner } : { run, kind, inner, leaving };
  // Each operator has closures of its own, so that the call in them always has the same target.
  switch (operator) {
    case "+":
      return code((slots) => add(a(slots), b(slots), part), (slots) => {
        const x = a(slots), y = b(slots);
        const sum = typeof x === "number" && typeof y === "number" ? PLAIN["+"](x, y) : undefined;
        return sum ?? leave(add(x, y, part));
      });
    case "-":
      return code((slots) => subtract(a(slots), b(slots), part), (slots) => {
        const x = a(slots), y = b(slots);
        const difference = typeof x === "number" && typeof y === "number" ? PLAIN["-"](x, y) : undefined;
        return difference ?? leave(subtract(x, y, part));
      });
    case "*":
      return code((slots) => multiply(a(slots), b(slots), part), (slots) => {
        const x = a(slots), y = b(slots);
        const product = typeof x === "number" && typeof y === "number" ? PLAIN["*"](x, y) : undefined;
        return product ?? leave(multiply(x, y, part));
      });
    case "/":
      return code((slots) => divide(a(slots), b(slots), part), (slots) => {
        const x = a(slots), y = b(slots);
        const quotient = typeof x === "number" && typeof y === "number" ? PLAIN["/"](x, y) : undefined;
        return quotient ?? leave(divide(x, y, part));
      });
    case "%":
      return code((slots) => remainder(a(slots), b(slots), part));
  }
}

const NUMBERS: ReadonlySet<Kind> = new Set(["int", "uint", "double", "number"]);

function kindOfArithmetic(operator: string, x: Kind, y: Kind): Kind {
  const other = x === "any" ? y : x;
  const numbers = NUMBERS.has(x) && NUMBERS.has(y);
  if (numbers && (x === "double" || y === "double")) return "double";
  if (x === "timestamp" && y === "timestamp") return "duration";
  if ((x === "timestamp" && y === "duration") || (x === "duration" && y === "timestamp")) return "timestamp";
  if (x === y && operator !== "/") return x;
  if (numbers || operator === "*" || operator === "/" || operator === "%") return "number";
  if (x === "any" || y === "any") {
    if (NUMBERS.has(other)) return "number";
    return operator === "+" && (other === "text" || other === "list" || other === "bytes") ? other : "any";
  }
  return "any";
}

function comparison(operator: string, left: Code, right: Code, part: Part): Run {
  const a = left.run, b = right.run, limit = right.constant?.value;
  const fixed = typeof limit === "number" ? limit : undefined;
  switch (operator) {
    case "<":
      return fixed === undefined
        ? (slots) => {
          const x = a(slots), y = b(slots);
          return typeof x === "number" && typeof y === "number" ? x < y : order(x, y, part) < 0;
        }
        : (slots) => {
          const x = a(slots);
          return typeof x === "number" ? x < fixed : order(x, fixed, part) < 0;
        };
    case "<=":
      return fixed === undefined
        ? (slots) => {
          const x = a(slots), y = b(slots);
          return typeof x === "number" && typeof y === "number" ? x <= y : order(x, y, part) <= 0;
        }
        : (slots) => {
          const x = a(slots);
          return typeof x === "number" ? x <= fixed : order(x, fixed, part) <= 0;
        };
    case ">":
      return fixed === undefined
        ? (slots) => {
          const x = a(slots), y = b(slots);
          return typeof x === "number" && typeof y === "number" ? x > y : order(x, y, part) > 0;
        }
        : (slots) => {
          const x = a(slots);
          return typeof x === "number" ? x > fixed : order(x, fixed, part) > 0;
        };
    default:
      return fixed === undefined
        ? (slots) => {
          const x = a(slots), y = b(slots);
          return typeof x === "number" && typeof y === "number" ? x >= y : order(x, y, part) >= 0;
        }
        : (slots) => {
          const x = a(slots);
          return typeof x === "number" ? x >= fixed : order(x, fixed, part) >= 0;
        };
  }
}

/** A constant that only its own like can equal, so that `===` is all of equality. */
function isSimple(code: Code): boolean {
  const value = code.constant?.value;
  return typeof value === "string" || typeof value === "boolean" || code.constant?.value === null;
}

function equality(left: Code, right: Code): Run {
  const a = left.run, b = right.run;
  if (isSimple(right)) {
    const wanted = right.constant!.value;
    return (slots) => a(slots) === wanted;
  }
  return (slots) => {
    const x = a(slots), y = b(slots);
    return x === y ||
      (typeof x === "string" || typeof x === "number" && typeof y === "number" ? false : equals(x, y));
  };
}

function inequality(left: Code, right: Code): Run {
  const equal = equality(left, right);
  if (!isSimple(right)) return (slots) => !equal(slots);
  const a = left.run, wanted = right.constant!.value;
  return (slots) => a(slots) !== wanted;
}

function membership(left: Code, right: Code, missing: Missing, part: Part): Run {
  const x = left.run, container = right.run, list = right.constant?.value;
  if (Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === "string")) {
    const texts = new Set<unknown>(list);
    return (slots) => texts.has(x(slots));
  }
  if (Array.isArray(list)) return (slots) => includes(list, x(slots));
  return (slots) => {
    const wanted = x(slots), found = container(slots);
    return Array.isArray(found) ? includes(found, wanted) : isKey(wanted, found, missing, part);
  };
}

function includes(list: readonly unknown[], wanted: unknown): boolean {
  for (const item of list) {
    if (equals(item, wanted)) return true;
  }
  return false;
}
