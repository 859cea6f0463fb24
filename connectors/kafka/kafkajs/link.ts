/**
 * One connection to one broker: a request goes out, its answer comes back or an error of our own list.
 *
 * L1 A link that failed, or did not answer in time, is never used again: answers of two requests cannot be mixed up.
 * L2 An error says whether the request may have reached the broker (`sent`).
 * L3 Every wait ends: by the answer, its deadline on the clock, the signal, or `destroy`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { abortable } from "../../../lib/abortable.ts";
import type { Alarm, Clock } from "../../../lib/clock.ts";
import { asError } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { KafkaConnection, KafkaTls } from "../client.ts";
import { KafkaError, type KafkaErrorCode, type KafkaErrorOptions } from "../errors.ts";
import type { Api, Throttled } from "../protocol/requests/api.ts";
import { WireReader, WireWriter } from "../protocol/wire.ts";
import {
  Broker,
  ConnectionPool,
  Encoder,
  type KafkajsBroker,
  type KafkajsConnection,
  type KafkajsConnectionPool,
  type KafkajsEncoder,
  type KafkajsLogger,
} from "./internals.ts";

/** The connection failed; whether the request had been sent matters to whoever must not do a thing twice. */
export class LinkError extends KafkaError {
  /** The broker may have done it. */
  readonly sent: boolean;

  /** An error of the connection, not an answer. */
  constructor(code: KafkaErrorCode, message: string, sent: boolean, options: KafkaErrorOptions = {}) {
    super(code, message, options);
    this.name = "KafkaError"; // who asked need not know the difference
    this.sent = sent;
  }
}

/** Where a broker is. */
export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/** What a link needs to know. */
export interface LinkContext {
  readonly connection: KafkaConnection;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How one request is sent. */
export interface RequestOptions {
  /** How long the answer may take, ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The broker sends no answer: resolves with undefined when it is written. */
  readonly noAnswer?: boolean;
}

const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;
/** kafkajs has its own timers for what the clock here ends first; they only must not come earlier. */
const KAFKAJS_GRACE_MS = 5000;
/** How long the reason of a failure may come behind the end of the connection. */
const REASON_GRACE_MS = 100;

/** One connection to one broker. Opens with the first request. */
export class Link {
  readonly address: BrokerAddress;
  readonly #context: LinkContext;
  readonly #broker: KafkajsBroker;
  readonly #connection: KafkajsConnection;
  readonly #connectTimeoutMs: number;
  readonly #dead = new AbortController();
  #socket: Socket | undefined;
  #opened: Promise<void> | undefined;
  #isOpen = false;
  #closing: Alarm | undefined;
  #answers = 0;

  constructor(address: BrokerAddress, context: LinkContext) {
    this.address = address;
    this.#context = context;
    this.#connectTimeoutMs = context.connection.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    const logger = kafkajsLogger(context.logger, `${address.host}:${address.port}`);
    const pool = this.#makePool(logger);
    this.#connection = pool.pool[0];
    repairThrottling(this.#connection, context.clock);
    this.#broker = new Broker({
      connectionPool: pool,
      logger,
      authenticationTimeout: this.#connectTimeoutMs + KAFKAJS_GRACE_MS,
    });
  }

