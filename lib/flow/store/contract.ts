/**
 * What every store of flows must do: one suite for all of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { MailerError } from "../../errors.ts";
import { type Cells, cellsIn } from "./cells.ts";
import { type Fault, FaultyCells } from "./faults.ts";
import type { Commit, CommitOutcome, FlowStore, FlowStoreOptions, Head, Ownership, Summary } from "./port.ts";

/** Options of an opening under test. */
export interface OpeningOptions extends FlowStoreOptions {
  /** Wraps what the store lies in. */
  readonly wrap?: (cells: Cells) => Cells;
}

/** Makes an empty store that several openings share, as several processes would. */
export interface FlowStoreUnderTest {
  /** Time of all openings. */
  readonly clock: VirtualClock;
  /** Opens it, or opens it once more. */
  open(options?: OpeningOptions): Promise<FlowStore>;
  /** What is stored. */
  cells(): Cells;
  /** Removes what is left. */
  dispose(): Promise<void>;
}

/** Registers the suite. `make` is called once a test. */
export function flowStoreContract(name: string, make: () => Promise<FlowStoreUnderTest>): void {
  const test: Test = (title, body, options = {}) => {
    Deno.test(`${name} flow store: ${title}`, async () => {
      const under = await make();
      try {
        await using store = await under.open({ ...FRESH, ...options });
        await body(new Scene(under, store));
      } finally {
        await under.dispose();
      }
    });
  };
  logTests(test);
  faultTests(test);
  effectTests(test);
  ownerTests(test);
  listTests(test);
  sideTests(test);
  deleteTests(test);
}

/** Looks at the store for what others have done at every call. */
const FRESH: FlowStoreOptions = { pollMs: -1 };
const LEASE = 60_000;
const BEGIN = Date.UTC(2026, 0, 1);

type Test = (title: string, body: (scene: Scene) => Promise<void>, options?: FlowStoreOptions) => void;

/** A store, with what tests do again and again. */
export class Scene {
  readonly under: FlowStoreUnderTest;
  readonly store: FlowStore;
  readonly #owned = new Map<number, Promise<Ownership>>();

  constructor(under: FlowStoreUnderTest, store: FlowStore) {
    this.under = under;
    this.store = store;
  }

  /** Ownership of an execution's partition. */
  own(execId: string): Promise<Ownership> {
    const partition = this.store.partitions.of(execId);
    let owned = this.#owned.get(partition);
    if (owned === undefined) this.#owned.set(partition, owned = this.#acquire(partition));
    return owned.then((known) => {
      if (!known.lost) return known;
      this.#owned.delete(partition);
      return this.own(execId);
    });
  }

  async #acquire(partition: number): Promise<Ownership> {
    const owned = await this.store.partitions.acquire(partition, "a", LEASE);
    assert(owned !== undefined, `partition ${partition} has another owner`);
    return owned;
  }

  /** Commits on the newest head. */
  async commit(execId: string, more: Partial<Commit> = {}): Promise<CommitOutcome> {
    const head = await this.store.executions.head(execId);
    return await this.store.executions.commit({
      ...await this.decision(execId, head),
      ...more,
    });
  }

  /** Commits, and expects that it works. */
  async committed(execId: string, more: Partial<Commit> = {}): Promise<Head> {
    const outcome = await this.commit(execId, more);
    assert.equal(outcome.kind, "committed");
    return (outcome as { head: Head }).head;
  }

  /** A decision of one event. */
  async decision(execId: string, head: Head | undefined): Promise<Commit> {
    const seq = (head?.seq ?? 0) + 1;
    return {
      execId,
      ownership: await this.own(execId),
      head,
      events: `[{"i":${seq}}]`,
      lastIndex: seq,
      ...head === undefined ? { summary: summary() } : {},
    };
  }

  /** All keys and what they lead to, without what belongs to the store as a whole. */
  async dump(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for await (const page of cellsIn(this.under.cells(), { from: "", to: "~" })) {
      for (const { key, bytes } of page) {
        if (!/^(m|p\/|pe\/|f\/)/.test(key)) found.set(key, bytes.join());
      }
    }
    return found;
  }
}

function summary(more: Partial<Summary> = {}): Summary {
  return {
    flow: "order",
    flowHash: "h1",
    status: "running",
    createdAt: BEGIN,
    updatedAt: BEGIN,
    attrs: {},
    ...more,
  };
}

function code(expected: string): (error: unknown) => boolean {
  return (error) => {
    assert(error instanceof MailerError, String(error));
    assert.equal(error.code, expected);
    return true;
  };
}

