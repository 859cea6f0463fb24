/**
 * The cells of a table that are in memory, in two generations: what is asked for is young; the old generation goes as a whole, but
 * for what must stay. So nothing is moved or marked when a cell is found, and forgetting thousands costs next to nothing.
 *
 * @module
 */
import type { KeyIdentity } from "../../key.ts";
import type { Cell } from "./cell.ts";

/** Cells by the identity of their key. */
export class CellMap<V> {
  #young = new Map<KeyIdentity, Cell<V>>();
  #old = new Map<KeyIdentity, Cell<V>>();
  #hand: MapIterator<Cell<V>> = this.#young.values();
  #isHandYoung = true;

  get size(): number {
    return this.#young.size + this.#old.size;
  }
  /** Cells that were put in or asked for since the last turn. */
  get young(): number {
    return this.#young.size;
  }

  get(identity: KeyIdentity): Cell<V> | undefined {
    const cell = this.#young.get(identity);
    return cell !== undefined || this.#old.size === 0 ? cell : this.#rejuvenated(identity);
  }

  #rejuvenated(identity: KeyIdentity): Cell<V> | undefined {
    const cell = this.#old.get(identity);
    if (cell === undefined) return undefined;
    this.#old.delete(identity);
    this.#young.set(identity, cell);
    return cell;
  }

  has(identity: KeyIdentity): boolean {
    return this.#young.has(identity) || this.#old.has(identity);
  }

  /** Puts in a cell whose key has none. */
  add(cell: Cell<V>): void {
    this.#young.set(cell.identity, cell);
  }

  delete(identity: KeyIdentity): void {
    if (!this.#young.delete(identity)) this.#old.delete(identity);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }

  /** All cells: the old ones, then the young ones, each in the order in which they came to be so. */
  values(): Iterable<Cell<V>> {
    return this.#old.size === 0 ? this.#young.values() : [...this.#old.values(), ...this.#young.values()];
  }

  /** Forgets the old generation, but for what must stay; the young one is old now. @returns How many it forgot. */
  turn(mustStay: (cell: Cell<V>) => boolean): number {
    const leaving = this.#old;
    this.#old = this.#young;
    this.#young = new Map();
    for (const cell of leaving.values()) if (mustStay(cell)) this.#young.set(cell.identity, cell);
    this.#hand = this.#young.values();
    this.#isHandYoung = true;
    return leaving.size - this.#young.size;
  }

  /** Goes round over all cells, one a call; undefined where a round ends. What it returns may be deleted. */
  pass(): Cell<V> | undefined {
    const next = this.#hand.next();
    if (!next.done) return next.value;
    this.#isHandYoung = !this.#isHandYoung;
    this.#hand = (this.#isHandYoung ? this.#young : this.#old).values();
    return undefined;
  }
}
