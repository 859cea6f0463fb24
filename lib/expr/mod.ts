/**
 * The expression language of streams and flows: CEL, compiled to closures.
 *
 * ```ts
 * const big = compileExpression("value.amount >= 200", { dialect: "streams", variables: ["value"] });
 * big.evaluate({ value: { amount: 250 } }); // true
 * ```
 *
 * @module
 */
import { Compiler, type NameRead } from "./compile.ts";
import { ExpressionError, failure, Part } from "./errors.ts";
import { type Dialect, parseExpression } from "./parse.ts";
import { type Kind, kindOf } from "./values.ts";

export type { NameRead } from "./compile.ts";
export { ExpressionError, type ExpressionProblem } from "./errors.ts";
export type { Dialect } from "./parse.ts";
export type { Kind } from "./values.ts";
export { nearest } from "./suggest.ts";

/** An object with a member for each variable. What is not read is not touched, so members may be getters. */
export type Activation = object;

/** What an expression is compiled against. */
export interface ExpressionOptions {
  /**
   * `streams`: a missing member fails, an unknown name is a mistake.
   * `flows`: missing names, members and members of null read as null, and packtrail's spellings are read too.
   */
  readonly dialect: Dialect;
  /**
   * The variables, or their kinds by name (`any` where it is not fixed). A variable of kind `timestamp` is given as
   * milliseconds since the epoch.
   */
  readonly variables: readonly string[] | Readonly<Record<string, Kind>>;
  /** What a missing member of a variable reads as, by the variable: `{ visits: 0 }` makes `visits.x` 0. */
  readonly absent?: Readonly<Record<string, unknown>>;
}

/** A compiled expression. Its functions need no `this`, keep nothing between calls, and must not be called from within. */
export interface Expression {
  /** As it was given. */
  readonly text: string;
  /** Variables the expression reads, in the order met. */
  readonly references: readonly string[];
  /** Names it reads that are no variables, and so are null (`flows` only). */
  readonly unknownNames: readonly string[];
  /** Members of variables it reads by name, and unknown names, in the order met: for who knows which there are. */
  readonly names: readonly NameRead[];
  /**
   * Kind of the result as far as it is known without a record: `any` may be anything, `number` is int, uint or double.
   * A timestamp, a duration or a type leaves the expression as text.
   */
  readonly kind: Kind;
  /**
   * The value for one record, as JSON has it: timestamps are RFC 3339 text with at least milliseconds, durations text
   * such as `90s`, ints beyond 2^53 `bigint`. Lists and maps the expression makes are new each time; what it only
   * passes on is the record's own.
   *
   * @throws {MailerError} `expression_failed`, naming the part of the expression.
   */
  readonly evaluate: (activation: Activation) => unknown;
  /**
   * The value as a condition.
   *
   * @throws {MailerError} `expression_failed`, also where the value is no bool.
   */
  readonly test: (activation: Activation) => boolean;
}

/**
 * Compiles an expression.
 *
 * @throws {ExpressionError} `invalid_expression` with all unknown names and functions, or the first mistake of grammar.
 */
export function compileExpression(text: string, options: ExpressionOptions): Expression {
  const { dialect, variables } = options;
  const compiler = new Compiler(text, {
    dialect,
    variables: new Map<string, Kind>(
      isList(variables) ? variables.map((name) => [name, "any"]) : Object.entries(variables),
    ),
    absent: new Map(Object.entries(options.absent ?? {})),
  });
  const { run, kind } = compiler.compileResult(parseExpression(text, dialect));
  if (compiler.problems.length > 0) {
    throw new ExpressionError(compiler.problems.toSorted((a, b) => a.offset - b.offset));
  }
  const evaluate = run as Expression["evaluate"];
  const whole = new Part(text, 0, text.length);
  const test = (activation: Activation): boolean => {
    const value = evaluate(activation);
    if (typeof value !== "boolean") throw failure(`expected a bool, ${whole} is ${kindOf(value)}`);
    return value;
  };
  return {
    text,
    references: [...compiler.references],
    unknownNames: [...compiler.unknownNames],
    names: compiler.names,
    kind,
    evaluate,
    test: kind === "bool" ? evaluate as Expression["test"] : test,
  };
}

function isList(variables: ExpressionOptions["variables"]): variables is readonly string[] {
  return Array.isArray(variables);
}
