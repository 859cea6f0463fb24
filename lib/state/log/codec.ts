/**
 * Values of keyed state as bytes, and back.
 *
 * C1 What comes out equals what went in, to the last bit: −0, NaN, holes of lists, lone surrogates, fields named `__proto__`,
 *    `undefined` as the value of a field.
 * C2 A value says where it ends; no encoding is the beginning of another one.
 * C3 Equal key identities have equal bytes, different ones different bytes.
 * C4 What cannot be stored (functions, symbols, objects of classes, cycles) is an error when it is written.
 *
 * Stored are JSON values, `undefined`, `bigint`, `Decimal`, `Date`, `Map`, `Set`, bytes and the other views and buffers.
 * Tags below are part of stored state: they are never given another meaning.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { MailerError } from "../../errors.ts";
import { Decimal } from "../../json.ts";
import { setOwn } from "../../value.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";

const NULL = 0,
  UNDEFINED = 1,
  FALSE = 2,
  TRUE = 3,
  WHOLE = 4,
  NEGATIVE = 5,
  DOUBLE = 6,
  BIGINT = 7,
  NEGATIVE_BIGINT = 8,
  DECIMAL = 9,
  LATIN1 = 10,
  UTF16 = 11,
  LIST = 12,
  OBJECT = 13,
  BARE_OBJECT = 14,
  MAP = 15,
  SET = 16,
  BYTES = 17,
  DATE = 18,
  BUFFER = 19,
  VIEW = 20,
  HOLE = 21;
/** 0x40 + length: a text of at most 63 units up to U+00FF. */
const SHORT_TEXT = 0x40;
/** 0x80 + n: a whole number from 0 to 127. */
const SMALL = 0x80;

const DEEPEST = 1000;
const VIEWS: readonly (new (buffer: ArrayBuffer) => ArrayBufferView)[] = [
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
];

/**
 * Writes a value.
 *
 * @throws {MailerError} `not_storable`; what has been written by then is to be thrown away.
 */
export function encodeValue(writer: ByteWriter, value: unknown): void {
  encode(writer, value, 0);
}

/** The bytes of one value. @throws {MailerError} `not_storable` */
export function valueBytes(value: unknown): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(64);
  encode(writer, value, 0);
  return writer.taken();
}

function encode(writer: ByteWriter, value: unknown, depth: number): void {
  switch (typeof value) {
    case "string":
      return encodeText(writer, value);
    case "number":
      return encodeNumber(writer, value);
    case "object":
      if (value === null) break;
      if (depth > DEEPEST) throw notStorable("something nested too deeply, or that contains itself");
      return encodeObject(writer, value, depth + 1);
    case "bigint":
      return encodeBigint(writer, value);
    case "boolean":
    case "undefined":
      break;
    default:
      throw notStorable(`a ${typeof value}`);
  }
  writer.reserve(1);
  writer.byte(value === null ? NULL : value === undefined ? UNDEFINED : value ? TRUE : FALSE);
}

function encodeNumber(writer: ByteWriter, value: number): void {
  writer.reserve(9);
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    if (value >= 0) {
      if (value < 128) return writer.byte(SMALL | value);
      writer.byte(WHOLE);
      return writer.varint(value);
    }
    writer.byte(NEGATIVE);
    return writer.varint(-value);
  }
  writer.byte(DOUBLE);
  writer.double(value);
}

function encodeText(writer: ByteWriter, text: string): void {
  const { length } = text;
  writer.reserve(length + 9);
  const { bytes, at } = writer;
  if (length < 64) {
    let to = at + 1, i = 0;
    for (; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 0xff) break;
      bytes[to++] = unit;
    }
    if (i === length) {
      bytes[at] = SHORT_TEXT | length;
      writer.at = to;
      return;
    }
  } else if (isLatin1(text)) {
    writer.byte(LATIN1);
    writer.varint(length);
    return writer.latin1(text);
  }
  writer.byte(UTF16);
  writer.varint(length);
  writer.utf16(text);
}

function isLatin1(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return false;
  return true;
}

function encodeBigint(writer: ByteWriter, value: bigint): void {
  let digits = (value < 0n ? -value : value).toString(16);
  if (digits.length % 2 === 1) digits = `0${digits}`;
  writer.reserve(1);
  writer.byte(value < 0n ? NEGATIVE_BIGINT : BIGINT);
  writer.varint(digits.length / 2);
  writer.copy(Buffer.from(digits, "hex"));
}

function encodeObject(writer: ByteWriter, value: object, depth: number): void {
  if (Array.isArray(value)) return encodeList(writer, value, depth);
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype) return encodeFields(writer, OBJECT, value, depth);
  if (prototype === null) return encodeFields(writer, BARE_OBJECT, value, depth);
  writer.reserve(9);
  if (prototype === Decimal.prototype) {
    writer.byte(DECIMAL);
    return encodeText(writer, (value as Decimal).text);
  }
  if (prototype === Map.prototype) {
    writer.byte(MAP);
    writer.varint((value as Map<unknown, unknown>).size);
    for (const [key, item] of value as Map<unknown, unknown>) {
      encode(writer, key, depth);
      encode(writer, item, depth);
    }
    return;
  }
  if (prototype === Set.prototype) {
    writer.byte(SET);
    writer.varint((value as Set<unknown>).size);
    for (const item of value as Set<unknown>) encode(writer, item, depth);
    return;
  }
  if (prototype === Date.prototype) {
    writer.byte(DATE);
    return writer.double((value as Date).getTime());
  }
  encodeBinary(writer, value, prototype);
}

