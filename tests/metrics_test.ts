import assert from "node:assert/strict";
import { count } from "../lib/aggregate/mod.ts";
import { createEnv } from "../lib/stream/env.ts";
import { boundedOutOfOrderness } from "../lib/runtime/watermarks.ts";
import { collectingSink, scriptedSource, settle, VirtualClock } from "../lib/testing/mod.ts";
import { tumbling } from "../lib/window/mod.ts";

/** Series by name and labels, `pipeline` left out. */
function seriesOf(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^(mailer_\w+)\{(.*)\} (\S+)$/.exec(line);
    if (match === null) continue;
    const labels = match[2]!.split(",").filter((label) => !label.startsWith("pipeline=")).join(",");
    series.set(`${match[1]}{${labels}}`, match[3] === "+Inf" ? Infinity : Number(match[3]));
  }
  return series;
}

Deno.test("records in, out, errors, drops and dead letters are counted by operator", async () => {
  const env = createEnv({ name: "m" }), out = collectingSink<number>();
  env.withDeadLetters(collectingSink<unknown>().sink);
  env.fromSource(
    scriptedSource<number>([{ do: "records", values: [0, 1, 2, 3, 4, 5] }, { do: "end" }]).source,
    { id: "in" },
  )
    .flatMap((n) => n === 0 ? [] : [n, n], { id: "twice" })
    .map((n) => {
      if (n === 3) throw new Error("three");
      return n;
    }, { id: "m", onError: "drop" })
    .filter((n) => {
      if (n === 4) throw new Error("four");
      return n > 1;
    }, { id: "f", onError: "dlq" })
    .toSink(out.sink, { id: "out" });
  await env.execute();
  const got = seriesOf(await env.metrics());
  const expect: Readonly<Record<string, number>> = {
    'mailer_records_in_total{operator="in",type="scripted"}': 6,
    'mailer_records_out_total{operator="in",type="scripted"}': 6,
    'mailer_records_in_total{operator="twice",type="flatMap"}': 6,
    'mailer_records_out_total{operator="twice",type="flatMap"}': 10,
    'mailer_records_in_total{operator="m",type="map"}': 10,
    'mailer_records_out_total{operator="m",type="map"}': 8,
    'mailer_record_errors_total{operator="m"}': 2,
    'mailer_records_dropped_total{operator="m",reason="error"}': 2,
    'mailer_dead_letters_total{operator="m"}': 0,
    'mailer_records_out_total{operator="f",type="filter"}': 4,
    'mailer_record_errors_total{operator="f"}': 2,
    'mailer_dead_letters_total{operator="f"}': 2,
    'mailer_records_in_total{operator="out",type="collect"}': 4,
    'mailer_records_out_total{operator="out",type="collect"}': 4,
    'mailer_records_out_total{operator="dlq",type="collect"}': 2,
  };
  for (const [name, value] of Object.entries(expect)) assert.equal(got.get(name), value, name);
  assert.equal(
    got.has('mailer_records_dropped_total{operator="f",reason="error"}'),
    false,
    "a dead letter is not dropped",
  );
});

Deno.test("partitions of one operator are one operator", async () => {
  const env = createEnv(), out = collectingSink<unknown>();
  env.fromSource(
    scriptedSource<number>([{ do: "records", values: Array.from({ length: 100 }, (_, i) => i) }, {
      do: "end",
    }]).source,
  )
    .keyBy((n) => n, { partitions: 16, id: "by" }).aggregate({ count: count() }, { id: "a" }).toSink(
      out.sink,
    );
  await env.execute();
  const got = seriesOf(await env.metrics());
  assert.equal(got.get('mailer_records_in_total{operator="by",type="keyBy"}'), 100);
  assert.equal(got.get('mailer_records_in_total{operator="a",type="aggregate"}'), 100);
  assert.equal(got.get('mailer_state_entries{operator="a"}'), 100);
});

