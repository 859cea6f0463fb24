/**
 * The kinds of work that need no worker of one's own: `http`, `log`, and `emit`, which needs somebody to emit to.
 *
 * B1 A request carries the key its receiver tells repetitions by; whoever does not look at it gets requests at least once.
 * B2 Messages of errors say where a request went, without what stands behind the `?`: that is where secrets are.
 *
 * @module
 */
import { asError, MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import type { Logger } from "../../log.ts";
import type { EmitSettings, HttpSettings, LogSettings } from "../definition/mod.ts";
import { type Handler, type Job, PermanentError } from "./task.ts";

/** What the built-in kinds work with. */
export interface BuiltInOptions {
  /** Where lines of `log` go. */
  readonly logger: Logger;
  /** Makes requests. Default: Deno's own `fetch`. */
  readonly fetch?: typeof fetch;
  /** Hands a record over, for `emit`. Default: there is nobody to hand it to, and the task fails. */
  readonly emit?: (record: EmittedRecord, job: Job) => Promise<void>;
}

/** A record to be handed over. */
export interface EmittedRecord extends Pick<EmitSettings, "source" | "topic"> {
  /** Its key. */
  readonly key: unknown;
  /** Its value. */
  readonly value: unknown;
}

/** Largest body of a response that is taken, bytes. */
const LARGEST_BODY = 16 * 1024 * 1024;
/** Statuses of the four hundreds that may pass. */
const PASSING: readonly number[] = [408, 425, 429];

/** Handlers of the built-in kinds. */
export function builtInWorkers(options: BuiltInOptions): Readonly<Record<"http" | "emit" | "log", Handler>> {
  const { logger, fetch: request = fetch, emit = nobody } = options;
  return {
    http: (job) => http(job, request),
    emit: async (job) => {
      const { source, topic, key = job.execId, value } = settingsOf<EmitSettings>(job);
      const to = source === undefined ? { topic: topic! } : { source };
      await emit({ ...to, key, value }, job);
      return {};
    },
    log: (job) => {
      const { message = job.node } = (job.with ?? {}) as LogSettings;
      logger.log("info", message, { flow: job.flow, execution: job.execId, node: job.key });
      return {};
    },
  };
}

function nobody({ source, topic }: EmittedRecord): Promise<void> {
  const where = source === undefined ? `the topic "${topic}"` : `the source "${source}"`;
  return Promise.reject(
    new PermanentError(`emit: ${where} is not known here: no stream runs in this process`),
  );
}

/** The settings of a task, worked out. */
function settingsOf<T>({ with: settings, kind, node }: Job): T {
  if (settings !== undefined) return settings as T;
  throw new PermanentError(
    `the node "${node}" of kind "${kind}" has no "with", and no worker of one's own does it`,
  );
}

async function http(job: Job, request: typeof fetch): Promise<unknown> {
  const { method, url: text, headers, body, expect } = settingsOf<HttpSettings>(job), url = urlOf(text);
  const sent = new Headers(headersOf(headers, text));
  if (!sent.has("idempotency-key")) sent.set("idempotency-key", job.idempotencyKey);
  if (body !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
  const where = `${method} ${url.origin}${url.pathname}`;
  let response: Response;
  try {
    response = await request(url, {
      method,
      headers: sent,
      ...(body === undefined ? {} : { body: stringifyJson(body) }),
      signal: job.signal,
    });
  } catch (cause) {
    job.signal.throwIfAborted();
    const { message } = asError(cause), why = `${where}: ${withoutQuery(message, url)}`;
    if (cause instanceof Deno.errors.NotCapable) throw new PermanentError(why, { cause });
    throw new MailerError("http_unreachable", why, { cause });
  }
  const { status } = response, isExpected = expect.length === 0 ? response.ok : expect.includes(status);
  if (!isExpected) {
    await response.body?.cancel();
    throw statusError(where, status);
  }
  return { status, headers: Object.fromEntries(response.headers), body: await bodyOf(response, where) };
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new PermanentError(`${JSON.stringify(text.split("?")[0])} is no http or https address`);
}

function headersOf(headers: Readonly<Record<string, string>>, url: string): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new PermanentError(
      `the headers for ${url.split("?")[0]} are not right: ${asError(cause).message}`,
      { cause },
    );
  }
}

function withoutQuery(message: string, { search }: URL): string {
  return search === "" ? message : message.replaceAll(search, "");
}

/** The error of a status: its name is `http_404`, so that a policy may except it. */
function statusError(where: string, status: number): MailerError {
  const message = `${where} answered ${status}`;
  const isPassing = status >= 500 || PASSING.includes(status);
  return new MailerError(`http_${status}`, message, isPassing ? {} : { cause: new PermanentError(message) });
}

/** JSON as its value, anything else as text, nothing as null. */
async function bodyOf(response: Response, where: string): Promise<unknown> {
  const bytes = await readBody(response, where);
  if (bytes.length === 0) return null;
  const text = new TextDecoder().decode(bytes), type = response.headers.get("content-type") ?? "";
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(type)) return text;
  try {
    return parseJson(text);
  } catch (cause) {
    throw new MailerError(
      "http_bad_body",
      `${where} says it answers JSON, and does not: ${asError(cause).message}`,
      {
        cause,
      },
    );
  }
}

async function readBody(response: Response, where: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > LARGEST_BODY) {
      throw new PermanentError(`${where} answered more than ${LARGEST_BODY} bytes`);
    }
    parts.push(part);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
