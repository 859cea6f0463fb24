/**
 * Sink `flow`: one execution for each record.
 *
 * F1 The id of an execution comes from its record: what is written again starts nothing twice. A record that has no identity of its
 *    own (a row that an operator made, one of several made of one record) needs an `id`.
 * F2 A write resolves when all its executions are durable.
 * F3 What can never be started goes to the failure policy, with the reason; what may go well another time fails the write.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { CheckContext, Finding, Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { asError, MailerError } from "../../lib/errors.ts";
import { isNumeric } from "../../lib/numeric.ts";
import { type Batch, type RecordContext, RecordView } from "../../lib/record.ts";
import { derivedId } from "./identity.ts";
import { type FlowStarter, type FlowTarget, starterFor, StartRefused, type StartRequest } from "./starter.ts";

/** Settings of {@link flowSink}. */
export interface FlowSinkOptions<T = unknown> extends FlowTarget {
  /** Name of the flow. */
  readonly flow: string;
  /** Hash of the version. Default: the newest. */
  readonly version?: string;
  /**
   * Id of the execution of a record: 1 to 128 letters, digits, `_` and `-`; a whole number is taken too. Default: made of source,
   * split and offset.
   */
  readonly id?: (value: T, record: RecordContext) => unknown;
  /** Input of the execution: an object. Default: the value, or `{ data: value }` where that is no object. */
  readonly input?: (value: T, record: RecordContext) => unknown;
  /** Executions that are being started at a time. Default 64. */
  readonly concurrency?: number;
}

const CONCURRENCY = 64;
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Starts an execution for each record. The executions of a flow should be kept longer than records may come again, that is, than a
 * pipeline may stand still: one that is gone is started anew.
 *
 * @throws {MailerError} `invalid_flow_target`, `invalid_flow_options`
 */
export function flowSink<T = unknown>(options: FlowSinkOptions<T>): Sink<T> {
  const { flow, version, concurrency = CONCURRENCY } = options, starter = starterFor(options);
  if (!TOKEN.test(flow)) throw invalid(`\`flow\` is the name of a flow, not ${JSON.stringify(flow)}`);
  if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
    throw invalid("`concurrency` is a whole number from 1");
  }
  return {
    type: "flow",
    commits: "idempotent",
    ...(options.id === undefined && options.input === undefined ? {} : { handsValuesOut: true as const }),
    describe: () => ({ flow, where: starter.where, ...(version === undefined ? {} : { version }) }),
    check: async (
      { signal }: CheckContext,
    ): Promise<readonly Finding[]> => [await starter.check(flow, signal)],
    open: (context) => new FlowWriter(options, starter, concurrency, context),
  };
}

/** A record that is not started, and why. */
interface Failed {
  readonly index: number;
  readonly error: Error;
}

class FlowWriter<T> implements SinkWriter<T> {
  readonly #options: FlowSinkOptions<T>;
  readonly #starter: FlowStarter;
  readonly #concurrency: number;
  readonly #context: SinkContext;
  readonly #view = new RecordView();

  constructor(options: FlowSinkOptions<T>, starter: FlowStarter, concurrency: number, context: SinkContext) {
    this.#options = options;
    this.#starter = starter;
    this.#concurrency = concurrency;
    this.#context = context;
  }

  async write(batch: Batch<T>): Promise<void> {
    const { signal } = this.#context,
      refused: Failed[] = [],
      requests: { index: number; request: StartRequest }[] = [];
    for (let index = 0; index < batch.length; index++) {
      try {
        requests.push({ index, request: this.#request(batch, index) });
      } catch (error) {
        if (error instanceof MailerError && error.code === "flow_id_needed") throw error; // so it is for all of them
        refused.push({ index, error: asError(error) });
      }
    }
    await abortable(this.#start(requests, refused), signal);
    for (const { index, error } of refused.sort((a, b) => a.index - b.index)) {
      this.#context.reject(batch, index, error);
    }
  }

  /** Starts all, some at a time. The first error that may pass ends it. */
  async #start(
    requests: readonly { readonly index: number; readonly request: StartRequest }[],
    refused: Failed[],
  ): Promise<void> {
    let next = 0, failed = false;
    const work = async (): Promise<void> => {
      while (next < requests.length && !failed) {
        const { index, request } = requests[next++]!;
        try {
          await this.#starter.start(request, this.#context.signal);
        } catch (error) {
          if (!(error instanceof StartRefused)) {
            failed = true;
            throw error;
          }
          refused.push({ index, error });
        }
      }
    };
    const workers = Array.from({ length: Math.min(this.#concurrency, requests.length) }, work);
    const outcomes = await Promise.allSettled(workers);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  #request(batch: Batch<T>, index: number): StartRequest {
    const { flow, version, id, input } = this.#options, view = this.#view, value = batch.values[index]!;
    view.batch = batch as Batch;
    view.index = index;
    return {
      flow,
      version,
      id: id === undefined ? this.#identity(batch, index) : checkedId(id(value, view)),
      input: checkedInput(input === undefined ? defaultInput(value) : input(value, view)),
    };
  }

  /** F1 */
  #identity(batch: Batch<T>, index: number): string {
    const { source, split, offset } = batch.position(index);
    if (batch.oneToOne && offset !== undefined) {
      return derivedId(this.#options.flow, "r", [source, split, offset]);
    }
    throw new MailerError(
      "flow_id_needed",
      `sink "${this.#context.id}": a record of "${source}" has no identity of its own to name its execution by`,
      {
        hint: "give an `id`: what tells the record from all others, and is the same when it comes again",
        lasting: true,
      },
    );
  }

  flush(): void {} // a write is done when it is durable
  close(): void {}
}

/** A value as the input of an execution. */
export function defaultInput(value: unknown): unknown {
  return isObject(value) ? value : { data: value ?? null };
}

function checkedId(id: unknown): string {
  const text = typeof id === "bigint" || Number.isSafeInteger(id) ? String(id) : id;
  if (typeof text === "string" && TOKEN.test(text)) return text;
  throw new StartRefused(
    "invalid_flow_id",
    `${(JSON.stringify(text) ?? "nothing").slice(0, 200)} is no id: 1 to 128 letters, digits, "_" and "-"`,
  );
}

function checkedInput(input: unknown): unknown {
  if (isObject(input)) return input;
  throw new StartRefused("invalid_flow_input", "the input of an execution is an object");
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);
}

function invalid(message: string): MailerError {
  return new MailerError("invalid_flow_options", `flow sink: ${message}`);
}