  #makePool(logger: KafkajsLogger): KafkajsConnectionPool {
    const { clientId, sasl, tls } = this.#context.connection;
    return new ConnectionPool({
      ...this.address,
      logger,
      clientId: clientId ?? "mailer",
      connectionTimeout: this.#connectTimeoutMs + KAFKAJS_GRACE_MS,
      requestTimeout: 2 ** 31 - 1,
      enforceRequestTimeout: false, // the clock's deadlines hold
      sasl: sasl === undefined ? null : { ...sasl },
      socketFactory: ({ host, port, onConnect }) => {
        if (!this.alive) throw this.#dead.signal.reason; // destroyed before it began
        this.#socket = openSocket({ host, port }, tls, onConnect);
        this.#socket.on("close", () => this.#onClose());
        return this.#socket;
      },
    });
  }

  /** Can still be used. */
  get alive(): boolean {
    return !this.#dead.signal.aborted;
  }

  /** Asks, and waits for the answer. */
  async request<Question, Answer extends Throttled>(
    api: Api<Question, Answer>,
    question: Question,
    options: RequestOptions,
  ): Promise<Answer> {
    await this.#open(options.signal);
    this.#checkVersion(api);
    options.signal?.throwIfAborted();
    const answer = await this.#bounded(
      this.#send(api, question, options.noAnswer === true),
      options,
      api.name,
    );
    this.#answers++;
    return answer as Answer;
  }

  /** Opens it and finds out whether that works. */
  async #open(signal: AbortSignal | undefined): Promise<void> {
    this.#opened ??= this.#connect();
    await (signal === undefined ? this.#opened : abortable(this.#opened, signal));
    if (this.alive && !this.#connection.isConnected()) this.destroy(this.#closedError(false));
    if (!this.alive) throw this.#dead.signal.reason;
  }

  async #connect(): Promise<void> {
    const alarm = this.#context.clock.schedule(this.#connectTimeoutMs, () => {
      const what = `${this.#name()} could not be reached within ${this.#connectTimeoutMs} ms`;
      this.destroy(
        new LinkError("kafka_unreachable", what, false, {
          retriable: true,
          hint: `check host, port and firewall${mismatchHint(this.#context.connection)}`,
        }),
      );
    });
    try {
      await abortable(this.#broker.connect(), this.#dead.signal);
      this.#isOpen = true;
    } catch (thrown) {
      const error = thrown instanceof KafkaError ? thrown : this.#translate(thrown, false);
      this.destroy(error);
      throw error;
    } finally {
      alarm.cancel();
    }
  }

  /** While it is being opened, the reason is about to come by another way: why a login failed, say. */
  #onClose(): void {
    if (!this.alive) return;
    if (this.#isOpen) return this.destroy(this.#closedError(true));
    this.#closing = this.#context.clock.schedule(
      REASON_GRACE_MS,
      () => this.destroy(this.#closedError(false)),
    );
  }

  #checkVersion(api: Api<never, unknown>): void {
    const range = this.#broker.versions?.[api.key];
    if (range !== undefined && range.minVersion <= api.version && api.version <= range.maxVersion) return;
    const speaks = range === undefined
      ? "does not know it"
      : `speaks ${range.minVersion} to ${range.maxVersion}`;
    throw new KafkaError(
      "kafka_unsupported",
      `${this.#name()}: version ${api.version} of ${api.name} is needed, the broker ${speaks}`,
      {
        broker: "UNSUPPORTED_VERSION",
        hint: "Kafka 2.6 or later is needed, for looking at transactions 3.0",
      },
    );
  }

  #send<Question, Answer extends Throttled>(
    api: Api<Question, Answer>,
    question: Question,
    noAnswer: boolean,
  ): Promise<Answer | undefined> {
    return this.#connection.send<Answer>({
      request: {
        apiKey: api.key,
        apiVersion: api.version,
        apiName: api.name,
        encode: () => Promise.resolve(encode(api, question)),
        ...(noAnswer ? { expectResponse: () => false } : {}),
      },
      response: {
        decode: (payload) => Promise.resolve(decode(api, payload)),
        parse: ({ answer }) => Promise.resolve(answer),
      },
    });
  }

  async #bounded<T>(pending: Promise<T>, options: RequestOptions, name: string): Promise<T> {
    const alarm = this.#context.clock.schedule(options.timeoutMs, () => {
      this.destroy(
        new LinkError(
          "kafka_timeout",
          `${this.#name()} did not answer ${name} within ${options.timeoutMs} ms`,
          true,
          {
            retriable: true,
          },
        ),
      );
    });
    try {
      const answered = abortable(pending, this.#dead.signal);
      return await (options.signal === undefined ? answered : abortable(answered, options.signal));
    } catch (thrown) {
      if (options.signal?.aborted && thrown === options.signal.reason) throw thrown; // the answer will be dropped
      const error = thrown instanceof KafkaError ? thrown : this.#translate(thrown, true);
      this.destroy(error);
      throw error;
    } finally {
      alarm.cancel();
    }
  }

  /** Ends it: everything under way rejects with `error`. May be called again. */
  destroy(error: KafkaError): void {
    if (!this.alive) return;
    this.#closing?.cancel();
    this.#dead.abort(error);
    this.#connection.rejectRequests(error);
    // An "error" event is what makes kafkajs give a connection up that is still being opened.
    if (this.#socket !== undefined && !this.#socket.destroyed) this.#socket.destroy(error);
    this.#connection.disconnect().catch((thrown) => {
      this.#context.logger.log("debug", "closing a connection failed", { error: asError(thrown).message });
    });
  }

  #name(): string {
    return `${this.address.host}:${this.address.port}`;
  }

  #closedError(sent: boolean): LinkError {
    const silent = this.#answers === 0;
    return new LinkError(
      "kafka_unreachable",
      `${this.#name()} closed the connection${silent ? " without a word" : ""}`,
      sent,
      {
        retriable: true,
        ...(silent
          ? { hint: `the broker may be starting or stopping${mismatchHint(this.#context.connection)}` }
          : {}),
      },
    );
  }

  /** What kafkajs or the socket threw, in our words. */
  #translate(thrown: unknown, sent: boolean): LinkError {
    const cause = asError(thrown);
    const text = cause.message.replace(/^Connection error: /, "");
    const closed = CLOSED_SIGNS.test(text);
    if (isLoginError(cause) && !closed) {
      return new LinkError("kafka_authentication_failed", `${this.#name()}: ${text}`, sent, {
        cause,
        hint: "check user, password and mechanism, and that the listener expects a login",
      });
    }
    const { connection } = this.#context;
    if (connection.tls !== undefined && !isNetworkError(cause) && TLS_SIGNS.test(text)) {
      return new LinkError("kafka_tls", `${this.#name()}: ${text}`, sent, {
        cause,
        hint: `check the certificates (ca, cert, key, server name)${mismatchHint(connection)}`,
      });
    }
    if (closed) return this.#closedError(sent);
    return new LinkError("kafka_unreachable", `${this.#name()}: ${text}`, sent, {
      cause,
      retriable: true,
      hint: "check host and port, and that the broker is up",
    });
  }
}

