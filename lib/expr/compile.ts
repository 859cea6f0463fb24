/**
 * Tree → closures.
 *
 * P1 Compiling reports every unknown name and function, not only the first.
 * P2 What is the same for every record is evaluated once: `duration("5m")`, `-(2 * 3)`, the set behind `in ["a", "b"]`.
 *    What fails then is left to fail when evaluated, as `&&` may pass over it.
 *
 * @module
 */
import type { CallNode, IndexNode, MemberNode, Node } from "./ast.ts";
import { type Cell, type Code, constantCode, type Context } from "./code.ts";
import { compileResult, list, map } from "./collections.ts";
import { TYPE_NAMES } from "./convert.ts";
import { type ExpressionProblem, isFailure, Part, problemAt, quoted } from "./errors.ts";
import { call } from "./functions.ts";
import { choice, logic } from "./logic.ts";
import { isMacro, macro } from "./macros.ts";
import type { Missing } from "./members.ts";
import { binary, unary } from "./operators.ts";
import type { Dialect } from "./parse.ts";
import { element, member, presence, variable } from "./paths.ts";
import { nearest } from "./suggest.ts";
import { type Constant, type Kind, kindOf } from "./values.ts";

/** What an expression is compiled against. */
export interface Scope {
  readonly dialect: Dialect;
  readonly variables: ReadonlyMap<string, Kind>;
  /** What a missing member of a variable reads as, by the variable; beats the dialect. */
  readonly absent: ReadonlyMap<string, unknown>;
}

/** A name that an expression reads and that is no variable. */
export interface NameRead {
  /** The variable it is a member of; `undefined` for a name that stands alone. */
  readonly variable: string | undefined;
  readonly name: string;
  /** Index into the text, from 0. */
  readonly offset: number;
}

const FAILS: Missing = { fails: true, value: undefined };
const NULL: Missing = { fails: false, value: null };
const MAX_PROBLEMS = 100;

/** Compiles one expression. */
export class Compiler implements Context {
  readonly dialect: Dialect;
  /** Mistakes found so far. */
  readonly problems: ExpressionProblem[] = [];
  /** Variables read, in the order met. */
  readonly references = new Set<string>();
  /** Names that are no variables and read as null (only in `flows`). */
  readonly unknownNames = new Set<string>();
  /** Members of variables that are read by name, and unknown names, in the order met. */
  readonly names: NameRead[] = [];
  readonly #text: string;
  readonly #scope: Scope;
  readonly #cells = new Map<string, Cell>();

  constructor(text: string, scope: Scope) {
    this.#text = text;
    this.#scope = scope;
    this.dialect = scope.dialect;
  }

  /** The code of a whole expression, whose values have left it. */
  compileResult(node: Node): Code {
    return compileResult(node, this);
  }

  compile(node: Node): Code {
    switch (node.kind) {
      case "literal":
        return literal(node.value);
      case "name":
        return this.#name(node.name, node.nameAt);
      case "member":
        this.#noteMember(node);
        return this.#typeName(node) ?? member(node, this);
      case "index":
        this.#noteMember(node);
        return element(node, this);
      case "call":
        return this.#call(node);
      case "list":
        return list(node, this);
      case "map":
        return map(node, this);
      case "unary":
        return this.#fold(unary(node, this), [node.operand]);
      case "binary":
        return this.#fold(binary(node, this), [node.left, node.right]);
      case "logic":
        return logic(node, this);
      case "choice":
        return choice(node, this);
    }
  }

