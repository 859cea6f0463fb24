import assert from "node:assert/strict";
import type { Env } from "../../stream/env.ts";
import type { KeyedStream } from "../../stream/keyed_stream.ts";
import type { Stream } from "../../stream/stream.ts";
import { type Harness, harness, type HarnessOptions } from "../../testing/mod.ts";
import { count } from "../../aggregate/mod.ts";
import { tumbling } from "../../window/mod.ts";
import type { KeyedContext, KeyedProcess } from "./context.ts";

interface Event {
  readonly key: string;
  readonly n: number;
}
type Process = KeyedProcess<Event, string, unknown>;
type Context = KeyedContext<string, unknown>;

/** Runs a process function over events by key. */
async function run(
  process: Process,
  options: HarnessOptions<Event> & {
    readonly sides?: readonly string[];
    readonly partitions?: number;
    readonly onError?: "drop";
    readonly behind?: (stream: KeyedStream<string, unknown>) => Stream<unknown>;
  } = {},
): Promise<Harness<Event, unknown>> {
  const { partitions = 2, sides = [], onError, behind, ...rest } = options;
  let env!: Env;
  const h = await harness<Event, unknown>((stream, own) => {
    env = own;
    const processed = stream.keyBy(({ key }) => key, { partitions })
      .processKeyed(process, { id: "p", outputs: sides, ...(onError === undefined ? {} : { onError }) });
    return behind?.(processed) ?? processed;
  }, { ...rest, sides });
  envs.set(h, env);
  return h;
}
const envs = new WeakMap<Harness<Event, unknown>, Env>();
/** The metrics of a harness's pipeline. */
const metrics = (h: Harness<Event, unknown>): Promise<string> => envs.get(h)!.metrics();
const onTimer: NonNullable<Process["onTimer"]> = ({ name, time, domain }, context) =>
  context.emit({ key: context.key, name, time, domain });

Deno.test("Q1: a timer fires when the watermark reaches it, not before, and before the record that carries that watermark", async () => {
  const seen: string[] = [];
  const h = await run({
    onRecord: ({ n }, context) => {
      seen.push(`record ${n}`);
      context.setEventTimer(100);
    },
    onTimer: ({ time }) => void seen.push(`timer ${time}`),
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 50 });
  await h.watermark(99);
  assert.deepEqual(seen, ["record 1"]);
  await h.watermark(100);
  assert.deepEqual(seen, ["record 1", "timer 100"]);
  await h.end();
});

Deno.test("Q1: timers fire by time, those of one time in the order they were set, whatever else the partition holds", async () => {
  for (const others of [0, 1, 5, 9]) {
    const h = await run({
      onRecord: ({ n }, context) => {
        if (n > 0) return context.setEventTimer(n);
        for (const name of ["c", "a", "b", "e", "d"]) context.setEventTimer(100, name);
        context.setEventTimer(90, "first");
      },
      onTimer,
    }, { partitions: 1 });
    for (let i = 1; i <= others; i++) await h.push({ key: `other${i}`, n: 80 + i * 4 }, { timestamp: 0 });
    await h.push({ key: "k", n: 0 }, { timestamp: 0 });
    await h.watermark(200);
    const mine = (h.output as { key: string; name: string }[]).filter(({ key }) => key === "k").map((
      { name },
    ) => name);
    assert.deepEqual(mine, ["first", "c", "a", "b", "e", "d"]);
    await h.end();
  }
});

Deno.test("Q1: a timer that was moved to a time fires behind those set to it before", async () => {
  const h = await run({
    onRecord: (_, context) => {
      context.setEventTimer(10, "moved");
      context.setEventTimer(100, "a");
      context.setEventTimer(100, "b");
      context.setEventTimer(100, "moved");
    },
    onTimer,
  });
  await h.push({ key: "k", n: 0 }, { timestamp: 0 });
  await h.watermark(50);
  await h.watermark(100);
  assert.deepEqual((h.output as { name: string }[]).map(({ name }) => name), ["a", "b", "moved"]);
  await h.end();
});

