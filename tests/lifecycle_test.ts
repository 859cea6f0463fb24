import assert from "node:assert/strict";
import { count } from "../lib/aggregate/mod.ts";
import type { Clock } from "../lib/clock.ts";
import type { Sink, Source, SourceRead, SourceReader } from "../lib/connector.ts";
import { ShutdownTimeoutError } from "../lib/errors.ts";
import { createEnv, type Env } from "../lib/stream/env.ts";
import type { Stream } from "../lib/stream/stream.ts";
import { collectingSink, scriptedSource, settle, VirtualClock } from "../lib/testing/mod.ts";
import { tumbling } from "../lib/window/mod.ts";

/** What was called, in order. */
type Calls = string[];

/** A sink that writes down its calls. `hangs` and `fails` name calls that never settle, or reject. */
function loggingSink(
  name: string,
  calls: Calls,
  { hangs, fails, heedsAbort = true }: {
    readonly hangs?: string;
    readonly fails?: string;
    readonly heedsAbort?: boolean;
  } = {},
): Sink<number> {
  let underWay = 0;
  return {
    type: "logging",
    describe: () => ({}),
    async open({ signal }) {
      const call = async (what: string): Promise<void> => {
        calls.push(`${name}.${what}`);
        assert.equal(underWay++, 0, `${name}.${what} overlaps another call`);
        try {
          await Promise.resolve();
          if (fails === what) throw new Error(`${name} cannot ${what}`);
          if (hangs === what) {
            await new Promise((_, reject) => {
              if (heedsAbort) signal.addEventListener("abort", () => reject(signal.reason), { once: true });
            });
          }
        } finally {
          underWay--;
        }
      };
      await call("open");
      return {
        write: () => call("write"),
        flush: () => call("flush"),
        close: (outcome) => call(`close ${outcome}`),
      };
    },
  };
}

/** A source that writes down opening and closing. Its reads are those of `read`. */
function loggingSource(
  name: string,
  calls: Calls,
  read: () => SourceRead<number> | Promise<SourceRead<number>>,
): Source<number> {
  return {
    type: "logging",
    describe: () => ({}),
    open(): SourceReader<number> {
      calls.push(`${name}.open`);
      return {
        splits: ["0"],
        read,
        close: () => void calls.push(`${name}.close`),
      };
    },
  };
}
const records = (...values: number[]): SourceRead<number> => ({
  kind: "records",
  split: "0",
  values,
  position: 0,
});
const never = () => new Promise<never>(() => {});
/** Reads given one after the other, then `last` for ever. */
function inTurn(
  reads: readonly SourceRead<number>[],
  last: () => SourceRead<number> | Promise<SourceRead<number>>,
) {
  let at = 0;
  return () => reads[at++] ?? last();
}
const endOf: () => SourceRead<number> = () => ({ kind: "end" });

/** Starts a pipeline by a virtual clock. */
function start(build: (env: Env) => void, clock = new VirtualClock()) {
  const env = createEnv({ name: "life" }).withClock(clock).withShutdownTimeout("5s");
  build(env);
  const handle = env.start();
  handle.done.catch(() => {});
  return { env, clock, handle };
}

Deno.test("L1: sinks open before sources, everything is flushed and closed once, in a run that ends by itself", async () => {
  const calls: Calls = [];
  const { handle } = start((env) => {
    const numbers = env.fromSource(loggingSource("in", calls, inTurn([records(1), records(2)], endOf)));
    numbers.toSink(loggingSink("a", calls));
    numbers.map((n) => n).toSink(loggingSink("b", calls));
  });
  await handle.done;
  assert.deepEqual(calls.slice(0, 3), ["a.open", "b.open", "in.open"]);
  for (const once of ["in.close", "a.flush", "b.flush", "a.close done", "b.close done"]) {
    assert.equal(calls.filter((call) => call === once).length, 1, once);
  }
  assert.deepEqual(calls.filter((call) => call === "a.write").length, 2);
  assert.ok(calls.indexOf("a.flush") < calls.indexOf("a.close done"));
  assert.equal(handle.status().phase, "finished");
});