function logTests(test: Test): void {
  test("a log is read as it was written, and a head says where it ends", async (scene) => {
    const { executions } = scene.store;
    assert.equal(await executions.head("e1"), undefined);
    assert.deepEqual(await executions.log("e1"), []);
    await scene.committed("e1", { events: '[{"a":1}]', lastIndex: 1 });
    await scene.committed("e1", { events: '[{"b":"ü🚚"},{}]', lastIndex: 3 });
    const head = await scene.committed("e1", { events: "[3]", lastIndex: 4 });
    assert.deepEqual([head.seq, head.firstSeq, head.events], [3, 1, 4]);
    const read = (await executions.head("e1"))!;
    assert.deepEqual([read.seq, read.events, read.version, read.summary], [3, 4, head.version, summary()]);
    assert.deepEqual(await executions.log("e1"), [
      { seq: 1, events: '[{"a":1}]' },
      { seq: 2, events: '[{"b":"ü🚚"},{}]' },
      { seq: 3, events: "[3]" },
    ]);
    assert.deepEqual((await executions.log("e1", 2, 1)).map(({ seq }) => seq), [2]);
    assert.deepEqual(await executions.log("e1", 4), []);
    assert.deepEqual((await executions.heads(["e1", "no", "e1"])).map((h) => h?.seq), [3, undefined, 3]);
  });

  test("P2: of many decisions on one head one is committed, whether they come together or not", async (scene) => {
    const { executions } = scene.store;
    for (let seq = 1; seq <= 3; seq++) {
      const head = await executions.head("e1");
      const commits = await Promise.all(
        Array.from({ length: 7 }, async (_, i) => ({
          ...await scene.decision("e1", head),
          events: `["${seq}.${i}"]`,
        })),
      );
      const outcomes = await Promise.all(commits.map((commit) => executions.commit(commit)));
      assert.equal(outcomes.filter(({ kind }) => kind === "committed").length, 1);
      assert.equal(outcomes.filter(({ kind }) => kind === "conflict").length, 6);
      const won = outcomes.findIndex(({ kind }) => kind === "committed");
      assert.deepEqual((await executions.log("e1", seq)).map(({ events }) => events), [`["${seq}.${won}"]`]);
      const late = await executions.commit(commits[(won + 1) % 7]!);
      assert.equal(late.kind, "conflict");
    }
    assert.equal((await executions.log("e1")).length, 3);
  });

  test("group commit: decisions of different executions share operations, and one that conflicts fails alone", async (scene) => {
    const { executions } = scene.store, ids = Array.from({ length: 300 }, (_, i) => `e${i}`);
    for (const id of ids) await scene.own(id);
    const first = await Promise.all(
      ids.map(async (id) => executions.commit(await scene.decision(id, undefined))),
    );
    assert(first.every(({ kind }) => kind === "committed"));
    const heads = await executions.heads(ids);
    // Somebody else was there first in three of them.
    for (const id of ["e10", "e150", "e299"]) await scene.committed(id);
    const before = scene.store.stats();
    const second = await Promise.all(
      ids.map(async (id, i) => executions.commit(await scene.decision(id, heads[i]))),
    );
    const refused = ids.filter((_, i) => second[i]!.kind !== "committed");
    assert.deepEqual(refused, ["e10", "e150", "e299"]);
    const after = scene.store.stats();
    assert.equal(after.conflicts - before.conflicts, 3);
    assert.equal(after.decisions - before.decisions, 297);
    assert((await executions.heads(ids)).every((head) => head?.seq === 2));
    const grouped = await Promise.all(ids.map(async (id) => {
      const head = await executions.head(id);
      return async () => await executions.commit(await scene.decision(id, head));
    }));
    const start = scene.store.stats();
    await Promise.all(grouped.map((go) => go()));
    const end = scene.store.stats();
    assert.equal(end.decisions - start.decisions, 300);
    assert(end.commits - start.commits <= 12, `${end.commits - start.commits} operations for 300 decisions`);
  });

  test("P6: numbers of many digits and texts of 10 MiB come back byte for byte", async (scene) => {
    const { executions } = scene.store;
    const numbers =
      '[{"n":9007199254740993,"d":0.1000000000000000055511151231257827,"e":1e400,"s":"\\ud800"}]';
    const large = `["${"0123456789abcdefü".repeat(620_000)}"]`;
    assert(new TextEncoder().encode(large).length > 10 * 1024 * 1024);
    await scene.committed("e1", { events: numbers, summary: summary({ more: { n: 9007199254740993n } }) });
    await scene.committed("e1", {
      events: large,
      snapshot: large,
      send: [{ execId: "e2", id: "c1", text: large }],
      cache: [{ key: "k", text: large, expiresAt: BEGIN + 1000 }],
    });
    await scene.committed("e1", { events: `["${"x".repeat(47_000)}"]` });
    await scene.committed("e1", { events: `["${"x".repeat(50_000)}"]` });
    await executions.putObject(await scene.own("e1"), "e1", "seg.1", large);
    const log = await executions.log("e1");
    assert.deepEqual(log.map(({ events }) => events.length), [numbers.length, large.length]);
    const rest = await executions.log("e1", 3);
    assert.deepEqual(rest.map(({ events }) => events.length), [47_004, 50_004]);
    assert(log[0]!.events === numbers && log[1]!.events === large);
    assert.equal((await executions.head("e1"))!.summary.more!["n"], 9007199254740993n);
    assert((await executions.snapshot("e1"))!.text === large);
    assert(await executions.object("e1", "seg.1") === large);
    assert(await scene.store.cache.get("k") === large);
    const [command] = await scene.store.inbox.pull(await scene.own("e2"), 1);
    assert(command!.text === large);
    await scene.committed("e2", { command: command! });
    await executions.delete(await scene.own("e1"), "e1");
    await executions.delete(await scene.own("e2"), "e2");
    await scene.under.clock.advance(2000);
    await scene.store.sweep();
    assert.deepEqual([...(await scene.dump()).keys()], []);
  });

  test("10,000 parked executions: opening reads next to nothing of them, and they are all there", async (scene) => {
    const { store, under } = scene, count = 10_000, at = BEGIN + 86_400_000;
    for (let from = 0; from < count; from += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, i) =>
        scene.committed(`e${from + i}`, {
          summary: summary({ status: "waiting", createdAt: BEGIN + from + i }),
          timers: [{ id: "t", at: at + from + i, text: "wake" }],
        })));
    }
    for (let partition = 0; partition < store.partitions.count; partition++) {
      await store.partitions.release((await store.partitions.acquire(partition, "a", LEASE))!);
    }
    let cells = 0;
    await using other = await under.open({
      ...FRESH,
      wrap: (inner) => ({
        where: inner.where,
        get: async (keys) => (cells += keys.length, await inner.get(keys)),
        list: async (range, limit, reverse) => {
          const found = await inner.list(range, limit, reverse);
          cells += found.length;
          return found;
        },
        commit: (checks, writes) => inner.commit(checks, writes),
        [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
      }),
    });
    const owned: Ownership[] = [];
    for (let partition = 0; partition < other.partitions.count; partition++) {
      owned.push((await other.partitions.acquire(partition, "b", 2 * 86_400_000))!);
    }
    const next = await Promise.all(owned.map((ownership) => other.timers.next(ownership)));
    assert.equal(Math.min(...next.map((time) => time!)), at);
    assert(cells <= other.partitions.count * 70, `${cells} cells were read`);
    await under.clock.advance(86_400_000 + 999); // a tenth of them is due
    let fired = 0;
    for (const ownership of owned) {
      for (;;) {
        const due = await other.timers.due(ownership, 500);
        if (due.length === 0) break;
        fired += due.length;
        await Promise.all(due.map(async ({ execId, id }) => {
          const head = await other.executions.head(execId);
          const outcome = await other.executions.commit({
            execId,
            ownership,
            head,
            events: "[2]",
            lastIndex: 2,
            clearTimers: [id],
          });
          assert.equal(outcome.kind, "committed");
        }));
      }
    }
    assert.equal(fired, 1000);
    assert((await other.executions.heads(["e0", "e999"])).every((head) => head?.seq === 2));
    assert.equal((await other.executions.head("e9999"))!.seq, 1);
  });

  test("a decision that changes nothing but an inbox leaves the head as it is", async (scene) => {
    const { store } = scene;
    const head = await scene.committed("e1");
    await store.inbox.push([{ execId: "e1", id: "late", text: "{}" }]);
    const [command] = await store.inbox.pull(await scene.own("e1"), 5);
    const outcome = await store.executions.commit({
      execId: "e1",
      ownership: await scene.own("e1"),
      head,
      command: command!,
    });
    assert.equal(outcome.kind, "committed");
    assert.equal((await store.executions.head("e1"))!.version, head.version);
    assert.deepEqual(await store.inbox.pull(await scene.own("e1"), 5), []);
  });

  test("what cannot be a commit is refused", async (scene) => {
    const head = await scene.committed("e1"), { executions } = scene.store, ownership = await scene.own("e1");
    const refused: Partial<Commit>[] = [
      { execId: "a/b" },
      { head: undefined, events: "[]", lastIndex: 1 },
      { events: "[]" },
      { execId: "e2" },
      { summary: summary({ createdAt: 1 }) },
      { jobs: [{ id: "j", kind: "a/b", text: "" }] },
      { jobs: [{ id: "j", kind: "a", text: "", priority: 101 }] },
      { send: [{ execId: "", id: "c", text: "" }] },
    ];
    for (const more of refused) {
      await assert.rejects(
        executions.commit({ execId: "e1", ownership, head, ...more }),
        code("invalid_commit"),
      );
    }
    await assert.rejects(
      executions.commit({
        execId: "e1",
        ownership,
        head,
        jobs: [{ id: "j", kind: "a", text: "x".repeat(50_000) }],
      }),
      code("text_too_large"),
    );
    assert.equal((await executions.head("e1"))!.version, head.version);
  });

  test("snapshots: the newest, until it is removed", async (scene) => {
    const { executions } = scene.store;
    assert.equal(await executions.snapshot("e1"), undefined);
    await scene.committed("e1", { snapshot: "x".repeat(200_000) });
    const head = await scene.committed("e1", { snapshot: "second" });
    assert.equal(head.snapshotSeq, 2);
    await scene.committed("e1");
    assert.deepEqual(await executions.snapshot("e1"), { seq: 2, text: "second" });
    assert.equal((await executions.head("e1"))!.snapshotSeq, 2);
    assert.equal([...(await scene.dump()).keys()].filter((key) => key.startsWith("b/")).length, 0);
    assert.equal((await scene.committed("e1", { snapshot: null })).snapshotSeq, undefined);
    assert.equal(await executions.snapshot("e1"), undefined);
  });

  test("a log can be cut: what is in front of its beginning is not seen, and then not there", async (scene) => {
    const { executions } = scene.store, ownership = await scene.own("e1");
    for (let i = 0; i < 30; i++) {
      await scene.committed("e1", i === 3 ? { events: `["${"x".repeat(100_000)}"]` } : {});
    }
    await executions.putObject(ownership, "e1", "seg.1", "events 1 to 29");
    const head = await scene.committed("e1", { firstSeq: 31 });
    assert.equal(head.firstSeq, 31);
    assert.deepEqual((await executions.log("e1", 1)).map(({ seq }) => seq), [31]);
    await executions.truncate(ownership, "e1");
    await executions.truncate(ownership, "e1");
    const left = [...(await scene.dump()).keys()];
    assert.deepEqual(left.filter((key) => /^[eb]\//.test(key)).length, 1, left.join());
    await scene.committed("e1");
    assert.deepEqual((await executions.log("e1")).map(({ seq }) => seq), [31, 32]);
    assert.deepEqual(await executions.objects("e1"), ["seg.1"]);
    assert.equal(await executions.object("e1", "seg.1"), "events 1 to 29");
    await executions.deleteObject(ownership, "e1", "seg.1");
    assert.equal(await executions.object("e1", "seg.1"), undefined);
  });
}

/** A commit with something of everything; too large for one operation, or small. */
function everything(execId: string, large: boolean, now: number): Partial<Commit> {
  const many = large ? 500 : 2, text = large ? "ü".repeat(40_000) : "{}";
  return {
    events: `["${text}"]`,
    lastIndex: 7,
    summary: summary({ status: "waiting", attrs: { city: "Wien" } }),
    dedup: ["d1"],
    jobs: Array.from({ length: many }, (_, i) => ({ id: `j${i}`, kind: `mail-${execId}`, text: `job ${i}` })),
    removeJobs: ["old"],
    timers: Array.from({ length: many }, (_, i) => ({ id: `t${i}`, at: BEGIN + i, text: `timer ${i}` })),
    clearTimers: "all",
    send: Array.from(
      { length: large ? 5 : 2 },
      (_, i) => ({ execId: `child${i}`, id: `start ${execId}`, text }),
    ),
    snapshot: text,
    cache: [{ key: execId, text, expiresAt: now + 1000 }],
    deadLetters: [{ kind: "job", key: execId, text }],
    quarantine: { seq: 2, reason: "bad" },
    note: execId,
  };
}

function faultTests(test: Test): void {
  for (const large of [false, true]) {
    const size = large ? "a commit too large for one operation" : "a commit";
    test(`P1: ${size} is there as a whole or not at all, wherever the process ends`, async (scene) => {
      const { under } = scene, seen = new Map<number, number>();
      for (let n = 1, isDone = false; !isDone; n++) {
        for (const fault of ["crash", "crash-after"] as const) {
          const execId = `e${n}${fault}`, now = under.clock.now();
          isDone = await commitAndCrash(under, execId, large, n, fault) === "done";
          await using other = await under.open(FRESH);
          for (let p = 0; p < other.partitions.count; p++) await other.partitions.acquire(p, "b", LEASE);
          const owned = (await other.partitions.acquire(other.partitions.of(execId), "b", LEASE))!;
          const head = (await other.executions.head(execId))!,
            attempt = `${fault} at commit ${n}, seq ${head.seq}`;
          seen.set(head.seq, (seen.get(head.seq) ?? 0) + 1);
          if (head.seq === 1) await assertNothing(other, owned, head, attempt);
          else await assertEverything(other, owned, everything(execId, large, now), head, attempt);
          assert(!isDone || head.seq === 2);
          await cleanUp(under, other);
          await under.clock.advance("2h"); // for what was written ahead
          await other.sweep();
          assert.deepEqual([...(await scene.dump()).keys()], [], attempt);
          for (const { partition } of await other.partitions.owners()) {
            const last = await other.partitions.acquire(partition, "b", 0);
            await other.partitions.release(last!);
          }
        }
      }
      assert(seen.get(1)! >= (large ? 5 : 1) && seen.get(2)! >= (large ? 8 : 2), [...seen].join("; "));
    }, { partitions: 2 });
  }

  test("a commit of which nobody knows whether it happened can be found out", async (scene) => {
    const { under } = scene;
    for (const [fault, seq] of [["fail", 0], ["fail-after", 1], ["repeat", 1]] as const) {
      const execId = `e-${fault}`, kind = `mail-${fault}`, now = under.clock.now();
      let isArmed = false;
      await using store = await under.open({
        pollMs: LEASE, // nothing is looked up but where it is known to be needed
        wrap: (inner) => new FaultyCells(inner, ({ op }) => op === "commit" && isArmed ? fault : undefined),
      });
      const { jobs, timers, inbox } = store, request = { kind, max: 9, worker: "w", leaseMs: LEASE };
      const ownership = (await store.partitions.acquire(store.partitions.of(execId), "x", 0))!;
      const before = await store.feed.end(ownership.partition);
      assert.deepEqual([await timers.next(ownership), await jobs.lease(request)], [undefined, []]);
      assert.deepEqual(await inbox.pull(ownership, 9), []);
      const commit = {
        execId,
        ownership,
        events: "[1]",
        lastIndex: 1,
        summary: summary(),
        jobs: [{ id: "j", kind, text: "" }],
        timers: [{ id: "t", at: now, text: "" }],
        send: [{ execId, id: "c", text: "" }],
      };
      isArmed = true;
      if (fault === "repeat") assert.equal((await store.executions.commit(commit)).kind, "conflict");
      else await assert.rejects(store.executions.commit(commit), code("store_failed"));
      isArmed = false;
      assert.equal((await store.executions.head(execId))?.seq ?? 0, seq);
      assert.equal(await timers.next(ownership), seq === 0 ? undefined : now);
      assert.equal((await jobs.lease(request)).length, seq);
      assert.equal((await inbox.pull(ownership, 9)).length, seq);
      assert.equal((await store.executions.commit(commit)).kind, seq === 0 ? "committed" : "conflict");
      const head = await store.executions.head(execId),
        second = { execId, ownership, head, events: "[2]", lastIndex: 2 };
      assert.equal((await store.executions.commit(second)).kind, "committed");
      // Positions of the feed go on without gaps, and none is given twice.
      assert.deepEqual(
        (await store.feed.read(ownership.partition, before)).map(({ position, seq }) => [position, seq]),
        [
          [before, 1],
          [before + 1, 2],
        ],
      );
      await store.executions.delete(ownership, execId);
      await store.partitions.release(ownership);
      await using next = await under.open(FRESH);
      const owned = (await next.partitions.acquire(ownership.partition, "x", 0))!;
      for (const command of await next.inbox.pull(owned, 9)) await next.inbox.remove(owned, command);
    }
  });

  test("what was written ahead and swept away meanwhile is never named", async (scene) => {
    const { under } = scene, large = "x".repeat(2_000_000);
    let meanwhile: (() => Promise<void>) | undefined;
    const hook = (inner: Cells): Cells => ({
      where: inner.where,
      get: (keys) => inner.get(keys),
      list: (range, limit, reverse) => inner.list(range, limit, reverse),
      commit: async (checks, writes) => {
        if (writes.some(({ key }) => key === "h/e1")) await meanwhile?.();
        return await inner.commit(checks, writes);
      },
      [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    });
    await using store = await under.open({ ...FRESH, wrap: hook });
    const ownership = (await store.partitions.acquire(store.partitions.of("e1"), "x", 0))!;
    const commit: Commit = { execId: "e1", ownership, events: large, lastIndex: 1, summary: summary() };
    let swept = 0;
    meanwhile = async () => {
      meanwhile = undefined;
      await under.clock.advance("61m");
      swept = (await scene.store.sweep()).orphans;
    };
    assert.equal((await store.executions.commit(commit)).kind, "conflict");
    assert(swept >= 30, `${swept} parts were swept`);
    assert.deepEqual([...(await scene.dump()).keys()], []);
    meanwhile = async () => {
      await under.clock.advance("59m"); // not too long ago
      swept = (await scene.store.sweep()).orphans;
    };
    assert.equal((await store.executions.commit(commit)).kind, "committed");
    assert.equal(swept, 0);
    assert.equal((await store.executions.log("e1"))[0]!.events.length, large.length);
  });

  test("a busy store is tried again", async (scene) => {
    let busy = 0;
    await using store = await scene.under.open({
      ...FRESH,
      wrap: (inner) => new FaultyCells(inner, ({ op }) => op === "commit" && busy-- > 0 ? "busy" : undefined),
    });
    const ownership = (await store.partitions.acquire(store.partitions.of("e1"), "x", LEASE))!;
    busy = 3;
    const done = await store.executions.commit({
      execId: "e1",
      ownership,
      events: "[1]",
      lastIndex: 1,
      summary: summary(),
    });
    assert.equal(done.kind, "committed");
    assert.equal(store.stats().busy, 3);
  });
}

/**
 * Lets a process start an execution, take a command for it, answer that with everything, and end at its n-th
 * commit of these.
 */
async function commitAndCrash(
  under: FlowStoreUnderTest,
  execId: string,
  large: boolean,
  n: number,
  fault: Fault,
): Promise<"crashed" | "done"> {
  let from = Infinity, cells: FaultyCells | undefined;
  const store = await under.open({
    ...FRESH,
    wrap: (inner) =>
      cells = new FaultyCells(
        inner,
        (call) => call.op === "commit" && call.n === from + n ? fault : undefined,
      ),
  });
  const ownership = (await store.partitions.acquire(store.partitions.of(execId), "a", 0))!;
  const started = await store.executions.commit({
    execId,
    ownership,
    events: "[1]",
    lastIndex: 1,
    summary: summary(),
    jobs: [{ id: "old", kind: `mail-${execId}`, text: "old" }],
    timers: [{ id: "old", at: BEGIN, text: "old" }],
  });
  assert.equal(started.kind, "committed");
  await store.inbox.push([{ execId, id: "go", text: large ? "x".repeat(100_000) : "{}" }]);
  const [command] = await store.inbox.pull(ownership, 100);
  const head = (await store.executions.head(execId))!;
  from = cells!.commits;
  try {
    const commit = {
      ...everything(execId, large, under.clock.now()),
      execId,
      ownership,
      head,
      command: command!,
    };
    assert.equal((await store.executions.commit(commit)).kind, "committed");
    return "done";
  } catch (error) {
    code("crashed")(error);
    return "crashed";
  } finally {
    if (!cells!.crashed) await store[Symbol.asyncDispose]();
  }
}

/** All is as it was before the commit. */
async function assertNothing(
  store: FlowStore,
  ownership: Ownership,
  head: Head,
  attempt: string,
): Promise<void> {
  const { execId } = head;
  assert.deepEqual(head.summary, summary(), attempt);
  assert.deepEqual([Object.keys(head.jobs), Object.keys(head.timers)], [["old"], ["old"]], attempt);
  assert.deepEqual((await store.timers.due(ownership, 9)).map(({ text }) => text), ["old"], attempt);
  const jobs = await store.jobs.lease({ kind: `mail-${execId}`, max: 9, worker: "w", leaseMs: LEASE });
  assert.deepEqual(jobs.map(({ text }) => text), ["old"], attempt);
  const commands = await store.inbox.pull(ownership, 1000);
  assert.deepEqual(commands.map(({ id }) => id), ["go"], attempt);
  await store.inbox.release(ownership, commands[0]!);
  assert.equal(await store.executions.snapshot(execId), undefined, attempt);
  assert.equal(await store.cache.get(execId), undefined, attempt);
  assert.deepEqual((await store.deadLetters.list()).items, [], attempt);
  assert.equal(await store.quarantines.get(execId), undefined, attempt);
  assert.equal((await store.index.list({ status: "running" })).items.length, 1, attempt);
}

/** All that {@link everything} asks for is there. */
async function assertEverything(
  store: FlowStore,
  ownership: Ownership,
  wanted: Partial<Commit>,
  head: Head,
  attempt: string,
): Promise<void> {
  const { execId } = head, sorted = (texts: readonly string[]) => [...texts].sort();
  assert.equal((await store.executions.log(execId)).at(-1)!.events, wanted.events, attempt);
  assert.deepEqual([head.summary, head.events], [wanted.summary, 7], attempt);
  assert.deepEqual(sorted(Object.keys(head.jobs)), sorted(wanted.jobs!.map(({ id }) => id)), attempt);
  assert.deepEqual(sorted(Object.keys(head.timers)), sorted(wanted.timers!.map(({ id }) => id)), attempt);
  const jobs: string[] = [];
  for (;;) {
    const some = await store.jobs.lease({ kind: `mail-${execId}`, max: 150, worker: "w", leaseMs: LEASE });
    if (some.length === 0) break;
    jobs.push(...some.map(({ text }) => text));
  }
  assert.deepEqual(sorted(jobs), sorted(wanted.jobs!.map(({ text }) => text)), attempt);
  const timers = await store.timers.due(ownership, 1000);
  assert.deepEqual(timers.map(({ text }) => text), wanted.timers!.map(({ text }) => text), attempt);
  const sent: string[] = [];
  for (const { partition } of await store.partitions.owners()) {
    const owned = (await store.partitions.acquire(partition, "b", LEASE))!;
    for (const command of await store.inbox.pull(owned, 1000)) {
      assert.equal(command.text, wanted.send![0]!.text);
      sent.push(`${command.execId} ${command.id}`);
    }
  }
  assert.deepEqual(sorted(sent), sorted(wanted.send!.map((send) => `${send.execId} ${send.id}`)), attempt);
  assert.equal((await store.executions.snapshot(execId))!.text, wanted.snapshot, attempt);
  assert.equal(await store.cache.get(execId), wanted.cache![0]!.text, attempt);
  assert.equal((await store.deadLetters.list()).items[0]!.text, wanted.deadLetters![0]!.text, attempt);
  assert.deepEqual(await store.quarantines.get(execId), wanted.quarantine, attempt);
  assert.equal((await store.feed.read(ownership.partition, 0)).at(-1)!.note, execId, attempt);
  const mine = (await store.partitions.acquire(ownership.partition, "b", LEASE))!;
  const again = await store.executions.commit({
    execId,
    ownership: mine,
    head,
    dedup: ["d1"],
    clearTimers: "all",
  });
  assert.deepEqual(again, { kind: "duplicate", id: "d1" }, attempt);
}

/** Removes all there is. */
async function cleanUp({ clock }: FlowStoreUnderTest, store: FlowStore): Promise<void> {
  for (const { partition } of await store.partitions.owners()) {
    const owned = (await store.partitions.acquire(partition, "b", LEASE))!;
    for (const command of await store.inbox.pull(owned, 1000)) await store.inbox.remove(owned, command);
    for (const { execId } of (await store.index.list({ limit: 1000 })).items) {
      if (store.partitions.of(execId) === partition) await store.executions.delete(owned, execId);
    }
  }
  for (const { id } of (await store.deadLetters.list()).items) await store.deadLetters.remove(id);
  await clock.advance(1000);
}

function effectTests(test: Test): void {
  test("dedup: an id is refused within the window, once per execution, and forgotten behind it", async (scene) => {
    const { store, under } = scene;
    await scene.committed("e1", { dedup: ["a", "b"] });
    assert.deepEqual(await scene.commit("e1", { dedup: ["c", "b"] }), { kind: "duplicate", id: "b" });
    assert.equal((await scene.commit("e2", { dedup: ["b"] })).kind, "committed");
    assert.equal((await scene.commit("e1", { dedup: ["c"] })).kind, "committed");
    await under.clock.advance("9m");
    await store.sweep();
    assert.equal((await scene.commit("e1", { dedup: ["a"] })).kind, "duplicate");
    await under.clock.advance("1m");
    assert.equal(
      (await scene.commit("e1", { dedup: ["a"] })).kind,
      "committed",
      "the window is over, swept or not",
    );
    assert.equal((await scene.commit("e1", { dedup: ["a"] })).kind, "duplicate");
    await under.clock.advance("5m");
    assert.equal((await store.sweep()).dedup, 3, "b twice, and c");
    assert.equal((await scene.commit("e1", { dedup: ["a"] })).kind, "duplicate", "it was remembered anew");
    await under.clock.advance("10m");
    await store.sweep();
    assert.deepEqual([...(await scene.dump()).keys()].filter((key) => key.startsWith("u")), []);
    const many = await Promise.all(Array.from({ length: 5 }, () => scene.commit("e3", { dedup: ["x"] })));
    assert.equal(many.filter(({ kind }) => kind === "committed").length, 1);
  });

  test("inbox: commands come in the order of their sender, at least once, and go with their decision", async (scene) => {
    const { store, under } = scene, ownership = await scene.own("e1");
    const push = (id: string) => store.inbox.push([{ execId: "e1", id, text: `text ${id}` }]);
    for (let i = 0; i < 5; i++) await push(`c${i}`);
    const first = await store.inbox.pull(ownership, 2);
    assert.deepEqual(first.map(({ id, text, deliveries }) => [id, text, deliveries]), [
      ["c0", "text c0", 1],
      ["c1", "text c1", 1],
    ]);
    assert.deepEqual((await store.inbox.pull(ownership, 9)).map(({ id }) => id), ["c2", "c3", "c4"]);
    assert.deepEqual(await store.inbox.pull(ownership, 9), []);
    await scene.committed("e1", { command: first[1]! });
    await store.inbox.release(ownership, first[0]!, 5000);
    assert.deepEqual(await store.inbox.pull(ownership, 9), []);
    await under.clock.advance(5000);
    const [again] = await store.inbox.pull(ownership, 9);
    assert.deepEqual([again!.id, again!.deliveries], ["c0", 2]);
    // The process ends; the next owner gets all that is left, counted.
    await using other = await under.open(FRESH);
    await store.partitions.release(ownership);
    const taken = (await other.partitions.acquire(ownership.partition, "b", LEASE))!;
    const left = await other.inbox.pull(taken, 9);
    assert.deepEqual(left.map(({ id }) => id), ["c0", "c2", "c3", "c4"]);
    assert.equal(left[0]!.deliveries, 2, "one that was never given back is counted by its next owner");
    assert.equal(await other.inbox.remove(taken, left[0]!, { kind: "cmd", key: "e1", text: "poison" }), true);
    assert.equal(
      await other.inbox.remove(taken, left[0]!, { kind: "cmd", key: "e1", text: "poison" }),
      false,
    );
    assert.deepEqual((await other.deadLetters.list()).items.map(({ text }) => text), ["poison"]);
    for (const command of left.slice(1)) assert.equal(await other.inbox.remove(taken, command), true);
    assert.deepEqual([...(await scene.dump()).keys()].filter((key) => key.startsWith("c")), []);
  });

  test("inbox: what another process stored is found, and once is once", async (scene) => {
    const { store, under } = scene, ownership = await scene.own("e1");
    await using other = await under.open(FRESH);
    const stored = await other.inbox.push([
      { execId: "e1", id: "a", text: "1", once: true },
      { execId: "e1", id: "a", text: "2", once: true },
      { execId: "e1", id: "a", text: "3" },
    ]);
    assert.deepEqual(stored, [true, false, true]);
    assert.deepEqual(await store.inbox.push([{ execId: "e1", id: "a", text: "4", once: true }]), [false]);
    const both = await Promise.all(
      [store, other].map(({ inbox }) => inbox.push([{ execId: "e1", id: "b", text: "5", once: true }])),
    );
    assert.deepEqual(both.flat().sort(), [false, true]);
    assert.deepEqual((await store.inbox.pull(ownership, 9)).map(({ text }) => text).sort(), ["1", "3", "5"]);
    await assert.rejects(
      store.inbox.push(Array.from({ length: 65 }, (_, i) => ({ execId: "e1", id: `${i}`, text: "" }))),
      code("too_many_commands"),
    );
  });

  test("inbox: thousands of commands come in order, each once", async (scene) => {
    const { store } = scene, ownership = await scene.own("e1"), seen: string[] = [];
    await scene.committed("e1");
    for (let at = 0; at < 2500; at += 50) {
      await store.inbox.push(
        Array.from({ length: 50 }, (_, i) => ({ execId: "e1", id: `${at + i}`, text: "" })),
      );
    }
    for (;;) {
      const some = await store.inbox.pull(ownership, 70);
      if (some.length === 0) break;
      seen.push(...some.map(({ id }) => id));
      await Promise.all(some.map((command) => store.inbox.remove(ownership, command)));
    }
    assert.deepEqual(seen, Array.from({ length: 2500 }, (_, i) => `${i}`));
  });

  test("jobs: priority first, then order; leases run out, are prolonged, given back", async (scene) => {
    const { store, under } = scene, { clock } = under;
    const lease = (max = 9, worker = "w") => store.jobs.lease({ kind: "mail", max, worker, leaseMs: 30_000 });
    const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id);
    await scene.committed("e1", {
      jobs: [
        { id: "slow", kind: "mail", text: "1", priority: -5 },
        { id: "n2", kind: "mail", text: "2", order: 8 },
        { id: "n1", kind: "mail", text: "3", order: 7 },
        { id: "fast", kind: "mail", text: "4", priority: 9, order: 99 },
        { id: "later", kind: "mail", text: "5", priority: 100, notBefore: clock.now() + 1000 },
        { id: "other", kind: "sms", text: "6" },
      ],
    });
    const [fast, n1] = await lease(2);
    assert.deepEqual([fast!.id, n1!.id, fast!.deliveries, n1!.text, n1!.execId], [
      "fast",
      "n1",
      1,
      "3",
      "e1",
    ]);
    assert.deepEqual(ids(await lease()), ["n2", "slow"]);
    assert.deepEqual(await lease(), []);
    await clock.advance(1000);
    assert.deepEqual(ids(await lease()), ["later"]);
    await clock.advance(28_000);
    const [longer, gone] = await store.jobs.extend([n1!, { ...fast!, token: "old" }], 30_000);
    assert.equal(gone, undefined);
    assert.equal(longer!.until, clock.now() + 30_000);
    await clock.advance(1000);
    const again = await lease(9, "v");
    assert.deepEqual(again.map(({ id, deliveries, worker }) => [id, deliveries, worker]), [
      ["fast", 2, "v"],
      ["n2", 2, "v"],
      ["slow", 2, "v"],
    ]);
    assert.equal(await store.jobs.release(fast!), false, "it is another's");
    assert.deepEqual(await store.jobs.extend([n1!], 1), [undefined], "an old token");
    assert.equal(await store.jobs.release(again[0]!, { delayMs: 500, counts: false }), true);
    assert.deepEqual(await lease(), []);
    await clock.advance(500);
    assert.deepEqual((await lease()).map(({ id, deliveries }) => [id, deliveries]), [["fast", 2]]);
    // A decision ends jobs whoever has them.
    const head = await scene.committed("e1", { removeJobs: ["n1", "nobody"] });
    assert.deepEqual(Object.keys(head.jobs).sort(), ["fast", "later", "n2", "other", "slow"]);
    assert.deepEqual(await store.jobs.extend([longer!], 1), [undefined]);
    assert.equal(await store.jobs.release(longer!), false);
    assert.deepEqual((await scene.committed("e1", { removeJobs: "all" })).jobs, {});
    await clock.advance("1h");
    assert.deepEqual(await lease(), []);
    assert.deepEqual([...(await scene.dump()).keys()].filter((key) => key.startsWith("j/")), []);
  });

  test("jobs: one that is put with a lease is handed out with its commit", async (scene) => {
    const { store, under } = scene;
    const outcome = await scene.commit("e1", {
      jobs: [
        { id: "a", kind: "mail", text: "1", lease: { worker: "w", leaseMs: 1000 } },
        { id: "b", kind: "mail", text: "2" },
      ],
    });
    assert.equal(outcome.kind, "committed");
    const { leased } = outcome as CommitOutcome & { kind: "committed" };
    assert.deepEqual(leased.map(({ id, deliveries, worker, text }) => [id, deliveries, worker, text]), [
      ["a", 1, "w", "1"],
    ]);
    const request = { kind: "mail", max: 9, worker: "v", leaseMs: 5000 };
    assert.deepEqual((await store.jobs.lease(request)).map(({ id }) => id), ["b"]);
    const [longer] = await store.jobs.extend(leased, 2000);
    assert.equal(longer!.until, under.clock.now() + 2000);
    await under.clock.advance(2000);
    assert.deepEqual((await store.jobs.lease(request)).map(({ id, deliveries }) => [id, deliveries]), [[
      "a",
      2,
    ]]);
  });

  test("jobs: a job that is put again is another job", async (scene) => {
    const { store } = scene, request = { kind: "mail", max: 9, worker: "v", leaseMs: 5000 };
    await scene.committed("e1", { jobs: [{ id: "a", kind: "mail", text: "1" }] });
    const [job] = await store.jobs.lease(request);
    await scene.committed("e1", { jobs: [{ id: "a", kind: "mail", text: "2" }], removeJobs: ["a"] });
    assert.deepEqual(await store.jobs.extend([job!], 1), [undefined]);
    assert.deepEqual((await store.jobs.lease(request)).map(({ text, deliveries }) => [text, deliveries]), [[
      "2",
      1,
    ]]);
  });

  test("jobs: workers in several processes never have one job at a time", async (scene) => {
    const { store, under } = scene, taken: string[] = [];
    await using other = await under.open(FRESH);
    const wanted = Array.from({ length: 400 }, (_, i) => ({ id: `j${i}`, kind: "mail", text: "" }));
    await scene.committed("e1", { jobs: wanted.slice(0, 200) });
    await scene.committed("e1", { jobs: wanted.slice(200) });
    const worker = async (from: FlowStore, name: string): Promise<void> => {
      for (let empty = 0; empty < 3;) {
        const some = await from.jobs.lease({ kind: "mail", max: 7, worker: name, leaseMs: LEASE });
        taken.push(...some.map(({ id }) => id));
        empty = some.length === 0 ? empty + 1 : 0;
      }
    };
    await Promise.all([0, 1, 2, 3].map((i) => worker(i % 2 === 0 ? store : other, `w${i}`)));
    assert.equal(new Set(taken).size, 400);
    assert.equal(taken.length, 400);
  });

  test("jobs: a queue of thousands is worked off in its order", async (scene) => {
    const { store } = scene, taken: number[] = [];
    for (let at = 0; at < 3000; at += 300) {
      await scene.committed(`e${at}`, {
        jobs: Array.from({ length: 300 }, (_, i) => ({
          id: `j${at + i}`,
          kind: "mail",
          text: "",
          order: ((at + i) * 7919) % 3000,
        })),
      });
    }
    for (;;) {
      const some = await store.jobs.lease({ kind: "mail", max: 256, worker: "w", leaseMs: LEASE });
      if (some.length === 0) break;
      taken.push(...some.map(({ id }) => (Number(id.slice(1)) * 7919) % 3000));
    }
    assert.deepEqual(taken, Array.from({ length: 3000 }, (_, i) => i));
  });

  test("timers come when they are due, the earliest first, and go with their commit", async (scene) => {
    const { store, under } = scene, { clock } = under, ownership = await scene.own("e1"), now = clock.now();
    assert.equal(await store.timers.next(ownership), undefined);
    await scene.committed("e1", {
      timers: [
        { id: "c", at: now + 300, text: "C" },
        { id: "a", at: now + 100, text: "A" },
        { id: "b", at: now + 100.5, text: "B" },
        { id: "far", at: 8.64e15, text: "F" },
      ],
    });
    assert.equal(await store.timers.next(ownership), now + 100);
    assert.deepEqual(await store.timers.due(ownership, 9), []);
    await clock.advance(100);
    assert.deepEqual(
      (await store.timers.due(ownership, 9)).map(({ id, text, at, execId }) => [id, text, at, execId]),
      [
        ["a", "A", now + 100, "e1"],
      ],
    );
    assert.equal(await store.timers.next(ownership), now + 100.5, "b: never before its time");
    await clock.advance(300);
    assert.deepEqual((await store.timers.due(ownership, 1)).map(({ id }) => id), ["b"]);
    const [c] = await store.timers.due(ownership, 9);
    assert.equal(c!.id, "c");
    assert.deepEqual(await store.timers.due(ownership, 9), []);
    store.timers.release(ownership, c!);
    assert.deepEqual((await store.timers.due(ownership, 9)).map(({ id }) => id), ["c"]);
    let head = await scene.committed("e1", { clearTimers: ["a", "b", "nobody"] });
    assert.deepEqual(head.timers, { c: now + 300, far: 8.64e15 });
    head = await scene.committed("e1", { timers: [{ id: "c", at: now + 1000, text: "C2" }] });
    assert.equal(await store.timers.next(ownership), now + 1000, "set anew");
    await clock.advance(1000);
    assert.deepEqual((await store.timers.due(ownership, 9)).map(({ text }) => text), ["C2"]);
    assert.deepEqual((await scene.committed("e1", { clearTimers: "all" })).timers, {});
    assert.equal(await store.timers.next(ownership), undefined);
    assert.deepEqual([...(await scene.dump()).keys()].filter((key) => key.startsWith("t/")), []);
  });

  test("P2, P3: a timer that two owners fire leads to one commit", async (scene) => {
    const { store, under } = scene;
    await using other = await under.open(FRESH);
    for (let round = 0; round < 5; round++) {
      const execId = `e${round}`, mine = await scene.own(execId);
      await scene.committed(execId, { timers: [{ id: "t", at: under.clock.now(), text: "" }] });
      const [due] = await store.timers.due(mine, 5);
      assert.equal(due!.execId, execId);
      await under.clock.advance(LEASE);
      const theirs = (await other.partitions.acquire(mine.partition, "b", 0))!;
      const [also] = await other.timers.due(theirs, 5);
      assert.equal(also!.execId, execId, "the next owner hands it out again");
      const head = (await store.executions.head(execId))!, otherHead = (await other.executions.head(execId))!;
      const fired = { execId, events: '["fired"]', lastIndex: 2, clearTimers: ["t"] };
      const outcomes = await Promise.all([
        store.executions.commit({ ...fired, ownership: mine, head }),
        other.executions.commit({ ...fired, ownership: theirs, head: otherHead }),
      ]);
      assert.deepEqual(outcomes.map(({ kind }) => kind), ["fenced", "committed"]);
      assert.equal((await store.executions.log(execId)).length, 2);
      await other.partitions.release(theirs);
    }
  });

  test("the feed has every decision of a partition once, in order, without gaps", async (scene) => {
    const { store } = scene, { feed, partitions } = store;
    const ids = Array.from({ length: 40 }, (_, i) => `e${i}`);
    for (const id of ids) await scene.own(id);
    for (let round = 0; round < 3; round++) {
      await Promise.all(ids.map((id) => scene.committed(id, { note: `r${round}` })));
    }
    let total = 0;
    for (let partition = 0; partition < partitions.count; partition++) {
      const items = await feed.read(partition, 0);
      assert.deepEqual(items.map(({ position }) => position), [...items.keys()]);
      assert.equal(await feed.end(partition), items.length);
      for (let from = 0; from <= items.length; from++) {
        assert.deepEqual(await feed.read(partition, from, 3), items.slice(from, from + 3));
      }
      const seqs = new Map<string, number>();
      for (const { execId, seq, note } of items) {
        assert.equal(partitions.of(execId), partition);
        assert.equal(seq, (seqs.get(execId) ?? 0) + 1);
        assert.equal(note, `r${seq - 1}`);
        seqs.set(execId, seq);
      }
      total += items.length;
      await feed.trim(partition, items.length - 1);
      assert.deepEqual(await feed.read(partition, items.length - 1), items.slice(-1));
      assert.equal(await feed.end(partition), items.length);
    }
    assert.equal(total, 120);
    await scene.committed("e0");
    const partition = partitions.of("e0"), end = await feed.end(partition);
    assert.deepEqual((await feed.read(partition, end - 1)).map(({ position, seq }) => [position, seq]), [[
      end - 1,
      4,
    ]]);
  });

  test("the feed forgets the oldest, and says so to who asks for it", async (scene) => {
    await using store = await scene.under.open({ feedDecisions: 10 });
    const partition = store.partitions.of("e1");
    assert.deepEqual([await store.feed.begin(partition), await store.feed.read(partition, 0)], [0, []]);
    for (let i = 0; i < 25; i++) await scene.committed("e1");
    assert.equal((await store.sweep()).feed, 15);
    assert.deepEqual([await store.feed.begin(partition), await store.feed.end(partition)], [15, 25]);
    await assert.rejects(store.feed.read(partition, 14), code("feed_trimmed"));
    assert.deepEqual((await store.feed.read(partition, 15)).map(({ seq }) => seq), [
      16,
      17,
      18,
      19,
      20,
      21,
      22,
      23,
      24,
      25,
    ]);
    await scene.committed("e1");
    assert.equal((await store.feed.read(partition, 25))[0]!.seq, 26);
    assert.equal((await store.sweep()).feed, 1);
  });

  test("watches wake at once for what this process does, and after the poll interval else", async (scene) => {
    const { under } = scene;
    await using store = await under.open({ pollMs: 1000 });
    const ownership = (await store.partitions.acquire(store.partitions.of("e1"), "x", LEASE))!;
    using watches = new Watches(store, [
      "jobs:mail",
      `inbox:${ownership.partition}`,
      `timers:${ownership.partition}`,
      `feed:${ownership.partition}`,
      "exec:e1",
      "exec:e2",
    ]);
    await store.inbox.push([{ execId: "e1", id: "c", text: "" }]);
    assert.deepEqual(await watches.woken(), [`inbox:${ownership.partition}`]);
    const jobs = [{ id: "j", kind: "mail", text: "" }], timers = [{ id: "t", at: 0, text: "" }];
    const commit = { execId: "e1", ownership, events: "[1]", lastIndex: 1, summary: summary(), jobs, timers };
    assert.equal((await store.executions.commit(commit)).kind, "committed");
    assert.deepEqual(await watches.woken(), [
      "jobs:mail",
      `timers:${ownership.partition}`,
      `feed:${ownership.partition}`,
      "exec:e1",
    ]);
    assert.deepEqual(await watches.woken(), []);
    await under.clock.advance(1000);
    assert.equal((await watches.woken()).length, 6);
    const watch = store.watch(["exec:e9"]);
    const abort = new AbortController();
    const waiting = assert.rejects(watch.next(abort.signal), /enough/);
    abort.abort(new Error("enough"));
    await waiting;
    watch.close();
    await watch.next();
  });
}

/** Tells which of some topics have woken. */
class Watches implements Disposable {
  readonly #watches: { readonly topic: string; readonly watch: ReturnType<FlowStore["watch"]> }[];
  #woken = new Set<string>();

  constructor(store: FlowStore, topics: readonly Parameters<FlowStore["watch"]>[0][number][]) {
    this.#watches = topics.map((topic) => ({ topic, watch: store.watch([topic]) }));
    for (const { topic, watch } of this.#watches) this.#wait(topic, watch);
  }
  #wait(topic: string, watch: ReturnType<FlowStore["watch"]>): void {
    watch.next().then(() => {
      this.#woken.add(topic);
      if (!this.#closed) this.#wait(topic, watch);
    });
  }
  #closed = false;

  async woken(): Promise<string[]> {
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => queueMicrotask(() => resolve(undefined)));
    }
    const woken = this.#watches.map(({ topic }) => topic).filter((topic) => this.#woken.has(topic));
    this.#woken = new Set();
    return woken;
  }
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const { watch } of this.#watches) watch.close();
  }
}

