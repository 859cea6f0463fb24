import assert from "node:assert/strict";
import { systemClock } from "../clock.ts";
import { silentLogger } from "../log.ts";
import { Batch, type Channel, type Marker } from "../record.ts";
import type { OperatorContext } from "../runtime/operator.ts";
import { monotonic } from "../runtime/watermarks.ts";
import { AssignTimestampsOperator } from "./assign_timestamps.ts";

/** The operator, its values being its times, and what comes out of it. */
function operator(inputGroups: readonly number[]) {
  const out: (Batch | Marker)[] = [];
  const context: OperatorContext = {
    id: "op",
    partition: 0,
    partitions: 1,
    state: undefined,
    paged: false,
    maxKeyGroups: 128,
    clock: systemClock,
    logger: silentLogger,
    inputGroups,
    channel: { group: 9, name: "op/0" },
    output: () => ({ batch: (batch) => void out.push(batch), marker: (marker) => void out.push(marker) }),
    isRead: () => false,
    failed: () => assert.fail(),
    dropped: () => assert.fail(),
    wakeAt: () => assert.fail(),
    gauges: { stateEntries: 0, timers: 0, late: 0, maxLateness: 0 },
  };
  const said = () =>
    out.splice(0).map((item) =>
      item instanceof Batch
        ? `batch ${item.origin.channel.name} ${item.values} after ${
          Array.from(item.values, (_, i) => item.watermark(i))
        }`
        : item.kind === "open"
        ? `open ${item.group}: ${item.channels.map(({ name }) => name)}`
        : item.kind === "end"
        ? "end"
        : `${item.kind} ${item.channel.name}${item.kind === "watermark" ? ` ${item.time}` : ""}`
    );
  return { operator: new AssignTimestampsOperator((value) => value as number, monotonic(), context), said };
}

const LEFT: Channel = { group: 0, name: "l" }, RIGHT: Channel = { group: 1, name: "r" };

function batch(channel: Channel, values: number[]): Batch {
  return new Batch<unknown>(values, {
    channel,
    source: "s",
    split: channel.name,
    timestamps: new Float64Array(values.length),
    watermarks: new Float64Array(values.length),
    firstOffset: 0,
    offsets: undefined,
    headers: undefined,
    keys: undefined,
    texts: undefined,
    windows: undefined,
    bytes: 0,
  });
}

Deno.test("its group opens when all groups in front have: until then a slow input must not be run away from", () => {
  const { operator: op, said } = operator([0, 1]);
  op.marker({ kind: "open", group: 0, channels: [LEFT] });
  assert.deepEqual(said(), []);
  op.batch(batch(LEFT, [5]));
  op.marker({ kind: "open", group: 1, channels: [RIGHT] });
  op.marker({ kind: "open", group: 1, channels: [{ group: 1, name: "r2" }] }); // a split that comes later
  assert.deepEqual(said(), [
    "batch op/l 5 after -Infinity",
    "watermark op/l 5",
    "open 9: op/l,op/r",
    "open 9: op/r2",
  ]);
});

Deno.test("records get the watermark that held before them; watermarks from in front are not passed on", () => {
  const { operator: op, said } = operator([0]);
  op.marker({ kind: "open", group: 0, channels: [LEFT] });
  op.batch(batch(LEFT, [3, 9, 4]));
  op.marker({ kind: "watermark", channel: LEFT, time: 1e9 });
  op.batch(batch(LEFT, [10]));
  op.marker({ kind: "ended", channel: LEFT });
  op.marker({ kind: "end", complete: true });
  assert.deepEqual(said().slice(1), [
    "batch op/l 3,9,4 after -Infinity,3,9",
    "watermark op/l 9",
    "batch op/l 10 after 9",
    "watermark op/l 10",
    "ended op/l",
    "end",
  ]);
});

Deno.test("a channel that wakes says so in front of its record, and its watermark once more behind", () => {
  const { operator: op, said } = operator([0]);
  op.marker({ kind: "open", group: 0, channels: [LEFT] });
  op.batch(batch(LEFT, [7]));
  op.marker({ kind: "idle", channel: LEFT });
  said();
  op.batch(batch(LEFT, [4]));
  assert.deepEqual(said(), ["watermark op/l 7", "batch op/l 4 after 7", "watermark op/l 7"]);
  op.marker({ kind: "idle", channel: LEFT });
  op.marker({ kind: "watermark", channel: LEFT, time: 1 }); // woken by a record that went elsewhere
  op.marker({ kind: "watermark", channel: LEFT, time: 1 });
  assert.deepEqual(said(), ["idle op/l", "watermark op/l 7", "watermark op/l 7"]);
});
