import assert from "node:assert/strict";
import { Batch, type Channel, type Marker, type Origin } from "../record.ts";
import { OperatorCounters } from "./counters.ts";
import type { Receiver } from "./operator.ts";
import { AlignedMerge, OutputPort, UnionInput } from "./ports.ts";
import { KeyRouter, RoundRobinRouter } from "./router.ts";

class Recorder implements Receiver {
  readonly items: (Batch | Marker)[] = [];
  batch(batch: Batch): void {
    this.items.push(batch);
  }
  marker(marker: Marker): void {
    this.items.push(marker);
  }
  get values(): unknown[] {
    return this.items.flatMap((item) => item instanceof Batch ? item.values : []);
  }
  get markers(): Marker[] {
    return this.items.filter((item): item is Marker => !(item instanceof Batch));
  }
}

const SOURCE: Channel = { group: 0, name: "s/0" };

function batch(values: unknown[], channel = SOURCE): Batch {
  const origin: Origin = {
    channel,
    source: "s",
    split: "0",
    timestamps: Float64Array.from(values, (_, i) => i),
    watermarks: new Float64Array(values.length),
    firstOffset: 0,
    offsets: undefined,
    headers: undefined,
    keys: undefined,
    texts: undefined,
    windows: undefined,
    bytes: 0,
  };
  return new Batch(values, origin);
}

Deno.test("an output gives a copy to each reader that may change values, and the originals to the last", () => {
  const counters = new OperatorCounters("op", "map", "stage");
  const port = new OutputPort(counters), first = new Recorder(), second = new Recorder();
  port.connect({ receiver: first, copies: true });
  port.connect({ receiver: second, copies: false });
  const value = { list: [1] };
  port.batch(batch([value]));
  assert.deepEqual(first.values, [{ list: [1] }]);
  assert.notEqual(first.values[0], value);
  assert.notEqual((first.values[0] as typeof value).list, value.list);
  assert.equal(second.values[0], value);
  assert.equal(counters.recordsOut, 1, "a record counts once, however many read it");
});

Deno.test("an empty batch goes nowhere and counts nothing", () => {
  const counters = new OperatorCounters("op", "map", "stage");
  const port = new OutputPort(counters), reader = new Recorder();
  port.connect({ receiver: reader, copies: false });
  port.batch(batch([]));
  assert.deepEqual(reader.items, []);
  assert.equal(counters.recordsOut, 0);
});

Deno.test("BarrierEmittedExactlyOnce: a broadcast marker leaves the merge once, after the last partition has delivered it", () => {
  const out = new Recorder(), merge = new AlignedMerge(3, out);
  const entries = [0, 1, 2].map(() => merge.entry(new Set()));
  const marker: Marker = { kind: "watermark", channel: SOURCE, time: 5 };
  entries[0]!.marker(marker);
  entries[0]!.batch(batch(["a"]));
  entries[2]!.marker(marker);
  assert.deepEqual(out.markers, []);
  entries[1]!.batch(batch(["b"]));
  entries[1]!.marker(marker);
  assert.deepEqual(out.markers, [marker]);
  assert.deepEqual(out.values, ["a", "b"]);
});

Deno.test("two markers that say the same are two markers", () => {
  const out = new Recorder(), merge = new AlignedMerge(2, out);
  const entries = [0, 1].map(() => merge.entry(new Set()));
  const one: Marker = { kind: "watermark", channel: SOURCE, time: 5 }, two: Marker = { ...one };
  for (const entry of entries) for (const marker of [one, two]) entry.marker(marker);
  assert.equal(out.markers.length, 2);
});

Deno.test("markers of a partition's own channel go on as they come; its group opens once, with the channels of all", () => {
  const out = new Recorder(), merge = new AlignedMerge(2, out), own = new Set([7]);
  const channels = [0, 1].map((p) => ({ group: 7, name: `window/${p}` }));
  const entries = [0, 1].map(() => merge.entry(own));
  entries[0]!.marker({ kind: "open", group: 7, channels: [channels[0]!] });
  assert.deepEqual(out.markers, []);
  entries[1]!.marker({ kind: "open", group: 7, channels: [channels[1]!] });
  entries[0]!.marker({ kind: "watermark", channel: channels[0]!, time: 1 });
  const end: Marker = { kind: "end", complete: true };
  entries[0]!.marker(end);
  entries[1]!.marker({ kind: "watermark", channel: channels[1]!, time: 2 });
  entries[1]!.marker(end);
  assert.deepEqual(out.markers, [
    { kind: "open", group: 7, channels },
    { kind: "watermark", channel: channels[0], time: 1 },
    { kind: "watermark", channel: channels[1], time: 2 },
    { kind: "end", complete: true },
  ]);
});

