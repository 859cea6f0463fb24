/**
 * The contract suite of sources: registers tests that every source passes.
 *
 * P1 Splits come in the order announced; each gives its records in order, then says once that it has ended; then comes the end.
 * P2 What is read does not depend on the batch size, and no read has more records than that.
 * P3 Columns have one entry a value, offsets rise, failures stand in their places.
 * P4 The arrays of a read belong to whoever reads it.
 * P5 From every position, even one that went through JSON, reading goes on with the next record.
 * P6 A read that waits settles when the run is aborted.
 * P7 A reader can be closed at any moment, and gives everything back (the sanitizers of `deno test` look).
 * P8 `describe` is JSON, opens nothing and shows no secret.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Clock } from "../clock.ts";
import type { Position, RecordsRead, Source, SourceContext, SourceReader } from "../connector.ts";
import { codeOf } from "../errors.ts";
import { stringifyJson } from "../json.ts";
import { silentLogger } from "../log.ts";
import { VirtualClock } from "./virtual_clock.ts";

/** A source under test. */
export interface SourceUnderTest {
  /** The source itself. */
  readonly source: Source;
  /** Takes away what was set up for it. */
  tearDown?(): void | Promise<void>;
}

/** A split and what is in it. */
export interface ExpectedSplit {
  /** Its name. */
  readonly split: string;
  /** Values in order; a {@link failure} where a record cannot be decoded. */
  readonly records: readonly unknown[];
}

/** What the suite is to know. */
export interface SourceContractOptions {
  /** Begins the names of the tests. */
  readonly name: string;
  /** Sets up the same bounded input each time it is called. */
  setUp(): SourceUnderTest | Promise<SourceUnderTest>;
  /** What is to come out of it. */
  readonly expected: readonly ExpectedSplit[];
  /** `replays`: it can go on from a position, and be read by several runs. */
  readonly positions: "replays" | "cannot be replayed";
  /** Sets up a source that has nothing to read and waits. */
  readonly waiting?: () => SourceUnderTest | Promise<SourceUnderTest>;
  /** Parts of its settings that nobody may see. */
  readonly secrets?: readonly string[];
  /** Registers a test; default `Deno.test`. */
  readonly test?: (name: string, run: () => Promise<void>) => void;
}

/** Stands for a record that cannot be decoded. */
export function failure(code: string): { readonly failure: string } {
  return { failure: code };
}

/** Records of one split as they were read. */
interface Item {
  readonly split: string;
  readonly offset: number | undefined;
  readonly record: unknown;
}

interface Reading {
  readonly items: Item[];
  readonly log: string[];
  /** After each read: where every split stood, and how many items were behind. */
  readonly stops: { readonly positions: ReadonlyMap<string, Position>; readonly behind: number }[];
}

/** Registers the tests. */
export function sourceContract(options: SourceContractOptions): void {
  const { name, expected, positions, secrets = [], test = (title, run) => Deno.test(title, run) } = options;
  const register = (title: string, run: (source: Source) => void | Promise<void>) =>
    test(`${name}: ${title}`, () => withSource(options.setUp, run));

  register("P1: splits in the order announced, records in order, each end once", async (source) => {
    const { items, log, splits } = await readAll(source, {});
    assert.deepEqual(splits, expected.map(({ split }) => split));
    assert.deepEqual(
      items.map(({ split, record }) => [split, printed(record)]),
      expected.flatMap(({ split, records }) => records.map((record) => [split, printed(record)])),
    );
    assert.deepEqual(log, [...expected.map(({ split }) => `ended ${split}`), "end"]);
  });

  for (const batchSize of [1, 3, 1024]) {
    test(`${name}: P2, P3: in batches of ${batchSize} the same records with the same offsets`, async () => {
      const whole = await withSource(options.setUp, (source) => readAll(source, { batchSize: 7 }));
      const parts = await withSource(options.setUp, (source) => readAll(source, { batchSize }));
      assert.deepEqual(parts.items.map(printedItem), whole.items.map(printedItem));
    });
  }

  register("P4: arrays of a read can be changed without changing what comes next", async (source) => {
    const { items } = await readAll(source, { batchSize: 2, afterRead: spoil });
    assert.deepEqual(
      items.map(({ record }) => printed(record)),
      expected.flatMap(({ records }) => records.map(printed)),
    );
  });

  if (positions === "replays") {
    register("P5: from every position reading goes on with the next record", async (source) => {
      const whole = await readAll(source, { batchSize: 2 });
      for (const { positions, behind } of whole.stops) {
        const restored = new Map(JSON.parse(JSON.stringify([...positions])) as [string, Position][]);
        const rest = await readAll(source, { batchSize: 3, restored });
        assert.deepEqual(rest.splits, whole.splits);
        assert.deepEqual(rest.items.map(printedItem), whole.items.slice(behind).map(printedItem));
        assert.deepEqual(rest.log, whole.log);
      }
    });
    register("P7: several runs read the same, one after the other and side by side", async (source) => {
      const first = await readAll(source, {});
      const both = await Promise.all([readAll(source, { batchSize: 1 }), readAll(source, {})]);
      for (const { items } of both) assert.deepEqual(items.map(printedItem), first.items.map(printedItem));
    });
  }

  const { waiting } = options;
  if (waiting !== undefined) {
    test(`${name}: P6: a read that waits settles when the run is aborted`, () =>
      withSource(waiting, async (source) => {
        const controller = new AbortController();
        const reader = await source.open(context({ signal: controller.signal }));
        try {
          const pending = waitingRead(reader);
          controller.abort(new Error("stopped by the test"));
          await pending.then(
            () => {},
            (error: unknown) => assert.equal((error as Error).message, "stopped by the test"),
          );
        } finally {
          await reader.close("failed");
        }
      }));
  }

  register("P7: a reader is closed before, amid and after reading", async (source) => {
    const { stops } = positions === "replays" ? await readAll(source, { batchSize: 1 }) : { stops: [1] };
    for (
      const reads of positions === "replays" ? [0, 1, 2, Math.floor(stops.length / 2), stops.length] : [1]
    ) {
      const reader = await source.open(context({ batchSize: 1 }));
      for (let i = 0; i < reads; i++) await reader.read();
      await reader.close("failed");
    }
  });

  test(`${name}: P8: its description is JSON, opens nothing and shows no secret`, () =>
    withSource(options.setUp, async (source) => {
      assert.match(source.type, /^[a-z][A-Za-z0-9]*$/);
      const before = JSON.stringify(source.describe());
      for (const secret of secrets) assert.ok(!before.includes(secret), "a secret is in the description");
      await readAll(source, {});
      assert.equal(JSON.stringify(source.describe()), before);
    }));
}