  #call(node: CallNode): Code {
    if (isMacro(node)) return macro(node, this);
    if (node.name === "has" && node.target === undefined && node.args.length === 1) {
      const asked = node.args[0]!;
      if (asked.kind === "member" || asked.kind === "index") this.#noteMember(asked);
      return presence(node, this);
    }
    return this.#fold(call(node, this), node.target === undefined ? node.args : [node.target, ...node.args]);
  }

  compileWith(name: string, cell: Cell, node: Node): Code {
    const outer = this.#cells.get(name);
    this.#cells.set(name, cell);
    const code = this.compile(node);
    if (outer === undefined) this.#cells.delete(name);
    else this.#cells.set(name, outer);
    return code;
  }

  part(node: Node): Part {
    return new Part(this.#text, node.start, node.end);
  }

  missing(target: Node): Missing {
    if (target.kind === "name" && !this.#cells.has(target.name) && this.#scope.absent.has(target.name)) {
      return { fails: false, value: this.#scope.absent.get(target.name) };
    }
    return this.dialect === "flows" ? NULL : FAILS;
  }

  problem(
    offset: number,
    message: string,
    help: { readonly suggestion?: string | undefined; readonly hint?: string | undefined } = {},
  ): Code {
    if (this.problems.length < MAX_PROBLEMS && !this.problems.some((known) => known.offset === offset)) {
      this.problems.push(problemAt(this.#text, offset, message, help));
    }
    return { run: () => null, kind: "any", inner: "none" };
  }

  #name(name: string, offset: number): Code {
    const cell = this.#cells.get(name);
    if (cell !== undefined) return { run: () => cell.value, kind: cell.kind, inner: cell.inner };
    const kind = this.#scope.variables.get(name);
    if (kind !== undefined) {
      this.references.add(name);
      return variable(name, kind);
    }
    const type = TYPE_NAMES.get(name);
    if (type !== undefined) return constantCode(type, "type", "itself");
    if (this.dialect === "flows") {
      this.unknownNames.add(name);
      this.names.push({ variable: undefined, name, offset });
      return constantCode(null, "null", "none");
    }
    const suggestion = name === "nil"
      ? "null"
      : nearest(name, [...this.#cells.keys(), ...this.#scope.variables.keys()]);
    return this.problem(offset, `there is no ${quoted(name)} here`, {
      suggestion,
      hint: suggestion === undefined ? `there is ${[...this.#scope.variables.keys()].join(", ")}` : undefined,
    });
  }

  /** Notes `variable.name` and `variable["name"]`. */
  #noteMember(node: MemberNode | IndexNode): void {
    const { target } = node;
    if (target.kind !== "name" || this.#cells.has(target.name) || !this.#scope.variables.has(target.name)) {
      return;
    }
    if (node.kind === "member") {
      const offset = this.#text.lastIndexOf(node.name, node.end - node.name.length);
      this.names.push({ variable: target.name, name: node.name, offset });
    } else if (node.key.kind === "literal" && typeof node.key.value === "string") {
      this.names.push({ variable: target.name, name: node.key.value, offset: node.key.start });
    }
  }

  /** `google.protobuf.Timestamp` and its like, which are written like members. */
  #typeName(node: MemberNode): Code | undefined {
    let first: Node = node;
    while (first.kind === "member") first = first.target;
    if (first.kind !== "name" || first.name !== "google" || this.#scope.variables.has("google")) {
      return undefined;
    }
    const type = TYPE_NAMES.get(this.#text.slice(node.start, node.end));
    return type === undefined ? undefined : constantCode(type, "type", "itself");
  }

  /** Evaluates what depends on no record. Only what cannot be changed by its receiver is kept. */
  #fold(code: Code, operands: readonly Node[]): Code {
    if (
      code.constant !== undefined || !operands.every((operand) => isConstant(operand)) ||
      this.problems.length > 0
    ) {
      return code;
    }
    try {
      const value = code.run({});
      const kind = kindOf(value);
      return kind === "list" || kind === "map" || kind === "bytes"
        ? code
        : constantCode(value, kind, code.inner);
    } catch (error) {
      if (!isFailure(error)) throw error;
      return code;
    }
  }
}

function literal(value: Constant): Code {
  const code = constantCode(
    value,
    kindOf(value),
    typeof value === "object" && value !== null ? "itself" : "none",
  );
  return value instanceof Uint8Array ? { ...code, run: () => value.slice(), inner: "none" } : code;
}

/** Whether a node is made of literals alone. */
function isConstant(node: Node): boolean {
  switch (node.kind) {
    case "literal":
      return true;
    case "unary":
      return isConstant(node.operand);
    case "binary":
      return isConstant(node.left) && isConstant(node.right);
    case "call":
      return node.args.every(isConstant) && (node.target === undefined || isConstant(node.target));
    case "list":
      return node.items.every(isConstant);
    default:
      return false;
  }
}
