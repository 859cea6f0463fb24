/**
 * Flows that messages start: what is the same wherever messages come from.
 *
 * G1 A message is done when every flow it triggers is started, durably, or has a dead letter that says why not.
 * G2 The id of an execution comes from the flow and the message: a message that comes again starts nothing twice, and two flows that one
 *    message triggers run once each.
 * G3 What may pass is tried again, later and later; what can never go well is not.
 * G4 A source that fails is opened again, for as long as triggers are wanted: its stream may be made yet.
 *
 * @module
 */
import { type Clock, delay } from "../../lib/clock.ts";
import { asError, codeOf } from "../../lib/errors.ts";
import type { Flow, Trigger } from "../../lib/flow/definition/mod.ts";
import type { FlowEngine } from "../../lib/flow/engine/mod.ts";
import { encodeCommand } from "../../lib/flow/fold/mod.ts";
import { parseJson } from "../../lib/json.ts";
import type { Logger } from "../../lib/log.ts";
import type { Headers } from "../../lib/record.ts";
import { defaultInput } from "./flow_sink.ts";
import { derivedId } from "./identity.ts";
import { type FlowStarter, starterFor, StartRefused } from "./starter.ts";

/** A message that may start flows. */
export interface TriggerMessage {
  /** The stream it was kept in. */
  readonly stream: string;
  /** What it is about: `orders.created`. */
  readonly subject: string;
  /** What its sender tells repetitions by, where he gave anything. */
  readonly id?: string | undefined;
  /** Its place in the stream: tells it from all others there. */
  readonly place: string;
  /** JSON, text or bytes; null = none. */
  readonly body: Uint8Array | string | null;
  /** In order. */
  readonly headers?: Headers | undefined;
}

/** What a source of messages is run with. */
export interface TriggerContext {
  /** The stream whose messages are wanted. */
  readonly stream: string;
  /**
   * Hands a message over. Only when this resolves may the source let go of it; where it rejects the message is to come again.
   * Messages may be handed over side by side.
   */
  deliver(message: TriggerMessage): Promise<void>;
  /** The only time a source goes by. */
  readonly clock: Clock;
  /** Where to report what is no error. */
  readonly logger: Logger;
  /** Aborted when no more messages are wanted. */
  readonly signal: AbortSignal;
}

/** Where messages come from. */
export interface TriggerSource {
  /** Kind of the source, e.g. `kafka`. */
  readonly type: string;
  /** Names of the streams it has. Default: any that is asked for. */
  readonly streams?: readonly string[] | undefined;
  /** Hands messages of a stream over until the signal is aborted. A rejection is reported, and it is run again after a while. */
  run(context: TriggerContext): Promise<void>;
}

/** Settings of {@link FlowTriggers}. */
export interface FlowTriggersOptions {
  /** Starts the executions; keeps the dead letters. */
  readonly engine: FlowEngine;
  /** Flows; those without triggers count for nothing. */
  readonly flows: readonly Flow[];
  /** Where messages come from. */
  readonly sources: readonly TriggerSource[];
  /** Tries of a start that may yet go well. Default 64: half an hour. */
  readonly attempts?: number;
}

const ATTEMPTS = 64;
/** Tries while the flow is not there: it may be about to be registered. */
const MISSING_ATTEMPTS = 3;
const LONGEST_WAIT = 30_000;

/** Starts flows when messages come. */
export class FlowTriggers implements AsyncDisposable {
  readonly #options: FlowTriggersOptions;
  readonly #starter: FlowStarter;
  readonly #stop = new AbortController();
  #running: Promise<unknown> | undefined;

  /** Begins nothing. */
  constructor(options: FlowTriggersOptions) {
    this.#options = options;
    this.#starter = starterFor({ engine: options.engine });
  }

