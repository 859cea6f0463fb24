/**
 * The format `avro`: Confluent's wire format, a zero, four bytes with the id of a schema in a registry, and Avro.
 *
 * V1 A record that is no Avro, or whose schema is not known, not of Avro or not readable, is that record's failure. That the registry
 *    cannot be asked is nobody's: it ends the run.
 * V2 Each schema is asked for once. One that the registry did not know is asked for again after a while.
 *
 * Which value a type has is said in `types.ts` and `logical.ts`.
 *
 * @module
 */
import { asError, MailerError } from "../../../lib/errors.ts";
import type { Decoded, Decoder, Encoder, Format, Payload, PrepareContext } from "../../../lib/format/mod.ts";
import { stringifyJson } from "../../../lib/json.ts";
import { invalidAvro, SchemaRegistry, SchemaRegistryError, type SchemaRegistryOptions } from "./registry.ts";
import type { AvroSchema, ReadAvro, Scratch } from "./schema.ts";

/** Settings of {@link avroFormat}. */
export interface AvroFormatOptions {
  /** Where schemas are. */
  readonly registry: SchemaRegistryOptions;
  /** Subject to write under; or give `topic`. Not needed to read. */
  readonly subject?: string;
  /** Topic to write to: the subject is then `<topic>-value`. */
  readonly topic?: string;
  /**
   * Schema to write with: JSON, as text or as a value. Default: the newest of the subject. One that names types of other subjects can
   * only be written as the newest of the subject.
   */
  readonly schema?: string | object;
  /** Whether `schema` is registered where it is not there yet. Default `true`; `false`: it has to be there. */
  readonly autoRegister?: boolean;
  /**
   * Schema to read as: fields by name, missing ones by their defaults. Of a union that was written, it has to be able to read each
   * branch. Default: records are what they were written as.
   */
  readonly readerSchema?: string | object;
}

const HEAD = 5;
/** How long the registry is believed that it does not know an id, ms. */
const UNKNOWN_FOR_MS = 10_000;
/** So many are asked for at a time. */
const AT_A_TIME = 8;

/**
 * Avro with a schema registry.
 *
 * Values: records are plain objects, longs numbers or bigints, bytes and fixed `Uint8Array`s, enums texts; `decimal` is an exact number,
 * `date` a text like `2026-03-01`, `uuid` a text; other logical types are the number that is written, so `timestamp-millis` is
 * milliseconds and `timestamp-micros` microseconds since the epoch. A union's value stands for itself where its branches can be told
 * apart by it, as in `["null", "string"]`; else it is `{ "name of the branch": value }`. Fields that the schema does not have are not
 * written.
 *
 * Decoding fails with `not_avro`, `not_utf8`, `avro_unknown_schema`, `avro_schema_type`, `avro_schema` or `avro_not_readable`,
 * encoding with `not_avro_value`. Preparing fails with `schema_registry_unreachable`, `schema_registry_not_authorised`,
 * `avro_incompatible`, `avro_unknown_schema`, `avro_schema` or `schema_registry`.
 *
 * @throws {MailerError} `invalid_avro_options`, `invalid_duration`
 */
export function avroFormat<T = unknown>(options: AvroFormatOptions): Format<T> {
  const registry = new SchemaRegistry(options.registry), { subject, topic, schema } = options;
  if (subject !== undefined && topic !== undefined) throw invalidAvro("give `subject` or `topic`, not both");
  const schemas = new KnownSchemas(registry, textOf(options.readerSchema));
  const writing = {
    registry,
    subject: subject ?? (topic === undefined ? undefined : `${topic}-value`),
    schema: textOf(schema),
    autoRegister: options.autoRegister ?? true,
  };
  return {
    name: "avro",
    decoder: () => new AvroDecoder<T>(schemas),
    encoder: () => new AvroEncoder(writing),
  };
}

function textOf(schema: string | object | undefined): string | undefined {
  return schema === undefined || typeof schema === "string" ? schema : stringifyJson(schema);
}

/** A schema that was asked for: how it is read, or what is wrong with it. */
type Known = { readonly read: ReadAvro } | { readonly error: Error; readonly until: number };

/** The schemas that are known, for all readers of a format. */
class KnownSchemas {
  readonly #registry: SchemaRegistry;
  readonly #readerText: string | undefined;
  readonly #known = new Map<number, Known>();
  readonly #pending = new Map<number, Promise<void>>();
  #readAs: AvroSchema | undefined;

  constructor(registry: SchemaRegistry, readerText: string | undefined) {
    this.#registry = registry;
    this.#readerText = readerText;
  }

  get(id: number): Known | undefined {
    return this.#known.get(id);
  }

  /** Whether an id has to be asked for. */
  isWanted(id: number, { clock }: PrepareContext): boolean {
    const known = this.#known.get(id);
    return known === undefined || ("until" in known && known.until <= clock.monotonic());
  }

