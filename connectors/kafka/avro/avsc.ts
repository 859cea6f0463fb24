/**
 * What is used of avsc, typed: its types, some of which are extended in `types.ts`. The parts that begin with `_` are its own, not
 * its public face; the version is pinned exactly.
 *
 * @module
 */
import type { Buffer } from "node:buffer";
import typesModule from "avsc/lib/types.js";

/** Bytes, and how far they have been read or written. Going beyond their end fails nothing: `pos` says so afterwards. */
export interface Tap {
  readonly buf: Buffer;
  pos: number;
  /** Exact within ±2^52 only. */
  readLong(): number;
  skipLong(): void;
  /** Exact within ±2^52 only. */
  writeLong(value: number): void;
  readString(): string | undefined;
  skipString(): void;
  writeString(text: string): void;
  writeFixed(bytes: Buffer, length?: number): void;
}

/** Told of what does not fit, and where. */
export type Misfit = (value: unknown, type: AvscType) => void;

/** Reads what a writer wrote as a reader wants it. */
export interface AvscResolver {
  /** Of the reader. */
  readonly _readerType: AvscType;
}

/** A type: it reads and writes values. */
export interface AvscType {
  /** E.g. `record`. */
  readonly typeName: string;
  /** With its namespace. */
  readonly name: string | undefined;
  /** What it is called in a union. */
  readonly branchName: string | undefined;
  /** Of a union: makes the object that says which branch a value is of. */
  readonly _branchConstructor: { prototype: object } | null;
  /** Decodes; the offset is −1 where the bytes end too early. */
  decode(
    bytes: Buffer,
    from: number,
    resolver?: AvscResolver,
  ): { readonly value: unknown; readonly offset: number };
  /** Encodes to `bytes`. @returns Where it ends; below 0: so many bytes are missing. */
  encode(value: unknown, bytes: Buffer, from: number): number;
  /** @throws Where a value of `writer` cannot be read as one of this type. */
  createResolver(writer: AvscType): AvscResolver;
  /** Whether a value could be encoded. */
  isValid(
    value: unknown,
    options?: { errorHook(path: readonly string[], value: unknown, type: AvscType): void },
  ): boolean;
  _read(tap: Tap): unknown;
  _skip(tap: Tap): void;
  _write(tap: Tap, value: unknown): void;
  _check(value: unknown, flags?: number, misfit?: Misfit, path?: string[]): boolean;
  _copy(value: unknown, options?: CopyOptions): unknown;
}

/** How a value is copied; `coerce` 2: from the JSON of a default, 3: to JSON. */
export interface CopyOptions {
  readonly coerce?: number;
}

/** A list. */
export interface AvscArray extends AvscType {
  readonly itemsType: AvscType;
}

/** A map. */
export interface AvscMap extends AvscType {
  readonly valuesType: AvscType;
}

/** Bytes of one length. */
export interface AvscFixed extends AvscType {
  readonly size: number;
}

/** A union. */
export interface AvscUnion extends AvscType {
  readonly types: readonly AvscType[];
  /** Branches by kind of value, without the logical ones. */
  readonly _bucketIndices: Readonly<Record<string, number>>;
  /** Branch of a value. */
  _getIndex(value: unknown): number | undefined;
}

/** A record. */
export interface AvscRecord extends AvscType {
  /** Makes what makes the objects. */
  _createConstructor(errorStack: boolean, plain: boolean): { prototype: object };
}

/** A type over another. */
export interface AvscLogical extends AvscType {
  readonly underlyingType: AvscType;
  _fromValue(value: unknown): unknown;
  /** Undefined for what is no value of it. */
  _toValue(value: unknown): unknown;
  /** What makes a value of what the writer's type reads; undefined where nothing does. */
  _resolve(writer: AvscType): ((value: unknown) => unknown) | undefined;
}

/** How schemas are read. */
export interface SchemaOptions {
  /** Types by their full names; it is added to. */
  readonly registry?: Record<string, AvscType>;
  /** Gives other types than the built-in ones. */
  readonly typeHook?: (schema: unknown, options: SchemaOptions) => AvscType | undefined;
}

type Class<T> = new (schema?: unknown, options?: SchemaOptions) => T;

interface TypesModule {
  readonly Type: { forSchema(schema: unknown, options?: SchemaOptions): AvscType };
  readonly getTypeBucket: (type: AvscType) => string;
  readonly builtins: {
    readonly ArrayType: Class<AvscArray>;
    readonly BytesType: Class<AvscType>;
    readonly FixedType: Class<AvscFixed>;
    readonly LogicalType: Class<AvscLogical>;
    readonly LongType: Class<AvscType>;
    readonly MapType: Class<AvscMap>;
    readonly RecordType: Class<AvscRecord>;
    readonly StringType: Class<AvscType>;
    readonly UnwrappedUnionType: Class<AvscUnion>;
    readonly WrappedUnionType: Class<AvscUnion>;
  };
}

const avsc = typesModule as unknown as TypesModule;

/** A type of a schema, which is a JSON value. @throws Where it is none. */
export const typeOf: TypesModule["Type"]["forSchema"] = (schema, options) =>
  avsc.Type.forSchema(schema, options);

/** Kind of the values of a type in a union. */
export const bucketOf: TypesModule["getTypeBucket"] = (type) => avsc.getTypeBucket(type);

/** The types there are. */
export const builtins: TypesModule["builtins"] = avsc.builtins;