Deno.test("splits: offset, watermark and idleness; edges: what waits, and for how long writers waited", async () => {
  const clock = new VirtualClock(), out = collectingSink<number>();
  const script = scriptedSource<number>([], { splits: ["a", "b"] });
  const env = createEnv().withClock(clock).withBufferSize(2);
  env.fromSource(script.source, { id: "in", watermarks: boundedOutOfOrderness(500, { idleTimeout: "10s" }) })
    .toSink(out.sink, { id: "out" });
  const handle = env.start();
  script.add({ do: "records", values: [1, 2, 3], timestamps: [1000, 5000, 3000], split: "a" }, {
    do: "empty",
    split: "b",
  });
  await settle();
  await clock.advance("10s");
  script.add({ do: "empty", split: "b" });
  await settle();
  let got = seriesOf(await env.metrics());
  assert.equal(got.get('mailer_split_offset{source="in",split="a"}'), 2);
  assert.equal(got.get('mailer_split_watermark_seconds{source="in",split="a"}'), 4.5);
  assert.equal(got.has('mailer_split_watermark_seconds{source="in",split="b"}'), false, "it has none");
  assert.equal(got.get('mailer_split_idle{source="in",split="a"}'), 0);
  assert.equal(got.get('mailer_split_idle{source="in",split="b"}'), 1);
  assert.equal(got.get('mailer_edge_capacity_records{edge="in->out"}'), 2);
  assert.equal(got.get("mailer_pipeline_running{}"), 1);

  out.block();
  for (let i = 0; i < 5; i++) script.add({ do: "records", values: [i], timestamps: [4000], split: "a" });
  await settle();
  got = seriesOf(await env.metrics());
  assert.equal(got.get('mailer_edge_queued_records{edge="in->out"}'), 2);
  await clock.advance("7s");
  out.unblock();
  await settle();
  got = seriesOf(await env.metrics());
  assert.equal(got.get('mailer_edge_queued_records{edge="in->out"}'), 0);
  assert.equal(got.get('mailer_edge_send_blocked_seconds_total{edge="in->out"}'), 7);
  assert.equal(got.get('mailer_blocked_seconds_total{operator="in",stage="in"}'), 7);
  assert.equal(got.get('mailer_busy_seconds_total{operator="out",stage="out"}'), 7);
  assert.equal(got.get('mailer_idle_seconds_total{operator="in",stage="in"}'), 10);
  await handle.stop();
  got = seriesOf(await env.metrics());
  assert.equal(got.get("mailer_pipeline_running{}"), 0);
});

Deno.test("windows say what they hold, and nothing is left when they have closed", async () => {
  const env = createEnv();
  const script = scriptedSource<number>(), out = collectingSink<unknown>();
  env.fromSource(script.source).keyBy((n) => n % 5, { partitions: 3 }).window(tumbling(10)).allowedLateness(5)
    .aggregate({ count: count() }, { id: "w" }).toSink(out.sink);
  const handle = env.start();
  const held = async () => seriesOf(await env.metrics()).get('mailer_state_entries{operator="w"}');
  script.add({ do: "records", values: [0, 1, 2, 3, 4, 5, 6], timestamps: [1, 2, 3, 4, 5, 6, 11] });
  await settle();
  assert.equal(await held(), 6);
  script.add({ do: "watermark", time: 15 });
  await settle();
  assert.equal(await held(), 1, "those of [0, 10) are gone");
  script.add({ do: "end" });
  await handle.done;
  assert.equal(await held(), 0);
});

Deno.test("two pipelines in one process do not mix", async () => {
  const texts = [];
  for (const name of ["one", "two"]) {
    const env = createEnv({ name });
    env.fromSource(scriptedSource<number>([{ do: "records", values: [1] }, { do: "end" }]).source).toSink(
      collectingSink<number>().sink,
    );
    await env.execute();
    texts.push(await env.metrics());
  }
  assert.match(texts[0]!, /pipeline="one"/);
  assert.doesNotMatch(texts[0]!, /pipeline="two"/);
  assert.match(texts[1]!, /^mailer_records_in_total\{operator="source",type="scripted",pipeline="two"\} 1$/m);
});
