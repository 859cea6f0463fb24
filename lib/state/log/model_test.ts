/**
 * A random sequence of everything that can be done, beside a plain Map.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { keyGroup } from "../../key.ts";
import { MemoryPages } from "../pages/mod.ts";
import { TINY } from "./contract.ts";
import type { Frozen, Partition } from "./partition.ts";
import type { Section } from "./section.ts";
import { openStateStore, type StateStore } from "./store.ts";
import type { Table } from "./table.ts";

const GROUPS = 8;
const KEYS = 40;
const keyOf = (i: number): string | number => i % 2 === 0 ? i : `k${i}`;

type Op =
  | {
    readonly op: "set" | "edit" | "push";
    readonly table: number;
    readonly key: number;
    readonly ttl?: number | undefined;
  }
  | { readonly op: "delete"; readonly table: number; readonly key: number }
  | { readonly op: "fill"; readonly table: number; readonly key: number }
  | { readonly op: "drop"; readonly table: number }
  | { readonly op: "pass"; readonly by: number }
  | { readonly op: "restore"; readonly partitions: number }
  | { readonly op: "settle" | "spill" | "freeze" | "persist" | "abandon" | "idle" | "check" };

const table = fc.integer({ min: 0, max: 3 });
const key = fc.integer({ min: 0, max: KEYS - 1 });
const ttl = fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined });
const anyOp: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constantFrom("set" as const, "edit" as const, "push" as const),
      table,
      key,
      ttl,
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("delete" as const), table, key }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant("fill" as const), table, key }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("drop" as const), table }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant("pass" as const), by: fc.integer({ min: 1, max: 20 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant("restore" as const), partitions: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      op: fc.constantFrom(
        "settle" as const,
        "spill" as const,
        "freeze" as const,
        "persist" as const,
        "abandon" as const,
        "idle" as const,
        "check" as const,
      ),
    }),
  },
);

interface Held {
  readonly value: unknown[];
  readonly expires: number;
}
type Model = Map<string, Map<string | number, Held>>;

function isIn({ from, to }: Partition, key: string | number): boolean {
  const group = keyGroup(key, GROUPS);
  return group >= from && group < to;
}

/** The store and the model, side by side. */
class Beside {
  #store!: StateStore;
  #partitions: Partition[] = [];
  readonly #pages = new MemoryPages();
  #model: Model = new Map();
  #now = 0;
  #count = 0;
  #section: Section | undefined;
  #saved: { model: Model; now: number } = { model: new Map(), now: 0 };
  /** Partitions freeze one after the other; the model keeps of each what it held then. */
  readonly #frozen: { readonly part: Frozen; readonly model: Model; readonly now: number }[] = [];

