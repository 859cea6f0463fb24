/**
 * Types of avsc that are made other than it makes them.
 *
 * A1 Longs keep all 64 bits: a number where it is safe, else a bigint.
 * A2 What is read is data as all else in a pipeline: plain objects, plain bytes that share no memory with the payload; `__proto__` is
 *    a key of maps like any other.
 * A3 Bytes that are no Avro never take more time or memory than their length deserves: a list that claims more items than there are
 *    bytes is refused before it is made.
 * A4 Texts are UTF-8 on both sides, or it fails; nothing is replaced.
 * A5 In a union a value stands for itself where that says which branch it is of; else it is an object with the name of the branch.
 *    What is missing is null where the union has null.
 *
 * @module
 */
import { Buffer, isUtf8 } from "node:buffer";
import { MailerError } from "../../../lib/errors.ts";
import { Decimal } from "../../../lib/json.ts";
import { setOwn } from "../../../lib/value.ts";
import {
  type AvscType,
  type AvscUnion,
  bucketOf,
  builtins,
  type CopyOptions,
  type Misfit,
  type SchemaOptions,
  type Tap,
  typeOf,
} from "./avsc.ts";
import { DateType, DecimalType, UuidType } from "./logical.ts";
import { isLong, readLong, writeLong } from "./long.ts";

/** What is read where the bytes end too early, or make no sense. */
const truncated = () => new MailerError("not_avro", "the record ends too early");

/** A value that a type cannot write; what says more of it is found out later. */
const misfit = () => new MailerError("not_avro_value", "a value does not fit its type");

function checked(fits: boolean, value: unknown, type: AvscType, tell: Misfit | undefined): boolean {
  if (!fits) tell?.(value, type);
  return fits;
}

/** A1. */
class ExactLong extends builtins.LongType {
  override _check(value: unknown, _flags?: number, tell?: Misfit): boolean {
    return checked(isLong(value), value, this, tell);
  }
  override _read(tap: Tap): unknown {
    return readLong(tap);
  }
  override _write(tap: Tap, value: unknown): void {
    if (!isLong(value)) throw misfit();
    writeLong(tap, value);
  }
}