function ownerTests(test: Test): void {
  test("P3: a partition has one owner, and who lost it commits nothing more", async (scene) => {
    const { store, under } = scene;
    await using other = await under.open(FRESH);
    const partition = store.partitions.of("e1");
    const mine = (await store.partitions.acquire(partition, "a", 1000))!;
    assert.equal(await other.partitions.acquire(partition, "b", 1000), undefined);
    await under.clock.advance(900);
    assert.equal(await store.partitions.renew(mine, 1000), true);
    await under.clock.advance(900);
    assert.equal(await other.partitions.acquire(partition, "b", 1000), undefined, "it was renewed");
    const head = await outcomeHead(store, mine, undefined);
    await under.clock.advance(100);
    const theirs = (await other.partitions.acquire(partition, "b", 1000))!;
    assert.equal(theirs.epoch, mine.epoch + 1);
    assert.equal(mine.lost, false, "nobody has told it");
    const commit = { execId: "e1", ownership: mine, head, events: "[2]", lastIndex: 2 };
    assert.equal((await store.executions.commit(commit)).kind, "fenced");
    assert.equal(mine.lost, true);
    assert.equal((await store.executions.commit(commit)).kind, "fenced");
    assert.equal(await store.partitions.renew(mine, 1000), false);
    for (
      const refused of [
        () => store.executions.delete(mine, "e1"),
        () => store.executions.putObject(mine, "e1", "o", "x"),
        () => store.executions.truncate(mine, "e1"),
      ]
    ) {
      if (refused.toString().includes("truncate")) await refused(); // nothing to do there
      else await assert.rejects(refused, code("fenced"));
    }
    assert.equal((await other.executions.log("e1")).length, 1);
    assert.deepEqual(await store.partitions.owners(), [
      { partition, owner: "b", epoch: theirs.epoch, until: theirs.until },
    ]);
    await other.partitions.release(theirs);
    const back = (await store.partitions.acquire(partition, "a", 1000))!;
    assert.equal(back.epoch, theirs.epoch + 1);
    const outcomes = await Promise.all([
      store.partitions.renew(back, 1000),
      store.partitions.renew(back, 2000),
    ]);
    assert.deepEqual(outcomes, [true, true]);
    const anew = (await store.partitions.acquire(partition, "a", 1000))!;
    assert.equal(back.lost, true, "the same owner, started anew");
    assert.equal((await store.executions.commit({ ...commit, ownership: back })).kind, "fenced");
    assert.equal((await store.executions.commit({ ...commit, ownership: anew })).kind, "committed");
  });

  test("of several that want a partition at once one gets it", async (scene) => {
    const { store, under } = scene;
    await using other = await under.open(FRESH);
    for (let partition = 0; partition < 8; partition++) {
      const got = await Promise.all(
        [store, other, store, other].map((from, i) => from.partitions.acquire(partition, `o${i}`, 1000)),
      );
      assert.equal(got.filter((owned) => owned !== undefined).length, 1);
    }
  });

  test("the number of partitions is fixed, and executions are spread over them", async (scene) => {
    const { store, under } = scene;
    assert.equal(store.partitions.count, 16);
    await assert.rejects(under.open({ partitions: 8 }), code("partitions_fixed"));
    await assert.rejects(under.open({ partitions: 0 }), code("invalid_option"));
    await using same = await under.open({ partitions: 16 });
    assert.equal(same.partitions.of("order-1"), store.partitions.of("order-1"));
    // Known values of FNV-1a.
    assert.equal(store.partitions.of("a"), 0xe40c292c % 16);
    assert.equal(store.partitions.of("foobar"), 0xbf9cf968 % 16);
    const counts = new Array<number>(16).fill(0);
    for (let i = 0; i < 16_000; i++) counts[store.partitions.of(`e-${i}`)]!++;
    assert(counts.every((count) => count > 700 && count < 1300), counts.join());
    await assert.rejects(store.partitions.acquire(16, "a", 1), RangeError);
  });
}

