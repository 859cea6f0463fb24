/**
 * Text of an expression → tree.
 *
 * The parser is our own, not one of a CEL package, for three reasons: none of them reads the spellings of the `flows`
 * dialect (`and`, `not in`, infix `matches`), the one looked at closest takes bytes literals for Latin-1 and binds `==`
 * looser than `<`, and every depth here is bounded, so that no text can overflow the stack.
 *
 * P1 The language is CEL without message literals. `flows` adds `and or not nil`, `not in`, `?.`, infix
 *    `matches contains startsWith endsWith`, text between backticks, and bare names as map keys (`{a: 1}`).
 * P2 No node is deeper than {@link MAX_DEPTH}; `&&` and `||` chains are one node, of any length.
 *
 * @module
 */
import type { BinaryOperator, Node } from "./ast.ts";
import { ExpressionError, problemAt } from "./errors.ts";
import { type Token, tokenize } from "./token.ts";
import { type Constant, fitsInt64, shrink, toDouble, Uint } from "./values.ts";

/** Which spellings are read, and whether what is missing fails (`streams`) or reads as null (`flows`). */
export type Dialect = "streams" | "flows";

/** The deepest nesting of an expression. */
export const MAX_DEPTH = 250;

const PRECEDENCE: Readonly<Record<string, number>> = {
  "||": 1,
  "&&": 2,
  "<": 3,
  "<=": 3,
  ">": 3,
  ">=": 3,
  "==": 3,
  "!=": 3,
  in: 3,
  "not in": 3,
  matches: 3,
  contains: 3,
  startsWith: 3,
  endsWith: 3,
  "+": 4,
  "-": 4,
  "*": 5,
  "/": 5,
  "%": 5,
};
const FLOW_WORDS: ReadonlyMap<string, string> = new Map([["and", "&&"], ["or", "||"]]);
const FLOW_METHODS = new Set(["matches", "contains", "startsWith", "endsWith"]);
const KEYWORDS = new Set(["true", "false", "null", "in"]);
const RESERVED = new Set(
  ("as break const continue else for function if import let loop package namespace return var void while")
    .split(" "),
);

/**
 * Tree of a text.
 *
 * @throws {ExpressionError} at the first place that does not fit the grammar.
 */
export function parseExpression(text: string, dialect: Dialect): Node {
  return new Parser(text, dialect).parse();
}

/** A node without the fields that {@link Parser.node} fills in. */
type Bare<N> = N extends Node ? Omit<N, "start" | "end" | "depth"> : never;

class Parser {
  readonly #text: string;
  readonly #flows: boolean;
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;

  constructor(text: string, dialect: Dialect) {
    this.#text = text;
    this.#flows = dialect === "flows";
    this.#tokens = tokenize(text);
  }