function encodeBinary(writer: ByteWriter, value: object, prototype: unknown): void {
  if (value instanceof Uint8Array && !(value instanceof Uint8ClampedArray)) { // a `Buffer` comes back as plain bytes
    writer.byte(BYTES);
  } else if (value instanceof ArrayBuffer) writer.byte(BUFFER);
  else {
    const kind = VIEWS.findIndex((view) => view.prototype === prototype);
    if (kind === -1) {
      const name = (prototype as { constructor?: { name?: string } }).constructor?.name;
      throw notStorable(
        name === undefined || name === "" ? "an object of a class" : `an object of class ${name}`,
      );
    }
    writer.byte(VIEW);
    writer.byte(kind);
  }
  const bytes = value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(
    (value as DataView).buffer,
    (value as DataView).byteOffset,
    (value as DataView).byteLength,
  );
  writer.varint(bytes.length);
  writer.copy(bytes);
}

function encodeList(writer: ByteWriter, list: readonly unknown[], depth: number): void {
  const { length } = list;
  writer.reserve(1);
  writer.byte(LIST);
  writer.varint(length);
  for (let i = 0; i < length; i++) {
    const item = list[i];
    if (item === undefined && !(i in list)) {
      writer.reserve(1);
      writer.byte(HOLE);
    } else encode(writer, item, depth);
  }
}

function encodeFields(writer: ByteWriter, tag: number, value: object, depth: number): void {
  const names = Object.keys(value);
  writer.reserve(1);
  writer.byte(tag);
  writer.varint(names.length);
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    encodeText(writer, name);
    encode(writer, (value as Record<string, unknown>)[name], depth);
  }
}

function notStorable(what: string): MailerError {
  return new MailerError("not_storable", `${what} cannot be stored`, {
    hint: "keep JSON values, bigint, Date, Map, Set or bytes in state",
  });
}

/**
 * Reads a value.
 *
 * @throws {MailerError} `not_state` for bytes that are no value.
 */
export function decodeValue(reader: ByteReader): unknown {
  const tag = reader.byte();
  if (tag >= SMALL) return tag - SMALL;
  if (tag >= SHORT_TEXT) return reader.latin1(tag - SHORT_TEXT);
  switch (tag) {
    case NULL:
      return null;
    case UNDEFINED:
      return undefined;
    case FALSE:
      return false;
    case TRUE:
      return true;
    case WHOLE:
      return reader.varint();
    case NEGATIVE:
      return -reader.varint();
    case DOUBLE:
      return reader.double();
    case BIGINT:
      return decodeBigint(reader);
    case NEGATIVE_BIGINT:
      return -decodeBigint(reader);
    case DECIMAL:
      return new Decimal(decodeValue(reader) as string);
    case LATIN1:
      return reader.latin1(reader.varint());
    case UTF16:
      return reader.utf16(reader.varint());
    case LIST:
      return decodeList(reader);
    case OBJECT:
      return decodeFields(reader, {});
    case BARE_OBJECT:
      return decodeFields(reader, Object.create(null));
    case MAP: {
      const map = new Map();
      for (let left = reader.varint(); left > 0; left--) {
        const key = decodeValue(reader);
        map.set(key, decodeValue(reader));
      }
      return map;
    }
    case SET: {
      const set = new Set();
      for (let left = reader.varint(); left > 0; left--) set.add(decodeValue(reader));
      return set;
    }
    case BYTES:
      return reader.copied(reader.varint());
    case DATE:
      return new Date(reader.double());
    case BUFFER:
      return reader.copied(reader.varint()).buffer;
    case VIEW: {
      const kind = VIEWS[reader.byte()];
      if (kind !== undefined) return new kind(reader.copied(reader.varint()).buffer);
    }
  }
  throw new MailerError(
    "not_state",
    `state: byte ${reader.at - 1} of ${reader.bytes.length} begins no value (${tag})`,
  );
}

function decodeBigint(reader: ByteReader): bigint {
  const bytes = reader.copied(reader.varint());
  return bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes.buffer).toString("hex")}`);
}

function decodeList(reader: ByteReader): unknown[] {
  const length = reader.varint();
  const list: unknown[] = [];
  for (let i = 0; i < length; i++) {
    if (reader.view.getUint8(reader.at) === HOLE) {
      reader.at++;
      list.length = i + 1;
    } else list.push(decodeValue(reader));
  }
  return list;
}

function decodeFields(reader: ByteReader, object: object): object {
  for (let left = reader.varint(); left > 0; left--) {
    const name = decodeValue(reader) as string;
    setOwn(object, name, decodeValue(reader));
  }
  return object;
}

/** Where the text, number, boolean, null or undefined that begins at `at` ends. Reads nothing else. */
export function scalarEnd(bytes: Uint8Array, at: number): number {
  const tag = bytes[at++]!;
  if (tag >= SMALL) return at;
  if (tag >= SHORT_TEXT) return at + tag - SHORT_TEXT;
  if (tag <= TRUE) return at;
  if (tag === DOUBLE) return at + 8;
  let number = 0, scale = 1, byte;
  do {
    byte = bytes[at++] ?? 0;
    number += (byte & 127) * scale;
    scale *= 128;
  } while (byte > 127);
  return tag === LATIN1 ? at + number : tag === UTF16 ? at + number * 2 : at;
}
