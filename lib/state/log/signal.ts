/**
 * Something that happens again and again, to be waited for.
 *
 * @module
 */

/** Who waits for it goes on the next time it happens. */
export class Signal {
  #waiting: (() => void)[] = [];

  /** Resolves the next time. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** It happens. */
  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
