/**
 * Longs of Avro: 64 bits, zigzag, seven bits a byte, the lowest first.
 *
 * @module
 */
import { MailerError } from "../../../lib/errors.ts";
import type { Tap } from "./avsc.ts";

/** The zigzag of what is below it is an exact double. */
const EXACT = 2 ** 52;
const LONGEST_BYTES = 10;

/** Whether a value is a whole number of 64 bits, and known exactly. */
export function isLong(value: unknown): value is number | bigint {
  return typeof value === "bigint" ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);
}

/** Reads a long: a number where it is safe, else a bigint. */
export function readLong(tap: Tap): number | bigint {
  const from = tap.pos, value = tap.readLong();
  return value > -EXACT && value < EXACT ? value : exactLong(tap, from);
}

function exactLong({ buf, pos: to }: Tap, from: number): number | bigint {
  if (to - from > LONGEST_BYTES) throw new MailerError("not_avro", "a long has more than 64 bits");
  let zigzag = 0n;
  for (let at = from; at < to && at < buf.length; at++) {
    zigzag |= BigInt(buf[at]! & 0x7f) << BigInt(7 * (at - from));
  }
  if (zigzag >> 64n !== 0n) throw new MailerError("not_avro", "a long has more than 64 bits");
  const value = (zigzag >> 1n) ^ -(zigzag & 1n), double = Number(value);
  return Number.isSafeInteger(double) ? double : value;
}

/** Writes a long. */
export function writeLong(tap: Tap, value: number | bigint): void {
  if (typeof value === "number" && value > -EXACT && value < EXACT) return tap.writeLong(value);
  const whole = BigInt(value);
  let zigzag = BigInt.asUintN(64, (whole << 1n) ^ (whole >> 63n));
  for (; zigzag > 0x7fn; zigzag >>= 7n) tap.buf[tap.pos++] = Number(zigzag & 0x7fn) | 0x80;
  tap.buf[tap.pos++] = Number(zigzag);
}
