/**
 * Sorting by place.
 *
 * @module
 */

const DIGIT_BITS = 11;
const DIGITS = 1 << DIGIT_BITS;
/** Below, comparing is faster than counting. */
const COUNTED_FROM = 400;

/** The order in which `places` ascend; equal ones in no particular order. */
export function orderOf(places: Uint32Array): Uint32Array {
  const { length } = places;
  let order: Uint32Array = new Uint32Array(length);
  for (let i = 0; i < length; i++) order[i] = i;
  if (length < COUNTED_FROM) return order.sort((a, b) => places[a]! - places[b]!);
  let next: Uint32Array = new Uint32Array(length);
  const starts = new Uint32Array(DIGITS);
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    starts.fill(0);
    for (let i = 0; i < length; i++) starts[(places[i]! >>> shift) & (DIGITS - 1)]!++;
    let start = 0;
    for (let digit = 0; digit < DIGITS; digit++) {
      const count = starts[digit]!;
      starts[digit] = start;
      start += count;
    }
    for (let i = 0; i < length; i++) {
      const item = order[i]!;
      next[starts[(places[item]! >>> shift) & (DIGITS - 1)]!++] = item;
    }
    [order, next] = [next, order];
  }
  return order;
}
