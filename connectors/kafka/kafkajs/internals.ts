/**
 * What is used of kafkajs, typed: a broker's connection with TLS, login and the versions it speaks. The modules are its own, not
 * its public face; the version is pinned exactly.
 *
 * @module
 */
import type { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import BrokerModule from "kafkajs/src/broker/index.js";
import ConnectionPoolModule from "kafkajs/src/network/connectionPool.js";
import EncoderModule from "kafkajs/src/protocol/encoder.js";

/** Where kafkajs writes its log. */
export interface KafkajsLogger {
  /** A logger for one part. */
  namespace(name: string): KafkajsLogger;
  /** Least important. */
  debug(message: string, extra?: Record<string, unknown>): void;
  /** What happens. */
  info(message: string, extra?: Record<string, unknown>): void;
  /** What is odd. */
  warn(message: string, extra?: Record<string, unknown>): void;
  /** What failed; it throws as well. */
  error(message: string, extra?: Record<string, unknown>): void;
}

/** Collects the bytes of a request. */
export interface KafkajsEncoder {
  /** The bytes. */
  buf: Buffer;
  /** How many of them count. */
  offset: number;
}

/** A request with its answer. */
export interface KafkajsRequest<Answer> {
  /** What is sent. */
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    readonly encode: () => Promise<KafkajsEncoder>;
    readonly expectResponse?: () => boolean;
  };
  /** How what comes back is read: first `decode`, then `parse`. */
  readonly response: {
    readonly decode: (
      payload: Buffer,
    ) => Promise<{ readonly clientSideThrottleTime: number; readonly answer: Answer }>;
    readonly parse: (decoded: { readonly answer: Answer }) => Promise<Answer>;
  };
}

/** Requests that wait for a connection. */
export interface KafkajsRequestQueue {
  /** Those that are held back because the broker asked for it. */
  readonly pending: readonly unknown[];
  /** Until when, ms since the epoch. */
  readonly throttledUntil: number;
  /** Looks whether they may go on, later. */
  scheduleCheckPendingRequests: () => void;
  /** Sends those that may go on. */
  checkPendingRequests(): void;
}

/** One socket with its requests. */
export interface KafkajsConnection {
  /** Open. */
  isConnected(): boolean;
  /** Asks, and waits for the answer. */
  send<Answer>(request: KafkajsRequest<Answer>): Promise<Answer | undefined>;
  /** Rejects all requests under way. */
  rejectRequests(error: Error): void;
  /** Waits for requests under way, then closes. */
  disconnect(): Promise<unknown>;
  /** Set once it has been opened. */
  readonly socket?: Socket;
  /** Its requests. */
  readonly requestQueue: KafkajsRequestQueue;
}

/** The connections to one broker. */
export interface KafkajsConnectionPool {
  /** The first is the one we use. */
  readonly pool: readonly [KafkajsConnection, KafkajsConnection];
}

/** A broker: opens its connection, asks which versions it speaks, logs in. */
export interface KafkajsBroker {
  /** Once; again where the connection is gone. */
  connect(): Promise<void>;
  /** Versions it speaks, by number of the request. */
  readonly versions:
    | Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number }>>
    | null;
}

/** How a socket is opened. */
export type KafkajsSocketFactory = (to: {
  readonly host: string;
  readonly port: number;
  readonly onConnect: () => void;
}) => Socket;

/** How to reach one broker. */
export interface KafkajsConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly logger: KafkajsLogger;
  readonly socketFactory: KafkajsSocketFactory;
  readonly clientId: string;
  readonly connectionTimeout: number;
  readonly requestTimeout: number;
  readonly enforceRequestTimeout: boolean;
  readonly sasl: { readonly mechanism: string; readonly username: string; readonly password: string } | null;
}

/** Makes a broker. */
export const Broker = BrokerModule as unknown as new (options: {
  readonly connectionPool: KafkajsConnectionPool;
  readonly logger: KafkajsLogger;
  readonly authenticationTimeout: number;
}) => KafkajsBroker;

/** Makes the connections of a broker; opens none. */
export const ConnectionPool = ConnectionPoolModule as unknown as new (
  options: KafkajsConnectionOptions,
) => KafkajsConnectionPool;

/** Makes an encoder. */
export const Encoder = EncoderModule as unknown as new (initialBytes: number) => KafkajsEncoder;