Deno.test("Q1: a timer set to a time that has passed fires right behind the call that set it", async () => {
  const h = await run({
    onRecord: ({ n }, context) => {
      context.setEventTimer(n);
      context.emit(`record ${n}`);
    },
    onTimer: ({ time }, context) => context.emit(`timer ${time}`),
  });
  await h.watermark(1000);
  await h.push({ key: "a", n: 5 }, { timestamp: 5 });
  assert.deepEqual(h.output, ["record 5", "timer 5"]);
  await h.end();
  assert.equal(h.output.length, 2);
});

Deno.test("Q2: a name moves: later, earlier, and back; it fires once, at the time set last", async () => {
  const h = await run({
    onRecord: ({ n }, context) => context.setEventTimer(n, "timeout"),
    onTimer,
  }, { partitions: 1 });
  for (const n of [100, 300, 200, 500, 50, 400]) await h.push({ key: "a", n }, { timestamp: 0 });
  assert.match(await metrics(h), /mailer_timers\{operator="p",pipeline="test"\} 1\n/);
  await h.watermark(399);
  assert.deepEqual(h.output, []);
  await h.watermark(400);
  assert.deepEqual(h.output, [{ key: "a", name: "timeout", time: 400, domain: "event" }]);
  assert.match(await metrics(h), /mailer_timers\{operator="p",pipeline="test"\} 0\n/);
  await h.end();
  assert.equal(h.output.length, 1);
});

Deno.test("Q2: a timer without a name is named by its time: set twice it is one, two times are two", async () => {
  const h = await run({
    onRecord: ({ n }, context) => {
      context.setEventTimer(n);
      context.setEventTimer(n);
    },
    onTimer,
  });
  await h.push({ key: "a", n: 10 }, { timestamp: 0 });
  await h.push({ key: "a", n: 10 }, { timestamp: 0 });
  await h.push({ key: "a", n: 20 }, { timestamp: 0 });
  await h.push({ key: "b", n: 10 }, { timestamp: 0 });
  await h.watermark(30);
  assert.deepEqual(
    (h.output as { key: string; time: number }[]).map(({ key, time }) => key + time).toSorted(),
    ["a10", "a20", "b10"],
  );
  await h.end();
});

