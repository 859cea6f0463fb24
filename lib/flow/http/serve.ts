/**
 * Flows over HTTP: for programs and workers in any language.
 *
 * V1 Nothing is answered before it is known who calls; what is served without that tells nothing of what is stored.
 * V2 Every answer is JSON (metrics and events aside), says that it is nothing else, and is kept by nobody in between.
 * V3 A call that fails says so by its status and `{"error": …}`; nothing of the inside gets out.
 * V4 Draining answers whoever waits, takes answers of workers until the end, and cuts no call off that can come to its end in time.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import { type Logger, silentLogger } from "../../log.ts";
import { FlowClient } from "../client/mod.ts";
import type { FlowEngine } from "../engine/mod.ts";
import { RemoteJobs } from "../engine/remote.ts";
import { readBody } from "./body.ts";
import { errorBody, noSuchPath, statusOf } from "./errors.ts";
import { readFields } from "./fields.ts";
import { guardOf } from "./guard.ts";
import { EngineMetrics } from "./metrics.ts";
import { openApi } from "./openapi.ts";
import { Reply, type Route, Routes, type Scene } from "./route.ts";
import { ROUTES } from "./routes.ts";

/** Settings of a server. */
export interface ServeOptions {
  /** Carries out what is asked. The server does not start it, nor drain it. */
  readonly engine: FlowEngine;
  /** Default: one on the engine and its store. */
  readonly client?: FlowClient;
  /** Default 127.0.0.1. */
  readonly hostname?: string;
  /** 0 = one that is free. Default 8088. */
  readonly port?: number;
  /** Who has it may call. Without one only programs on this machine are served. */
  readonly token?: string;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Default: nowhere. */
  readonly logger?: Logger;
  /** Most calls that wait at once; others are answered 429, heartbeats at once. Default 1,000. */
  readonly maxWaiting?: number;
}

/** A server that listens. */
export interface FlowServer extends AsyncDisposable {
  /** Where: `http://127.0.0.1:8088`. */
  readonly url: string;
  /**
   * Answers whoever waits, hands out no more jobs, and stops when the calls under way are answered.
   *
   * @param withinMs Then they are cut off. Default 5,000.
   */
  drain(withinMs?: number): Promise<void>;
}

const PORT = 8088;
const MOST_WAITING = 1000;
const DRAIN_MS = 5000;

/** Headers of every answer. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/**
 * Serves an engine.
 *
 * A call that waits hears when its caller has gone, so that nothing is handed to nobody. Deno says once on standard error that this
 * will change with a later version; `"unstable": ["no-legacy-abort"]` in `deno.json` takes the later behaviour, and is silent.
 *
 * @throws {MailerError} `cannot_listen`; `invalid_option` for a token that is too short to be one.
 */
export function serveFlows(options: ServeOptions): FlowServer {
  return new Server(options);
}

class Server implements FlowServer {
  readonly url: string;
  readonly #options: ServeOptions;
  readonly #routes = new Routes(ROUTES);
  readonly #scene: Scene;
  readonly #jobs: RemoteJobs;
  readonly #guard: ReturnType<typeof guardOf>;
  readonly #metrics: EngineMetrics;
  readonly #logger: Logger;
  readonly #draining = new AbortController();
  /** Cuts off calls that have not come to their end in time. */
  readonly #abort = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #idle: (() => void) | undefined;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #waiting = 0;
  #drained: Promise<void> | undefined;

  constructor(options: ServeOptions) {
    const { engine, hostname = "127.0.0.1", port = PORT, token, clock = systemClock } = options;
    if (token !== undefined && token.length < 16) {
      throw new MailerError("invalid_option", "a token has at least 16 characters", {
        hint: "make one: openssl rand -hex 32",
      });
    }
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#guard = guardOf(token);
    this.#jobs = new RemoteJobs(engine);
    this.#metrics = new EngineMetrics(engine, () => this.#waiting);
    const client = options.client ?? new FlowClient({ store: engine.core.store, engine, clock });
    this.#scene = { client, engine, jobs: this.#jobs, clock, draining: this.#draining.signal };
    try {
      this.#server = Deno.serve(
        { hostname, port, signal: this.#abort.signal, onListen() {} },
        (request, info) => {
          this.#count(info.completed);
          return this.#answer(request, info.remoteAddr.hostname);
        },
      );
    } catch (cause) {
      throw new MailerError(
        "cannot_listen",
        `cannot listen at ${hostname}:${port}: ${asError(cause).message}`,
        {
          cause,
          hint: "choose another address, or port 0 for one that is free",
        },
      );
    }
    const { port: bound } = this.#server.addr;
    this.url = `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${bound}`;
  }

  drain(withinMs: number = DRAIN_MS): Promise<void> {
    return this.#drained ??= this.#drain(withinMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0);
  }

