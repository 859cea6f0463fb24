/**
 * Logical types: `decimal` is an exact number, `date` a text such as `2026-03-01`, `uuid` a text. All others are what they are
 * written as: `timestamp-millis` and `local-timestamp-millis` milliseconds since the epoch, the `-micros` microseconds, `time-*` units
 * since midnight, `duration` twelve bytes.
 *
 * @module
 */
import { MailerError } from "../../../lib/errors.ts";
import { type AvscFixed, type AvscLogical, type AvscType, builtins, type SchemaOptions } from "./avsc.ts";
import { bytesOf, decimalOf, unscaledOf } from "./decimal.ts";

/** What a schema of a logical type may say. */
interface LogicalSchema {
  readonly type?: unknown;
  readonly precision?: unknown;
  readonly scale?: unknown;
  readonly size?: unknown;
}

/** A logical type that reads what its own kind, or the type below, was written as. */
abstract class Logical extends builtins.LogicalType {
  override _resolve(writer: AvscType): ((value: unknown) => unknown) | undefined {
    if (writer.typeName === this.typeName) return this.isLike(writer) ? (value) => value : undefined;
    return writer.typeName === this.underlyingType.typeName ? (value) => this._fromValue(value) : undefined;
  }

  /** Whether a type of the same name has the same values. */
  protected isLike(_writer: AvscType): boolean {
    return true;
  }
}

/** `decimal`, over bytes or fixed. */
export class DecimalType extends Logical implements AvscLogical {
  readonly precision: number;
  readonly scale: number;

  constructor(schema: LogicalSchema, options?: SchemaOptions) {
    super(schema, options);
    this.precision = schema.precision as number;
    this.scale = schema.scale as number | undefined ?? 0;
  }

  /** Whether a schema is one. */
  static takes({ type, precision, scale = 0 }: LogicalSchema): boolean {
    return (type === "bytes" || type === "fixed") && Number.isInteger(precision) && Number(precision) > 0 &&
      Number.isInteger(scale) && Number(scale) >= 0 && Number(scale) <= Number(precision);
  }

  override _fromValue(value: unknown): unknown {
    return decimalOf(value as Uint8Array, this.scale);
  }

  override _toValue(value: unknown): unknown {
    const unscaled = unscaledOf(value, this.precision, this.scale);
    return unscaled === undefined
      ? undefined
      : bytesOf(unscaled, (this.underlyingType as Partial<AvscFixed>).size);
  }

  protected override isLike(writer: AvscType): boolean {
    return (writer as DecimalType).scale === this.scale;
  }
}

const DAY = 86_400_000;
/** The last day that there is. */
const LAST_DAY = 100_000_000;
const DATE = /^([+-]\d{6}|\d{4})-\d\d-\d\d$/;

/** `date`, over int: days since the epoch. */
export class DateType extends Logical implements AvscLogical {
  /** Whether a schema is one. */
  static takes({ type }: LogicalSchema): boolean {
    return type === "int";
  }

  override _fromValue(value: unknown): unknown {
    const days = value as number;
    if (Math.abs(days) > LAST_DAY) throw new MailerError("not_avro", `day ${days} is out of range`);
    return new Date(days * DAY).toISOString().replace(/T.*/, "");
  }

  override _toValue(value: unknown): unknown {
    if (typeof value !== "string" || !DATE.test(value)) return undefined;
    const time = Date.parse(`${value}T00:00:00Z`);
    // The 31st of February is the 3rd of March to it.
    return Number.isNaN(time) || this._fromValue(time / DAY) !== value ? undefined : time / DAY;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** `uuid`, over string or sixteen bytes. */
export class UuidType extends Logical implements AvscLogical {
  /** Whether a schema is one. */
  static takes({ type, size }: LogicalSchema): boolean {
    return type === "string" || (type === "fixed" && size === 16);
  }

  override _fromValue(value: unknown): unknown {
    if (typeof value === "string") return value;
    const digits = (value as Uint8Array).toHex();
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  override _toValue(value: unknown): unknown {
    if (typeof value !== "string" || !UUID.test(value)) return undefined;
    return this.underlyingType.typeName === "fixed" ? Uint8Array.fromHex(value.replaceAll("-", "")) : value;
  }
}