  /** Begins to take messages. */
  start(): this {
    const { flows, sources } = this.#options;
    const streams = new Set(
      flows.flatMap(({ definition }) => definition.triggers.flatMap(({ stream }) => stream ?? [])),
    );
    this.#running ??= Promise.all(
      sources.flatMap((source) => [...streams].map((stream) => this.#run(source, stream))),
    );
    return this;
  }

  /** Takes no more; what is under way is finished or comes again. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The same as {@link FlowTriggers.stop}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Starts what a message triggers. */
  async deliver(message: TriggerMessage): Promise<void> {
    const flows = this.#options.flows.filter(({ definition }) =>
      definition.triggers.some((trigger) => fits(trigger, message))
    );
    await Promise.all(flows.map(({ name }) => this.#start(name, message)));
  }

  async #run(source: TriggerSource, stream: string): Promise<void> {
    const { clock, logger } = this.#options.engine.core, { signal } = this.#stop;
    if (source.streams?.includes(stream) === false) return;
    const context: TriggerContext = {
      stream,
      deliver: (message) => this.deliver(message),
      clock,
      logger,
      signal,
    };
    for (let failures = 0; !signal.aborted;) {
      const begun = clock.monotonic();
      try {
        await source.run(context);
        if (!signal.aborted) return; // it has no more
      } catch (error) {
        if (signal.aborted) return;
        failures = clock.monotonic() - begun > LONGEST_WAIT ? 1 : failures + 1;
        logger.log("warn", "messages that trigger flows cannot be read, trying again", {
          source: source.type,
          stream,
          error: asError(error).message,
        });
        await delay(clock, waitOf(failures), signal).catch(() => {}); // the loop sees that it is over
      }
    }
  }

  async #start(flow: string, message: TriggerMessage): Promise<void> {
    const { engine: { core: { clock } }, attempts = ATTEMPTS } = this.#options, { signal } = this.#stop;
    const { id: given, stream, place } = message;
    const id = derivedId(flow, "t", given === undefined ? ["at", stream, place] : ["msg", given]);
    const input = inputOf(message.body);
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#starter.start({ flow, input, id });
      } catch (error) {
        const isMissing = codeOf(error) === "unknown_flow";
        if (
          error instanceof StartRefused ||
          attempt >= (isMissing ? Math.min(attempts, MISSING_ATTEMPTS) : attempts)
        ) {
          return await this.#deadLetter(flow, id, input, message, attempt, asError(error));
        }
        await delay(clock, waitOf(attempt), signal);
      }
    }
  }

  /** Its body is the start, so that it may be done again. */
  async #deadLetter(
    flow: string,
    id: string,
    input: unknown,
    { subject, stream, place, headers = [] }: TriggerMessage,
    deliveries: number,
    error: Error,
  ): Promise<void> {
    const { store, counters, logger } = this.#options.engine.core, decoder = new TextDecoder();
    const body = encodeCommand({ id: `trigger.${id}`, type: "start", exec_id: id, data: { flow, input } });
    await store.deadLetters.add({
      kind: "trigger",
      key: id,
      text: JSON.stringify({
        flow,
        reason: error.message,
        deliveries,
        subject,
        stream,
        place,
        header: headers.map(([name, value]) => [name, decoder.decode(value)]),
        body,
      }),
    });
    counters.deadLetters++;
    logger.log("warn", "a message could not start a flow", {
      flow,
      execution: id,
      stream,
      place,
      why: error.message,
    });
  }
}

function waitOf(attempt: number): number {
  return Math.min(LONGEST_WAIT, 1000 * 2 ** Math.min(attempt - 1, 10));
}

/** The input of an execution: an object is itself, anything else is its `data`. What is neither JSON nor text is given in base64. */
function inputOf(body: Uint8Array | string | null): unknown {
  if (body === null) return { data: null };
  let text: string;
  try {
    text = typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return { data: (body as Uint8Array).toBase64(), encoding: "base64" };
  }
  try {
    return defaultInput(parseJson(text));
  } catch {
    return { data: text };
  }
}

/** Whether a message is one that a trigger wants. */
function fits({ stream, subject }: Trigger, message: TriggerMessage): boolean {
  return stream === message.stream && subjectFits(subject, message.subject);
}

/** Whether a subject fits a pattern: `*` stands for one part, `>` at the end for one or more. */
export function subjectFits(pattern: string, subject: string): boolean {
  const wanted = pattern.split("."), parts = subject.split(".");
  for (const [i, part] of wanted.entries()) {
    if (part === ">") return parts.length > i;
    if (i >= parts.length || (part !== "*" && part !== parts[i])) return false;
  }
  return wanted.length === parts.length;
}