/** Every place where something can go wrong, and what the run must say then. */
const BREAKS: readonly [string, (env: Env, calls: Calls) => void, RegExp][] = [
  ["opening a sink", (env, calls) => {
    const numbers = env.fromSource(loggingSource("in", calls, endOf));
    numbers.toSink(loggingSink("a", calls));
    numbers.toSink(loggingSink("b", calls, { fails: "open" }));
  }, /^b cannot open$/],
  ["opening a source", (env, calls) => {
    env.fromSource(loggingSource("in", calls, endOf)).toSink(loggingSink("a", calls));
    env.fromSource<number>({
      type: "broken",
      describe: () => ({}),
      open: () => Promise.reject(new Error("no such file")),
    }).toSink(loggingSink("b", calls));
  }, /^no such file$/],
  ["a read", (env, calls) => {
    env.fromSource(
      loggingSource("in", calls, inTurn([records(1)], () => Promise.reject(new Error("broker gone")))),
    )
      .toSink(loggingSink("a", calls));
  }, /^broker gone$/],
  ["a read that throws", (env, calls) => {
    env.fromSource(loggingSource("in", calls, () => {
      throw new Error("broker gone");
    })).toSink(loggingSink("a", calls));
  }, /^broker gone$/],
  ["an operator", (env, calls) => {
    env.fromSource(loggingSource("in", calls, inTurn([records(1)], never))).map(() => {
      throw new Error("boom");
    }, { id: "bad" }).toSink(loggingSink("a", calls));
  }, /^operator "bad": boom/],
  ["a window at the end", (env, calls) => {
    env.fromSource(loggingSource("in", calls, inTurn([records(1)], endOf))).keyBy((n) => n).window(
      tumbling(10),
    ).process<number>(() => {
      throw new Error("boom");
    }, { id: "bad" }).toSink(loggingSink("a", calls));
  }, /^operator "bad": boom/],
  ["a write", (env, calls) => {
    env.fromSource(loggingSource("in", calls, inTurn([records(1)], never))).toSink(
      loggingSink("a", calls, { fails: "write" }),
      { id: "a" },
    );
  }, /^sink "a": a cannot write$/],
  ["a flush", (env, calls) => {
    env.fromSource(loggingSource("in", calls, endOf)).toSink(loggingSink("a", calls, { fails: "flush" }), {
      id: "a",
    });
  }, /^sink "a": a cannot flush$/],
  ["a split that was never announced", (env, calls) => {
    env.fromSource(loggingSource("in", calls, () => ({ kind: "empty", split: "x" })), { id: "in" }).toSink(
      loggingSink("a", calls),
    );
  }, /^source "in" read from split "x", which it never announced$/],
  ["a split announced twice", (env, calls) => {
    env.fromSource(loggingSource("in", calls, () => ({ kind: "added", splits: ["0"] })), { id: "in" }).toSink(
      loggingSink("a", calls),
    );
  }, /^source "in" announced split "0" twice$/],
  ["records after a split's end", (env, calls) => {
    env.fromSource(loggingSource("in", calls, inTurn([{ kind: "ended", split: "0" }], () => records(1))), {
      id: "in",
    })
      .toSink(loggingSink("a", calls));
  }, /^source "in" read from split "0" after it had ended$/],
];
for (const [name, build, message] of BREAKS) {
  Deno.test(`L2: an error anywhere ends the run with it and closes all that was opened, once: ${name}`, async () => {
    const calls: Calls = [];
    const { handle, clock } = start((env) => build(env, calls));
    await settle();
    await clock.advance("2s");
    await assert.rejects(handle.done, { message });
    assert.equal(handle.status().phase, "failed");
    const opened = calls.filter((call) => call.endsWith(".open")).map((call) => call.slice(0, -5))
      .filter((part) => !(name === "opening a sink" && part === "b"));
    for (const part of opened) {
      const closes = calls.filter((call) => call === `${part}.close` || call === `${part}.close failed`);
      assert.equal(closes.length, 1, `${part}: ${calls.join(", ")}`);
    }
    assert.equal(calls.filter((call) => call.includes("close")).length, opened.length);
  });
}

Deno.test("an error while closing is the run's, and the others are closed all the same", async () => {
  const calls: Calls = [];
  const { handle } = start((env) => {
    const numbers = env.fromSource(loggingSource("in", calls, endOf));
    numbers.toSink(loggingSink("a", calls, { fails: "close done" }));
    numbers.toSink(loggingSink("b", calls));
  });
  await assert.rejects(handle.done, { message: "a cannot close done" });
  assert.deepEqual(calls.filter((call) => call.includes("close")).toSorted(), [
    "a.close done",
    "b.close done",
    "in.close",
  ]);
});

