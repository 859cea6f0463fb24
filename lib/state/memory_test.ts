import assert from "node:assert/strict";
import { MemoryState } from "./memory.ts";

/** A store whose two times are set by hand. */
function store() {
  const time = { event: 0, processing: 0 };
  const state = new MemoryState("op", {
    event: () => time.event,
    eventOfWrite: () => time.event,
    processing: () => time.processing,
  });
  /** Works on a key. */
  const at = <T>(key: unknown, work: () => T): T => {
    state.enter(key);
    try {
      return work();
    } finally {
      state.leave();
    }
  };
  return { time, state, at };
}

Deno.test("H1: a handle speaks of the key being worked on; equal keys are one", () => {
  const { state, at } = store();
  const total = state.value<number>("total");
  at("a", () => total.set(1));
  at({ x: 1, y: 2 }, () => total.set(2));
  at("b", () => assert.equal(total.get(), undefined));
  at("a", () => assert.equal(total.get(), 1));
  at({ y: 2, x: 1 }, () => assert.equal(total.get(), 2));
  assert.equal(state.size, 2, "a key that holds nothing is not kept");
  assert.throws(() => total.get(), (error: { code?: string }) => error.code === "no_key");
});

Deno.test("keys that look alike are not mixed up: 1, '1', null, 'null', '', NUL texts, true, lists", () => {
  const { state, at } = store();
  const value = state.value<unknown>("v");
  const keys = [
    1,
    "1",
    null,
    "null",
    "",
    "\u0000",
    "\u0000x",
    "\u0000s\u0000x",
    true,
    "true",
    [1],
    ["1"],
    { a: null },
    {},
    "__proto__",
  ];
  keys.forEach((key, i) => at(key, () => value.set(i)));
  keys.forEach((key, i) => at(key, () => assert.equal(value.get(), i, JSON.stringify(key))));
  assert.equal(state.size, keys.length);
});

Deno.test("value, list, map and reducing do what they say", () => {
  const { state, at } = store();
  const value = state.value<string>("value"), list = state.list<number>("list");
  const map = state.map<unknown, number>("map"), sum = state.reducing<number>("sum", (a, b) => a + b);
  at("k", () => {
    assert.deepEqual([value.get(), list.get(), map.size, map.get("x"), sum.get()], [
      undefined,
      [],
      0,
      undefined,
      undefined,
    ]);
    value.set("one");
    list.add(1);
    list.add(2);
    map.set("x", 1);
    map.set({ b: 1, a: 2 }, 2);
    map.set({ a: 2, b: 1 }, 3);
    sum.add(4);
    sum.add(5);
  });
  at("k", () => {
    assert.deepEqual([value.get(), list.get(), sum.get()], ["one", [1, 2], 9]);
    assert.deepEqual(map.entries(), [["x", 1], [{ a: 2, b: 1 }, 3]]);
    assert.deepEqual([map.size, map.has("x"), map.has("y"), map.get({ b: 1, a: 2 })], [2, true, false, 3]);
    list.set([7]);
    map.delete("x");
    map.delete("never there");
    assert.deepEqual([list.get(), map.size], [[7], 1]);
    value.clear();
    list.clear();
    map.clear();
    sum.clear();
    assert.deepEqual([value.get(), list.get(), map.size, sum.get()], [undefined, [], 0, undefined]);
  });
  assert.equal(state.size, 0);
});

Deno.test("H2: what is put in is copied, what is taken out is a copy", () => {
  const { state, at } = store();
  const value = state.value<{ list: number[] }>("value"), list = state.list<{ n: number }>("list");
  const map = state.map<{ id: number }, { n: number }>("map");
  const merged = state.reducing<{ n: number }>("merged", (a, b) => ({ n: a.n + b.n }));
  at("k", () => {
    const given = { list: [1] }, element = { n: 1 }, key = { id: 1 };
    value.set(given);
    list.add(element);
    list.set([element]);
    map.set(key, element);
    merged.add(element);
    given.list.push(2);
    element.n = 99;
    key.id = 99;
    assert.deepEqual(value.get(), { list: [1] });
    assert.deepEqual(list.get(), [{ n: 1 }]);
    assert.deepEqual(map.entries(), [[{ id: 1 }, { n: 1 }]]);
    assert.deepEqual(merged.get(), { n: 1 });

    value.get()!.list.push(3);
    (list.get() as { n: number }[]).push({ n: 5 });
    (list.get()[0] as { n: number }).n = 5;
    map.get({ id: 1 })!.n = 5;
    map.entries()[0]![1].n = 5;
    merged.get()!.n = 5;
    assert.deepEqual(value.get(), { list: [1] });
    assert.deepEqual(list.get(), [{ n: 1 }]);
    assert.deepEqual(map.get({ id: 1 }), { n: 1 });
    assert.deepEqual(merged.get(), { n: 1 });
    (state.inspect("k")["value"] as { list: number[] }).list.push(4);
    assert.deepEqual(state.inspect("k"), {
      value: { list: [1] },
      list: [{ n: 1 }],
      map: [[{ id: 1 }, { n: 1 }]],
      merged: { n: 1 },
    });
  });
});

