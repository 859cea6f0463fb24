/**
 * A source that gives the input of a test case: its records and watermarks, one by one, in order.
 *
 * N1 `at` is the event time of its record, whatever the workflow takes it from.
 * N2 Where there is a watermark among the entries, nothing else advances event time.
 * N3 A watermark is one of all splits.
 *
 * @module
 */
import type { RecordsRead, Source, SourceContext, SourceRead, SourceReader } from "../../connector.ts";
import { stringifyJson } from "../../json.ts";
import type { Headers, RecordContext } from "../../record.ts";
import { noWatermarks } from "../../runtime/watermarks.ts";
import type { SourceOptions } from "../../stream/env.ts";
import { timestampOf } from "../../workflow/build/operators.ts";
import type { SourceSpec, TestEntry } from "../../workflow/mod.ts";
import { type DecodeText, textDecoder } from "./text_decoder.ts";

/** A source under a test's control. */
export interface TestSource {
  readonly source: Source;
  /** Settings that stand in for the workflow's. */
  readonly options: Partial<SourceOptions<unknown>>;
  /** Whether all of its input has been read. */
  isRead(): boolean;
}

/** Whether the input of a source comes to an end, or stays open behind its last record. */
export type InputEnd = "ends" | "stays open";

/** Splits of entries that name none. */
const SPLIT = "0";

/** A source made of entries. */
export function scriptSource(entries: readonly TestEntry[], spec: SourceSpec, end: InputEnd): TestSource {
  const script = new Script(entries, spec, end);
  return {
    source: { type: spec.type, describe: () => ({}), open: (context) => script.open(context) },
    options: {
      ...(spec.timestamp === undefined ? {} : { timestamp: script.timestampOf(timestampOf(spec.timestamp)) }),
      ...(entries.some(({ kind }) => kind === "watermark") ? { watermarks: noWatermarks() } : {}),
    },
    isRead: () => script.isRead,
  };
}

class Script implements SourceReader {
  readonly splits: readonly string[];
  isRead = false;
  readonly #steps: Iterator<SourceRead>;
  readonly #spec: SourceSpec;
  readonly #end: InputEnd;
  #signal: AbortSignal | undefined;
  /** `at` of the record that was read last. */
  #at: number | undefined;

  constructor(entries: readonly TestEntry[], spec: SourceSpec, end: InputEnd) {
    const named = entries.flatMap((entry) => entry.kind === "watermark" ? [] : [entry.split ?? SPLIT]);
    this.splits = named.length === 0 ? [SPLIT] : [...new Set(named)];
    this.#spec = spec;
    this.#end = end;
    this.#steps = this.#all(entries);
  }

  open({ signal }: SourceContext): SourceReader {
    this.#signal = signal;
    return this;
  }

  /** The document's rule, for records without `at`. */
  timestampOf(
    rule: (value: unknown, record: RecordContext) => number,
  ): (value: unknown, record: RecordContext) => number {
    // Every read has one record, and is worked through before the next.
    return (value, record) => this.#at ?? rule(value, record);
  }

  read(): SourceRead | Promise<SourceRead> {
    const { value, done } = this.#steps.next();
    if (done !== true) return value;
    this.isRead = true;
    return this.#end === "ends" ? { kind: "end" } : untilAborted(this.#signal!);
  }

  close(): void {}

  *#all(entries: readonly TestEntry[]): Generator<SourceRead> {
    const splits = new Map(this.splits.map((split) => [split, { decode: textDecoder(this.#spec), next: 0 }]));
    for (const entry of entries) {
      if (entry.kind === "watermark") {
        for (const split of this.splits) yield { kind: "watermark", split, time: entry.time };
        continue;
      }
      const split = entry.split ?? SPLIT, state = splits.get(split)!;
      for (const read of readsOf(entry, split, state)) {
        state.next = read.position as number;
        this.#at = entry.at;
        yield read;
      }
    }
  }
}

/** The reads, of one record each, that an entry comes to: one, as a rule. */
function readsOf(
  entry: Exclude<TestEntry, { kind: "watermark" }>,
  split: string,
  state: { readonly decode: DecodeText; readonly next: number },
): RecordsRead[] {
  const headers = headersOf(entry.headers);
  const outer = {
    kind: "records",
    split,
    ...(entry.at === undefined ? {} : { timestamps: Float64Array.of(entry.at) }),
  } as const;
  const beside = { keys: [entry.key], headers: [headers] };
  let { next } = state;
  if (entry.kind === "record") {
    return [{
      ...outer,
      ...beside,
      values: [entry.value],
      firstOffset: next,
      texts: [stringifyJson(entry.value)],
      position: next + 1,
    }];
  }
  const decoded = state.decode(entry.text);
  const reads = (decoded?.values ?? []).map((value, i): RecordsRead => ({
    ...outer,
    ...beside,
    values: [value],
    firstOffset: next,
    texts: [decoded!.texts[i]!],
    position: ++next,
  }));
  for (const failure of decoded?.failures ?? []) {
    const { error, text } = failure;
    const failures = [{ before: 0, offset: next, text, key: entry.key, headers, error }];
    reads.push({ kind: "records", split, values: [], failures, position: ++next });
  }
  return reads;
}

function headersOf(headers: Readonly<Record<string, string>>): Headers {
  const encoder = new TextEncoder();
  return Object.entries(headers).map(([name, text]) => [name, encoder.encode(text)] as const);
}

/** Any other source, which stays open behind its last record where the case says so. */
export function ownSource(source: Source, end: InputEnd): TestSource {
  let isRead = false;
  return {
    source: {
      type: source.type,
      describe: () => source.describe(),
      open: async (context) => {
        const reader = await source.open(context);
        return {
          splits: reader.splits,
          read: async () => {
            const read = await reader.read();
            if (read.kind !== "end") return read;
            isRead = true;
            return end === "ends" ? read : await untilAborted(context.signal);
          },
          close: (outcome) => reader.close(outcome),
        };
      },
    },
    options: {},
    isRead: () => isRead,
  };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