  parse(): Node {
    if (this.#tokens.length === 1) this.#fail(0, "the expression is empty");
    const node = this.#expression();
    if (this.#at < this.#tokens.length - 1) this.#unexpected("an operator or the end");
    return node;
  }

  get #token(): Token {
    return this.#tokens[this.#at]!;
  }
  #isOperator(text: string): boolean {
    const token = this.#token;
    return token.kind === "operator" && token.text === text;
  }
  #accept(text: string): boolean {
    if (!this.#isOperator(text)) return false;
    this.#at++;
    return true;
  }
  /** The end of the token that has to come now. */
  #expect(text: string, opened?: number): number {
    const { end } = this.#token;
    if (!this.#accept(text)) {
      this.#unexpected(
        opened === undefined
          ? `"${text}"`
          : `"${text}" for the "${this.#text[opened]}" at column ${problemAt(this.#text, opened, "").column}`,
      );
    }
    return end;
  }

  #expression(): Node {
    this.#enter();
    const test = this.#binary(1);
    if (!this.#accept("?")) return this.#leave(test);
    const then = this.#expression();
    this.#expect(":");
    const otherwise = this.#expression();
    return this.#leave(
      this.#node({ kind: "choice", test, then, otherwise }, test.start, otherwise.end, [
        test,
        then,
        otherwise,
      ]),
    );
  }

  /** Operators that bind at least as tightly as `least`, and what stands between them. */
  #binary(least: number): Node {
    let left = this.#unary();
    for (let operator = this.#operator(); operator !== undefined; operator = this.#operator()) {
      const precedence = PRECEDENCE[operator]!;
      if (precedence < least) break;
      this.#at += operator === "not in" ? 2 : 1;
      if (operator === "&&" || operator === "||") left = this.#logic(operator, left, precedence);
      else left = this.#infix(operator, left, this.#binary(precedence + 1));
    }
    return left;
  }

  /** The infix operator that stands here, in CEL's spelling. */
  #operator(): string | undefined {
    const token = this.#token;
    if (token.kind === "operator") return Object.hasOwn(PRECEDENCE, token.text) ? token.text : undefined;
    if (token.kind !== "name") return undefined;
    if (token.text === "in") return "in";
    if (!this.#flows) return undefined;
    if (FLOW_METHODS.has(token.text)) return token.text;
    const word = FLOW_WORDS.get(token.text);
    if (word !== undefined) return word;
    const next = this.#tokens[this.#at + 1];
    return token.text === "not" && next?.kind === "name" && next.text === "in" ? "not in" : undefined;
  }

  #logic(operator: "&&" | "||", first: Node, precedence: number): Node {
    const terms = [first];
    do terms.push(this.#binary(precedence + 1)); while (this.#operator() === operator && ++this.#at);
    return this.#node({ kind: "logic", operator, terms }, first.start, terms.at(-1)!.end, terms);
  }

  #infix(operator: string, left: Node, right: Node): Node {
    const { start } = left, { end } = right, children = [left, right];
    if (FLOW_METHODS.has(operator)) {
      const call = { kind: "call", target: left, name: operator, nameAt: start, args: [right] } as const;
      return this.#node(call, start, end, children);
    }
    if (operator === "not in") {
      const found = this.#node({ kind: "binary", operator: "in", left, right }, start, end, children);
      return this.#node({ kind: "unary", operator: "!", operand: found }, start, end, [found]);
    }
    return this.#node(
      { kind: "binary", operator: operator as BinaryOperator, left, right },
      start,
      end,
      children,
    );
  }

  #unary(): Node {
    const operators: { readonly text: "!" | "-"; readonly start: number }[] = [];
    while (true) {
      const token = this.#token;
      if (token.kind === "operator" && (token.text === "!" || token.text === "-")) {
        operators.push({ text: token.text, start: token.start });
      } else if (this.#flows && token.kind === "name" && token.text === "not") {
        operators.push({ text: "!", start: token.start });
      } else break;
      this.#at++;
    }
    // A minus right in front of an int belongs to it: -9223372036854775808 is an int, 9223372036854775808 is none.
    let node: Node;
    if (operators.at(-1)?.text === "-" && this.#token.kind === "int") {
      node = this.#postfix(this.#int(operators.pop()!.start));
    } else node = this.#postfix(this.#primary());
    for (const { text: operator, start } of operators.reverse()) {
      node = this.#node({ kind: "unary", operator, operand: node }, start, node.end, [node]);
    }
    return node;
  }

  #postfix(first: Node): Node {
    let node = first;
    while (true) {
      const { start: opened } = this.#token;
      if (this.#accept(".") || (this.#flows && this.#accept("?."))) node = this.#member(node);
      else if (this.#accept("[")) {
        const key = this.#expression();
        const end = this.#expect("]", opened);
        node = this.#node({ kind: "index", target: node, key }, node.start, end, [node, key]);
      } else if (this.#isOperator("{") && (node.kind === "name" || node.kind === "member")) {
        this.#fail(
          opened,
          `message literals such as ${this.#text.slice(node.start, node.end)}{…} are not supported`,
        );
      } else return node;
    }
  }

  #member(target: Node): Node {
    const token = this.#token;
    if (token.kind !== "name" && token.kind !== "quoted") this.#unexpected("the name of a field");
    const { text: name, start: nameAt, end } = token as Token & { readonly text: string };
    if (KEYWORDS.has(name) && token.kind === "name" && !this.#flows) {
      this.#fail(
        nameAt,
        `"${name}" is a word of the language`,
        undefined,
        `write ["${name}"] for a field of that name`,
      );
    }
    this.#at++;
    const opened = this.#token.start;
    if (token.kind === "name" && this.#accept("(")) {
      const args = this.#items(")", opened);
      const call = { kind: "call", target, name, nameAt, args: args.nodes } as const;
      return this.#node(call, target.start, args.end, [target, ...args.nodes]);
    }
    return this.#node({ kind: "member", target, name }, target.start, end, [target]);
  }

  #primary(): Node {
    const token = this.#token;
    const { start } = token;
    switch (token.kind) {
      case "int":
        return this.#int(undefined);
      case "uint":
        if (token.magnitude >= 2n ** 64n) this.#fail(start, `${token.magnitude}u does not fit 64 bits`);
        return this.#literal(new Uint(token.magnitude));
      case "double":
        return this.#literal(toDouble(token.number));
      case "text":
        return this.#literal(token.text);
      case "bytes":
        return this.#literal(token.bytes);
      case "quoted":
        if (!this.#flows) this.#unexpected("a value");
        return this.#literal(token.text);
      case "name":
        return this.#name(token.text);
      case "operator":
        this.#at++;
        switch (token.text) {
          case "(": {
            const inner = this.#expression();
            const end = this.#expect(")", start);
            return { ...inner, start, end };
          }
          case "[": {
            const items = this.#items("]", start);
            return this.#node({ kind: "list", items: items.nodes }, start, items.end, items.nodes);
          }
          case "{":
            return this.#map(start);
          case ".":
            if (this.#token.kind === "name") {
              return this.#name((this.#token as Token & { text: string }).text);
            }
        }
        this.#at--;
    }
    return this.#unexpected("a value");
  }

  #literal(value: Constant): Node {
    const { start, end } = this.#token;
    this.#at++;
    return this.#node({ kind: "literal", value }, start, end, []);
  }

  #int(minusAt: number | undefined): Node {
    const token = this.#token as Token & { readonly magnitude: bigint };
    const value = minusAt === undefined ? token.magnitude : -token.magnitude;
    const start = minusAt ?? token.start;
    if (!fitsInt64(value)) this.#fail(start, `${value} does not fit 64 bits`);
    this.#at++;
    return this.#node({ kind: "literal", value: shrink(value) }, start, token.end, []);
  }

  #name(name: string): Node {
    const { start, end } = this.#token;
    if (name === "true" || name === "false") return this.#literal(name === "true");
    if (name === "null" || (this.#flows && name === "nil")) return this.#literal(null);
    if (KEYWORDS.has(name)) this.#unexpected("a value");
    if (RESERVED.has(name)) this.#fail(start, `"${name}" is a reserved word`);
    this.#at++;
    const opened = this.#token.start;
    if (!this.#accept("(")) return this.#node({ kind: "name", name, nameAt: start }, start, end, []);
    const args = this.#items(")", opened);
    const call = { kind: "call", target: undefined, name, nameAt: start, args: args.nodes } as const;
    return this.#node(call, start, args.end, args.nodes);
  }

  /** Expressions up to the bracket that closes them; a list may end in a comma. */
  #items(close: string, opened: number): { readonly nodes: readonly Node[]; readonly end: number } {
    const nodes: Node[] = [];
    while (!this.#isOperator(close)) {
      nodes.push(this.#expression());
      if (!this.#accept(",") || (close === ")" && this.#isOperator(close))) break;
    }
    return { nodes, end: this.#expect(close, opened) };
  }

  #map(start: number): Node {
    const entries: (readonly [Node, Node])[] = [];
    while (!this.#isOperator("}")) {
      const key = this.#mapKey();
      this.#expect(":");
      entries.push([key, this.#expression()]);
      if (!this.#accept(",")) break;
    }
    return this.#node({ kind: "map", entries }, start, this.#expect("}", start), entries.flat());
  }

  #mapKey(): Node {
    const token = this.#token, next = this.#tokens[this.#at + 1];
    const bare = this.#flows && token.kind === "name" && next?.kind === "operator" && next.text === ":";
    return bare && !KEYWORDS.has(token.text) && token.text !== "nil"
      ? this.#literal(token.text)
      : this.#expression();
  }

  #node(bare: Bare<Node>, start: number, end: number, children: readonly Node[]): Node {
    let below = 0;
    for (const child of children) if (child.depth > below) below = child.depth;
    if (below >= MAX_DEPTH) this.#tooDeep(start);
    return { ...bare, start, end, depth: below + 1 } as Node;
  }

  #enter(): void {
    if (++this.#nesting > MAX_DEPTH) this.#tooDeep(this.#token.start);
  }
  #leave(node: Node): Node {
    this.#nesting--;
    return node;
  }
  #tooDeep(offset: number): never {
    return this.#fail(offset, `the expression is nested deeper than ${MAX_DEPTH} levels`);
  }

  #unexpected(wanted: string): never {
    const token = this.#token;
    if (token.kind === "end") {
      return this.#fail(token.start, `the expression ends where ${wanted} should follow`);
    }
    const found = this.#text.slice(token.start, Math.min(token.end, token.start + 40));
    const comma = token.kind === "operator" && token.text === ",";
    return this.#fail(
      token.start,
      `expected ${wanted}, found ${comma ? '","' : found}`,
      this.#otherSpelling(),
    );
  }
  /** What stands here in the spelling of streams, where it has that of flows. */
  #otherSpelling(): string | undefined {
    if (this.#flows) return undefined;
    const token = this.#token, before = this.#tokens[this.#at - 1];
    if (before?.kind === "name" && before.text === "not") return "!";
    return token.kind === "name" ? FLOW_WORDS.get(token.text) : undefined;
  }
  #fail(offset: number, message: string, suggestion?: string, hint?: string): never {
    throw new ExpressionError([problemAt(this.#text, offset, message, { suggestion, hint })]);
  }
}
