import assert from "node:assert/strict";
import fc from "fast-check";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { type Cells, cellsIn } from "./cells.ts";
import { KvCells } from "./kv.ts";
import { MemoryCells, MemoryDisk } from "./memory.ts";
import type { Commit, Delivery, DueTimer, FlowStore, Head, LeasedJob, Ownership } from "./port.ts";
import { openStore } from "./store.ts";

const EXECUTIONS = ["e1", "e2", "e3"];
const WINDOW = 60_000;
const OWNED = 40_000;

/** What happens, and by which of two processes. */
type Step =
  | { readonly do: "acquire" | "release" | "renew" | "due" | "pull"; readonly who: 0 | 1 }
  | { readonly do: "advance"; readonly ms: number }
  /** Waits until the other's time is over. */
  | { readonly do: "take over"; readonly who: 0 | 1 }
  | {
    readonly do: "commit";
    readonly who: 0 | 1;
    readonly exec: number;
    /** On the head before the last one it saw, or on the newest. */
    readonly isStale: boolean;
    readonly job: number;
    readonly timer: number;
    readonly clears: boolean;
    readonly dedup: number;
    readonly sends: boolean;
    readonly answers: boolean;
    readonly isLarge: boolean;
  }
  | { readonly do: "race"; readonly first: 0 | 1; readonly second: 0 | 1; readonly exec: number }
  | {
    readonly do: "push";
    readonly who: 0 | 1;
    readonly exec: number;
    readonly id: number;
    readonly once: boolean;
  }
  | { readonly do: "lease"; readonly who: 0 | 1; readonly max: number }
  | { readonly do: "extend" | "give back"; readonly who: 0 | 1; readonly job: number }
  | { readonly do: "delete"; readonly who: 0 | 1; readonly exec: number };

const who = fc.constantFrom<(0 | 1)[]>(0, 1), exec = fc.integer({ min: 0, max: EXECUTIONS.length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("acquire" as const, "renew" as const, "due" as const, "pull" as const),
      who,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("release" as const), who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("take over" as const), who }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("commit" as const),
      who,
      exec,
      isStale: fc.nat(4).map((n) => n === 0),
      job: fc.nat(3),
      timer: fc.nat(3),
      clears: fc.boolean(),
      dedup: fc.nat(5),
      sends: fc.boolean(),
      answers: fc.boolean(),
      isLarge: fc.nat(40).map((n) => n === 0),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("race" as const), first: who, second: who, exec }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("push" as const), who, exec, id: fc.nat(2), once: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("lease" as const), who, max: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("extend" as const, "give back" as const),
      who,
      job: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), who, exec }) },
);

interface ModelJob {
  hiddenUntil: number;
  deliveries: number;
  /** Tells one lease from the next. */
  lease: number;
}

/** One execution, as plainly as can be. */
interface ModelExecution {
  readonly log: string[];
  readonly jobs: Map<string, ModelJob>;
  readonly timers: Map<string, number>;
}

/** What one process holds in its hands. */
interface Process {
  readonly store: FlowStore;
  ownership: Ownership | undefined;
  epoch: number;
  readonly heads: Map<string, Head | undefined>;
  /** Commands and timers it was handed since it took the partition. */
  commands: Map<string, Delivery>;
  timers: Map<string, DueTimer>;
  readonly jobs: { readonly job: LeasedJob; readonly lease: number }[];
}

/** Two processes on one store, and what should come of it. */
class Game {
  readonly #clock: VirtualClock;
  readonly #processes: readonly [Process, Process];
  readonly #cells: Cells;
  readonly #executions = new Map<string, ModelExecution>();
  readonly #dedup = new Map<string, number>();
  /** Commands that wait, by their text. */
  readonly #inbox = new Set<string>();
  #owner: { readonly who: 0 | 1; readonly epoch: number; until: number } | undefined;
  #epoch = 0;
  #serial = 0;

