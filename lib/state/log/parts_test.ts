import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { keyGroup, type KeyIdentity, keyIdentity } from "../../key.ts";
import { Cell } from "./cell.ts";
import { CellMap } from "./cell_map.ts";
import { scalarEnd, valueBytes } from "./codec.ts";
import { compareIdentities } from "./entry.ts";
import { Filter, filterSeed } from "./filter.ts";
import { OrderHeap } from "./order_heap.ts";
import { EntryPage, PageBuilder } from "./page.ts";
import { PageCache } from "./page_cache.ts";
import { Places } from "./place.ts";
import { roughSize } from "./size.ts";
import { orderOf } from "./sort.ts";

const identities = (): fc.Arbitrary<KeyIdentity> =>
  fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.boolean(), fc.constantFrom(null, undefined));

Deno.test("L1: the place of a key lies in the range of its key group, and says which group it is", () => {
  fc.assert(fc.property(identities(), fc.integer({ min: 1, max: 65_536 }), (identity, groups) => {
    const places = new Places(groups), place = places.of(identity), group = keyGroup(identity, groups);
    assert(place >= places.first(group) && place < places.first(group + 1));
    assert.equal(places.group(place), group);
    assert(Number.isInteger(place) && place < 2 ** 32);
  }));
  assert.throws(() => new Places(0), /1 to 65536/);
});

Deno.test("L2: places are what they have always been", () => {
  const places = new Places(128);
  const keys: KeyIdentity[] = [
    "",
    "a",
    "key-000000042",
    "日本",
    0,
    -0,
    1,
    1.5,
    -7,
    true,
    false,
    null,
    undefined,
    keyIdentity([1]),
  ];
  assert.deepEqual(keys.map((key) => places.of(key)), PLACES);
});
const PLACES = [
  387287841,
  1734942892,
  2544167037,
  2608816021,
  4097393796,
  4097393796,
  148678488,
  330837814,
  2142274995,
  3714113032,
  1856759327,
  2353439812,
  1398062148,
  797219002,
];

Deno.test("places of similar keys are spread: about as many in each part of a group", () => {
  const places = new Places(4), counts = new Array(64).fill(0);
  for (let i = 0; i < 64_000; i++) counts[Math.floor(places.of(`key-${i}`) / 2 ** 26)]++;
  for (const count of counts) assert(count > 800 && count < 1200, String(counts));
});

Deno.test("a filter forgets no key, and lets few others pass", () => {
  const filter = Filter.sized(20_000), places = new Places(128), seed = filterSeed(7);
  for (let i = 0; i < 20_000; i++) filter.add(seed, places.of(i));
  for (let i = 0; i < 20_000; i++) assert(filter.mayHave(seed, places.of(i)));
  let passed = 0;
  for (let i = 20_000; i < 120_000; i++) if (filter.mayHave(seed, places.of(i))) passed++;
  assert(passed < 1000, `${passed} of 100,000`);
  let ofOthers = 0;
  for (let i = 0; i < 20_000; i++) if (filter.mayHave(filterSeed(8), places.of(i))) ofOthers++;
  assert(ofOthers < 400, `${ofOthers} of 20,000 keys of another table`);
});

Deno.test("sorting by place sorts, few and many", () => {
  fc.assert(fc.property(fc.uint32Array({ maxLength: 1500 }), (places) => {
    const order = orderOf(places);
    assert.deepEqual([...order].map((i) => places[i]!), [...places].sort((a, b) => a - b));
    assert.equal(new Set(order).size, places.length);
  }));
});

Deno.test("the heap gives the least first, and can be cut", () => {
  fc.assert(fc.property(fc.array(fc.double({ noNaN: true })), fc.double({ noNaN: true }), (orders, cut) => {
    const heap = new OrderHeap<{ readonly order: number }>();
    for (const order of orders) heap.push({ order });
    heap.cut(cut);
    const expected = orders.filter((order) => order <= cut).sort((a, b) => a - b);
    const taken: number[] = [];
    while (heap.top !== undefined) taken.push(heap.pop().order);
    assert.deepEqual(taken.map((order) => order + 0), expected.map((order) => order + 0));
  }));
});

