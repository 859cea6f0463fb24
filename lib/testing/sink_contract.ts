/**
 * The contract suite of sinks: registers tests that every sink passes, opened as by a pipeline that takes no checkpoints.
 * Those that commit with checkpoints pass `commitContract` as well.
 *
 * Q1 After `flush` every record written is out, in the order written; a batch without records is fine.
 * Q2 The values of a batch are written, not the rows of its origin; batches are left as they are.
 * Q3 A record that cannot be written goes to `reject`, with its place; where that returns, the others are written; where it
 *    throws, the write fails with what it threw.
 * Q4 A write that waits rejects when the run gives up.
 * Q5 A writer can be closed at any moment, and gives everything back (the sanitizers of `deno test` look).
 * Q6 `describe` is JSON, opens nothing and shows no secret.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Sink } from "../connector.ts";
import { Batch, type Origin } from "../record.ts";
import { sinkContext, SOME_VALUES } from "./sink_scene.ts";

/** A sink under test. */
export interface SinkUnderTest {
  /** The sink itself. */
  readonly sink: Sink;
  /** What has come out of it so far. */
  written(): unknown[] | Promise<unknown[]>;
  /** Takes away what was set up for it. */
  tearDown?(): void | Promise<void>;
}

/** What the suite is to know. */
export interface SinkContractOptions {
  /** Begins the names of the tests. */
  readonly name: string;
  /** Sets up an empty sink each time it is called. */
  setUp(): SinkUnderTest | Promise<SinkUnderTest>;
  /** Values it can write; default some JSON values. */
  readonly values?: readonly unknown[];
  /** A value it cannot write, if there is one. */
  readonly unwritable?: { readonly value: unknown; readonly code: string };
  /** Sets up a sink that never has room for the batch it gets. */
  readonly blocked?: () => SinkUnderTest | Promise<SinkUnderTest>;
  /** Parts of its settings that nobody may see. */
  readonly secrets?: readonly string[];
  /** Registers a test; default `Deno.test`. */
  readonly test?: (name: string, run: () => Promise<void>) => void;
}

/** Registers the tests. */
export function sinkContract(options: SinkContractOptions): void {
  const { name, values = SOME_VALUES, unwritable, blocked, secrets = [] } = options;
  const { test = (title, run) => Deno.test(title, run) } = options;
  const register = (title: string, run: (sink: SinkUnderTest) => Promise<void>, setUp = options.setUp) =>
    test(`${name}: ${title}`, async () => {
      const sink = await setUp();
      try {
        await run(sink);
      } finally {
        await sink.tearDown?.();
      }
    });

  register(
    "Q1: after a flush all records are out, in order; so again after the next",
    async ({ sink, written }) => {
      const writer = await sink.open(sinkContext());
      try {
        await writer.write(batchOf(values.slice(0, 2)));
        await writer.write(batchOf([]));
        await writer.write(batchOf(values.slice(2, 3)));
        await writer.flush();
        assert.deepEqual(await written(), values.slice(0, 3));
        await writer.write(batchOf(values.slice(3)));
        await writer.flush();
      } finally {
        await writer.close("done");
      }
      assert.deepEqual(await written(), values);
    },
  );

  register("Q1: a large batch is written whole", async ({ sink, written }) => {
    const many = Array.from({ length: 5000 }, (_, i) => values[i % values.length]);
    const writer = await sink.open(sinkContext());
    try {
      await writer.write(batchOf(many));
      await writer.flush();
    } finally {
      await writer.close("done");
    }
    assert.deepEqual(await written(), many);
  });

  register(
    "Q2: the values of a batch count, not the rows of its origin; the batch stays as it is",
    async (under) => {
      const { origin } = batchOf([0, 1, 2, 3, 4]);
      const batch = new Batch<unknown>([values[0], values[1]], origin, Int32Array.of(1, 4));
      const writer = await under.sink.open(sinkContext());
      try {
        await writer.write(batch);
        await writer.flush();
      } finally {
        await writer.close("done");
      }
      assert.deepEqual(await under.written(), [values[0], values[1]]);
      assert.deepEqual(batch.values, [values[0], values[1]]);
      assert.deepEqual([...batch.rows!], [1, 4]);
    },
  );

  if (unwritable !== undefined) {
    const mixed = [values[0], unwritable.value, values[1]];
    register(
      "Q3: a record that cannot be written is rejected with its place, the others are written",
      async (under) => {
        const rejected: [Batch, number, string][] = [];
        const reject = (batch: Batch, index: number, error: Error) => {
          rejected.push([batch, index, (error as Error & { code: string }).code]);
        };
        const writer = await under.sink.open(sinkContext({ reject })), batch = batchOf(mixed);
        try {
          await writer.write(batch);
          await writer.flush();
        } finally {
          await writer.close("done");
        }
        assert.deepEqual(await under.written(), [values[0], values[1]]);
        assert.deepEqual(rejected.map(([, index, code]) => [index, code]), [[1, unwritable.code]]);
        assert.equal(rejected[0]![0], batch);
      },
    );
    register("Q3: where the policy is to fail, the write fails with its error", async ({ sink }) => {
      const failed = new Error("policy: fail");
      const reject = () => {
        throw failed;
      };
      const writer = await sink.open(sinkContext({ reject }));
      try {
        await assert.rejects(async () => await writer.write(batchOf(mixed)), failed);
      } finally {
        await writer.close("done");
      }
    });
  }

  if (blocked !== undefined) {
    register("Q4: a write that waits rejects when the run gives up", async ({ sink }) => {
      const controller = new AbortController(), reason = new Error("given up by the test");
      const writer = await sink.open(sinkContext({ signal: controller.signal }));
      try {
        const pending = writer.write(batchOf(values));
        assert.ok(pending instanceof Promise, "the write does not wait");
        controller.abort(reason);
        await assert.rejects(pending, reason);
      } finally {
        await writer.close("done");
      }
    }, blocked);
  }

  register("Q5: a writer is closed without a write", async ({ sink, written }) => {
    const writer = await sink.open(sinkContext());
    await writer.close("done");
    assert.deepEqual(await written(), []);
  });

  register("Q5: a writer is closed without a flush", async ({ sink }) => {
    const writer = await sink.open(sinkContext());
    await writer.write(batchOf(values));
    await writer.close("done");
  });

  register("Q6: its description is JSON, opens nothing and shows no secret", async ({ sink, written }) => {
    assert.match(sink.type, /^[a-z][A-Za-z0-9]*$/);
    const before = JSON.stringify(sink.describe());
    for (const secret of secrets) assert.ok(!before.includes(secret), "a secret is in the description");
    const writer = await sink.open(sinkContext());
    assert.equal(JSON.stringify(sink.describe()), before);
    await writer.close("done");
    assert.deepEqual(await written(), []);
  });
}

/** A batch of values as a source would have read them. @param firstOffset Offset of the first one in its split. */
export function batchOf<T>(values: readonly T[], firstOffset = 0): Batch<T> {
  const origin: Origin = {
    channel: { group: 0, name: "source/0" },
    source: "source",
    split: "0",
    timestamps: new Float64Array(values.length),
    watermarks: new Float64Array(values.length).fill(-Infinity),
    firstOffset,
    offsets: undefined,
    headers: undefined,
    keys: undefined,
    texts: undefined,
    windows: undefined,
    bytes: 0,
  };
  return new Batch([...values], origin);
}