  constructor(clock: VirtualClock, stores: readonly [FlowStore, FlowStore], cells: Cells) {
    this.#clock = clock;
    this.#cells = cells;
    const process = (store: FlowStore): Process => ({
      store,
      ownership: undefined,
      epoch: 0,
      heads: new Map(),
      commands: new Map(),
      timers: new Map(),
      jobs: [],
    });
    this.#processes = [process(stores[0]), process(stores[1])];
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#step(step);
    await this.#compare();
    await this.#leaveNothing();
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case "advance":
        // Waits in the store are for nobody here: the clock can jump.
        await this.#clock.advance(step.ms);
        break;
      case "take over":
        await this.#clock.advance(OWNED);
        await this.#acquire(step.who);
        break;
      case "acquire":
        await this.#acquire(step.who);
        break;
      case "renew": {
        const process = this.#processes[step.who];
        if (process.ownership === undefined) break;
        const isOwner = this.#isOwner(step.who);
        assert.equal(await process.store.partitions.renew(process.ownership, OWNED), isOwner);
        if (isOwner) this.#owner!.until = this.#clock.now() + OWNED;
        break;
      }
      case "release": {
        const process = this.#processes[step.who];
        if (process.ownership === undefined) break;
        await process.store.partitions.release(process.ownership);
        if (this.#isOwner(step.who)) this.#owner!.until = 0;
        process.ownership = undefined;
        break;
      }
      case "commit":
        await this.#commit(step);
        break;
      case "race":
        await this.#race(step);
        break;
      case "push": {
        const { store } = this.#processes[step.who], execId = EXECUTIONS[step.exec]!, id = `p${step.id}`;
        const text = `push ${++this.#serial}`, isNew = !step.once || !this.#isRemembered(execId, id);
        assert.deepEqual(await store.inbox.push([{ execId, id, text, once: step.once }]), [isNew]);
        if (isNew) this.#inbox.add(text);
        if (isNew && step.once) this.#dedup.set(`${execId}/${id}`, this.#clock.now() + WINDOW);
        break;
      }
      case "pull": {
        const process = this.#processes[step.who];
        if (process.ownership === undefined || !this.#isOwner(step.who)) break;
        const pulled = await process.store.inbox.pull(process.ownership, 1000);
        const wanted = [...this.#inbox].filter((text) => !process.commands.has(text));
        assert.deepEqual(pulled.map(({ text }) => text).sort(), wanted.sort());
        for (const command of pulled) process.commands.set(command.text, command);
        break;
      }
      case "due": {
        const process = this.#processes[step.who], now = this.#clock.now();
        if (process.ownership === undefined || !this.#isOwner(step.who)) break;
        const wanted: string[] = [];
        for (const [execId, { timers }] of this.#executions) {
          for (const [id, at] of timers) {
            if (at <= now && !process.timers.has(`${execId} ${id} ${at}`)) {
              wanted.push(`${execId} ${id} ${at}`);
            }
          }
        }
        const due = await process.store.timers.due(process.ownership, 10_000);
        assert.deepEqual(due.map(({ execId, id, at }) => `${execId} ${id} ${at}`).sort(), wanted.sort());
        for (const timer of due) process.timers.set(`${timer.execId} ${timer.id} ${timer.at}`, timer);
        break;
      }
      case "lease":
        await this.#lease(step);
        break;
      case "extend":
      case "give back":
        await this.#change(step);
        break;
      case "delete": {
        const process = this.#processes[step.who], execId = EXECUTIONS[step.exec]!;
        if (process.ownership === undefined || !this.#isOwner(step.who)) break;
        const isThere = this.#executions.has(execId);
        assert.equal(await process.store.executions.delete(process.ownership, execId), isThere);
        if (isThere) this.#forget(execId);
        break;
      }
    }
  }

  async #acquire(who: 0 | 1): Promise<void> {
    const process = this.#processes[who], now = this.#clock.now();
    const isFree = this.#owner === undefined || this.#owner.until <= now || this.#owner.who === who;
    const ownership = await process.store.partitions.acquire(0, `owner ${who}`, OWNED);
    assert.equal(ownership !== undefined, isFree);
    if (ownership === undefined) return;
    process.ownership = ownership;
    process.epoch = ++this.#epoch;
    assert.equal(ownership.epoch, process.epoch);
    process.commands = new Map();
    process.timers = new Map();
    this.#owner = { who, epoch: process.epoch, until: now + OWNED };
  }

  #isOwner(who: 0 | 1): boolean {
    return this.#owner?.who === who && this.#owner.epoch === this.#processes[who].epoch;
  }

  #isRemembered(execId: string, id: string): boolean {
    return (this.#dedup.get(`${execId}/${id}`) ?? 0) > this.#clock.now();
  }

  async #commit(step: Step & { readonly do: "commit" }): Promise<void> {
    const process = this.#processes[step.who], execId = EXECUTIONS[step.exec]!, { ownership } = process;
    if (ownership === undefined) return;
    const model = this.#executions.get(execId), newest = await process.store.executions.head(execId);
    assert.equal(newest?.seq, model?.log.length);
    const head = step.isStale ? process.heads.get(execId) : newest;
    process.heads.set(execId, newest);
    const isRight = head?.version === newest?.version;
    const now = this.#clock.now(), events = `["${++this.#serial}"]`;
    const [answered] = step.answers ? [...process.commands.values()] : [];
    const jobs = step.job === 0 ? [] : [`j${step.job}`, ...step.isLarge ? many("j") : []];
    const timers = step.timer === 0 ? [] : [`t${step.timer}`, ...step.isLarge ? many("t") : []];
    const commit: Commit = {
      execId,
      ownership,
      head,
      events,
      lastIndex: (head?.seq ?? 0) + 1,
      ...head === undefined
        ? { summary: { flow: "f", flowHash: "h", status: "running", createdAt: 1, updatedAt: 1, attrs: {} } }
        : {},
      jobs: jobs.map((id) => ({ id, kind: "k", text: `${execId} ${id}` })),
      removeJobs: step.clears ? "all" : [],
      timers: timers.map((id) => ({ id, at: now + 5000 * step.timer, text: "" })),
      clearTimers: step.clears ? "all" : [],
      send: step.sends ? [{ execId, id: "s", text: `send ${this.#serial}` }] : [],
      ...step.dedup === 0 ? {} : { dedup: [`d${step.dedup}`] },
      ...answered === undefined ? {} : { command: answered },
    };
    const outcome = await process.store.executions.commit(commit);
    const isOnce = step.dedup === 0 || !this.#isRemembered(execId, `d${step.dedup}`);
    const wanted = !this.#isOwner(step.who)
      ? "fenced"
      : !isOnce
      ? "duplicate"
      : isRight
      ? "committed"
      : "conflict";
    assert.equal(outcome.kind, wanted, JSON.stringify(step));
    if (outcome.kind !== "committed") return;
    const next: ModelExecution = model ?? { log: [], jobs: new Map(), timers: new Map() };
    this.#executions.set(execId, next);
    next.log.push(events);
    if (step.clears) next.jobs.clear();
    for (const id of jobs) next.jobs.set(id, { hiddenUntil: 0, deliveries: 0, lease: 0 });
    const before = new Map(next.timers);
    if (step.clears) next.timers.clear();
    for (const { id, at } of commit.timers!) next.timers.set(id, at);
    // What was cleared, or set again, is to be handed out anew.
    for (const [id, at] of before) {
      if (step.clears || timers.includes(id)) process.timers.delete(`${execId} ${id} ${at}`);
    }
    for (const { text } of commit.send!) this.#inbox.add(text);
    if (step.dedup !== 0) this.#dedup.set(`${execId}/d${step.dedup}`, now + WINDOW);
    if (answered !== undefined) {
      this.#inbox.delete(answered.text);
      process.commands.delete(answered.text);
    }
  }

  /** Two decisions at the same time on the newest head. */
  async #race({ first, second, exec }: Step & { readonly do: "race" }): Promise<void> {
    const execId = EXECUTIONS[exec]!, model = this.#executions.get(execId);
    if (model === undefined) return;
    const racers = [first, second].filter((who) => this.#processes[who].ownership !== undefined);
    const texts = racers.map(() => `["${++this.#serial}"]`);
    const outcomes = await Promise.all(racers.map(async (who, i) => {
      const { store, ownership } = this.#processes[who], head = (await store.executions.head(execId))!;
      return await store.executions.commit({
        execId,
        ownership: ownership!,
        head,
        events: texts[i]!,
        lastIndex: head.seq + 1,
      });
    }));
    const won = outcomes.findIndex(({ kind }) => kind === "committed");
    const owners = racers.filter((who) => this.#isOwner(who));
    assert.equal(outcomes.filter(({ kind }) => kind === "committed").length >= 1, owners.length >= 1);
    outcomes.forEach(({ kind }, i) => {
      if (!this.#isOwner(racers[i]!)) assert.equal(kind, "fenced");
      else assert(kind === "committed" || kind === "conflict");
    });
    // One that read its head behind the other's commit may have come second.
    const log = await this.#processes[0].store.executions.log(execId, model.log.length + 1);
    const committed = texts.filter((_, i) => outcomes[i]!.kind === "committed");
    assert.deepEqual(log.map(({ events }) => events).sort(), committed.sort());
    if (won >= 0) model.log.push(...log.map(({ events }) => events));
  }

  async #lease({ who, max }: Step & { readonly do: "lease" }): Promise<void> {
    const process = this.#processes[who], now = this.#clock.now();
    const ready: string[] = [];
    for (const [execId, { jobs }] of this.#executions) {
      for (const [id, { hiddenUntil }] of jobs) if (hiddenUntil <= now) ready.push(`${execId} ${id}`);
    }
    const leased = await process.store.jobs.lease({ kind: "k", max, worker: `w${who}`, leaseMs: 20_000 });
    assert.equal(leased.length, Math.min(max, ready.length));
    for (const job of leased) {
      assert(ready.includes(job.text), `${job.text} is not ready`);
      const model = this.#executions.get(job.execId)!.jobs.get(job.id)!;
      model.deliveries++;
      model.hiddenUntil = now + 20_000;
      model.lease = ++this.#serial;
      assert.equal(job.deliveries, model.deliveries);
      process.jobs.push({ job, lease: model.lease });
    }
    assert.equal(new Set(leased.map(({ text }) => text)).size, leased.length);
  }

  /** With one of the leases it ever had, which may be over. */
  async #change(step: Step & { readonly do: "extend" | "give back" }): Promise<void> {
    const process = this.#processes[step.who], held = process.jobs.at(-1 - step.job);
    if (held === undefined) return;
    const { job, lease } = held, now = this.#clock.now();
    const model = this.#executions.get(job.execId)?.jobs.get(job.id), isHeld = model?.lease === lease;
    if (step.do === "extend") {
      const [longer] = await process.store.jobs.extend([job], 25_000);
      assert.equal(longer !== undefined, isHeld);
      if (!isHeld) return;
      model!.hiddenUntil = now + 25_000;
      model!.lease = ++this.#serial;
      process.jobs.push({ job: longer!, lease: model!.lease });
    } else {
      assert.equal(await process.store.jobs.release(job, { delayMs: 1000 }), isHeld);
      if (!isHeld) return;
      model!.hiddenUntil = now + 1000;
      model!.lease = ++this.#serial;
    }
  }

  #forget(execId: string): void {
    this.#executions.delete(execId);
    for (const key of [...this.#dedup.keys()]) if (key.startsWith(`${execId}/`)) this.#dedup.delete(key);
    for (const process of this.#processes) {
      for (const key of [...process.timers.keys()]) {
        if (key.startsWith(`${execId} `)) process.timers.delete(key);
      }
    }
  }

  /** Everything is as the model has it. */
  async #compare(): Promise<void> {
    for (const { store } of this.#processes) {
      for (const execId of EXECUTIONS) {
        const model = this.#executions.get(execId), head = await store.executions.head(execId);
        assert.equal(head?.seq, model?.log.length);
        const log = await store.executions.log(execId, 1, 1000);
        assert.deepEqual(log.map(({ events }) => events), model?.log ?? []);
        assert.deepEqual(Object.keys(head?.jobs ?? {}).sort(), [...model?.jobs.keys() ?? []].sort());
        assert.deepEqual(new Map(Object.entries(head?.timers ?? {})), model?.timers ?? new Map());
      }
    }
  }

  /** When all was deleted, answered and swept, nothing is there. */
  async #leaveNothing(): Promise<void> {
    await this.#clock.advance("3h");
    await this.#acquire(0);
    const { store, ownership } = this.#processes[0];
    for (const execId of EXECUTIONS) await store.executions.delete(ownership!, execId);
    const left = await store.inbox.pull(ownership!, 1000);
    assert.deepEqual(left.map(({ text }) => text).sort(), [...this.#inbox].sort());
    for (const command of left) assert.equal(await store.inbox.remove(ownership!, command), true);
    await store.sweep();
    const found: string[] = [];
    for await (const page of cellsIn(this.#cells, { from: "", to: "~" })) {
      for (const { key } of page) if (!/^(m|p\/|pe\/|f\/)/.test(key)) found.push(key);
    }
    assert.deepEqual(found, []);
  }
}

/** Too many for one operation, together with others. */
function many(prefix: string): string[] {
  return Array.from({ length: 500 }, (_, i) => `${prefix}-${i}`);
}

async function play(cells: () => Cells, steps: readonly Step[]): Promise<void> {
  const clock = new VirtualClock(), options = { pollMs: -1, partitions: 1, dedupWindowMs: WINDOW };
  await using first = await openStore(cells(), clock, options);
  await using second = await openStore(cells(), clock, options);
  await new Game(clock, [first, second], cells()).play(steps);
}

const steps = fc.array(step, { minLength: 30, maxLength: 100, size: "max" }).map((
  some,
): Step[] => [{ do: "acquire", who: 0 }, ...some]);

Deno.test("two processes on one store do what a simple model does, in memory", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (some) => {
      const disk = new MemoryDisk(), clock = new VirtualClock();
      await play(() => new MemoryCells(disk, clock), some);
    }),
    { numRuns: 150 },
  );
});

Deno.test("two processes on one store do what a simple model does, in Deno KV", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (some) => {
      const kv = await Deno.openKv(":memory:");
      try {
        await play(() => {
          const cells = new KvCells(kv, ["flow"], "memory");
          return {
            where: cells.where,
            get: (keys) => cells.get(keys),
            list: (range, limit, reverse) => cells.list(range, limit, reverse),
            commit: (checks, writes) => cells.commit(checks, writes),
            [Symbol.asyncDispose]: () => Promise.resolve(), // there are several on one
          };
        }, some);
      } finally {
        kv.close();
      }
    }),
    { numRuns: 15 },
  );
});