Deno.test("a state named __proto__ or with keys of that name is a state like another", () => {
  const { state, at } = store();
  const value = state.value<unknown>("__proto__");
  at("k", () => value.set(JSON.parse('{"__proto__": 1}')));
  at("k", () => assert.equal(JSON.stringify(value.get()), '{"__proto__":1}'));
  assert.deepEqual(Object.keys(state.inspect("k")), ["__proto__"]);
});

Deno.test("one name is one state; another kind under it is an error that names both", () => {
  const { state } = store();
  assert.equal(state.value("x"), state.value("x"));
  assert.throws(() => state.list("x"), {
    code: "state_kind",
    message: 'operator "op": state "x" is a value state and cannot be used as a list state',
  });
  assert.throws(() => state.value("y", { ttl: 0 }), { code: "invalid_ttl" });
});

for (const ttlTime of ["event", "processing"] as const) {
  Deno.test(`H3: what was not written for the ttl reads as missing, and is freed (${ttlTime} time)`, () => {
    const { time, state, at } = store();
    const value = state.value<number>("v", { ttl: 10, ttlTime });
    at("k", () => value.set(1));
    time[ttlTime] = 9;
    at("k", () => assert.equal(value.get(), 1, "reading prolongs nothing"));
    at("k", () => value.set(2));
    time[ttlTime] = 18;
    state.expire();
    at("k", () => assert.equal(value.get(), 2, "writing does"));
    time[ttlTime] = 19;
    at("k", () => assert.equal(value.get(), undefined, "gone at write + ttl, swept or not"));
    assert.deepEqual(state.inspect("k"), {});
    assert.equal(state.size, 1);
    state.expire();
    assert.equal(state.size, 0, "its memory is freed");
  });
}

Deno.test("H3: a key is kept while any of its states lives", () => {
  const { time, state, at } = store();
  const short = state.value<number>("short", { ttl: 5 }), long = state.list<number>("long", { ttl: 50 });
  at("k", () => {
    short.set(1);
    long.add(1);
  });
  time.event = 5;
  state.expire();
  assert.deepEqual(state.inspect("k"), { long: [1] });
  time.event = 50;
  state.expire();
  assert.equal(state.size, 0);
});

Deno.test("T2: writing and clearing over and over leaves one expiry behind, not one a write", () => {
  const { time, state, at } = store();
  const value = state.value<number>("v", { ttl: 10, ttlTime: "processing" });
  const list = state.list<number>("l", { ttl: 1_000_000, ttlTime: "processing" });
  let sweeps = 0;
  for (let i = 0; i < 10_000; i++) {
    time.processing = i;
    at("k", () => {
      list.add(i); // keeps the key
      value.clear();
      value.set(i);
    });
    const before = state.nextExpiry;
    state.expire();
    if (state.nextExpiry !== before) sweeps++;
  }
  assert.ok(sweeps <= 1100, `${sweeps} expiries came due for one value rewritten 10,000 times`);
  time.processing += 9;
  state.expire();
  at("k", () => assert.equal(value.get(), 9999));
  time.processing++;
  state.expire();
  at("k", () => assert.equal(value.get(), undefined));
});

Deno.test("setting nothing is clearing", () => {
  const { state, at } = store();
  const value = state.value<number | undefined>("v"), list = state.list<number>("l");
  at("k", () => {
    value.set(1);
    value.set(undefined);
    list.set([1]);
    list.set([]);
  });
  assert.equal(state.size, 0);
});