interface ReadOptions {
  readonly batchSize?: number;
  readonly restored?: ReadonlyMap<string, Position>;
  readonly afterRead?: (read: RecordsRead) => void;
}

/** Reads a source to its end, checking what holds for every read. */
async function readAll(
  source: Source,
  options: ReadOptions,
): Promise<Reading & { readonly splits: readonly string[] }> {
  const batchSize = options.batchSize ?? 1024;
  const reader = await source.open(context(options)), splits = [...reader.splits];
  const open = new Set(splits), last = new Map<string, number>(), positions = new Map(options.restored);
  const items: Item[] = [], log: string[] = [], stops: Reading["stops"] = [];
  assert.equal(open.size, splits.length, "a split is announced twice");
  try {
    for (;;) {
      const read = await reader.read();
      if ("split" in read) assert.ok(open.has(read.split), `split "${read.split}" is not open`);
      if (read.kind === "end") {
        assert.deepEqual([...open], [], "the end came before the end of all splits");
        log.push("end");
        return { items, log, stops, splits };
      }
      if (read.kind === "ended") {
        open.delete(read.split);
        log.push(`ended ${read.split}`);
      } else if (read.kind === "added") {
        for (const split of read.splits) {
          assert.ok(!splits.includes(split), `split "${split}" is added twice`);
          splits.push(split);
          open.add(split);
        }
      } else if (read.kind === "records") {
        const found = itemsOf(read);
        assert.ok(
          found.length > 0 && found.length <= batchSize,
          `${found.length} records in a read of ${batchSize}`,
        );
        for (const item of found) {
          if (item.offset === undefined) continue;
          assert.ok(item.offset > (last.get(read.split) ?? -1), "offsets do not rise");
          last.set(read.split, item.offset);
        }
        items.push(...found);
        positions.set(read.split, read.position);
        stops.push({ positions: new Map(positions), behind: items.length });
        options.afterRead?.(read);
      }
    }
  } finally {
    await reader.close("failed");
  }
}

/** Values and failures of a read in their order. */
function itemsOf(read: RecordsRead): Item[] {
  const { split, values, firstOffset, offsets, failures = [] } = read,
    count = values.length,
    items: Item[] = [];
  for (const [what, column] of Object.entries({ ...read, values: undefined, failures: undefined })) {
    if (Array.isArray(column) || ArrayBuffer.isView(column)) {
      assert.equal((column as unknown[]).length, count, `the column "${what}" has not one entry a value`);
    }
  }
  let next = 0;
  for (let i = 0; i <= count; i++) {
    for (; failures[next]?.before === i; next++) {
      const { offset, error } = failures[next]!;
      items.push({ split, offset, record: failure(codeOf(error)) });
    }
    if (i < count) {
      const offset = offsets?.[i] ?? (firstOffset === undefined ? undefined : firstOffset + i);
      items.push({ split, offset, record: values[i] });
    }
  }
  assert.equal(next, failures.length, "failures are out of order, or beyond the values");
  return items;
}

function spoil(read: RecordsRead): void {
  read.values.fill("spoilt");
  for (const column of [read.offsets, read.timestamps]) column?.fill(-1);
  for (const column of [read.keys, read.texts, read.headers]) {
    (column as unknown[] | undefined)?.fill("spoilt");
  }
}

/** Reads until a read has to wait. */
async function waitingRead(reader: SourceReader): Promise<unknown> {
  for (;;) {
    const read = reader.read();
    if (read instanceof Promise) return read;
    await Promise.resolve();
  }
}

function context(
  options: ReadOptions & { readonly signal?: AbortSignal; readonly clock?: Clock },
): SourceContext {
  return {
    id: "source",
    batchSize: options.batchSize ?? 1024,
    clock: options.clock ?? new VirtualClock(),
    logger: silentLogger,
    signal: options.signal ?? new AbortController().signal,
    restored: options.restored,
    keepsState: false,
  };
}

async function withSource<R>(
  setUp: () => SourceUnderTest | Promise<SourceUnderTest>,
  run: (source: Source) => R | Promise<R>,
): Promise<R> {
  const { source, tearDown } = await setUp();
  try {
    return await run(source);
  } finally {
    await tearDown?.();
  }
}

function printed(record: unknown): string {
  return record instanceof Uint8Array ? `bytes ${record.join()}` : stringifyJson(record);
}

function printedItem({ split, offset, record }: Item): string {
  return `${split} ${offset} ${printed(record)}`;
}
