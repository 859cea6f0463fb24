/**
 * What the benchmark says to people and programs: lines on stdout.
 *
 * @module
 */
import { writeSync } from "node:fs";

/** A column of a table: its head, and how wide it is. */
export type Column = readonly [head: string, width: number];

/** One line on stdout. */
export function print(line: string): void {
  writeSync(1, `${line}\n`);
}

/** The first row of a table, with a rule under it. */
export function printHead(columns: readonly Column[]): void {
  printRow(columns, columns.map(([head]) => head));
  print(columns.map(([, width]) => "─".repeat(width)).join("──"));
}

/** A row: the first cell to the left, the others to the right. */
export function printRow(columns: readonly Column[], cells: readonly string[]): void {
  print(
    cells.map((cell, i) => i === 0 ? cell.padEnd(columns[i]![1]) : cell.padStart(columns[i]![1])).join("  ")
      .trimEnd(),
  );
}

/** Millions with three figures: `1.67`, `0.432`, `57.1`. */
export function millions(value: number): string {
  return (value / 1e6).toPrecision(3);
}

/** `value` with `digits` significant digits, as a number for JSON. */
export function rounded(value: number, digits = 4): number {
  return Number(value.toPrecision(digits));
}
