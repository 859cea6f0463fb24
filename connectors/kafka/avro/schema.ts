/**
 * A schema: values to Avro and back.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { asError, MailerError } from "../../../lib/errors.ts";
import { parseJson, stringifyJson } from "../../../lib/json.ts";
import { formatPath } from "../../../lib/path.ts";
import { type AvscResolver, type AvscType, typeOf } from "./avsc.ts";
import { typeHook } from "./types.ts";

/** Decodes a value that lies from an offset to the end of the bytes. @throws {MailerError} `not_avro`, `not_utf8` */
export type ReadAvro = (bytes: Uint8Array, from: number) => unknown;

/** A schema that is understood. */
export class AvroSchema {
  readonly #type: AvscType;

  private constructor(type: AvscType) {
    this.#type = type;
  }

  /**
   * Understands a schema.
   *
   * @param text JSON.
   * @param references Schemas whose types it names, each behind those that it needs itself.
   * @throws {MailerError} `avro_schema`
   */
  static of(text: string, references: readonly string[] = []): AvroSchema {
    const registry = {};
    try {
      let type: AvscType | undefined;
      for (const each of [...references, text]) {
        type = typeOf(parseJson(each), { registry, typeHook: typeHook() });
      }
      return new AvroSchema(type!);
    } catch (cause) {
      throw new MailerError("avro_schema", `this is no Avro schema: ${asError(cause).message}`, {
        cause,
        lasting: true,
        hint: short(text),
      });
    }
  }

  /** Full name, or the kind of the type. */
  get name(): string {
    return this.#type.name ?? this.#type.typeName.replace(/:.*/, "");
  }

  /** What decodes values that were written with this schema. */
  reader(): ReadAvro {
    return (bytes, from) => decode(this.#type, bytes, from);
  }

  /**
   * What decodes values that were written with `writer`, as this schema wants them: fields by name, missing ones by their default.
   *
   * @throws {MailerError} `avro_not_readable` where Avro has no way from one to the other.
   */
  readerOf(writer: AvroSchema): ReadAvro {
    let resolver: AvscResolver;
    try {
      resolver = this.#type.createResolver(writer.#type);
    } catch (cause) {
      throw new MailerError(
        "avro_not_readable",
        `what was written as "${writer.name}" cannot be read as "${this.name}": ${asError(cause).message}`,
        { cause },
      );
    }
    return (bytes, from) => decode(this.#type, bytes, from, resolver);
  }

  /**
   * Encodes a value behind `from` bytes.
   *
   * @throws {MailerError} `not_avro_value`
   */
  encode(value: unknown, into: Scratch, from: number): number {
    try {
      for (;;) {
        const end = this.#type.encode(value, into.bytes, from);
        if (end >= 0) return end;
        into.grow(-end);
      }
    } catch (cause) {
      throw this.#misfit(value, cause);
    }
  }

  /** Says which part of a value does not fit. */
  #misfit(value: unknown, cause: unknown): MailerError {
    let found:
      | { readonly path: readonly string[]; readonly value: unknown; readonly type: AvscType }
      | undefined;
    try {
      this.#type.isValid(value, { errorHook: (path, part, type) => found ??= { path, value: part, type } });
    } catch {
      found = undefined; // a value that cannot even be looked at, such as one that contains itself
    }
    const what = found === undefined
      ? asError(cause).message
      : `${found.path.length === 0 ? "" : `${formatPath(found.path)} `}is ${kind(found.value)}, not ${
        typeName(found.type)
      }`;
    return new MailerError("not_avro_value", `does not fit the schema "${this.name}": ${what}`, { cause });
  }
}

/** Bytes to write to, which are used again. */
export class Scratch {
  /** Replaced when it grows. */
  bytes: Buffer = Buffer.alloc(16 * 1024);

  /** Makes it larger by at least `more` bytes. */
  grow(more: number): void {
    const grown = Buffer.alloc(Math.max(2 * this.bytes.length, this.bytes.length + more));
    this.bytes.copy(grown);
    this.bytes = grown;
  }
}

function decode(type: AvscType, bytes: Uint8Array, from: number, resolver?: AvscResolver): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let decoded: ReturnType<AvscType["decode"]>;
  try {
    decoded = type.decode(buffer, from, resolver);
  } catch (cause) {
    if (cause instanceof MailerError) throw cause;
    throw new MailerError("not_avro", asError(cause).message, { cause });
  }
  if (decoded.offset === bytes.length) return decoded.value;
  throw new MailerError(
    "not_avro",
    decoded.offset < 0 ? "the record ends too early" : `${bytes.length - decoded.offset} bytes are left over`,
  );
}

function typeName({ typeName, name, branchName }: AvscType): string {
  if (name !== undefined) return `a ${name}`;
  if (typeName.startsWith("union:")) return "of any branch of its union";
  return typeName.startsWith("logical:") ? `a ${typeName.slice("logical:".length)}` : `a ${branchName}`;
}

function kind(value: unknown): string {
  if (value === undefined) return "missing";
  const isPart = typeof value === "object" && value !== null;
  return isPart ? Array.isArray(value) ? "a list" : "an object" : short(stringifyJson(value));
}

function short(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
