/**
 * Client of a schema registry that speaks Confluent's API.
 *
 * G1 What the registry has said of an id holds for ever: ids are never given to another schema. That it does not know one holds for a
 *    while.
 * G2 Where it cannot be reached, or is not well, it is asked again until the timeout; then the run ends. A refusal is final.
 * G3 Neither name nor password are in an error.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { abortable } from "../../../lib/abortable.ts";
import { delay } from "../../../lib/clock.ts";
import { type Duration, formatDuration, parseDuration } from "../../../lib/duration.ts";
import { asError, MailerError } from "../../../lib/errors.ts";
import type { PrepareContext } from "../../../lib/format/mod.ts";

/** Where a schema registry is, and who one is there. */
export interface SchemaRegistryOptions {
  /** Base of Confluent's API, e.g. `http://localhost:8081`. */
  readonly url: string;
  /** For basic authentication. */
  readonly username?: string | undefined;
  /** Goes with `username`. */
  readonly password?: string | undefined;
  /** For bearer authentication, in place of a name and a password. */
  readonly token?: string | undefined;
  /** How long to try where it cannot be reached. Default 60 s. */
  readonly timeout?: Duration;
}

/** A schema as the registry has it. */
export interface RegisteredSchema {
  /** Four bytes. */
  readonly id: number;
  /** JSON. */
  readonly text: string;
  /** Schemas whose types it names, each behind those that it needs itself. */
  readonly references: readonly string[];
}

/** An error that the registry has answered with, or that there is no answer. */
export class SchemaRegistryError extends MailerError {
  /** The registry's own number of it, e.g. 40403; 0 where it gave none. */
  readonly number: number;

  /**
   * What the registry said, or that it said nothing.
   *
   * @param number See {@link SchemaRegistryError.number}.
   */
  constructor(
    code: string,
    number: number,
    message: string,
    options: { readonly hint?: string; readonly lasting?: boolean; readonly cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.number = number;
  }
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** Longest wait for one answer, ms. */
const ANSWER_MS = 10_000;
const FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 5_000;
/** Deeper than anybody nests them. */
const MOST_REFERENCES = 100;

interface Request {
  readonly method: "GET" | "POST";
  /** Behind the base. */
  readonly path: string;
  readonly body?: unknown;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Asks one registry. */
export class SchemaRegistry {
  readonly url: string;
  readonly #timeoutMs: number;
  readonly #headers: Readonly<Record<string, string>>;

  /** @throws {MailerError} `invalid_avro_options`, `invalid_duration` */
  constructor(options: SchemaRegistryOptions) {
    this.url = checkedUrl(options.url);
    this.#timeoutMs = parseDuration(options.timeout ?? DEFAULT_TIMEOUT_MS);
    const authorization = authorizationOf(options);
    this.#headers = {
      "accept": "application/vnd.schemaregistry.v1+json, application/json",
      "content-type": "application/vnd.schemaregistry.v1+json",
      ...(authorization === undefined ? {} : { authorization }),
    };
  }

  /** The schema with an id. @throws {SchemaRegistryError} `avro_unknown_schema`, `avro_schema_type` … */
  async byId(id: number, context: PrepareContext): Promise<RegisteredSchema> {
    const found = await this.#ask({ method: "GET", path: `/schemas/ids/${id}` }, context);
    return await this.#registered(id, found, context);
  }

  /** The newest schema of a subject. */
  async latest(subject: string, context: PrepareContext): Promise<RegisteredSchema> {
    const found = await this.#ask(
      { method: "GET", path: `${subjectPath(subject)}/versions/latest` },
      context,
    );
    return await this.#registered(this.#idOf(found), found, context);
  }

  /** Registers a schema where it is not there yet. @throws {SchemaRegistryError} `avro_incompatible` … @returns Its id. */
  async register(subject: string, schema: string, context: PrepareContext): Promise<number> {
    const path = `${subjectPath(subject)}/versions`;
    return this.#idOf(await this.#ask({ method: "POST", path, body: { schema } }, context));
  }

  /** Looks a schema up in a subject. @returns Its id. */
  async find(subject: string, schema: string, context: PrepareContext): Promise<number> {
    return this.#idOf(
      await this.#ask({ method: "POST", path: subjectPath(subject), body: { schema } }, context),
    );
  }

  async #registered(id: number, found: Fields, context: PrepareContext): Promise<RegisteredSchema> {
    const type = found["schemaType"] ?? "AVRO";
    if (type !== "AVRO") {
      throw new SchemaRegistryError(
        "avro_schema_type",
        0,
        `the schema with id ${id} is of type ${String(type)}, not AVRO`,
        { hint: "records of several formats are in the topic, or it is not one of Avro" },
      );
    }
    const references = new Map<string, string>();
    await this.#collect(found["references"], references, context);
    return { id, text: this.#schemaOf(found), references: [...references.values()] };
  }

  /** Adds what a schema refers to, what that refers to in front of it. */
  async #collect(references: unknown, into: Map<string, string>, context: PrepareContext): Promise<void> {
    if (!Array.isArray(references)) return;
    for (const { subject, version } of references as { subject: string; version: number }[]) {
      const path = `${subjectPath(subject)}/versions/${version}`;
      if (into.has(path)) continue;
      if (into.size >= MOST_REFERENCES) throw this.#odd(`more than ${MOST_REFERENCES} references`);
      const found = await this.#ask({ method: "GET", path }, context);
      await this.#collect(found["references"], into, context);
      into.set(path, this.#schemaOf(found));
    }
  }