Deno.test("L3: a stop reads no more, drains what was read, and flushes; L4: it closes no window", async () => {
  const clock = new VirtualClock(),
    all = collectingSink<number>(),
    windows = collectingSink<{ count: number }>();
  const script = scriptedSource<number>([
    { do: "records", values: [1, 2, 3], timestamps: [1, 2, 3] },
    { do: "records", values: [50], timestamps: [50] },
  ]);
  const { handle } = start((env) => {
    const numbers = env.fromSource(script.source);
    numbers.toSink(all.sink);
    numbers.keyBy(() => 0).window(tumbling(10)).aggregate({ count: count() }).toSink(windows.sink);
  }, clock);
  await settle();
  all.block();
  script.add({ do: "records", values: [60], timestamps: [60] });
  await settle();
  const stopped = handle.stop();
  assert.equal(handle.status().phase, "stopping");
  script.add({ do: "records", values: [99], timestamps: [99] });
  await settle();
  all.unblock();
  await stopped;
  assert.deepEqual(all.values, [1, 2, 3, 50, 60], "all that was read, and nothing more");
  assert.deepEqual(windows.values, [{ count: 3 }, { count: 1 }], "what 60 closed, and not the window of 60");
  assert.deepEqual([all.flushed, all.closed, script.closed], [1, 1, 1]);
  assert.equal(handle.status().phase, "stopped");
});

Deno.test("L4: the end of the input closes windows", async () => {
  const windows = collectingSink<{ count: number }>();
  const { handle } = start((env) => {
    env.fromSource(
      scriptedSource<number>([{ do: "records", values: [1], timestamps: [1] }, { do: "end" }]).source,
    )
      .keyBy(() => 0).window(tumbling(10)).aggregate({ count: count() }).toSink(windows.sink);
  });
  await handle.done;
  assert.deepEqual(windows.values, [{ count: 1 }]);
});

Deno.test("L4: behind a union windows close when all inputs have ended, and not when one was stopped", async () => {
  for (const ends of [true, false]) {
    const windows = collectingSink<{ count: number }>();
    const [first, second] = [0, 1].map(() =>
      scriptedSource<number>([{ do: "records", values: [1], timestamps: [1] }])
    );
    const { handle } = start((env) => {
      env.fromSource(first!.source).union(env.fromSource(second!.source))
        .keyBy(() => 0).window(tumbling(10)).aggregate({ count: count() }).toSink(windows.sink);
    });
    first!.add({ do: "end" });
    await settle();
    if (ends) second!.add({ do: "end" });
    else handle.stop();
    await handle.done;
    assert.deepEqual(windows.values, ends ? [{ count: 2 }] : []);
  }
});

Deno.test("a source that has ended holds nobody behind a union back", async () => {
  const windows = collectingSink<{ count: number }>();
  const [first, second] = [0, 1].map(() => scriptedSource<number>());
  const { handle } = start((env) => {
    env.fromSource(first!.source).union(env.fromSource(second!.source))
      .keyBy(() => 0).window(tumbling(10)).aggregate({ count: count() }).toSink(windows.sink);
  });
  first!.add({ do: "records", values: [1], timestamps: [1] }, { do: "end" });
  second!.add({ do: "records", values: [2, 50], timestamps: [2, 50] });
  await settle();
  assert.deepEqual(
    windows.values,
    [{ count: 2 }],
    "the window of 1 and 2 has closed, though the first source said no more",
  );
  await handle.stop();
});

const STUCK: readonly [
  string,
  (numbers: Stream<number>, calls: Calls, heedsAbort: boolean) => void,
  string[],
][] = [
  [
    "a write",
    (numbers, calls, heedsAbort) =>
      numbers.toSink(loggingSink("a", calls, { hangs: "write", heedsAbort }), { id: "stuck" }),
    ["stuck"],
  ],
  [
    "a flush",
    (numbers, calls, heedsAbort) =>
      numbers.toSink(loggingSink("a", calls, { hangs: "flush", heedsAbort }), { id: "stuck" }),
    ["stuck"],
  ],
  [
    "a close",
    (numbers, calls, heedsAbort) =>
      numbers.toSink(loggingSink("a", calls, { hangs: "close done", heedsAbort }), { id: "stuck" }),
    ["stuck"],
  ],
  [
    "a rate limiter",
    (numbers, calls) => numbers.throttle(1, { per: "1h", id: "slow" }).toSink(loggingSink("a", calls)),
    ["slow"],
  ],
];
for (const [name, build, names] of STUCK) {
  for (const heedsAbort of [true, false]) {
    Deno.test(`D1: draining that ends in ${name} that hangs is given up after the timeout, named (heeds abort: ${heedsAbort})`, async () => {
      const calls: Calls = [];
      const { handle, clock } = start((env) => {
        build(
          env.fromSource(scriptedSource<number>([{ do: "records", values: [1, 2, 3] }]).source),
          calls,
          heedsAbort,
        );
      });
      await settle();
      handle.stop();
      await clock.advance("4999ms");
      assert.equal(handle.status().phase, "stopping");
      await clock.advance("1ms");
      if (!heedsAbort) await clock.advance("1s"); // it has had its second
      await assert.rejects(handle.done, (error: ShutdownTimeoutError) => {
        assert.ok(error instanceof ShutdownTimeoutError);
        assert.deepEqual(error.stages, names);
        assert.match(error.message, /^not drained within 5000 ms: ".*" still busy, aborted$/);
        return true;
      });
      assert.equal(clock.alarms, 0);
    });
  }
}