/** A4. */
class Text extends builtins.StringType {
  override _check(value: unknown, _flags?: number, tell?: Misfit): boolean {
    return checked(isText(value), value, this, tell);
  }
  override _read(tap: Tap): unknown {
    return readText(tap);
  }
  override _write(tap: Tap, value: unknown): void {
    if (!isText(value)) throw misfit();
    tap.writeString(value);
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

function readText(tap: Tap): string {
  const from = tap.pos, text = tap.readString();
  if (text === undefined || tap.pos < from || tap.pos > tap.buf.length) throw truncated();
  // Written out, or in place of bytes that are no UTF-8.
  if (text.includes("\ufffd") && !isUtf8(tap.buf.subarray(from + lengthOfLong(tap.buf, from), tap.pos))) {
    throw new MailerError("not_utf8", "a text is not UTF-8");
  }
  return text;
}

function lengthOfLong(bytes: Uint8Array, at: number): number {
  let length = 1;
  while (bytes[at + length - 1]! & 0x80) length++;
  return length;
}

/** A2. */
class PlainBytes extends builtins.BytesType {
  override _check(value: unknown, _flags?: number, tell?: Misfit): boolean {
    return checked(value instanceof Uint8Array, value, this, tell);
  }
  override _read(tap: Tap): unknown {
    return readBytes(tap, tap.readLong());
  }
  override _write(tap: Tap, value: unknown): void {
    if (!(value instanceof Uint8Array)) throw misfit();
    tap.writeLong(value.length);
    tap.writeFixed(bufferOf(value));
  }
  override _copy(value: unknown, options?: CopyOptions): unknown {
    return plain(super._copy(value instanceof Uint8Array ? bufferOf(value) : value, options));
  }
}

class PlainFixed extends builtins.FixedType {
  override _check(value: unknown, _flags?: number, tell?: Misfit): boolean {
    return checked(value instanceof Uint8Array && value.length === this.size, value, this, tell);
  }
  override _read(tap: Tap): unknown {
    return readBytes(tap, this.size);
  }
  override _write(tap: Tap, value: unknown): void {
    if (!(value instanceof Uint8Array) || value.length !== this.size) throw misfit();
    tap.writeFixed(bufferOf(value));
  }
  override _copy(value: unknown, options?: CopyOptions): unknown {
    return plain(super._copy(value instanceof Uint8Array ? bufferOf(value) : value, options));
  }
}

function readBytes(tap: Tap, length: number): Uint8Array {
  const from = tap.pos, to = from + length;
  if (length < 0 || to > tap.buf.length) throw truncated();
  tap.pos = to;
  return new Uint8Array(tap.buf.subarray(from, to));
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

function plain(value: unknown): unknown {
  return Buffer.isBuffer(value) ? new Uint8Array(value) : value;
}

/** Items that take no bytes, such as nulls, are believed up to here. */
const MOST_EMPTY_ITEMS = 65_536;

/** How many items the next block has; 0 behind the last one. `before`: those of earlier blocks. */
function readCount(tap: Tap, before: number): number {
  let count = tap.readLong();
  if (count < 0) {
    count = -count;
    tap.skipLong(); // how many bytes it has
  }
  if (tap.pos > tap.buf.length || count + before > Math.max(tap.buf.length, MOST_EMPTY_ITEMS)) {
    throw truncated();
  }
  return count;
}

/** Passes all blocks. */
function skipBlocks(tap: Tap, skipItem: () => void): void {
  for (let total = 0;;) {
    const from = tap.pos, count = tap.readLong();
    if (count === 0) return;
    if (count < 0) {
      const length = tap.readLong();
      if (length < 0 || tap.pos + length > tap.buf.length) throw truncated();
      tap.pos += length;
      continue;
    }
    tap.pos = from;
    total += readCount(tap, total);
    for (let i = 0; i < count; i++) {
      skipItem();
      if (tap.pos > tap.buf.length) throw truncated();
    }
  }
}

/** A3. */
class BoundedArray extends builtins.ArrayType {
  override _read(tap: Tap): unknown {
    const { itemsType } = this, list: unknown[] = [];
    for (let count = readCount(tap, 0); count > 0; count = readCount(tap, list.length)) {
      for (; count > 0; count--) {
        list.push(itemsType._read(tap));
        if (tap.pos > tap.buf.length) throw truncated();
      }
    }
    return list;
  }
  override _skip(tap: Tap): void {
    skipBlocks(tap, () => this.itemsType._skip(tap));
  }
}

/** A3, A2. */
class BoundedMap extends builtins.MapType {
  override _read(tap: Tap): unknown {
    const { valuesType } = this, map = {};
    for (let count = readCount(tap, 0); count > 0; count = readCount(tap, 0)) {
      for (; count > 0; count--) {
        const key = readText(tap);
        setOwn(map, key, valuesType._read(tap));
      }
    }
    return map;
  }
  override _skip(tap: Tap): void {
    skipBlocks(tap, () => {
      readText(tap);
      this.valuesType._skip(tap);
    });
  }
}

/** A2. */
class PlainRecord extends builtins.RecordType {
  override _createConstructor(errorStack: boolean): { prototype: object } {
    const constructor = super._createConstructor(errorStack, true);
    constructor.prototype = Object.prototype;
    return constructor;
  }
}

/** A5, where values stand for themselves. */
class NaturalUnion extends builtins.UnwrappedUnionType {
  override _getIndex(value: unknown): number | undefined {
    const kind = kindOfValue(value), index = this._bucketIndices[kind];
    if (index !== undefined) return index;
    const logical = this.types.findIndex((type) => isLogical(type) && kindOfType(type) === kind);
    return logical === -1 ? undefined : logical;
  }
  override _check(value: unknown, flags?: number, tell?: Misfit, path?: string[]): boolean {
    return super._check(value ?? null, flags, tell, path);
  }
  override _write(tap: Tap, value: unknown): void {
    const index = this._getIndex(value ?? null);
    if (index === undefined) throw misfit();
    tap.writeLong(index);
    this.types[index]!._write(tap, value ?? null);
  }
}

/** A5, where they do not. */
class NamedUnion extends builtins.WrappedUnionType {
  override _check(value: unknown, flags?: number, tell?: Misfit, path?: string[]): boolean {
    return super._check(value ?? null, flags, tell, path);
  }
  override _write(tap: Tap, value: unknown): void {
    const isNull = value === null || value === undefined;
    const name = isNull ? "null" : typeof value === "object" ? onlyKey(value) : undefined;
    const index = this.types.findIndex(({ branchName }) => branchName === name);
    if (index === -1) throw misfit();
    tap.writeLong(index);
    this.types[index]!._write(tap, isNull ? null : (value as Record<string, unknown>)[name!]);
  }
}

function onlyKey(value: object): string | undefined {
  const keys = Object.keys(value);
  return keys.length === 1 ? keys[0] : undefined;
}

function unionOf(branches: readonly unknown[], options: SchemaOptions): AvscUnion {
  const types = branches.map((branch) => typeOf(branch, options));
  if (new Set(types.map(kindOfType)).size === types.length) return new NaturalUnion(types, options);
  const union = new NamedUnion(types, options);
  for (const { _branchConstructor } of union.types) {
    if (_branchConstructor !== null) _branchConstructor.prototype = Object.prototype; // A2
  }
  return union;
}

function isLogical({ typeName }: AvscType): boolean {
  return typeName.startsWith("logical:");
}

function kindOfType(type: AvscType): string {
  if (type instanceof DecimalType) return "number";
  return isLogical(type) ? "string" : bucketOf(type);
}

function kindOfValue(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "bigint" || value instanceof Decimal) return "number";
  if (typeof value !== "object") return typeof value;
  return Array.isArray(value) ? "array" : value instanceof Uint8Array ? "buffer" : "object";
}

const LONG = new ExactLong(), TEXT = new Text(), BYTES = new PlainBytes();
const PRIMITIVES = new Map<unknown, AvscType>([["long", LONG], ["string", TEXT], ["bytes", BYTES]]);
const LOGICAL = new Map<unknown, typeof DecimalType | typeof DateType | typeof UuidType>([
  ["decimal", DecimalType],
  ["date", DateType],
  ["uuid", UuidType],
]);

/** Types of schemas, for `typeOf`. One a schema: it knows which logical types are being made. */
export function typeHook(): NonNullable<SchemaOptions["typeHook"]> {
  const begun = new Set<unknown>();
  return (schema, options) => {
    if (typeof schema === "string") return PRIMITIVES.get(schema);
    if (Array.isArray(schema)) return unionOf(schema, options);
    if (typeof schema !== "object" || schema === null) return undefined;
    const { type, logicalType, fields } = schema as Readonly<Record<string, unknown>>;
    if (typeof type === "object" && type !== null) return typeOf(type, options); // { type: { type: … } }
    const Logical = LOGICAL.get(logicalType);
    // Where the rest is not as it should be, the schema stands for the type below: so says Avro.
    if (Logical !== undefined && !begun.has(schema) && Logical.takes(schema)) {
      begun.add(schema);
      return new Logical(schema, options);
    }
    switch (type) {
      case "array":
        return new BoundedArray(schema, options);
      case "map":
        return new BoundedMap(schema, options);
      case "fixed":
        return new PlainFixed(schema, options);
      case "record":
      case "error":
        checkNames(fields);
        return new PlainRecord(schema, options);
      default:
        return PRIMITIVES.get(type);
    }
  };
}

/** Objects are made by `this.name = …`, which does something else with this one. */
function checkNames(fields: unknown): void {
  if (!Array.isArray(fields)) return;
  if (fields.some((field) => (field as { name?: unknown } | null)?.name === "__proto__")) {
    throw new Error("a field cannot have the name __proto__");
  }
}
