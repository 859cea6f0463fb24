/**
 * A document as a tree in which every key and value knows its place.
 *
 * @module
 */
import type { Decimal } from "../json.ts";
import type { Place } from "./problem.ts";

/** What a scalar stands for. */
export type ScalarValue = string | number | bigint | Decimal | boolean | null;

/** How a scalar is written. */
export type ScalarStyle = "plain" | "single" | "double" | "literal" | "folded";

/** A text, number, boolean or null. */
export interface ScalarNode {
  readonly kind: "scalar";
  readonly place: Place;
  readonly value: ScalarValue;
  readonly style: ScalarStyle;
  /** As it stands in the document, quotes and all. */
  readonly raw: string;
  /** Set where `${…}` stood in the text: the text before, and what was put in for each name. */
  readonly reference?: TextReference;
}

/** What became of the `${…}` of a text. */
export interface TextReference {
  /** The text as it was written. */
  readonly written: string;
  /** Values that were put in. */
  readonly values: readonly string[];
  /** Whether a name had no value, so that the text means nothing yet. */
  readonly unset: boolean;
}

/** A list. */
export interface ListNode {
  readonly kind: "list";
  readonly place: Place;
  readonly items: readonly DocumentNode[];
}

/** A key with its value. */
export interface MapEntry {
  readonly key: string;
  readonly place: Place;
  readonly value: DocumentNode;
}

/** A block of keys, each at most once. */
export interface MapNode {
  readonly kind: "map";
  readonly place: Place;
  readonly entries: readonly MapEntry[];
}

/** Any value of a document. */
export type DocumentNode = ScalarNode | ListNode | MapNode;