Deno.test("a union makes channels of their own out of each input's, and ends when all have ended", () => {
  const out = new Recorder();
  const union = new UnionInput([new Map([[0, 10]]), new Map([[0, 11]])], out);
  const [left, right] = [union.port(0), union.port(1)];
  for (const port of [left, right]) port.marker({ kind: "open", group: 0, channels: [SOURCE] });
  left.batch(batch(["l"]));
  right.batch(batch(["r"]));
  left.marker({ kind: "watermark", channel: SOURCE, time: 5 });
  right.marker({ kind: "idle", channel: SOURCE });
  const [openLeft, openRight] = out.markers as Extract<Marker, { kind: "open" }>[];
  assert.deepEqual([openLeft!.group, openRight!.group], [10, 11]);
  const [ofLeft, ofRight] = [openLeft!.channels[0]!, openRight!.channels[0]!];
  assert.notEqual(ofLeft, ofRight);
  assert.deepEqual(out.items.filter((item) => item instanceof Batch).map(({ origin }) => origin.channel), [
    ofLeft,
    ofRight,
  ]);
  const [watermark, idle] = out.markers.slice(2) as Extract<Marker, { kind: "watermark" }>[];
  assert.equal(watermark!.channel, ofLeft);
  assert.equal(idle!.channel, ofRight);
  left.marker({ kind: "end", complete: true });
  assert.equal(out.markers.length, 4, "the other input goes on");
  right.marker({ kind: "end", complete: false });
  assert.deepEqual(
    out.markers.at(-1),
    { kind: "end", complete: false },
    "a union is complete when all its inputs are",
  );
});

Deno.test("the key router writes the key into each record and sends equal keys to one partition, in order", () => {
  const partitions = [0, 1, 2].map(() => new Recorder());
  const router = new KeyRouter(
    (value) => (value as { k: unknown }).k,
    partitions,
    128,
    () => assert.fail("no record fails"),
  );
  const keys = [1, 1.0, 1n, "1", "", "\u0000x", null, true, [1, "a"], { a: 1, b: 2 }, { b: 2, a: 1 }, -0, 0];
  router.batch(batch(keys.map((k, i) => ({ k, i }))));
  const owner = new Map<number, number>();
  partitions.forEach(({ items }, p) => {
    for (const item of items as Batch[]) {
      item.values.forEach((value, at) => {
        const { k, i } = value as { k: unknown; i: number };
        owner.set(i, p);
        assert.equal(item.key(at), k);
        assert.equal(item.timestamp(at), i, "the rest of the record is still its own");
      });
      const order = (item.values as { i: number }[]).map(({ i }) => i);
      assert.deepEqual(order, order.toSorted((a, b) => a - b));
    }
  });
  assert.equal(owner.size, keys.length);
  assert.equal(owner.get(0), owner.get(1));
  assert.equal(owner.get(0), owner.get(2), "1 and 1n are one key");
  assert.equal(owner.get(9), owner.get(10), "the order of fields does not matter");
  assert.equal(owner.get(11), owner.get(12));
});

Deno.test("BarrierBroadcastToAllWorkers: markers go to every partition, whichever has records", () => {
  const partitions = [0, 1, 2].map(() => new Recorder());
  const marker: Marker = { kind: "end", complete: true };
  new KeyRouter(() => "k", partitions, 128, () => {}).marker(marker);
  new RoundRobinRouter(partitions).marker(marker);
  for (const { markers } of partitions) assert.deepEqual(markers, [marker, marker]);
});

Deno.test("a record without a key, or whose key cannot be made, goes to the failure policy and nowhere else", () => {
  for (const count of [1, 3]) {
    const partitions = Array.from({ length: count }, () => new Recorder());
    const failed: [number, string][] = [];
    const router = new KeyRouter(
      (value) => {
        if (value === "boom") throw new Error("no key");
        return value;
      },
      partitions,
      128,
      (_, index, error) => void failed.push([index, (error as Error).message]),
    );
    router.batch(batch(["a", undefined, "boom", "b", () => {}]));
    assert.deepEqual(failed.map(([index]) => index), [1, 2, 4]);
    assert.deepEqual(failed[0], [1, "the record has no key"]);
    assert.deepEqual(partitions.flatMap(({ values }) => values).toSorted(), ["a", "b"]);
    router.batch(batch([undefined])); // a batch with nothing left
    assert.equal(failed.length, 4);
  }
});

Deno.test("batches larger than any before are routed whole", () => {
  const partitions = [new Recorder(), new Recorder()];
  const router = new KeyRouter((value) => value, partitions, 128, () => assert.fail());
  router.batch(batch(Array.from({ length: 5000 }, (_, i) => i)));
  assert.equal(partitions[0]!.values.length + partitions[1]!.values.length, 5000);
});