Deno.test("cells: what is packed into them does not mix", () => {
  const cell = new Cell("id", "id", 1, undefined, 0, false);
  const seen = () => [cell.key, cell.expires, cell.stored, cell.gone, cell.delta];
  assert.deepEqual(seen(), ["id", undefined, false, false, 1]);
  cell.stored = true;
  cell.gone = true;
  for (const delta of [0, -1, 1, 0]) {
    cell.delta = delta;
    assert.deepEqual(seen(), ["id", undefined, true, true, delta]);
  }
  cell.delta--;
  cell.stored = false;
  assert.deepEqual(seen(), ["id", undefined, false, true, -1]);
  cell.expires = 0;
  cell.key = ["id"];
  cell.gone = false;
  assert.deepEqual(seen(), [["id"], 0, false, false, -1]);
  cell.expires = undefined;
  assert.deepEqual(seen(), [["id"], undefined, false, false, -1]);
  cell.key = "id";
  assert.deepEqual(seen(), ["id", undefined, false, false, -1]);
  assert.equal(new Cell("id", "id", 1, undefined, -1, true).delta, 0);
});

Deno.test("cells that were asked for stay for another turn, and so do those that must", () => {
  const map = new CellMap<number>();
  for (let i = 0; i < 10; i++) map.add(new Cell(i, i, i, undefined, 0, false));
  assert.equal(map.turn(() => false), 0);
  assert.equal(map.get(3)?.value, 3);
  map.add(new Cell(10, 10, 10, undefined, 0, false));
  assert.equal(map.turn(({ identity }) => identity === 5), 8);
  assert.deepEqual([...map.values()].map(({ identity }) => identity), [3, 10, 5]);
  map.delete(3);
  map.delete(5);
  assert.deepEqual([map.size, map.has(3), map.has(10), map.get(5)], [1, false, true, undefined]);
  const passed = new Set<unknown>();
  for (let i = 0; i < 6; i++) passed.add(map.pass()?.identity);
  assert.deepEqual(passed, new Set([10, undefined]));
});

Deno.test("identities are compared by their bytes, and end where they end", () => {
  fc.assert(fc.property(identities(), identities(), fc.uint8Array({ maxLength: 5 }), (a, b, rest) => {
    const [x, y] = [valueBytes(a), valueBytes(b)];
    assert.equal(scalarEnd(Buffer.concat([x, rest]), 0), x.length);
    const found = compareIdentities(Buffer.concat([x, rest]), 0, y, 0);
    assert.equal(found, Buffer.compare(x, y));
  }));
});

Deno.test("a page finds each of its entries, of one table or of many", () => {
  const entry = fc.tuple(
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom(-5, 0, 0.5, Infinity),
    fc.nat(50),
    fc.nat(20),
  );
  fc.assert(fc.property(fc.uniqueArray(entry, { minLength: 1, selector: String }), (entries) => {
    const bytesOf = (id: number): Uint8Array => valueBytes(`k${id}`);
    entries.sort(([a, b, c, d], [w, x, y, z]) =>
      a - w || (b < x ? -1 : b > x ? 1 : 0) || c - y || Buffer.compare(bytesOf(d), bytesOf(z))
    );
    const builder = new PageBuilder();
    for (const [instance, order, place, id] of entries) {
      builder.body.reserve(1);
      builder.body.byte(1 << 5);
      builder.body.copy(bytesOf(id));
      builder.close(instance, order, place);
    }
    const page = new EntryPage(builder.finish(9), "r", 9);
    entries.forEach(([instance, order, place, id], i) => {
      assert.equal(page.find(instance, order, place, bytesOf(id)), i);
      assert.equal(page.find(instance, order, place, bytesOf(99)), -1);
      assert.equal(page.find(instance, order, place + 100, bytesOf(id)), -1);
    });
  }));
});

Deno.test("the page cache stays within its budget, and keeps what is used", () => {
  const cache = new PageCache(10_000), run = cache.register(), other = cache.register();
  const page = (): EntryPage => {
    const builder = new PageBuilder();
    builder.body.copy(new Uint8Array(700));
    builder.close(1, 0, 0);
    return new EntryPage(builder.finish(0), "r", 0);
  };
  const kept = page();
  cache.put(other, 0, kept);
  for (let i = 0; i < 50; i++) {
    cache.put(run, i, page());
    assert.equal(cache.get(other, 0), kept);
    assert(cache.bytes <= 10_000);
  }
  assert.equal(cache.get(run, 0), undefined);
  assert.notEqual(cache.get(run, 49), undefined);
});

Deno.test("the size of a value is guessed within a factor of a few, and without a walk through it", () => {
  assert(roughSize("x".repeat(1000)) > 1000);
  const list = Array.from({ length: 10_000 }, (_, i) => ({ value: `value ${i}`, timestamp: i }));
  assert(roughSize(list) > 400_000 && roughSize(list) < 3_000_000, String(roughSize(list)));
  assert(roughSize(new Map([["a", new Uint8Array(5000)]])) > 5000);
  assert(roughSize(new Set([1, 2, 3])) < 300);
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  assert(roughSize(cyclic) < 1000);
});
