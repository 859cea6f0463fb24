/**
 * The tree of an expression. Every node knows the piece of text it stands for.
 *
 * @module
 */
import type { Constant } from "./values.ts";

/** `[start, end)` in the text, brackets around it included; `depth` counts the nodes on the longest way down. */
interface Place {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/** Operators between two operands, without the logical ones. */
export type BinaryOperator = "+" | "-" | "*" | "/" | "%" | "<" | "<=" | ">" | ">=" | "==" | "!=" | "in";

export type LiteralNode = Place & { readonly kind: "literal"; readonly value: Constant };
/** A variable. */
export type NameNode = Place & { readonly kind: "name"; readonly name: string; readonly nameAt: number };
/** `target.name` */
export type MemberNode = Place & {
  readonly kind: "member";
  readonly target: Node;
  readonly name: string;
};
/** `target[key]` */
export type IndexNode = Place & { readonly kind: "index"; readonly target: Node; readonly key: Node };
/** `name(…)`, or `target.name(…)`; `nameAt` is where the name stands. */
export type CallNode = Place & {
  readonly kind: "call";
  readonly target: Node | undefined;
  readonly name: string;
  readonly nameAt: number;
  readonly args: readonly Node[];
};
export type ListNode = Place & { readonly kind: "list"; readonly items: readonly Node[] };
export type MapNode = Place & {
  readonly kind: "map";
  readonly entries: readonly (readonly [key: Node, value: Node])[];
};
export type UnaryNode = Place & {
  readonly kind: "unary";
  readonly operator: "!" | "-";
  readonly operand: Node;
};
export type BinaryNode = Place & {
  readonly kind: "binary";
  readonly operator: BinaryOperator;
  readonly left: Node;
  readonly right: Node;
};
/** `a && b && …` or `a || b || …`, however many. */
export type LogicNode = Place & {
  readonly kind: "logic";
  readonly operator: "&&" | "||";
  readonly terms: readonly Node[];
};
/** `test ? then : otherwise` */
export type ChoiceNode = Place & {
  readonly kind: "choice";
  readonly test: Node;
  readonly then: Node;
  readonly otherwise: Node;
};

export type Node =
  | LiteralNode
  | NameNode
  | MemberNode
  | IndexNode
  | CallNode
  | ListNode
  | MapNode
  | UnaryNode
  | BinaryNode
  | LogicNode
  | ChoiceNode;
