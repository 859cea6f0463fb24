/**
 * Starting executions, in this process or by HTTP: what sinks and triggers need of an engine.
 *
 * T1 A start that resolves is durable. The same id again starts nothing new.
 * T2 What can never be started is told from what may go well another time.
 *
 * @module
 */
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Finding } from "../../lib/connector.ts";
import { asError, codeOf, MailerError } from "../../lib/errors.ts";
import { FlowClient } from "../../lib/flow/client/mod.ts";
import type { FlowEngine } from "../../lib/flow/engine/mod.ts";
import { parseJson, stringifyJson } from "../../lib/json.ts";

/** What is to be started. */
export interface StartRequest {
  /** Name of the flow. */
  readonly flow: string;
  /** Hash of the version. Default: the newest. */
  readonly version?: string | undefined;
  /** An object. */
  readonly input: unknown;
  /** Id of the execution. */
  readonly id: string;
}

/** Starts executions. */
export interface FlowStarter {
  /** What it starts them with, for `describe`; never a secret. */
  readonly where: string;
  /**
   * Starts an execution, or finds that it was started.
   *
   * @throws {StartRefused} It can never be started.
   * @throws {MailerError} It may go well another time.
   */
  start(request: StartRequest, signal?: AbortSignal): Promise<void>;
  /** Looks whether a flow is there. */
  check(flow: string, signal?: AbortSignal): Promise<Finding>;
}

/** A start that can never go well: its input, its id. */
export class StartRefused extends MailerError {
  /** Takes code and message over. */
  constructor(
    code: string,
    message: string,
    options: { readonly cause?: unknown; readonly hint?: string } = {},
  ) {
    super(code, message, { ...options, lasting: true });
  }
}

/** Where flows run: an engine of this process, a client, a server of Mailer. */
export interface FlowTarget {
  /** An engine of this process. */
  readonly engine?: FlowEngine | undefined;
  /** A client, of an engine elsewhere on the same store. */
  readonly client?: FlowClient | undefined;
  /** Address of a server, such as `https://flows.example.com`. */
  readonly url?: string | undefined;
  /** Its token. */
  readonly token?: string | undefined;
  /** How long one request may take, ms. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
}

/** Codes of starts that can never go well. */
const LASTING: ReadonlySet<string> = new Set([
  "invalid_argument",
  "invalid_command",
  "execution_conflict",
  "rejected",
  "too_deep",
  "too_large",
  "text_too_large",
]);
const TIMEOUT_MS = 30_000;

/**
 * A starter for a target.
 *
 * @throws {MailerError} `invalid_flow_target` unless exactly one is given.
 */
export function starterFor(target: FlowTarget): FlowStarter {
  const { engine, client, url, token, timeoutMs = TIMEOUT_MS, clock = systemClock } = target;
  if ([engine, client, url].filter((given) => given !== undefined).length !== 1) {
    throw new MailerError("invalid_flow_target", "give one of `engine`, `client` and `url`: where flows run");
  }
  if (url !== undefined) return new HttpStarter(url, token, timeoutMs, clock);
  if (token !== undefined) throw new MailerError("invalid_flow_target", "a `token` belongs to a `url`");
  if (client !== undefined) return new ClientStarter(client);
  const { core } = engine!;
  return new ClientStarter(new FlowClient({ store: core.store, clock: core.clock, engine: engine! }));
}

class ClientStarter implements FlowStarter {
  readonly where = "this process";
  readonly #client: FlowClient;

  constructor(client: FlowClient) {
    this.#client = client;
  }

  async start({ flow, version, input, id }: StartRequest): Promise<void> {
    try {
      await this.#client.start(flow, input, { id, ...(version === undefined ? {} : { version }) });
    } catch (error) {
      throw refusedOr(error);
    }
  }

  async check(flow: string): Promise<Finding> {
    try {
      const { hash } = await this.#client.flow(flow);
      return { ok: true, text: `flow ${flow}: version ${hash}` };
    } catch (error) {
      if (codeOf(error) !== "unknown_flow") throw error;
      return missing(flow);
    }
  }
}

class HttpStarter implements FlowStarter {
  readonly where: string;
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #clock: Clock;

  constructor(text: string, token: string | undefined, timeoutMs: number, clock: Clock) {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.username !== "") {
      throw new MailerError(
        "invalid_flow_target",
        "`url` is an http or https address without a user or a query",
      );
    }
    this.where = url.origin + url.pathname;
    this.#base = url.href.replace(/\/$/, "");
    this.#token = token;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  async start({ flow, version, input, id }: StartRequest, signal?: AbortSignal): Promise<void> {
    await this.#call("POST", "/v1/executions", {
      flow,
      input,
      id,
      ...(version === undefined ? {} : { version }),
    }, signal);
  }

  async check(flow: string, signal?: AbortSignal): Promise<Finding> {
    try {
      await this.#call("GET", `/v1/flows/${encodeURIComponent(flow)}`, undefined, signal);
      return { ok: true, text: `flow ${flow} at ${this.where}` };
    } catch (error) {
      if (codeOf(error) !== "unknown_flow") throw error;
      return missing(flow);
    }
  }

  async #call(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<void> {
    const timeUp = new AbortController(),
      late = new MailerError("timeout", `no answer within ${this.#timeoutMs} ms`);
    const alarm = this.#clock.schedule(this.#timeoutMs, () => timeUp.abort(late));
    let status: number, text: string;
    try {
      const response = await fetch(this.#base + path, {
        method,
        headers: {
          "content-type": "application/json",
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        },
        ...(body === undefined ? {} : { body: stringifyJson(body) }),
        signal: AbortSignal.any([timeUp.signal, ...(signal === undefined ? [] : [signal])]),
      });
      status = response.status;
      text = await response.text();
    } catch (cause) {
      signal?.throwIfAborted();
      throw new MailerError("flow_server_unreachable", `${this.where}: ${asError(cause).message}`, { cause });
    } finally {
      alarm.cancel();
    }
    if (status >= 200 && status < 300) return;
    const { code, message } = errorOf(text, status);
    throw refusedOr(new MailerError(code, `${this.where} answered ${status}: ${message}`));
  }
}

function errorOf(text: string, status: number): { readonly code: string; readonly message: string } {
  try {
    const { error } = parseJson(text) as { error: { code: unknown; message: unknown } };
    if (typeof error.code === "string" && typeof error.message === "string") {
      return { code: error.code, message: error.message };
    }
  } catch { // an answer of something that stands in front of the server
  }
  return { code: `http_${status}`, message: text.slice(0, 200) };
}

function refusedOr(error: unknown): unknown {
  const code = codeOf(error);
  return LASTING.has(code) ? new StartRefused(code, asError(error).message, { cause: error }) : error;
}

function missing(flow: string): Finding {
  return { ok: false, text: `there is no flow "${flow}"`, hint: "register it first" };
}
