/**
 * What the contract suites of sinks share: values to write, and the context a sink is opened with.
 *
 * @module
 */
import type { SinkContext } from "../connector.ts";
import { silentLogger } from "../log.ts";
import { VirtualClock } from "./virtual_clock.ts";

/** JSON values, each of them once. */
export const SOME_VALUES: readonly unknown[] = [
  { a: 1, b: "x" },
  { a: [1, { c: null }], "": "é😀\n\u0000" },
  "text",
  17,
  null,
  [],
  {},
  true,
  { a: 2 },
  { a: 3 },
];

/** The context of a sink whose failure policy is to fail. */
export function sinkContext(options: Partial<SinkContext> = {}): SinkContext {
  return {
    id: "sink",
    clock: new VirtualClock(),
    logger: silentLogger,
    signal: new AbortController().signal,
    reject(_batch, index, error) {
      throw new Error(`record ${index} was rejected: ${error.message}`, { cause: error });
    },
    ...options,
  };
}