async function outcomeHead(store: FlowStore, ownership: Ownership, head: Head | undefined): Promise<Head> {
  const outcome = await store.executions.commit({
    execId: "e1",
    ownership,
    head,
    events: "[1]",
    lastIndex: 1,
    summary: summary(),
  });
  assert.equal(outcome.kind, "committed");
  return (outcome as { head: Head }).head;
}

function listTests(test: Test): void {
  const status = (i: number) => ["running", "waiting", "completed"][i % 3]!;
  const fill = async (scene: Scene, count: number): Promise<void> => {
    const ids = Array.from({ length: count }, (_, i) => `e${i}`);
    for (const id of ids) await scene.own(id);
    await Promise.all(ids.map((id, i) =>
      scene.committed(id, {
        summary: summary({
          flow: i % 2 === 0 ? "order" : "mail",
          status: status(i),
          createdAt: BEGIN + Math.floor(i / 4) * 1000,
          attrs: { n: String(i), city: i % 5 === 0 ? "Wien" : "São Paulo/" },
        }),
      })
    ));
  };
  const all = async (scene: Scene, query: Parameters<FlowStore["index"]["list"]>[0]): Promise<string[]> => {
    const found: string[] = [];
    let next = query;
    for (;;) {
      const { items, cursor } = await scene.store.index.list(next);
      assert(items.length <= (query.limit ?? 50));
      found.push(...items.map(({ execId }) => execId));
      if (cursor === undefined) return found;
      next = { ...query, cursor };
    }
  };

  test("lists: every condition, in both orders, page by page", async (scene) => {
    await fill(scene, 120);
    const number = (id: string) => Number(id.slice(1));
    const wanted = (fits: (i: number) => boolean, order: "newest" | "oldest" = "newest"): string[] => {
      const ids = Array.from({ length: 120 }, (_, i) => `e${i}`).filter((id) => fits(number(id)));
      const time = (id: string) => Math.floor(number(id) / 4);
      return ids.sort((a, b) => {
        const byTime = order === "newest" ? time(b) - time(a) : time(a) - time(b);
        const byId = a < b ? -1 : 1;
        return byTime !== 0 ? byTime : order === "newest" ? byId : -byId;
      });
    };
    for (const limit of [1000, 7, 1]) {
      assert.deepEqual(await all(scene, { limit }), wanted(() => true));
      assert.deepEqual(await all(scene, { limit, order: "oldest" }), wanted(() => true, "oldest"));
      assert.deepEqual(await all(scene, { limit, status: "waiting" }), wanted((i) => i % 3 === 1));
      assert.deepEqual(await all(scene, { limit, status: "completed" }), wanted((i) => i % 3 === 2));
      assert.deepEqual(
        await all(scene, { limit, flow: "mail", status: "completed" }),
        wanted((i) => i % 6 === 5),
      );
      assert.deepEqual(
        await all(scene, { limit, from: BEGIN + 5000, to: BEGIN + 9000 }),
        wanted((i) => i >= 20 && i < 36),
      );
      assert.deepEqual(
        await all(scene, { limit, from: BEGIN + 5000, to: BEGIN + 9000, order: "oldest" }),
        wanted((i) => i >= 20 && i < 36, "oldest"),
      );
      assert.deepEqual(
        await all(scene, { limit, attrs: [{ name: "city", op: "=", value: "São Paulo/" }] }),
        wanted((i) => i % 5 !== 0),
      );
      assert.deepEqual(
        await all(scene, {
          limit,
          attrs: [{ name: "city", op: "prefix", value: "W" }, { name: "n", op: ">=", value: "9" }, {
            name: "n",
            op: "<",
            value: "100.5",
          }],
        }),
        wanted((i) => i % 5 === 0 && i >= 9 && i <= 100),
      );
      assert.deepEqual(await all(scene, { limit, attrs: [{ name: "no", op: "!=", value: "x" }] }), []);
    }
    await assert.rejects(scene.store.index.list({ limit: 0 }), code("invalid_query"));
    await assert.rejects(scene.store.index.list({ cursor: "x" }), code("invalid_cursor"));
  });

  test("L2: pages neither repeat nor skip while executions come, change and go", async (scene) => {
    await fill(scene, 60);
    const found: string[] = [];
    for (let cursor: string | undefined, round = 0;; round++) {
      const page = await scene.store.index.list({ limit: 7, ...cursor === undefined ? {} : { cursor } });
      found.push(...page.items.map(({ execId }) => execId));
      await scene.committed(`new${round}`, { summary: summary({ createdAt: BEGIN + 100_000 + round }) });
      const some = (await scene.store.executions.head(`e${round}`))!;
      await scene.committed(`e${round}`, {
        summary: { ...some.summary, status: "failed", updatedAt: BEGIN + 5 },
      });
      if (page.cursor === undefined) break;
      cursor = page.cursor;
    }
    assert.deepEqual(new Set(found.filter((id) => !id.startsWith("new"))).size, 60);
    assert.equal(found.length, new Set(found).size);
    assert.equal((await all(scene, { status: "failed" })).length, 9);
  });

  test("L1: a list shows what is, with the commit that made it so", async (scene) => {
    await scene.committed("e1", { summary: summary({ attrs: { a: "1" } }) });
    const list = async (query: Parameters<FlowStore["index"]["list"]>[0]) =>
      (await scene.store.index.list(query)).items;
    assert.deepEqual((await list({ status: "running" })).map(({ execId, seq }) => [execId, seq]), [[
      "e1",
      1,
    ]]);
    await scene.committed("e1", {
      summary: summary({ status: "completed", attrs: { a: "2" }, endedAt: BEGIN + 9 }),
    });
    assert.deepEqual(await list({ status: "running" }), []);
    assert.deepEqual(await list({ attrs: [{ name: "a", op: "=", value: "1" }] }), []);
    assert.deepEqual(
      (await list({ attrs: [{ name: "a", op: "=", value: "2" }] }))[0]!.summary.endedAt,
      BEGIN + 9,
    );
    await scene.committed("e1");
    assert.deepEqual((await list({ status: "completed" }))[0]!.seq, 2 + 1);
  });
}