Deno.test("a deleted timer does not fire; deleting says whether there was one", async () => {
  const deleted: boolean[] = [];
  const h = await run({
    onRecord: ({ n }, context) => {
      if (n === 1) {
        context.setEventTimer(10, "x");
        context.setEventTimer(20);
        context.setProcessingTimer(context.timestamp + 5, "x");
      } else {
        deleted.push(
          context.deleteEventTimer("x"),
          context.deleteEventTimer(20),
          context.deleteEventTimer(20),
        );
        deleted.push(context.deleteProcessingTimer("x"), context.deleteProcessingTimer("y"));
        context.setEventTimer(30, "x"); // and may be set again
      }
    },
    onTimer,
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.push({ key: "a", n: 2 }, { timestamp: 0 });
  await h.advance("1h");
  await h.watermark(100);
  assert.deepEqual(deleted, [true, true, false, true, false]);
  assert.deepEqual((h.output as { time: number }[]).map(({ time }) => time), [30]);
  await h.end();
});

Deno.test("Q1: a timer that was deleted and set again is one that was set last", async () => {
  const h = await run({
    onRecord: (_, context) => {
      context.setEventTimer(10, "x");
      context.deleteEventTimer("x");
      context.setEventTimer(10, "y");
      context.setEventTimer(10, "x");
    },
    onTimer,
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.watermark(10);
  assert.deepEqual((h.output as { name: string }[]).map(({ name }) => name), ["y", "x"]);
  await h.end();
});

Deno.test("a timer set, deleted and set again to the same time fires once", async () => {
  const h = await run({
    onRecord: (_, context) => {
      for (let i = 0; i < 3; i++) {
        context.setEventTimer(10, "x");
        context.deleteEventTimer("x");
        context.setEventTimer(10, "x");
      }
    },
    onTimer,
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.watermark(10);
  await h.end();
  assert.equal(h.output.length, 1);
});

Deno.test("S8: timers fire whatever state the key has", async () => {
  const h = await run({
    onRecord: (_, context) => {
      context.value("v").set(1);
      context.value("v").clear();
      context.setEventTimer(10);
    },
    onTimer: (_, context) =>
      context.emit([context.key, context.value("v").get() ?? "nothing", context.record ?? "no record"]),
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.watermark(10);
  assert.deepEqual(h.output, [["a", "nothing", "no record"]]);
  assert.match(await metrics(h), /mailer_state_entries\{operator="p",pipeline="test"\} 0\n/);
  await h.end();
});

Deno.test("timers set in timers fire in the same sweep when they are due", async () => {
  const h = await run({
    onRecord: (_, context) => context.setEventTimer(10),
    onTimer: ({ time }, context) => {
      context.emit(time);
      if (time < 50) context.setEventTimer(time + 10);
    },
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.watermark(35);
  assert.deepEqual(h.output, [10, 20, 30]);
  await h.watermark(40);
  assert.deepEqual(h.output, [10, 20, 30, 40]);
  await h.end();
  assert.deepEqual(h.output, [10, 20, 30, 40, 50], "the end lets the last one fire");
});

Deno.test("Q3: a processing-time timer fires by the clock, not before its time and without any record", async () => {
  const h = await run({
    onRecord: ({ n }, context) => context.setProcessingTimer(Date.UTC(2026, 0, 1) + n, "alarm"),
    onTimer,
  });
  await h.push({ key: "a", n: 1000 });
  await h.push({ key: "b", n: 500 });
  await h.advance(499);
  assert.deepEqual(h.output, []);
  await h.advance(1);
  assert.deepEqual((h.output as { key: string }[]).map(({ key }) => key), ["b"]);
  await h.push({ key: "a", n: 2000 }); // moved on
  await h.advance(1000);
  assert.equal(h.output.length, 1);
  await h.advance(500);
  assert.deepEqual((h.output as { key: string }[]).map(({ key }) => key), ["b", "a"]);
  await h.end();
});

Deno.test("Q4: at the end event-time timers fire, processing-time timers that are not due do not; a stop fires none", async () => {
  const process: Process = {
    onRecord: (_, context) => {
      context.setEventTimer(1e12);
      context.setEventTimer(Infinity, "at the end");
      context.setProcessingTimer(context.timestamp + 1e9);
    },
    onTimer: ({ name, time, domain }, context) => context.emit([domain, name ?? time], { timestamp: 1 }),
  };
  const ended = await run(process);
  await ended.push({ key: "a", n: 1 });
  await ended.end();
  assert.deepEqual(ended.output, [["event", 1e12], ["event", "at the end"]]);
  const stopped = await run(process);
  await stopped.push({ key: "a", n: 1 });
  await stopped.stop();
  assert.deepEqual(stopped.output, []);
});

Deno.test("Q4: a key that always sets its next timer does not run for ever at the end, it is an error that says what to do", async () => {
  const h = await run({
    onRecord: (_, context) => context.setEventTimer(10),
    onTimer: ({ time }, context) => context.setEventTimer(time + 10),
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await assert.rejects(h.end(), (error: { code?: string; message: string; hint?: string }) => {
    assert.equal(error.code, "endless_timers");
    assert.match(error.message, /operator "p"/);
    assert.match(error.hint!, /context\.watermark/);
    return true;
  });
  const polite = await run({
    onRecord: (_, context) => context.setEventTimer(10),
    onTimer: ({ time }, context) => {
      if (context.watermark < Infinity) context.setEventTimer(time + 10);
    },
  });
  await polite.push({ key: "a", n: 1 }, { timestamp: 0 });
  await polite.end();
});

Deno.test("Q5: a call that throws emits nothing, to no output", async () => {
  const h = await run({
    onRecord: ({ n }, context) => {
      context.emit(`main ${n}`);
      context.output("side", `side ${n}`);
      if (n === 2) throw new Error("no");
      context.setEventTimer(n, "t");
    },
    onTimer: ({ time }, context) => {
      context.emit(`timer ${time}`);
      if (time === 3) throw new Error("no timer");
    },
  }, { sides: ["side"], onError: "drop" });
  for (const n of [1, 2, 3]) await h.push({ key: `k${n}`, n }, { timestamp: 0 });
  await h.watermark(10);
  await h.end();
  assert.deepEqual(h.output, ["main 1", "main 3", "timer 1"]);
  assert.deepEqual(h.side("side"), ["side 1", "side 3"]);
  assert.deepEqual(h.handle.status().dropped, [{ operator: "p", reason: "error", count: 2 }]);
});

Deno.test("Q5: a call that throws leaves state and timers as they were before it; its timer does not fire again", async () => {
  const h = await run({
    onRecord: ({ n }, context) => {
      context.value<number>("last").set(n);
      context.list<number>("all").add(n);
      context.setEventTimer(n * 10, "t");
      if (n === 9) context.deleteEventTimer("kept");
      else context.setEventTimer(60, "kept");
      if (n > 4) throw new Error("no");
    },
    onTimer: ({ name, time }, context) => {
      context.emit([name, time, context.value("last").get(), context.list("all").get()]);
      if (name === "t") return;
      context.list("all").clear();
      context.setEventTimer(70, "again");
      throw new Error("no timer");
    },
  }, { onError: "drop", partitions: 1 });
  await h.push({ key: "new", n: 5 }, { timestamp: 0 });
  assert.match(
    await metrics(h),
    /mailer_state_entries\{operator="p",pipeline="test"\} 0\n/,
    "no key is left behind",
  );
  for (const n of [3, 4, 7, 9]) await h.push({ key: "a", n }, { timestamp: 0 });
  assert.deepEqual(h.state("p", "a"), { last: 4, all: [3, 4] });
  assert.match(await metrics(h), /mailer_timers\{operator="p",pipeline="test"\} 2\n/);
  await h.watermark(65);
  assert.deepEqual(h.output, [["t", 40, 4, [3, 4]]]);
  assert.deepEqual(h.state("p", "a"), { last: 4, all: [3, 4] });
  assert.match(await metrics(h), /mailer_timers\{operator="p",pipeline="test"\} 0\n/);
  await h.end();
  assert.equal(h.output.length, 1);
});

Deno.test("a timer that throws ends the run and names the operator", async () => {
  const h = await run({
    onRecord: (_, context) => context.setEventTimer(10),
    onTimer: () => {
      throw new Error("bad timer");
    },
  });
  await h.push({ key: "a", n: 1 }, { timestamp: 0 });
  await h.watermark(10);
  await assert.rejects(h.end(), { name: "RecordError", operator: "p", message: /operator "p": bad timer/ });
});

Deno.test("side outputs of timers come out at the end as well, and in front of the watermark that made them due", async () => {
  const process: Process = {
    onRecord: (_, context) => context.setEventTimer(15),
    onTimer: ({ time }, context) => context.output("side", time),
  };
  const ended = await run(process, { sides: ["side"] });
  await ended.push({ key: "a", n: 1 }, { timestamp: 0 });
  await ended.end();
  assert.deepEqual(ended.side("side"), [15]);

  // A window behind the side output takes the row: it is not late.
  const late = await harness<Event, unknown>((stream) => {
    const processed = stream.keyBy(({ key }) => key, { partitions: 1 }).processKeyed(process);
    return processed.sideOutput<number>("side").keyBy(() => 0, { partitions: 1 }).window(tumbling(10))
      .aggregate({ count: count() });
  });
  await late.push({ key: "a", n: 1 }, { timestamp: 0 });
  await late.watermark(100);
  await late.end();
  assert.deepEqual(late.output, [{ count: 1 }]);
});

Deno.test("context: key, timestamp, watermark, record and headers are those of the work at hand", async () => {
  const headers = [["h", new Uint8Array([1])]] as const;
  const h = await run({
    onRecord: (_, context) => {
      context.emit([context.key, context.timestamp, context.watermark, context.record?.offset]);
      context.emit("moved", { timestamp: 77, headers: [["own", new Uint8Array([2])]] });
      context.setEventTimer(60);
    },
    onTimer: (_, context) => context.emit([context.key, context.timestamp, context.watermark]),
  });
  await h.watermark(5);
  await h.push({ key: "a", n: 1 }, { timestamp: 40, headers });
  await h.watermark(70);
  await h.end();
  assert.deepEqual(h.output, [["a", 40, 5, 0], "moved", ["a", 60, 70]]);
  assert.deepEqual(h.records.map(({ timestamp }) => timestamp), [40, 77, 60]);
  assert.deepEqual(h.records.map(({ headers }) => headers.map(([name]) => name)), [["h"], ["own"], []]);
  assert.deepEqual(h.records.map(({ key }) => key), ["a", "a", "a"]);
});

Deno.test("an emitted record needs a time, a timer too", async () => {
  const bad: readonly ((context: Context) => void)[] = [
    (context) => context.emit(1, { timestamp: NaN }),
    (context) => context.emit(1, { timestamp: 9e15 }),
    (context) => context.setEventTimer(NaN),
    (context) => context.setProcessingTimer(NaN),
    (context) => context.output("nobody declared it", 1),
  ];
  for (const work of bad) {
    const h = await run({ onRecord: (_, context) => work(context) });
    await h.push({ key: "a", n: 1 });
    await assert.rejects(h.end(), { name: "RecordError", operator: "p" });
  }
});

Deno.test("T2: state with a ttl is freed when the watermark has passed, also what was written before the first watermark", async () => {
  const h = await run({ onRecord: ({ n }, context) => context.value("v", { ttl: 10 }).set(n) }, {
    partitions: 1,
  });
  for (let i = 0; i < 50; i++) await h.push({ key: `k${i}`, n: i }, { timestamp: 100 });
  assert.match(await metrics(h), /mailer_state_entries\{operator="p",pipeline="test"\} 50\n/);
  assert.deepEqual(h.state("p", "k7"), { v: 7 });
  await h.watermark(109);
  assert.deepEqual(h.state("p", "k7"), { v: 7 });
  await h.watermark(110);
  assert.deepEqual(h.state("p", "k7"), {});
  assert.match(await metrics(h), /mailer_state_entries\{operator="p",pipeline="test"\} 0\n/);
  await h.end();
});

Deno.test("T2: state with a ttl by the clock is freed by the clock, without any record", async () => {
  const h = await run({
    onRecord: ({ n }, context) => context.value("v", { ttl: "1m", ttlTime: "processing" }).set(n),
  }, { partitions: 1 });
  await h.push({ key: "a", n: 1 });
  await h.advance("30s");
  await h.push({ key: "b", n: 2 });
  await h.advance("30s");
  assert.deepEqual([h.state("p", "a"), h.state("p", "b")], [{}, { v: 2 }]);
  assert.match(await metrics(h), /mailer_state_entries\{operator="p",pipeline="test"\} 1\n/);
  await h.advance("30s");
  assert.match(await metrics(h), /mailer_state_entries\{operator="p",pipeline="test"\} 0\n/);
  await h.end();
});

Deno.test("state and timers are the key's own, whatever the partitions", async () => {
  for (const partitions of [1, 2, 3, 8]) {
    const h = await run({
      onRecord: ({ n }, context) => {
        const sum = context.reducing<number>("sum", (a, b) => a + b);
        sum.add(n);
        context.setEventTimer(100, "report");
      },
      onTimer: (_, context) =>
        context.emit([context.key, context.reducing<number>("sum", (a, b) => a + b).get()]),
    }, { partitions });
    for (let i = 0; i < 20; i++) await h.push({ key: `k${i % 5}`, n: i }, { timestamp: i });
    await h.end();
    assert.deepEqual((h.output as [string, number][]).toSorted(), [["k0", 30], ["k1", 34], ["k2", 38], [
      "k3",
      42,
    ], ["k4", 46]]);
  }
});

Deno.test("a value that is kept is not the one that goes on: changing either changes nothing in the other", async () => {
  const h = await run({
    onRecord: (value, context) => {
      const kept = context.value<Event[]>("kept");
      const all = [...kept.get() ?? [], value];
      kept.set(all);
      context.emit(all);
      (value as { n: number }).n = -1; // the record is the function's own
    },
  }, {
    behind: (stream) =>
      stream.map((list) => {
        for (const event of list as { n: number }[]) event.n *= 100;
        return (list as Event[]).length;
      }),
  });
  for (const n of [1, 2, 3]) await h.push({ key: "a", n });
  assert.deepEqual(h.state("p", "a"), { kept: [{ key: "a", n: 1 }, { key: "a", n: 2 }, { key: "a", n: 3 }] });
  await h.end();
});