  async open(partitions: number): Promise<void> {
    this.#store = await openStateStore({
      operator: "op",
      pages: this.#pages,
      maxKeyGroups: GROUPS,
      limits: { ...TINY, liveBytes: 3000 * partitions },
      ...(this.#section === undefined ? {} : { section: this.#section }),
    });
    const cut = (i: number): number => Math.floor(i * GROUPS / partitions);
    this.#partitions = Array.from(
      { length: partitions },
      (_, i) => this.#store.partition(cut(i), cut(i + 1)),
    );
  }

  /** Two spaces, one of which expires; two tables each. */
  #table(number: number, key: string | number): Table<unknown[]> {
    const partition = this.#partitions.find((partition) => isIn(partition, key))!;
    return this.#tableOf(partition, number);
  }
  #tableOf(partition: Partition, number: number): Table<unknown[]> {
    const space = number < 2
      ? partition.space<unknown[]>("plain")
      : partition.space<unknown[]>("mortal", { time: () => this.#now });
    return space.table(number % 2);
  }
  #modelOf(number: number): Map<string | number, Held> {
    let held = this.#model.get(String(number));
    if (held === undefined) this.#model.set(String(number), held = new Map());
    return held;
  }
  #isThere(held: Held | undefined): held is Held {
    return held !== undefined && held.expires > this.#now;
  }

  async run(op: Op): Promise<void> {
    switch (op.op) {
      case "set":
      case "edit":
      case "push":
        return await this.#write(op.op, op.table, keyOf(op.key), op.ttl);
      case "delete": {
        const key = keyOf(op.key), table = this.#table(op.table, key), model = this.#modelOf(op.table);
        await table.prefetch([key]);
        assert.equal(table.delete(key), this.#isThere(model.get(key)));
        model.delete(key);
        return;
      }
      case "fill":
        for (let i = 0; i < 10; i++) {
          await this.#write("set", op.table, keyOf((op.key + i) % KEYS), undefined);
        }
        return;
      case "drop":
        for (const partition of this.#partitions) this.#tableOf(partition, op.table).drop();
        this.#model.delete(String(op.table));
        return;
      case "pass":
        this.#now += op.by;
        return;
      case "restore":
        await this.#store[Symbol.asyncDispose]();
        this.#model = structuredClone(this.#saved.model);
        this.#now = this.#saved.now;
        this.#frozen.length = 0;
        return await this.open(op.partitions);
      case "settle":
        for (const partition of this.#partitions) await partition.settle();
        return;
      case "spill": // in the background, whatever comes next
        for (const partition of this.#partitions) partition.settle()?.catch(() => {});
        return;
      case "freeze":
        return this.#freezeNext();
      case "persist": {
        if (this.#frozen.length === 0) return;
        while (this.#frozen.length < this.#partitions.length) this.#freezeNext();
        const frozen = this.#frozen.splice(0), before = this.#section;
        this.#section = await this.#store.persist(frozen.map(({ part }) => part));
        const model: Model = new Map();
        for (const { part, model: held } of frozen) {
          for (const [table, keys] of held) {
            if (!model.has(table)) model.set(table, new Map());
            for (const [key, value] of keys) if (isIn(part.partition, key)) model.get(table)!.set(key, value);
          }
        }
        this.#saved = { model, now: frozen.at(-1)!.now };
        if (before !== undefined) await this.#store.release(before);
        return;
      }
      case "abandon":
        this.#store.abandon(this.#frozen.splice(0).map(({ part }) => part));
        return;
      case "idle":
        return await this.#store.idle();
      case "check":
        return await this.check();
    }
  }

  #freezeNext(): void {
    const next = this.#partitions[this.#frozen.length];
    if (next !== undefined) {
      this.#frozen.push({ part: next.freeze(), model: structuredClone(this.#model), now: this.#now });
    }
  }

  async #write(
    op: "set" | "edit" | "push",
    number: number,
    key: string | number,
    ttl: number | undefined,
  ): Promise<void> {
    const table = this.#table(number, key), model = this.#modelOf(number), value = ++this.#count;
    const expires = number < 2 || ttl === undefined ? undefined : this.#now + ttl;
    if (op === "set") {
      model.set(key, { value: [value], expires: expires ?? Infinity });
      table.set(key, [value], expires);
      return;
    }
    await table.prefetch([key]);
    const held = model.get(key), cell = table.edit(key);
    assert.equal(cell !== undefined, this.#isThere(held));
    if (cell === undefined) {
      model.set(key, { value: [value], expires: expires ?? Infinity });
      table.add(key, key, [value], expires);
    } else if (op === "edit") {
      model.set(key, { value: [value], expires: expires ?? Infinity });
      cell.value = [value];
      cell.expires = expires;
    } else {
      (held as { value: unknown[] }).value.push(value);
      cell.value.push(value);
    }
  }

  /** Everything, by key and by scan. */
  async check(): Promise<void> {
    for (const number of [0, 1, 2, 3]) {
      const expected = new Map(
        [...this.#modelOf(number)].filter(([, held]) => this.#isThere(held)).map((
          [key, { value }],
        ) => [key, value]),
      );
      const found = new Map<unknown, unknown>();
      for (const partition of this.#partitions) {
        for await (const lot of this.#tableOf(partition, number).scan()) {
          for (const { identity, value } of lot) {
            assert(!found.has(identity));
            found.set(identity, structuredClone(value));
          }
        }
      }
      const sort = (map: Map<unknown, unknown>) =>
        [...map].sort((a, b) => String(a[0]) < String(b[0]) ? -1 : 1);
      assert.deepEqual(sort(found), sort(expected));
      for (let i = 0; i < KEYS; i += 3) {
        const key = keyOf(i), table = this.#table(number, key);
        await table.prefetch(
          [key, keyOf((i + 3) % KEYS)].filter((other) => this.#table(number, other) === table),
        );
        assert.deepEqual(table.get(key)?.value, expected.get(key));
      }
    }
  }

  /** At last nothing is left over: every run there is is named by the current state or the held section. */
  async end(): Promise<void> {
    await this.#store.idle();
    await this.check();
    await this.#store.idle();
    const runs = (await this.#pages.list("runs", "")).length;
    assert(runs <= this.#store.runs + (this.#section?.runs.length ?? 0), `${runs} runs`);
    await this.#store[Symbol.asyncDispose]();
  }
}

Deno.test("whatever is done, in whatever order, state is what a Map would be", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyOp, { maxLength: 120, size: "max" }),
      fc.integer({ min: 1, max: 4 }),
      async (ops, partitions) => {
        const beside = new Beside();
        await beside.open(partitions);
        for (const op of ops) await beside.run(op);
        await beside.end();
      },
    ),
    { numRuns: 300 },
  );
});
