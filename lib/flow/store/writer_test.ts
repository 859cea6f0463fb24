import assert from "node:assert/strict";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { MailerError } from "../../errors.ts";
import { type Cells, type Check, MOST_BYTES, MOST_CHECKS, MOST_WRITES, type Write } from "./cells.ts";
import { FaultyCells } from "./faults.ts";
import { MemoryCells, MemoryDisk } from "./memory.ts";
import { fits, type Unit, Writer } from "./writer.ts";

const bytes = (text: string | number): Uint8Array => new TextEncoder().encode(String(text));
const set = (key: string, text: string | number = "x"): Write => ({ key, bytes: bytes(text) });

/** Cells that note the keys of every commit, and a writer on them. */
function scene(): {
  readonly disk: MemoryDisk;
  readonly commits: { readonly checks: readonly Check[]; readonly keys: readonly string[] }[];
  readonly writer: Writer;
} {
  const disk = new MemoryDisk(), inner = new MemoryCells(disk, new VirtualClock());
  const commits: { checks: readonly Check[]; keys: string[] }[] = [];
  const cells: Cells = {
    where: inner.where,
    get: (keys) => inner.get(keys),
    list: (range, limit, reverse) => inner.list(range, limit, reverse),
    commit: (checks, writes) => {
      commits.push({ checks, keys: writes.map(({ key }) => key) });
      return inner.commit(checks, writes);
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  return { disk, commits, writer: new Writer(cells) };
}

Deno.test("W2: of units that want the same cell one is in an operation", async () => {
  const { disk, commits, writer } = scene();
  const first = await writer.submit({ checks: [], writes: [set("a", 0)] });
  const want = (text: string): Unit => ({
    checks: [{ key: "a", version: first! }],
    writes: [set("a", text)],
  });
  const versions = await Promise.all([
    writer.submit(want("1")),
    writer.submit(want("2")),
    writer.submit(want("3")),
  ]);
  assert.deepEqual(versions.map((version) => version !== undefined), [true, false, false]);
  assert.deepEqual(disk.get("a")!.bytes, bytes(1));
  commits.length = 0;
  await Promise.all([1, 2, 3].map((text) => writer.submit({ checks: [], writes: [set("b", text)] })));
  assert.deepEqual(commits.map(({ keys }) => keys), [["b"], ["b"], ["b"]]);
  assert.deepEqual(disk.get("b")!.bytes, bytes(3), "in the order they were submitted");
  commits.length = 0;
  const version = disk.get("b")!.version;
  const read: Unit = { checks: [{ key: "b", version }], writes: [set("c")] };
  const outcomes = await Promise.all([
    writer.submit(read),
    writer.submit({ checks: [{ key: "b", version }], writes: [set("d")] }),
    writer.submit({ checks: [], writes: [set("b", 4)] }),
    writer.submit({ checks: [{ key: "b", version: "other" }], writes: [set("e")] }),
  ]);
  assert.deepEqual(outcomes.map((outcome) => outcome !== undefined), [true, true, true, false]);
  assert.deepEqual(
    commits.map(({ keys }) => keys),
    [["c", "d"], ["b"], ["e"]],
    "checks may be shared, if they agree",
  );
  assert.equal(commits[0]!.checks.length, 1);
});

Deno.test("W3: a unit whose checks fail fails alone", async () => {
  const { commits, writer } = scene();
  const units = Array.from({ length: 20 }, (_, i): Unit => ({
    checks: [{ key: `c${i}`, version: i % 7 === 3 ? "wrong" : null }],
    writes: [set(`c${i}`)],
  }));
  const outcomes = await Promise.all(units.map((unit) => writer.submit(unit)));
  assert.deepEqual(outcomes.map((version) => version !== undefined), units.map((_, i) => i % 7 !== 3));
  assert.equal(commits.length, 1 + 20);
  assert.deepEqual([writer.stats.splitGroups, writer.stats.conflicts, writer.stats.units], [1, 3, 17]);
});

Deno.test("W4: what comes while an operation is under way shares the next ones, within the limits of one", async () => {
  const { commits, writer } = scene();
  const first = writer.submit({ checks: [], writes: [set("first")] });
  await null;
  await null;
  const rest = Array.from({ length: 250 }, (_, i) => {
    return writer.submit({ checks: [{ key: `k${i}`, version: null }], writes: [set(`k${i}`), set(`l${i}`)] });
  });
  await Promise.all([first, ...rest]);
  assert.deepEqual(commits.map(({ checks }) => checks.length), [0, 100, 100, 50]);
  assert(commits.every(({ checks, keys }) => checks.length <= MOST_CHECKS && keys.length <= MOST_WRITES));
  commits.length = 0;
  const large = new Uint8Array(60_000);
  await Promise.all(
    Array.from(
      { length: 30 },
      (_, i) => writer.submit({ checks: [], writes: [{ key: `m${i}`, bytes: large }] }),
    ),
  );
  const most = Math.floor(MOST_BYTES / 60_100);
  assert.deepEqual(commits.map(({ keys }) => keys.length), [most, most, 30 - 2 * most]);
  commits.length = 0;
  await Promise.all(
    Array.from({ length: 2000 }, (_, i) => writer.submit({ checks: [], writes: [set(`n${i}`)] })),
  );
  assert.equal(commits.length, 3);
});

Deno.test("a unit that fits no operation does not stand in the way of others", async () => {
  const { writer } = scene(),
    huge: Unit = { checks: [], writes: Array.from({ length: 1200 }, (_, i) => set(`h${i}`)) };
  assert.equal(fits(huge), false);
  const outcomes = await Promise.all([
    writer.submit({ checks: [], writes: [set("a")] }),
    writer.submit(huge), // cells in memory take it
    writer.submit({ checks: [], writes: [set("b")] }),
  ]);
  assert(outcomes.every((version) => version !== undefined));
});

Deno.test("a failure is heard by all that shared the operation, and by nobody else", async () => {
  const disk = new MemoryDisk();
  const cells = new FaultyCells(
    new MemoryCells(disk, new VirtualClock()),
    ({ op, n }) => op === "commit" && n === 1 ? "fail" : undefined,
  );
  const writer = new Writer(cells);
  const both = await Promise.allSettled(
    [1, 2].map((i) => writer.submit({ checks: [], writes: [set(`a${i}`)] })),
  );
  for (const outcome of both) {
    assert(outcome.status === "rejected" && outcome.reason instanceof MailerError);
    assert.equal(outcome.reason.code, "store_failed");
    assert.match(outcome.reason.message, /a commit to memory failed: the commit failed on purpose/);
  }
  assert(await writer.submit({ checks: [], writes: [set("b")] }) !== undefined);
  assert.equal(disk.size, 1);
  await writer.close();
  await assert.rejects(writer.submit({ checks: [], writes: [] }), { code: "store_closed" });
});

Deno.test("cells in memory are ordered, however they came", () => {
  const disk = new MemoryDisk(), expected = new Map<string, string>();
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % below;
  };
  for (let round = 0; round < 20_000; round++) {
    const key = `k${random(3000)}`;
    if (random(3) === 0) {
      disk.commit([], [{ key, bytes: null }]);
      expected.delete(key);
    } else {
      disk.commit([], [set(key, round)]);
      expected.set(key, String(round));
    }
  }
  const keys = [...expected.keys()].sort();
  const list = (from: string, to: string, limit: number, reverse = false): string[] => {
    return disk.list({ from, to }, limit, reverse).map(({ key }) => key);
  };
  assert.deepEqual(list("", "~", Infinity), keys);
  assert.deepEqual(list("", "~", Infinity, true), keys.toReversed());
  for (let round = 0; round < 200; round++) {
    const from = `k${random(3000)}`, to = `k${random(3000)}`, limit = 1 + random(900);
    const wanted = keys.filter((key) => key >= from && key < to);
    assert.deepEqual(list(from, to, limit), wanted.slice(0, limit));
    assert.deepEqual(list(from, to, limit, true), wanted.toReversed().slice(0, limit));
  }
  assert.equal(new TextDecoder().decode(disk.get(keys[0]!)!.bytes), expected.get(keys[0]!));
});
