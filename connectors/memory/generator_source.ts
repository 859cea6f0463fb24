/**
 * Source `generator`: records made by a function of their number.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import { delay } from "../../lib/clock.ts";
import type { Source, SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { asError, MailerError } from "../../lib/errors.ts";
import { IndexedRandom, type Random } from "./random.ts";
import { restoredIndex } from "./slice_source.ts";

/** Settings of {@link generatorSource}. */
export interface GeneratorSourceOptions<T> {
  /**
   * Value of record `index`. Given the same random numbers it must return the same value, so that a run can be replayed.
   *
   * @param random Numbers ≥ 0 and < 1 that depend on the seed and the index alone. Valid during the call.
   */
  readonly generate: (index: number, random: Random) => T;
  /** How many records; default without end. */
  readonly count?: number;
  /**
   * Records a second, by the clock of the run; default as fast as they are taken. One that was held up catches up.
   */
  readonly rate?: number;
  /** Default 0. */
  readonly seed?: number;
  /** Name of its one split; default `generator`. */
  readonly name?: string;
}

/** Records made on the fly. @throws {MailerError} `invalid_generator_options` */
export function generatorSource<T>(options: GeneratorSourceOptions<T>): Source<T> {
  const { count = Infinity, rate = Infinity, seed = 0 } = options;
  if (count !== Infinity && !(Number.isSafeInteger(count) && count >= 0)) {
    throw new MailerError(
      "invalid_generator_options",
      `generator source: count is a whole number ≥ 0, got ${count}`,
    );
  }
  if (!(rate > 0)) {
    throw new MailerError(
      "invalid_generator_options",
      `generator source: rate is > 0 records a second, got ${rate}`,
    );
  }
  if (!Number.isFinite(seed)) {
    throw new MailerError("invalid_generator_options", `generator source: seed is a number, got ${seed}`);
  }
  return {
    type: "generator",
    describe: () => ({
      ...(count === Infinity ? {} : { count }),
      ...(rate === Infinity ? {} : { rate }),
      seed,
    }),
    open: (context) => new GeneratorReader({ count, rate, seed, name: "generator", ...options }, context),
  };
}

class GeneratorReader<T> implements SourceReader<T> {
  readonly splits: readonly string[];
  readonly #options: Required<GeneratorSourceOptions<T>>;
  readonly #context: SourceContext;
  readonly #random: IndexedRandom;
  #at = 0;
  /** Time and number of the record the rate counts from. */
  #start: { readonly time: number; readonly index: number } | undefined;
  #hasEnded = false;

  constructor(options: Required<GeneratorSourceOptions<T>>, context: SourceContext) {
    this.splits = [options.name];
    this.#options = options;
    this.#context = context;
    this.#random = new IndexedRandom(options.seed);
    const position = context.restored?.get(options.name);
    if (position !== undefined) this.#at = restoredIndex(options.name, position, options.count);
  }

  read(): SourceRead<T> | Promise<SourceRead<T>> {
    const { count, rate, name } = this.#options, { batchSize, clock, signal } = this.#context;
    if (this.#at >= count) {
      if (this.#hasEnded) return { kind: "end" };
      this.#hasEnded = true;
      return { kind: "ended", split: name };
    }
    const most = Math.min(batchSize, count - this.#at);
    if (rate === Infinity) return this.#records(most);
    const now = clock.monotonic(), { time, index } = this.#start ??= { time: now, index: this.#at };
    const due = index + Math.floor((now - time) * rate / 1000) + 1;
    if (due > this.#at) return this.#records(Math.min(most, due - this.#at));
    const next = time + (this.#at - index) * 1000 / rate;
    return abortable(delay(clock, Math.ceil(next - now), signal).then(() => this.read()), signal);
  }

  progress(): { done: number; total: number } | undefined {
    const { count } = this.#options;
    return count === Infinity ? undefined : { done: this.#at, total: count };
  }

  close(): void {}

  #records(length: number): SourceRead<T> {
    const { generate, name } = this.#options, random = this.#random, first = this.#at;
    const values: T[] = [];
    for (let index = first; index < first + length; index++) {
      random.moveTo(index);
      try {
        values.push(generate(index, random.next));
      } catch (cause) {
        const { message } = asError(cause);
        throw new MailerError("generate_failed", `generator source: record ${index}: ${message}`, { cause });
      }
    }
    this.#at += length;
    return { kind: "records", split: name, values, firstOffset: first, position: this.#at };
  }
}
