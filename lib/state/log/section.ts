/**
 * What a manifest says of the keyed state of one operator. Plain data: sealed with the manifest it is part of.
 *
 * @module
 */
import type { RunRef } from "./run.ts";

/** A part of a table: what the key groups `from` … `to` − 1 of it hold lies in the runs under one instance number. */
export interface Piece {
  readonly instance: number;
  readonly from: number;
  readonly to: number;
}

/** A piece as it is stored. */
export interface StoredPiece extends Piece {
  /** Number of keys, of a queue: of entries. */
  readonly keys: number;
  /** Of a queue: what is in front of it has been taken out. −Infinity for a table. */
  readonly floor: number;
}

/** A table or queue. */
export interface StoredTable {
  readonly space: string;
  readonly kind: "table" | "queue";
  readonly order: number;
  readonly pieces: readonly StoredPiece[];
}

/** The state of an operator at a checkpoint. */
export interface Section {
  readonly version: 1;
  /** Number of key groups, fixed for the life of the state. */
  readonly maxKeyGroups: number;
  /** Instance numbers from here on are unused. */
  readonly nextInstance: number;
  /** The newest first. */
  readonly runs: readonly RunRef[];
  readonly tables: readonly StoredTable[];
}

/** How many keys are counted for the groups `from` … `to` − 1 of a piece, if they are spread evenly. */
export function shareOf(piece: StoredPiece, from: number, to: number): number {
  const groups = Math.min(to, piece.to) - Math.max(from, piece.from);
  return groups <= 0 ? 0 : piece.keys * groups / (piece.to - piece.from);
}

/** The tables of all partitions: the pieces of one table stand together. */
export function joinTables(tables: readonly StoredTable[]): StoredTable[] {
  const joined = new Map<string, StoredTable & { readonly pieces: StoredPiece[] }>();
  for (const { space, kind, order, pieces } of tables) {
    const name = `${kind} ${order} ${space}`;
    const known = joined.get(name);
    if (known === undefined) joined.set(name, { space, kind, order, pieces: [...pieces] });
    else known.pieces.push(...pieces);
  }
  return [...joined.values()];
}
