import assert from "node:assert/strict";
import fc from "fast-check";
import { KeyedState, type StateNote } from "./keyed.ts";
import {
  openDocument,
  openStateStore,
  RESIDENT,
  sealDocument,
  type Section,
  volatileState,
} from "./log/mod.ts";
import { MemoryPages } from "./pages/mod.ts";

/** A store whose two times are set by hand. */
function store() {
  const time = { event: 0, processing: 0 };
  const state = new KeyedState("op", volatileState("op", 128).partition(), {
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

/** A state that can be stored, and the next one that goes on from it. */
async function stored(
  pages: MemoryPages,
  from?: { readonly section: Section; readonly notes: readonly StateNote[] },
) {
  const store = await openStateStore({
    operator: "op",
    pages,
    limits: RESIDENT,
    ...(from === undefined ? {} : { section: from.section }),
  });
  const partition = store.partition(), time = { event: 0, processing: 0 };
  const state = new KeyedState("op", partition, {
    event: () => time.event,
    eventOfWrite: () => time.event,
    processing: () => time.processing,
  });
  await partition.load();
  if (from !== undefined) state.restore(from.notes);
  return {
    state,
    time,
    at: <T>(key: unknown, work: () => T): T => {
      state.enter(key);
      const result = work();
      state.leave();
      return result;
    },
    save: async () => {
      const notes = openDocument("notes", sealDocument(state.snapshot())) as readonly StateNote[];
      const section = await store.persist([partition.freeze()]);
      await store[Symbol.asyncDispose]();
      return { section, notes };
    },
  };
}

Deno.test("K3: after a restore everything is there, whether a handle has been asked for or not, also the time after that", async () => {
  await using pages = new MemoryPages();
  const first = await stored(pages);
  const fill = ({ state, at }: typeof first) =>
    at("k", () => {
      state.value("value").set({ a: [1n, new Date(5)] });
      state.list("list").set([1, undefined, "x"]);
      for (const key of [{ b: 1, a: 2 }, "__proto__", null]) state.map("map").set(key, [key]);
      state.reducing<number>("sum", (a, b) => a + b).add(7);
    });
  fill(first);
  first.at({ other: 1 }, () => first.state.value("value").set(2));
  const before = first.state.inspect("k");
  const second = await stored(pages, await first.save());
  assert.deepEqual(second.state.inspect("k"), before);
  assert.equal(second.state.size, 2);
  const third = await stored(pages, await second.save());
  assert.deepEqual(third.state.inspect("k"), before);
  assert.equal(third.state.size, 2);
  third.at({ other: 1 }, () => third.state.value("value").clear());
  assert.equal(third.state.size, 1);
  third.at("k", () => {
    third.state.map("map").set("last", 1);
    third.state.map("map").set("__proto__", 2);
    third.state.list("list").add(9);
    third.state.reducing<number>("sum", (a, b) => a + b).add(1);
  });
  const fourth = await stored(pages, await third.save());
  fourth.at("k", () => {
    assert.deepEqual(fourth.state.list("list").get(), [1, undefined, "x", 9]);
    assert.deepEqual(fourth.state.map("map").entries(), [
      [{ b: 1, a: 2 }, [{ b: 1, a: 2 }]],
      ["__proto__", 2],
      [null, [null]],
      ["last", 1],
    ]);
    assert.equal(fourth.state.reducing<number>("sum", (a, b) => a + b).get(), 8);
  });
  await fourth.save();
});

Deno.test("K3: a kind is one kind after a restore as well", async () => {
  await using pages = new MemoryPages();
  const first = await stored(pages);
  first.at("k", () => first.state.list("x").add(1));
  const second = await stored(pages, await first.save());
  assert.throws(() => second.state.value("x"), {
    code: "state_kind",
    message: 'operator "op": state "x" is a list state and cannot be used as a value state',
  });
  await second.save();
});

Deno.test("K2, K3: what was stored with a ttl expires, also where no handle is asked for, and by the time it is said to go by now", async () => {
  await using pages = new MemoryPages();
  const first = await stored(pages);
  first.at("k", () => {
    first.state.value("event", { ttl: 10 }).set(1);
    first.state.value("clock", { ttl: 10, ttlTime: "processing" }).set(1);
    first.state.value("moved", { ttl: 30, ttlTime: "processing" }).set(1);
  });
  const second = await stored(pages, await first.save());
  assert.equal(second.state.nextExpiry, 10);
  second.time.event = 10;
  second.state.expire();
  assert.deepEqual(second.state.inspect("k"), { clock: 1, moved: 1 });
  second.time.processing = 10;
  second.state.expire();
  assert.deepEqual(second.state.inspect("k"), { moved: 1 });
  second.at("k", () => second.state.value("moved", { ttl: 30, ttlTime: "event" }));
  second.time.processing = 1000;
  second.state.expire();
  assert.deepEqual(second.state.inspect("k"), { moved: 1 });
  second.time.event = 30;
  second.state.expire();
  assert.equal(second.state.size, 0);
  const third = await stored(pages, await second.save());
  assert.equal(third.state.size, 0, "what has expired is not stored any more");
  await third.save();
});

Deno.test("migrate gets values, elements and values of maps of the older version, once; keys and order stay", async () => {
  await using pages = new MemoryPages();
  const first = await stored(pages);
  for (const key of ["k", "l"]) {
    first.at(key, () => {
      first.state.value("value").set(1);
      for (const n of [3, 1, 2]) first.state.list("list", { version: 1 }).add(n);
      for (const n of [3, 1, 2]) first.state.map("map", { version: 1 }).set(n, n);
      first.state.reducing<number>("sum", (a, b) => a + b, { version: 7 }).add(4);
    });
  }
  const seen: [unknown, number][] = [];
  const migrate = (value: unknown, version: number) => {
    seen.push([value, version]);
    return { n: value };
  };
  const second = await stored(pages, await first.save());
  assert.deepEqual(second.state.inspect("k"), {
    value: 1,
    list: [3, 1, 2],
    map: [[3, 3], [1, 1], [2, 2]],
    sum: 4,
  });
  second.at("k", () => {
    const { state } = second;
    assert.deepEqual(state.value("value", { version: 3, migrate }).get(), { n: 1 });
    assert.deepEqual(state.list("list", { version: 2, migrate }).get(), [{ n: 3 }, { n: 1 }, { n: 2 }]);
    assert.deepEqual(state.map("map", { version: 2, migrate }).entries(), [[3, { n: 3 }], [1, { n: 1 }], [2, {
      n: 2,
    }]]);
    assert.equal(
      state.reducing<number>("sum", (a, b) => a + b, { version: 7, migrate }).get(),
      4,
      "same version",
    );
    assert.equal(seen.length, 14);
    state.value("value", { version: 3, migrate }).set({ n: 5 });
  });
  assert.deepEqual(seen.slice(0, 3), [[1, 0], [1, 0], [3, 1]]);
  // "k" is stored in version 3 now, "l" still in version 0.
  seen.length = 0;
  const third = await stored(pages, await second.save());
  for (const [key, n] of [["k", 5], ["l", 1]] as const) {
    third.at(key, () => assert.deepEqual(third.state.value("value", { version: 3, migrate }).get(), { n }));
  }
  assert.deepEqual(seen, [[1, 0]]);
  const fourth = await stored(pages, await third.save());
  fourth.at("k", () => {
    assert.throws(() => fourth.state.value("value", { version: 2, migrate }), {
      code: "state_version",
      message: 'operator "op", state "state:value" was stored in version 3, the program has version 2',
    });
  });
  assert.throws(() => fourth.state.check(), { code: "state_version" });
});

Deno.test("a version is a whole number from 0 to 255", () => {
  const { state } = store();
  for (const version of [-1, 256, 0.5]) {
    assert.throws(() => state.value("v", { version }), { code: "invalid_version" });
  }
  state.value("v", { version: 255 });
});

Deno.test("K1: a call that is undone leaves everything as it was: contents, order, number of keys, expiry", () => {
  const op = fc.record({
    what: fc.constantFrom(
      "set",
      "unset",
      "add",
      "replace",
      "empty",
      "put",
      "drop",
      "wipe",
      "reduce",
      "restart",
    ),
    n: fc.nat(5),
  });
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          key: fc.nat(2),
          ops: fc.array(op, { maxLength: 8 }),
          fails: fc.boolean(),
          passes: fc.nat(3),
        }),
      ),
      fc.constantFrom(undefined, 4),
      (calls, ttl) => {
        const one = store(), other = store();
        for (const { key, ops, fails, passes } of calls) {
          for (const { time, state } of [one, other]) {
            time.event += passes;
            if (passes === 3) state.expire();
          }
          const work = ({ state }: typeof one) => {
            const options = ttl === undefined ? {} : { ttl };
            const value = state.value<number>("value", options), list = state.list<number>("list", options);
            const map = state.map<number, number>("map", options);
            const sum = state.reducing<number[]>("sum", (a, b) => (a.push(...b), a), options);
            for (const { what, n } of ops) {
              if (what === "set") value.set(n);
              else if (what === "unset") value.clear();
              else if (what === "add") list.add(n);
              else if (what === "replace") list.set([n]);
              else if (what === "empty") list.clear();
              else if (what === "put") map.set(n, n);
              else if (what === "drop") map.delete(n);
              else if (what === "wipe") map.clear();
              else if (what === "reduce") sum.add([n]);
              else sum.clear();
            }
          };
          one.state.enter(key);
          work(one);
          if (fails) one.state.undo();
          one.state.leave();
          if (!fails) other.at(key, () => work(other));
          for (const { time, state } of [one, other]) if (passes === 3) time.event++, state.expire();
          for (const each of [0, 1, 2]) assert.deepEqual(one.state.inspect(each), other.state.inspect(each));
          assert.equal(one.state.size, other.state.size);
        }
      },
    ),
    { numRuns: 500 },
  );
});