Deno.test("a read that does not heed the stop is named, and its reader closed all the same", async () => {
  const calls: Calls = [];
  const { handle, clock } = start((env) => {
    env.fromSource(loggingSource("in", calls, never), { id: "deaf" }).toSink(loggingSink("a", calls));
  });
  await settle();
  handle.stop();
  await clock.advance("6s");
  await assert.rejects(handle.done, { name: "ShutdownTimeoutError", message: /: "deaf" still busy/ });
  assert.deepEqual(calls.filter((call) => call.includes("close")).toSorted(), ["a.close failed", "in.close"]);
});

Deno.test("a stop while a sink is being opened names it when time is up, and closes what opens too late", async () => {
  const calls: Calls = [], gate = Promise.withResolvers<void>();
  const { handle, clock } = start((env) => {
    env.fromSource(loggingSource("in", calls, endOf)).toSink({
      type: "slow",
      describe: () => ({}),
      async open() {
        await gate.promise;
        return { write() {}, flush() {}, close: (outcome) => void calls.push(`closed ${outcome}`) };
      },
    }, { id: "slow" });
  });
  await settle();
  handle.stop();
  await clock.advance("6s");
  await assert.rejects(handle.done, { name: "ShutdownTimeoutError", message: /"slow" still busy/ });
  assert.deepEqual(calls, []);
  gate.resolve();
  await settle();
  assert.deepEqual(calls, ["closed failed"]);
});

Deno.test("a second stop changes nothing; an abort ends at once with its reason", async () => {
  const calls: Calls = [];
  const { handle, clock } = start((env) => {
    env.fromSource(loggingSource("in", calls, inTurn([records(1)], never))).toSink(
      loggingSink("a", calls, { hangs: "write" }),
    );
  });
  await settle();
  handle.stop();
  await clock.advance("3s");
  handle.stop(); // does not begin the five seconds anew
  handle.abort(new Error("second signal"));
  await clock.advance("1s");
  await assert.rejects(handle.done, { message: "second signal" });
  handle.abort(new Error("too late"));
  handle.stop();
  await assert.rejects(handle.done, { message: "second signal" });
  assert.deepEqual(calls.filter((call) => call.includes("close")).toSorted(), ["a.close failed", "in.close"]);
});

Deno.test("a part is closed after its call under way has settled, not beside it", async () => {
  const order: string[] = [];
  const { handle } = start((env) => {
    env.fromSource<number>({
      type: "slow to stop",
      describe: () => ({}),
      open: ({ signal }) => ({
        splits: ["0"],
        async read() {
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          await settle();
          order.push("read settled");
          return { kind: "end" };
        },
        close: () => void order.push("closed"),
      }),
    }).toSink(collectingSink<number>().sink);
  });
  await settle();
  handle.abort();
  await assert.rejects(handle.done, { code: "aborted" });
  assert.deepEqual(order, ["read settled", "closed"]);
});

Deno.test("D2: a signal handed to execute stops the run, which is no error", async () => {
  const controller = new AbortController(), out = collectingSink<number>();
  const env = createEnv();
  const script = scriptedSource<number>([{ do: "records", values: [1, 2] }]);
  env.fromSource(script.source).toSink(out.sink);
  const run = env.execute({ signal: controller.signal });
  await settle();
  controller.abort();
  await run;
  assert.deepEqual([out.values, out.closed], [[1, 2], 1]);
  await assert.rejects(env.execute({ signal: AbortSignal.abort(new Error("before it began")) }), {
    message: "before it began",
  });
});