  /** Asks for ids. */
  async fetch(ids: readonly number[], context: PrepareContext): Promise<void> {
    for (let from = 0; from < ids.length; from += AT_A_TIME) {
      await Promise.all(ids.slice(from, from + AT_A_TIME).map((id) => this.#once(id, context)));
    }
  }

  #once(id: number, context: PrepareContext): Promise<void> {
    let pending = this.#pending.get(id);
    if (pending === undefined) {
      pending = this.#fetch(id, context).finally(() => this.#pending.delete(id));
      this.#pending.set(id, pending);
    }
    return pending;
  }

  async #fetch(id: number, context: PrepareContext): Promise<void> {
    const { AvroSchema } = await import("./schema.ts");
    if (this.#readerText !== undefined) this.#readAs ??= AvroSchema.of(this.#readerText);
    try {
      const { text, references } = await this.#registry.byId(id, context);
      const schema = AvroSchema.of(text, references);
      this.#known.set(id, { read: this.#readAs?.readerOf(schema) ?? schema.reader() });
    } catch (error) {
      const until = lasting(error, context);
      if (until === undefined) throw error;
      this.#known.set(id, { error: asError(error), until });
    }
  }
}

/** V1, V2. Until when an error about a schema holds; undefined where it is none about the schema. */
function lasting(error: unknown, { clock }: PrepareContext): number | undefined {
  if (!(error instanceof MailerError)) return undefined;
  if (error.code === "avro_unknown_schema") {
    return (error as SchemaRegistryError).number === 40403 ? clock.monotonic() + UNKNOWN_FOR_MS : undefined;
  }
  return ["avro_schema", "avro_schema_type", "avro_not_readable"].includes(error.code) ? Infinity : undefined;
}

class AvroDecoder<T> implements Decoder<T> {
  readonly #schemas: KnownSchemas;
  /** The schema of the last record: the next one mostly has the same. */
  #lastId = -1;
  #lastRead: ReadAvro | undefined;

  constructor(schemas: KnownSchemas) {
    this.#schemas = schemas;
  }

  prepare(payloads: readonly Payload[], context: PrepareContext): Promise<void> | undefined {
    let wanted: Set<number> | undefined, last = this.#lastId;
    for (const payload of payloads) {
      const id = idOf(payload);
      if (id === undefined || id === last) continue;
      last = id;
      if (this.#schemas.isWanted(id, context)) (wanted ??= new Set()).add(id);
    }
    return wanted && this.#schemas.fetch([...wanted], context);
  }

  decode(payloads: readonly Payload[], into: Decoded<T>): void {
    for (let index = 0; index < payloads.length; index++) {
      const payload = payloads[index]!;
      try {
        into.values.push(this.#reader(payload)(payload as Uint8Array, HEAD) as T);
      } catch (error) {
        into.failures.push({ index, error: asError(error) });
      }
    }
  }

  #reader(payload: Payload): ReadAvro {
    const id = idOf(payload);
    if (id === undefined) {
      throw new MailerError("not_avro", "does not begin with a zero and the id of a schema", {
        hint: "was it written with a schema registry, by another format perhaps?",
      });
    }
    if (id === this.#lastId) return this.#lastRead!;
    const known = this.#schemas.get(id);
    if (known === undefined) {
      throw new MailerError("avro_unknown_schema", `schema id ${id} was not asked for`);
    }
    if ("error" in known) throw known.error;
    this.#lastId = id;
    return this.#lastRead = known.read;
  }
}

function idOf(payload: Payload): number | undefined {
  if (typeof payload === "string" || payload.length < HEAD || payload[0] !== 0) return undefined;
  return ((payload[1]! << 24) | (payload[2]! << 16) | (payload[3]! << 8) | payload[4]!) >>> 0;
}

/** How a format writes. */
interface Writing {
  readonly registry: SchemaRegistry;
  readonly subject: string | undefined;
  readonly schema: string | undefined;
  readonly autoRegister: boolean;
}

class AvroEncoder implements Encoder {
  readonly #writing: Writing;
  #schema: AvroSchema | undefined;
  #scratch: Scratch | undefined;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  async prepare(context: PrepareContext): Promise<void> {
    const { registry, subject, schema: text, autoRegister } = this.#writing;
    if (subject === undefined) throw invalidAvro("give a `subject`, or the `topic`, to write under");
    const { AvroSchema, Scratch } = await import("./schema.ts");
    let schema: AvroSchema, id: number;
    if (text === undefined) {
      const found = await registry.latest(subject, context);
      schema = AvroSchema.of(found.text, found.references);
      id = found.id;
    } else {
      schema = AvroSchema.of(text); // what is no schema is not sent
      id = await (autoRegister
        ? registry.register(subject, text, context)
        : registry.find(subject, text, context));
    }
    this.#scratch = new Scratch();
    this.#scratch.bytes.writeUInt32BE(id, 1);
    this.#schema = schema;
  }

  encode(value: unknown): Payload {
    if (this.#schema === undefined) {
      throw new MailerError("format_not_supported", "the encoder of avro was not prepared");
    }
    const scratch = this.#scratch!, end = this.#schema.encode(value, scratch, HEAD);
    return new Uint8Array(scratch.bytes.subarray(0, end));
  }
}