function sideTests(test: Test): void {
  test("definitions never change; the newest is the one stored last", async (scene) => {
    const { definitions } = scene.store, large = `{"name":"${"x".repeat(200_000)}"}`;
    await definitions.put({ name: "order", hash: "h1", text: "one" });
    await definitions.put({ name: "order", hash: "h2", text: large });
    assert.equal((await definitions.get("order"))!.text, large);
    await definitions.put({ name: "order", hash: "h1", text: "one" });
    await assert.rejects(
      definitions.put({ name: "order", hash: "h1", text: "two" }),
      code("definition_collision"),
    );
    assert.deepEqual(await definitions.get("order"), { name: "order", hash: "h1", text: "one" });
    assert.equal((await definitions.get("order", "h2"))!.text, large);
    assert.equal(await definitions.get("order", "h3"), undefined);
    assert.equal(await definitions.get("mail"), undefined);
    assert.deepEqual(await definitions.list(), [
      { name: "order", hash: "h1", latest: true },
      { name: "order", hash: "h2", latest: false },
    ]);
    await Promise.all(
      Array.from({ length: 5 }, (_, i) => definitions.put({ name: "many", hash: `h${i}`, text: `${i}` })),
    );
    assert.equal((await definitions.list()).filter(({ latest }) => latest).length, 2);
    for (const { name, hash } of await definitions.list()) {
      assert.equal(await definitions.delete(name, hash), true);
    }
    assert.equal(await definitions.delete("order", "h1"), false);
    assert.deepEqual([...(await scene.dump()).keys()], []);
  });

  test("schedules are changed by who has seen the newest, and send what they start with that", async (scene) => {
    const { store } = scene, { schedules } = store, ownership = await scene.own("e1");
    assert.equal(await schedules.write("daily", "v1", null), true);
    assert.equal(await schedules.write("daily", "v2", null), false);
    const { version } = (await schedules.get("daily"))!;
    const send = [{ execId: "e1", id: "start", text: "go" }];
    const fired = await Promise.all(
      [1, 2, 3].map((i) => schedules.write("daily", `fired ${i}`, version, send)),
    );
    assert.equal(fired.filter(Boolean).length, 1);
    assert.equal((await store.inbox.pull(ownership, 9)).length, 1, "an occurrence starts once");
    assert.equal(await schedules.write("ü/2", "x"), true);
    assert.deepEqual((await schedules.list()).map(({ name }) => name).sort(), ["daily", "ü/2"]);
    assert.equal(await schedules.write("daily", null), true);
    assert.equal(await schedules.get("daily"), undefined);
  });

  test("results are found until they expire, and swept then", async (scene) => {
    const { store, under } = scene, now = under.clock.now();
    await scene.committed("e1", { cache: [{ key: "k", text: "one", expiresAt: now + 1000 }] });
    assert.equal(await store.cache.get("k"), "one");
    await scene.committed("e1", { cache: [{ key: "k", text: "x".repeat(99_000), expiresAt: now + 5000 }] });
    await under.clock.advance(1000);
    assert.equal((await store.sweep()).cache, 0);
    assert.equal((await store.cache.get("k"))!.length, 99_000);
    await under.clock.advance(4000);
    assert.equal(await store.cache.get("k"), undefined);
    assert.equal((await store.sweep()).cache, 1);
    assert.deepEqual([...(await scene.dump()).keys()].filter((key) => /^(r|b)/.test(key)), []);
  });

  test("dead letters: newest first, page by page; sent again at most once; swept after their time", async (scene) => {
    const { store, under } = scene, { deadLetters } = store, ownership = await scene.own("e1");
    for (let i = 0; i < 5; i++) {
      await deadLetters.add({ kind: "cmd", key: `e${i}`, text: `text ${i}` });
      await under.clock.advance(10);
    }
    const first = await deadLetters.list({ limit: 3 });
    assert.deepEqual(first.items.map(({ text }) => text), ["text 4", "text 3", "text 2"]);
    const second = await deadLetters.list({ limit: 3, cursor: first.cursor! });
    assert.deepEqual([second.items.map(({ text }) => text), second.cursor], [
      ["text 1", "text 0"],
      undefined,
    ]);
    const { id } = first.items[0]!;
    assert.deepEqual(await deadLetters.get(id), {
      id,
      kind: "cmd",
      key: "e4",
      text: "text 4",
      time: BEGIN + 40,
    });
    const send = [{ execId: "e1", id: "again", text: "" }];
    const removed = await Promise.all([1, 2].map(() => deadLetters.remove(id, send)));
    assert.deepEqual(removed.sort(), [false, true]);
    assert.equal((await store.inbox.pull(ownership, 9)).length, 1);
    await under.clock.advance("30d");
    assert.equal((await store.sweep()).deadLetters, 4);
    assert.deepEqual((await deadLetters.list()).items, []);
  });

  test("parked executions are listed until they are let go", async (scene) => {
    const { quarantines } = scene.store;
    await scene.committed("e1", { quarantine: { seq: 1, reason: "bad event" } });
    await scene.committed("e2", { quarantine: { seq: 1, reason: "worse" } });
    assert.deepEqual(await quarantines.list(), [
      { execId: "e1", seq: 1, reason: "bad event" },
      { execId: "e2", seq: 1, reason: "worse" },
    ]);
    await scene.committed("e1", { quarantine: null });
    assert.equal(await quarantines.get("e1"), undefined);
  });

  test("a codec sees everything at rest, and nothing but ids is readable without it", async (scene) => {
    const { under } = scene, secret = "geheim";
    const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0x5a);
    for (const isAsync of [false, true]) {
      const turn = (bytes: Uint8Array) => isAsync ? Promise.resolve(flip(bytes)) : flip(bytes);
      await using store = await under.open({ ...FRESH, codec: { encode: turn, decode: turn } });
      const execId = `e${isAsync}`,
        ownership = (await store.partitions.acquire(store.partitions.of(execId), "c", 0))!;
      await store.inbox.push([{ execId, id: "c", text: secret }]);
      const [command] = await store.inbox.pull(ownership, 1);
      assert.equal(command!.text, secret);
      const outcome = await store.executions.commit({
        execId,
        ownership,
        events: `["${secret}"]`,
        lastIndex: 1,
        summary: summary({ attrs: { city: secret }, more: { secret } }),
        jobs: [{ id: "j", kind: "mail", text: secret }],
        timers: [{ id: "t", at: 0, text: secret }],
        send: [{ execId, id: "d", text: secret.repeat(20_000) }],
        snapshot: secret.repeat(20_000),
        cache: [{ key: "k", text: secret, expiresAt: BEGIN * 2 }],
        deadLetters: [{ kind: "cmd", key: "k", text: secret }],
        quarantine: { seq: 1, reason: secret },
        note: secret,
      });
      assert.equal(outcome.kind, "committed");
      await store.definitions.put({ name: "n", hash: "h", text: secret });
      await store.schedules.write("s", secret);
      for await (const page of cellsIn(under.cells(), { from: "", to: "~" })) {
        for (const { key, bytes } of page) {
          assert(!key.includes(secret), key);
          assert(!new TextDecoder("latin1").decode(bytes).includes(secret), key);
        }
      }
      const found = await store.index.list({ attrs: [{ name: "city", op: "=", value: secret }] });
      assert(found.items.some((item) => item.execId === execId));
      assert.equal((await store.executions.snapshot(execId))!.text, secret.repeat(20_000));
      assert.equal(
        (await store.jobs.lease({ kind: "mail", max: 1, worker: "w", leaseMs: LEASE }))[0]!.text,
        secret,
      );
      assert.equal((await store.feed.read(ownership.partition, 0)).at(-1)!.note, secret);
      assert.equal((await store.executions.log(execId))[0]!.events, `["${secret}"]`);
      await store.executions.delete(ownership, execId);
    }
  });
}