Deno.test("a pipeline that runs cannot be started again; one that is over can", async () => {
  const env = createEnv({ name: "twice" });
  const out = collectingSink<number>();
  env.fromSource(loggingSource("in", [], inTurn([], endOf))).toSink(out.sink);
  const first = env.start();
  assert.throws(() => env.start(), { code: "already_running" });
  await first.done;
  await env.start().done;
  assert.equal(out.closed, 2);
});

Deno.test("a blocked sink pauses the source within the buffers; nothing is dropped, all of it drains", async () => {
  for (const [bufferSize, batch] of [[1, 1], [8, 4], [64, 64]] as const) {
    const clock = new VirtualClock(), out = collectingSink<number>();
    out.block();
    let read = 0;
    const total = 5000;
    const { handle } = start((env) => {
      env.withBufferSize(bufferSize);
      env.fromSource(loggingSource("in", [], () => {
        if (read >= total) return { kind: "end" };
        const values = Array.from({ length: batch }, (_, i) => read + i).filter((n) => n < total);
        read += values.length;
        return records(...values);
      })).map((n) => n).keyBy((n) => n % 10, { partitions: 3 }).reduce((_: number | undefined, n) => n)
        .toSink(out.sink);
    }, clock);
    await settle();
    const edges = 3, held = read;
    // What an edge holds, one chunk more, and the one in hand of each task in front of and behind it.
    assert.ok(
      held <= edges * (bufferSize + 2 * batch) + 2 * batch,
      `${held} records read with buffers of ${bufferSize}`,
    );
    await settle();
    assert.equal(read, held, "it stays paused");
    out.unblock();
    await handle.done;
    assert.equal(read, total);
    assert.deepEqual(out.values.toSorted((a, b) => a - b), Array.from({ length: total }, (_, i) => i));
  }
});

Deno.test("O2: a batch is never held back to fill it: a single record goes all the way", async () => {
  const out = collectingSink<number>(), script = scriptedSource<number>();
  const { handle } = start((env) => {
    env.withBufferSize(1024);
    env.fromSource(script.source).map((n) => n).keyBy((n) => n).reduce((_: number | undefined, n) => n)
      .toSink(out.sink);
  });
  for (const n of [1, 2, 3]) {
    script.add({ do: "records", values: [n] });
    await settle();
    assert.equal(out.values.length, n);
  }
  await handle.stop();
});

/** Says `end` when it has read for ever and a day; until then it never waits. */
const tireless = (limit: number) => {
  let reads = 0;
  return {
    read: (): SourceRead<number> => ++reads > limit ? { kind: "end" } : records(reads),
    reads: () => reads,
  };
};

Deno.test("a source that never waits does not keep timers and signals from their turn, by a clock that stands still either", async () => {
  const stillClock: Clock = new VirtualClock();
  for (const clock of [undefined, stillClock]) {
    const source = tireless(20_000_000), env = createEnv();
    if (clock !== undefined) env.withClock(clock);
    env.fromSource(loggingSource("in", [], source.read)).filter(() => false).toSink(
      collectingSink<number>().sink,
    );
    const controller = new AbortController();
    const run = env.execute({ signal: controller.signal });
    const timer = Promise.withResolvers<void>();
    const handle = setTimeout(timer.resolve, 1);
    await timer.promise;
    clearTimeout(handle);
    controller.abort();
    await run;
    assert.ok(source.reads() < 20_000_000, "the signal came first");
  }
});

Deno.test("an input without splits, without records, or with empty reads ends like any other", async () => {
  const reads: SourceRead<number>[][] = [[], [records()], [{ kind: "empty", split: "0" }, records(), {
    kind: "ended",
    split: "0",
  }]];
  for (const list of reads) {
    const out = collectingSink<{ count: number }>();
    const { handle } = start((env) => {
      env.fromSource(loggingSource("in", [], inTurn(list, endOf))).keyBy((n) => n).window(tumbling(10))
        .aggregate({ count: count() })
        .toSink(out.sink);
    });
    await handle.done;
    assert.deepEqual([out.values, out.flushed, out.closed], [[], 1, 1]);
  }
  const bare = collectingSink<number>();
  const { handle } = start((env) => {
    env.fromSource<number>({
      type: "bare",
      describe: () => ({}),
      open: () => ({ splits: [], read: endOf, close() {} }),
    }).toSink(bare.sink);
  });
  await handle.done;
  assert.equal(bare.closed, 1);
});
