/**
 * Opening a store for one command, and closing it again.
 *
 * O1 A command that changes an execution carries it out itself where nobody has the execution's partition; a process that has it is
 *    left to do so.
 *
 * @module
 */
import { dirname, resolve } from "node:path";
import { asError, MailerError } from "../../errors.ts";
import { FlowClient } from "../../flow/client/mod.ts";
import { FlowEngine } from "../../flow/engine/mod.ts";
import { openKvStore } from "../../flow/store/kv.ts";
import type { FlowStore } from "../../flow/store/port.ts";
import { parseJson } from "../../json.ts";
import { parseDuration } from "../../duration.ts";
import { dataDirOf } from "../documents.ts";
import type { Host } from "../host.ts";
import type { FlowFlags } from "./options.ts";

/** Where the store lies. */
export function storePath(flags: FlowFlags, host: Host): string {
  return flags.store === undefined
    ? resolve(dataDirOf(flags, host), "flows.db")
    : resolve(host.cwd, flags.store);
}

/** Opens a store; `create` makes one where there is none. */
export async function openStoreOf(flags: FlowFlags, host: Host, create: boolean): Promise<FlowStore> {
  const path = storePath(flags, host);
  if (create) await Deno.mkdir(dirname(path), { recursive: true });
  else {
    try {
      await Deno.stat(path);
    } catch (cause) {
      if (!(cause instanceof Deno.errors.NotFound)) throw cause;
      throw new MailerError("no_store", `there is no store ${path}`, {
        cause,
        hint: "mailer flow register FILE makes one; --store and --data-dir say where",
      });
    }
  }
  return await openKvStore({ path, clock: host.clock });
}

/** How a command works on a store. */
export interface Access {
  /** Executions it may change, or all; absent: it changes none. */
  readonly changes?: readonly string[] | "all";
  /** Whether a store is made where there is none. */
  readonly create?: boolean;
}

/** Opens a store and a client for as long as `work` takes. */
export async function withClient<T>(
  flags: FlowFlags,
  host: Host,
  { changes, create = false }: Access,
  work: (client: FlowClient) => Promise<T>,
): Promise<T> {
  await using store = await openStoreOf(flags, host, create);
  if (changes === undefined) return await work(new FlowClient({ store, clock: host.clock }));
  const partitions = changes === "all" ? {} : {
    partitions: [...new Set(changes.map((id) => store.partitions.of(id)))],
  };
  await using engine = new FlowEngine({ store, clock: host.clock, ...partitions });
  await engine.start();
  return await work(new FlowClient({ store, engine, clock: host.clock }));
}

/** The value of an option that is JSON, or names a file of JSON. */
export async function jsonOption(text: string, option: string, host: Host): Promise<unknown> {
  try {
    return parseJson(text.startsWith("@") ? await Deno.readTextFile(resolve(host.cwd, text.slice(1))) : text);
  } catch (cause) {
    throw new MailerError("usage", `${option}: ${asError(cause).message}`, { cause });
  }
}

/** The same, where it has to be an object. */
export async function objectOption(
  text: string,
  option: string,
  host: Host,
): Promise<Readonly<Record<string, unknown>>> {
  const value = await jsonOption(text, option, host);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new MailerError("usage", `${option} takes an object, such as '{"a": 1}'`);
}

/** Milliseconds of an option that is a duration. */
export function durationOption(text: string, option: string): number {
  try {
    return parseDuration(text);
  } catch (cause) {
    throw new MailerError("usage", `${option}: ${asError(cause).message}`, { cause });
  }
}

/** An instant: RFC 3339 text, or a duration from now, or (with `past`) one that lies that far back. */
export function timeOption(text: string, option: string, host: Host, past = false): number {
  const at = Date.parse(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at)) return at;
  const ms = durationOption(text, option);
  return host.clock.now() + (past ? -ms : ms);
}

/** A whole number from 1 on. */
export function countOption(text: string, option: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new MailerError("usage", `${option} takes a whole number from 1 on, not ${JSON.stringify(text)}`);
}