  #idOf(found: Fields): number {
    const { id } = found;
    if (Number.isInteger(id) && (id as number) >= 0 && (id as number) < 2 ** 32) return id as number;
    throw this.#odd("no id in the answer");
  }

  #schemaOf({ schema }: Fields): string {
    if (typeof schema === "string") return schema;
    throw this.#odd("no schema in the answer");
  }

  /** G2. */
  async #ask(request: Request, context: PrepareContext): Promise<Fields> {
    const { clock, signal } = context, since = clock.monotonic();
    for (let pause = FIRST_PAUSE_MS;; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      let trouble: string;
      try {
        const answer = await this.#send(request, context);
        if (answer.status < 400) return this.#fieldsOf(answer.text);
        if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) {
          throw this.#refusal(request, answer);
        }
        trouble = `it answers ${answer.status}`;
      } catch (error) {
        if (error instanceof MailerError) throw error;
        signal.throwIfAborted();
        trouble = asError(error).message;
      }
      if (clock.monotonic() - since + pause > this.#timeoutMs) throw this.#unreachable(trouble);
      await delay(clock, pause, signal);
    }
  }

  async #send({ method, path, body }: Request, { clock, signal }: PrepareContext): Promise<Answer> {
    const over = new AbortController();
    const abort = () => over.abort(signal.reason);
    const alarm = clock.schedule(ANSWER_MS, () => over.abort(new Error(`no answer within ${ANSWER_MS} ms`)));
    signal.addEventListener("abort", abort, { once: true });
    try {
      signal.throwIfAborted();
      const init = { method, headers: this.#headers, signal: over.signal, redirect: "follow" } as const;
      const asked = fetch(
        this.url + path,
        body === undefined ? init : { ...init, body: JSON.stringify(body) },
      );
      const response = await asked;
      return { status: response.status, text: await abortable(response.text(), over.signal) };
    } finally {
      alarm.cancel();
      signal.removeEventListener("abort", abort);
    }
  }

  #fieldsOf(text: string): Fields {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null) return value as Fields;
    } catch {
      // said below
    }
    throw this.#odd("no JSON in the answer");
  }

  #refusal({ method, path }: Request, { status, text }: Answer): SchemaRegistryError {
    const { number, message } = errorOf(text), says = message === "" ? `it answers ${status}` : message;
    const at = `schema registry ${this.url}`, lasting = true;
    if (status === 401 || status === 403) {
      return new SchemaRegistryError("schema_registry_not_authorised", number, `${at} refuses us: ${says}`, {
        lasting,
        hint: "check its username and password, or token, and what they may do",
      });
    }
    if (status === 409) {
      const text = `${at}: the schema is not compatible with those that are there (${path}): ${says}`;
      const hint = "give new fields a default, change no types, or change the subject's compatibility";
      return new SchemaRegistryError("avro_incompatible", number, text, { lasting, hint });
    }
    if (number === 40403 && method === "GET" && path.startsWith("/schemas/ids/")) {
      const text = `${at} has no schema with id ${path.split("/").at(-1)}`;
      return new SchemaRegistryError("avro_unknown_schema", number, text);
    }
    if (number === 40401 || number === 40402 || number === 40403) {
      return new SchemaRegistryError("avro_unknown_schema", number, `${at}, ${path}: ${says}`, {
        lasting,
        hint: "register the schema first, or allow it by autoRegister",
      });
    }
    if (status === 422) {
      return new SchemaRegistryError("avro_schema", number, `${at} takes the schema for none: ${says}`, {
        lasting,
      });
    }
    return new SchemaRegistryError("schema_registry", number, `${at}, ${method} ${path}: ${says}`, {
      lasting,
      hint: "is the url the base of Confluent's API?",
    });
  }

  #unreachable(trouble: string): SchemaRegistryError {
    return new SchemaRegistryError(
      "schema_registry_unreachable",
      0,
      `schema registry ${this.url}: ${trouble}, for ${formatDuration(this.#timeoutMs)}`,
      { hint: "is it running, and is the url right?" },
    );
  }

  #odd(what: string): SchemaRegistryError {
    return new SchemaRegistryError("schema_registry", 0, `schema registry ${this.url}: ${what}`, {
      hint: "is the url the base of Confluent's API?",
    });
  }
}

type Fields = Readonly<Record<string, unknown>>;

function errorOf(text: string): { readonly number: number; readonly message: string } {
  try {
    const { error_code: number, message } = JSON.parse(text) as Fields;
    return {
      number: typeof number === "number" ? number : 0,
      message: typeof message === "string" ? message : "",
    };
  } catch {
    return { number: 0, message: "" }; // somebody else has answered, a proxy say
  }
}

function subjectPath(subject: string): string {
  return `/subjects/${encodeURIComponent(subject)}`;
}

function checkedUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw invalidAvro("the url of the registry is none", "e.g. http://localhost:8081");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw invalidAvro(`the url of the registry begins with http: or https:, not ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidAvro(
      "the url of the registry has a login in it",
      "give username and password by themselves",
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function authorizationOf({ username, password, token }: SchemaRegistryOptions): string | undefined {
  if ((username === undefined) !== (password === undefined)) {
    throw invalidAvro("username and password of the registry go together");
  }
  if (token !== undefined) {
    if (username !== undefined) throw invalidAvro("the registry has a token or a username, not both");
    return `Bearer ${token}`;
  }
  return username === undefined
    ? undefined
    : `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** An error about the options of the format. */
export function invalidAvro(message: string, hint?: string): MailerError {
  return new MailerError("invalid_avro_options", `avro: ${message}`, {
    lasting: true,
    ...(hint === undefined ? {} : { hint }),
  });
}
