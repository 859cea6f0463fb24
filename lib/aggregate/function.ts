/**
 * What an aggregate function is: a fold over the records of a key (and window) that can be cut anywhere and merged.
 *
 * A1 Folding records in any order, cut into any parts and merged in any order, gives the same result. Where order
 *    matters (first, last, ties) it is that of (timestamp, sequence), never that of the calls.
 * A2 `add` may change the accumulator it was given, and returns the one to keep; an `add` that throws changed nothing.
 * A3 `merge` may change `a`, never `b`; what its result shares with `b` is never changed again (values of records, for one).
 * A4 `result` changes nothing that can be seen and hands out nothing the accumulator goes on using.
 * A5 Accumulators are plain data: numbers, texts, `bigint`, `Decimal`, null, lists, plain objects and `Set`s of these.
 *
 * @module
 */

/**
 * Folds records into an accumulator.
 *
 * @typeParam In Value of a record.
 * @typeParam Acc The accumulator; primitives where that is enough, so that nothing is allocated a record.
 * @typeParam Out What goes into the row.
 */
export interface AggregateFunction<In, Acc, Out> {
  /** Name in documents, and the default name of its column. */
  readonly name: string;
  /** An empty accumulator. */
  create(): Acc;
  /**
   * Adds a record.
   *
   * @param timestamp Event time, ms.
   * @param sequence Order of arrival: of two records with equal timestamps the one with the smaller number came first.
   *   A counter per partition will do, since accumulators of one key only ever meet there.
   * @throws {MailerError} `missing_field`, `not_a_number`, `not_comparable` or `number_overflow`: a record error.
   */
  add(acc: Acc, value: In, timestamp: number, sequence: number): Acc;
  /**
   * Everything in both.
   *
   * @throws {MailerError} `not_comparable` or `number_overflow`; then neither was changed.
   */
  merge(a: Acc, b: Acc): Acc;
  /** What the row says. */
  result(acc: Acc): Out;
}

/**
 * A function whose `add` comes in two steps, so that several functions can be added to all or none.
 *
 * `add(acc, value, t, s)` equals `fold(acc, read(acc, value), t, s)`.
 */
export interface SteppedFunction<In, Acc, Out> extends AggregateFunction<In, Acc, Out> {
  /** Takes out of the record what `fold` needs. Throws what `add` throws, and changes nothing. */
  read(acc: Acc, value: In): unknown;
  /** Adds what `read` took. Never throws. */
  fold(acc: Acc, read: unknown, timestamp: number, sequence: number): Acc;
  /** Set where `merge` can throw; such a `merge` changes neither accumulator. */
  readonly fallible?: true;
}
