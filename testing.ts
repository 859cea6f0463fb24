/**
 * Tools for testing pipelines and connectors: a virtual clock, a scripted source, a harness for pipelines and operators, and
 * contract suites for connector authors.
 *
 * ```ts
 * import { count, tumbling } from "@mailer/core";
 * import { harness } from "@mailer/core/testing";
 *
 * const test = await harness<string, { n: number }>((words) =>
 *   words.keyBy((word) => word).window(tumbling("1m")).aggregate({ n: count() })
 * );
 * await test.push("hello", { timestamp: 0 });
 * await test.push("hello", { timestamp: 59_999 });
 * await test.watermark(60_000); // the first minute is complete
 * console.log(test.output); // [ { n: 2 } ]
 * await test.end();
 * ```
 *
 * @module
 */
export * from "./lib/testing/mod.ts";