function encode<Question>(api: Api<Question, unknown>, question: Question): KafkajsEncoder {
  const writer = new WireWriter();
  if (api.flexible) writer.noTags(); // end of the header
  api.write(writer, question);
  const bytes = writer.finish();
  const encoder = new Encoder(1);
  encoder.buf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  encoder.offset = bytes.byteLength;
  return encoder;
}

function decode<Answer extends Throttled>(
  api: Api<never, Answer>,
  payload: Uint8Array,
): { readonly clientSideThrottleTime: number; readonly answer: Answer } {
  const reader = new WireReader(payload);
  if (api.flexible) reader.skipTags(); // end of the header
  const answer = api.read(reader);
  return { clientSideThrottleTime: answer.throttleMs, answer };
}

function openSocket(to: BrokerAddress, tls: KafkaTls | undefined, onConnect: () => void): Socket {
  const socket = tls === undefined ? connectPlain(to, onConnect) : connectTls({
    ...to,
    ...(tls.serverName !== undefined
      ? { servername: tls.serverName }
      : isIP(to.host) === 0
      ? { servername: to.host }
      : {}),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    ...(tls.insecureSkipVerify ? { rejectUnauthorized: false } : {}),
  }, onConnect);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 60_000);
  return socket;
}

/**
 * kafkajs looks for held-back requests on a timer whose delay is negative when there are none: it fires at once, again and again.
 * Here the timer is set only while requests wait.
 */
function repairThrottling(connection: KafkajsConnection, clock: Clock): void {
  const queue = connection.requestQueue;
  let waiting = false;
  queue.scheduleCheckPendingRequests = () => {
    if (waiting || queue.pending.length === 0) return;
    waiting = true;
    clock.schedule(Math.max(queue.throttledUntil - clock.now(), 1), () => {
      waiting = false;
      queue.checkPendingRequests();
    });
  };
}

function kafkajsLogger(logger: Logger, broker: string): KafkajsLogger {
  const write = (message: string, extra?: Record<string, unknown>) =>
    logger.log("debug", "kafka connection", { broker, message, error: extra?.["error"] });
  const self: KafkajsLogger = { namespace: () => self, debug() {}, info: write, warn: write, error: write };
  return self;
}

function mismatchHint({ tls, sasl }: KafkaConnection): string {
  const causes = [
    ...(tls === undefined ? ["it expects TLS and tls is not set"] : ["it does not speak TLS and tls is set"]),
    ...(sasl === undefined ? ["it expects a login and sasl is not set"] : []),
    ...(tls !== undefined && tls.cert === undefined ? ["it expects a client certificate"] : []),
  ];
  return `; or the listener is another one than expected: ${causes.join(", or ")}`;
}

const TLS_SIGNS =
  /certificate|ssl|tls|handshake|corrupt message|InvalidContentType|alert|UnknownIssuer|NotValidForName/i;
const CLOSED_SIGNS = /closed connection|not connected|connection closed|connection timeout|timed out/i;
const LOGIN_ERRORS = new Set([
  "ILLEGAL_SASL_STATE",
  "SASL_AUTHENTICATION_FAILED",
  "UNSUPPORTED_SASL_MECHANISM",
]);

const NETWORK_ERRORS = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
]);

function isNetworkError(error: Error): boolean {
  return "code" in error && typeof error.code === "string" && NETWORK_ERRORS.has(error.code);
}

function isLoginError(error: Error): boolean {
  return error.name === "KafkaJSSASLAuthenticationError" ||
    ("type" in error && typeof error.type === "string" && LOGIN_ERRORS.has(error.type));
}