  async #drain(withinMs: number): Promise<void> {
    this.#jobs.drain();
    this.#draining.abort(new MailerError("draining", "the server drains"));
    const timeUp = Promise.withResolvers<"cut">();
    const alarm = this.#scene.clock.schedule(withinMs, () => timeUp.resolve("cut"));
    const idle = new Promise<void>((resolve) => this.#idle = resolve);
    const outcome = this.#underWay.size === 0 ? undefined : await Promise.race([idle, timeUp.promise]);
    // What was answered may still be on its way; what was not is cut off.
    if (outcome !== "cut") await Promise.race([this.#server.shutdown(), timeUp.promise]);
    else {
      this.#abort.abort();
      await this.#server.finished;
    }
    alarm.cancel();
    this.#jobs.close();
  }

  /** Counts a call until its answer is sent, or nobody is there to hear it. */
  #count(completed: Promise<void>): void {
    this.#underWay.add(completed);
    const end = (): void => {
      this.#underWay.delete(completed);
      if (this.#underWay.size === 0) this.#idle?.();
    };
    completed.then(end, end);
  }

  async #answer(request: Request, remote: string): Promise<Response> {
    let response: Response;
    try {
      response = await this.#respond(request, remote);
    } catch (error) {
      const status = statusOf(error);
      if (status === 500) {
        const { pathname } = new URL(request.url);
        this.#logger.log("error", "a call failed", {
          method: request.method,
          path: pathname,
          error: asError(error).message,
        });
      }
      response = json(errorBody(error), status);
      if (status === 401) response.headers.set("www-authenticate", "Bearer");
      if (status === 429 || status === 503) response.headers.set("retry-after", "1");
    }
    for (const [name, value] of Object.entries(HEADERS)) response.headers.set(name, value);
    return response;
  }

  async #respond(request: Request, remote: string): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url), { method } = request;
    if (isRead(method) && pathname === "/healthz") return plain("ok\n", 200);
    if (isRead(method) && pathname === "/readyz") return this.#ready();
    this.#guard.check(request, remote);
    if (isRead(method) && pathname === "/metrics") {
      return plain(await this.#metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
    }
    if (isRead(method) && pathname === "/v1/openapi.json") return json(openApi(ROUTES), 200);
    const found = this.#routes.at(pathname), match = found.find(({ route }) => route.method === method);
    if (match === undefined) {
      if (found.length === 0) throw noSuchPath(pathname);
      return wrongMethod(method, found.map(({ route }) => route.method));
    }
    return await this.#call(match.route, match.names, request, searchParams);
  }

  async #call(
    route: Route,
    names: Readonly<Record<string, string>>,
    request: Request,
    searchParams: URLSearchParams,
  ): Promise<Response> {
    const { body = {}, query = {}, method, waits } = route;
    const call = {
      path: decodedNames(names),
      query: readFields(valuesOf(searchParams), query, "the query"),
      body: method === "POST" ? readFields(await readBody(request), body, "the body") : {},
      headers: request.headers,
      // The signal of a request is only looked at where somebody waits: looking at it has a price.
      signal: waits !== undefined
        ? AbortSignal.any([request.signal, this.#draining.signal])
        : this.#draining.signal,
    };
    const place = waits === undefined ? undefined : this.#takePlace();
    if (place === undefined && waits === true) {
      throw new MailerError("too_many_requests", "too many calls wait already", {
        hint: "ask again in a moment",
      });
    }
    try {
      const answer = await route.handle(this.#scene, {
        ...call,
        mayWait: place !== undefined,
        goesOn: () => place!.keep(),
      });
      if (answer instanceof Response) return answer;
      return answer instanceof Reply ? json(answer.value, answer.status) : json(answer, 200);
    } finally {
      place?.leave();
    }
  }

  /** A place among the calls that wait, if there is one: left with the answer, or later where it is kept. */
  #takePlace(): { leave(): void; keep(): () => void } | undefined {
    if (this.#waiting >= (this.#options.maxWaiting ?? MOST_WAITING)) return undefined;
    this.#waiting++;
    let isKept = false;
    return {
      leave: () => {
        if (!isKept) this.#waiting--;
      },
      keep: () => {
        isKept = true;
        return () => void this.#waiting--;
      },
    };
  }

  #ready(): Response {
    if (this.#draining.signal.aborted) return plain("draining\n", 503);
    return plain("ready\n", 200);
  }
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

function plain(text: string, status: number, type = "text/plain; charset=utf-8"): Response {
  return new Response(text, { status, headers: { "content-type": type } });
}

function json(value: unknown, status: number): Response {
  const headers = { "content-type": "application/json; charset=utf-8" };
  return new Response(`${stringifyJson(value ?? null)}\n`, { status, headers });
}

function wrongMethod(method: string, allowed: readonly string[]): Response {
  const error = new MailerError("wrong_method", `there is no ${method} here`, {
    hint: `there is ${allowed.join(", ")}`,
  });
  const response = json(errorBody(error), statusOf(error));
  response.headers.set("allow", allowed.join(", "));
  return response;
}

/** Values by name; of a name that comes several times, a list. */
function valuesOf(params: URLSearchParams): Record<string, unknown> {
  const values = new Map<string, string | string[]>();
  for (const name of new Set(params.keys())) {
    const all = params.getAll(name);
    values.set(name, all.length === 1 ? all[0]! : all);
  }
  return Object.fromEntries(values);
}

function decodedNames(names: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(names).map(([name, text]) => {
      try {
        return [name, decodeURIComponent(text)];
      } catch (cause) {
        throw new MailerError("invalid_argument", `the path has a wrong escape: ${text.slice(0, 200)}`, {
          cause,
        });
      }
    }),
  );
}
