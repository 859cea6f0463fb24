/**
 * What the tests of the Postgres sink share: a schema of its own for each, values to write, writers that are driven by hand.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { LogLevel } from "../../lib/log.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { batchOf } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import type { Postgres } from "../services/mod.ts";

/** What a sink is told in the first run of a pipeline that takes checkpoints. */
export const FIRST_RUN = { restored: undefined, interval: 10_000 };

/** Ten times as fast as time: for waits between attempts. */
export const HASTY_CLOCK: Clock = {
  ...systemClock,
  schedule: (delay, callback) => systemClock.schedule(delay / 10, callback),
};

let schemas = 0;

/** A new schema, with what `tables` makes in it. @returns Its name. */
export async function schemaWith(postgres: Postgres, tables: string): Promise<string> {
  const schema = `s${Deno.pid}_${++schemas}`;
  await postgres.execute(`create schema ${schema}; set search_path = ${schema}; ${tables}`);
  return schema;
}

/** A record that a sink did not take. */
export interface Rejected {
  readonly value: unknown;
  readonly code: string;
  readonly message: string;
}

/** A writer under test. */
export interface Opened {
  readonly writer: SinkWriter;
  readonly rejected: Rejected[];
  /** Messages with their fields, as JSON. */
  readonly log: string[];
  /** Gives up, as a run does that is aborted. */
  abort(reason: Error): void;
  write(values: readonly unknown[]): Promise<void>;
}

/** Opens a writer by the clock of the machine, whose rejected records are kept. */
export async function openSink(sink: Sink, options: Partial<SinkContext> = {}): Promise<Opened> {
  const rejected: Rejected[] = [], log: string[] = [], controller = new AbortController();
  const context = sinkContext({
    clock: systemClock,
    signal: controller.signal,
    logger: {
      log: (level: LogLevel, message, fields) =>
        void log.push(`${level} ${message} ${JSON.stringify(fields)}`),
    },
    reject(batch, index, error) {
      const { code } = error as Error & { code: string };
      rejected.push({ value: batch.values[index], code, message: error.message });
    },
    ...options,
  });
  const writer = await sink.open(context);
  return {
    writer,
    rejected,
    log,
    abort: (reason) => controller.abort(reason),
    write: async (values) => await writer.write(batchOf(values)),
  };
}

/** Writes values and closes the writer. @returns What was rejected. */
export async function writeAll(sink: Sink, values: readonly unknown[]): Promise<readonly Rejected[]> {
  const { writer, rejected, write } = await openSink(sink);
  try {
    await write(values);
    await writer.flush();
  } finally {
    await writer.close("done");
  }
  return rejected;
}

/** The error of `work`, whose code is `code`. */
export async function errorOf(
  work: () => unknown,
  code: string,
): Promise<Error & { code: string; hint: string | undefined }> {
  try {
    await work();
  } catch (error) {
    const found = error as Error & { code: string; hint: string | undefined };
    assert.equal(found.code, code, found.stack);
    return found;
  }
  assert.fail(`no error, expected ${code}`);
}

/** Waits until `isThere`, ten seconds at most. */
export async function until(isThere: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!await isThere()) {
    assert.ok(performance.now() < deadline, "it has not happened");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
