/**
 * A sink that keeps the rows it gets, as a sink outside would have them: as JSON.
 *
 * @module
 */
import type { Sink } from "../../connector.ts";
import { asError } from "../../errors.ts";
import { encodeJson } from "../../format/mod.ts";
import { parseJson } from "../../json.ts";

/** Rows in the order they came. */
export interface Collector {
  readonly sink: Sink;
  readonly rows: readonly unknown[];
}

/** Makes a collector. */
export function collector(): Collector {
  const rows: unknown[] = [];
  return {
    rows,
    sink: {
      type: "collect",
      describe: () => ({}),
      open: ({ reject }) => ({
        write(batch) {
          batch.values.forEach((value, i) => {
            let text: string;
            try {
              text = encodeJson(value);
            } catch (error) {
              reject(batch, i, asError(error));
              return;
            }
            rows.push(parseJson(text));
          });
        },
        flush() {},
        close() {},
      }),
    },
  };
}