function deleteTests(test: Test): void {
  test("P7: a deletion leaves nothing behind, wherever the process ends", async (scene) => {
    const { store, under } = scene;
    await scene.committed("e-other", { jobs: [{ id: "j", kind: "mail", text: "" }] });
    const build = async (from: FlowStore, ownership: Ownership): Promise<void> => {
      const first = await from.executions.commit({
        execId: "e1",
        ownership,
        events: `["${"x".repeat(300_000)}"]`,
        lastIndex: 1,
        summary: summary({ attrs: { a: "1" } }),
        snapshot: "y".repeat(100_000),
        dedup: ["one", "two"],
        jobs: Array.from({ length: 300 }, (_, i) => ({ id: `j${i}`, kind: "mail", text: "" })),
        timers: Array.from({ length: 300 }, (_, i) => ({ id: `t${i}`, at: BEGIN + i, text: "" })),
        quarantine: { seq: 1, reason: "bad" },
      });
      assert.equal(first.kind, "committed");
      await from.executions.putObject(ownership, "e1", "seg.1", "z".repeat(100_000));
      await from.executions.putObject(ownership, "e1", "seg.1", "shorter");
      await from.executions.putObject(ownership, "e1", "seg.2", "z".repeat(100_000));
    };
    const before = await scene.dump();
    const all = await scene.own("e1");
    await build(store, all);
    assert((await scene.dump()).size > before.size + 600);
    assert.equal(await store.executions.delete(all, "e1"), true);
    assert.equal(await store.executions.delete(all, "e1"), false);
    assert.deepEqual(await scene.dump(), before);
    await store.partitions.release(all);
    for (let n = 1, done = false; !done; n++) {
      let from = Infinity, cells: FaultyCells | undefined;
      const dying = await under.open({
        ...FRESH,
        wrap: (inner) =>
          cells = new FaultyCells(
            inner,
            (call) => call.op === "commit" && call.n === from + n ? "crash-after" : undefined,
          ),
      });
      const ownership = (await dying.partitions.acquire(store.partitions.of("e1"), "a", 0))!;
      await build(dying, ownership);
      from = cells!.commits;
      try {
        await dying.executions.delete(ownership, "e1");
        done = true;
      } catch (error) {
        code("crashed")(error);
      }
      if (!cells!.crashed) await dying[Symbol.asyncDispose]();
      await using next = await under.open(FRESH);
      if (!done) assert.equal(await next.executions.head("e1"), undefined, "it is hidden at once");
      assert.deepEqual((await next.index.list({ flow: "order" })).items.map(({ execId }) => execId), [
        "e-other",
      ]);
      const owned = (await next.partitions.acquire(next.partitions.of("e1"), "b", 0))!;
      assert.deepEqual(await scene.dump(), before, `commit ${n}`);
      await next.partitions.release(owned);
      assert(n < 50);
    }
  });

  test("the id of a deleted execution is free again, at once", async (scene) => {
    const { store } = scene;
    await scene.committed("e1", { dedup: ["start.e1"], timers: [{ id: "t", at: 0, text: "old" }] });
    await store.executions.delete(await scene.own("e1"), "e1");
    const head = await scene.committed("e1", { dedup: ["start.e1"] });
    assert.deepEqual([head.seq, head.timers], [1, {}]);
    assert.deepEqual(await store.timers.due(await scene.own("e1"), 9), []);
    assert.equal((await store.executions.log("e1")).length, 1);
  });
}
