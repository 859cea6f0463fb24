/**
 * Standard error while workflows run: lines that stay, and below them, on a terminal, lines that are redrawn in place.
 *
 * `cli-progress` was tried for this: it can let no other line pass above a single bar, puts the cursor back to a saved
 * place that scrolling has moved, ends itself on signals that mean "drain" here, and sets timers that no clock controls.
 *
 * S1 A line that stays never mixes with one that is redrawn.
 * S2 Nothing of the redrawn lines is left behind once they have been cleared.
 *
 * @module
 */
import type { Output } from "../host.ts";

/** To the start of the line, and nothing from there on: an echoed `^C` goes as well. */
const TO_START_AND_CLEAR = "\r\x1b[J";

/** Writes to standard error. */
export class Screen {
  readonly #output: Output;
  #live: readonly string[] = [];

  constructor(output: Output) {
    this.#output = output;
  }

  /** Whether lines can be redrawn. */
  get isTerminal(): boolean {
    return this.#output.isTerminal;
  }

  /** Writes text that ends its line. */
  say(text: string): void {
    const live = this.#live;
    this.#output.write(this.#erasing() + (text.endsWith("\n") ? text : `${text}\n`));
    this.#live = [];
    if (live.length > 0) this.redraw(live);
  }

  /** Shows these lines in place of those shown before, each cut to the width of the terminal. */
  redraw(lines: readonly string[]): void {
    const width = Math.max(this.#output.columns() - 1, 20); // the last column would wrap on some terminals
    const cut = lines.map((line) => line.length > width ? `${line.slice(0, width - 1)}…` : line);
    // The cursor waits at the start of the last line: there the `^C` that terminals echo cannot run into a new one.
    this.#output.write(this.#erasing() + cut.join("\n") + (cut.length === 0 ? "" : "\r"));
    this.#live = cut;
  }

  /** Takes the redrawn lines away. */
  clear(): void {
    if (this.#live.length > 0) this.#output.write(this.#erasing());
    this.#live = [];
  }

  #erasing(): string {
    const { length } = this.#live;
    if (!this.isTerminal) return "";
    return (length > 1 ? `\x1b[${length - 1}A` : "") + TO_START_AND_CLEAR;
  }
}
