/**
 * Logs of executions: reading, committing decisions, deleting.
 *
 * X1 A commit checks the head it was decided on, and the epoch of the partition.
 * X2 A decision with more effects than fit one operation commits with a list of them, and they are written after it, slice by
 *    slice, each once. Nobody decides anything else in that execution before they are.
 * X3 A deletion first hides the execution, then removes what it has, its head last. So it is found until it is done.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { type OnceOutcome, removeAll, submit, submitOnce } from "./ahead.ts";
import { removing } from "./bodies.ts";
import { cellsIn, type Check, type Write } from "./cells.ts";
import type { Core } from "./core.ts";
import { feedItem } from "./feed.ts";
import { blobOwner, decodeHead, encodeHead, headOf, indexKeys, LogHead } from "./heads.ts";
import type { PackedCommand } from "./inbox.ts";
import { leasedJob, type Queues } from "./jobs.ts";
import * as keys from "./keys.ts";
import { fenced, type Owned, ownedOf, refused } from "./owned.ts";
import { type Plan, planCommit } from "./plan.ts";
import type { Commit, CommitOutcome, Executions, Head, Ownership, Snapshot, StoredDecision } from "./port.ts";
import { decodeWrites, encodeWrites, inSlices, sliced } from "./slices.ts";
import { fits } from "./writer.ts";

/** Most characters of a page of a log, unless one decision has more. */
const MOST_PAGE = 8_000_000;
/** So many writes fit one operation, however large each is. */
const SURELY_FITS = 12;

/** What commits need to know of the rest of the store. */
export interface Neighbours {
  readonly queues: Queues;
  partitionOf(execId: string): number;
  /** Commands were stored, by one operation. */
  stored(commands: readonly PackedCommand[], version: string): void;
  /** Commands were stored, piece by piece. */
  storedSomehow(partitions: Iterable<number>): void;
}

/** See {@link Executions}. */
export class Logs implements Executions {
  readonly #core: Core;
  readonly #neighbours: Neighbours;

  constructor(core: Core, neighbours: Neighbours) {
    this.#core = core;
    this.#neighbours = neighbours;
  }

  async head(execId: string): Promise<Head | undefined> {
    return (await this.heads([execId]))[0];
  }

  async heads(execIds: readonly string[]): Promise<readonly (Head | undefined)[]> {
    const cells = await this.#core.cells.get(execIds.map(keys.head));
    return await Promise.all(cells.map(async (cell, i) => {
      if (cell === undefined) return undefined;
      const head = await decodeHead(this.#core.bodies, execIds[i]!, cell);
      return head.record.deleting === undefined ? head : undefined;
    }));
  }

  async commit(commit: Commit): Promise<CommitOutcome> {
    const core = this.#core, owned = ownedOf(commit.ownership), head = headOf(commit.head);
    if (owned.lost) return { kind: "fenced" };
    await this.#finishIfNeeded(owned, commit.execId);
    const plan = await this.#plan(commit, head, owned, true);
    const checks: Check[] = [owned.fence, { key: keys.head(commit.execId), version: head?.version ?? null }];
    const lane = commit.events === undefined ? {} : {
      lane: { lane: owned.lane, item: feedItem(commit.execId, (head?.seq ?? 0) + 1, commit.note) },
    };
    const once = (commit.dedup ?? []).map((id) => [commit.execId, id] as const);
    const writes = [...plan.decided, ...plan.effects];
    const memories = once.flatMap(([exec, id]) => {
      const key = keys.remembered(exec, id);
      return [{ key, bytes: null }, { key: keys.rememberedUntil(0, key), bytes: null }];
    });
    const isSmall = writes.length <= SURELY_FITS && memories.length <= SURELY_FITS;
    if (!isSmall && !fits({ checks, writes: [...writes, ...memories], ...lane })) {
      return await this.#commitInPieces(commit, head, owned, checks, once, lane);
    }
    const outcome = await this.#sure(owned, plan, () => {
      return submitOnce(core, once, { checks, writes, packed: plan.packed, decision: true, ...lane });
    });
    if (outcome.kind !== "committed") return await this.#refused(commit, owned, outcome);
    this.#tell(owned, commit, plan, outcome.version);
    const leased = plan.jobs.filter(({ record }) => record.worker !== "");
    return {
      kind: "committed",
      head: headBehind(commit.execId, head, plan, outcome.version),
      leased: leased.map(({ key, record }) => leasedJob({ key, record, version: outcome.version })),
    };
  }

  #plan(commit: Commit, head: LogHead | undefined, owned: Owned, leases: boolean): Promise<Plan> {
    const { partitionOf } = this.#neighbours;
    return planCommit(this.#core, commit, head, owned.partition, partitionOf, leases);
  }

  async #commitInPieces(
    commit: Commit,
    head: LogHead | undefined,
    owned: Owned,
    checks: readonly Check[],
    once: readonly (readonly [string, string])[],
    lane: Partial<Pick<Parameters<typeof submit>[1], "lane">>,
  ): Promise<CommitOutcome> {
    const core = this.#core, { execId } = commit;
    // A lease would run while slices are still written, and its time with it.
    const plan = await this.#plan(commit, head, owned, false);
    const intent = core.newId(), slices = sliced(plan.effects, true);
    const marker = { key: keys.unfinished(owned.partition, execId), bytes: new TextEncoder().encode(intent) };
    owned.unfinished.add(execId); // it may be committed, whatever the answer
    const outcome = await this.#sure(owned, plan, () => {
      return submitOnce(core, once, {
        checks,
        writes: [...plan.decided, marker],
        packed: plan.packed,
        hidden: {
          writes: slices.map((slice, n) => ({
            key: keys.slice(execId, intent, n),
            bytes: encodeWrites(slice),
          })),
          range: keys.slicesOf(execId, intent),
        },
        decision: true,
        ...lane,
      });
    });
    if (outcome.kind !== "committed") return await this.#refused(commit, owned, outcome);
    await this.finish(owned, execId);
    this.#tellSomehow(owned, commit, plan);
    return { kind: "committed", head: headBehind(execId, head, plan, outcome.version), leased: [] };
  }

  /**
   * Where it is not known, or not told, what was committed, what this process knows of queues and timers may
   * be out of date.
   */
  async #sure(owned: Owned, plan: Plan, write: () => Promise<OnceOutcome>): Promise<OnceOutcome> {
    let outcome: OnceOutcome | undefined;
    try {
      return outcome = await write();
    } finally {
      if (outcome?.kind !== "committed") this.#forget(owned, plan);
    }
  }

  #forget(owned: Owned, plan: Plan): void {
    owned.due.forget();
    owned.mailbox.forget();
    this.#neighbours.storedSomehow(new Set(plan.sent.map(({ partition }) => partition)));
    this.#neighbours.queues.changed(
      new Set([...plan.jobs.map(({ record }) => record.kind), ...plan.removedJobs.map(({ kind }) => kind)]),
    );
    this.#core.wakeups.notify(`timers:${owned.partition}`);
  }

  async #refused(
    commit: Commit,
    owned: Owned,
    outcome: { readonly kind: "duplicate"; readonly index: number } | { readonly kind: "conflict" },
  ): Promise<CommitOutcome> {
    if (await owned.isLost(this.#core)) return { kind: "fenced" };
    if (outcome.kind === "duplicate") return { kind: "duplicate", id: commit.dedup![outcome.index]! };
    if (commit.head === undefined) await this.#finishDeletion(owned, commit.execId); // one that was interrupted is in the way
    return { kind: "conflict" };
  }

  /** Tells whoever waits. */
  #tell(owned: Owned, { command, execId, events }: Commit, plan: Plan, version: string): void {
    const { queues, stored } = this.#neighbours;
    for (const { kind, key } of plan.removedJobs) queues.removed(kind, key);
    for (const { key, record } of plan.jobs) queues.queued(key, record, version);
    for (const { key, at } of plan.clearedTimers) owned.due.cleared(key, at);
    for (const { at } of plan.timers) owned.due.set(at);
    if (command !== undefined) owned.mailbox.removed(command.key);
    if (plan.sent.length > 0) stored(plan.sent, version);
    if (events !== undefined) this.#core.wakeups.notify(`exec:${execId}`);
  }

  /** {@link #tell} where cells were written by several operations. */
  #tellSomehow(owned: Owned, { command, execId }: Commit, plan: Plan): void {
    const { queues, storedSomehow } = this.#neighbours;
    for (const { kind, key } of plan.removedJobs) queues.removed(kind, key);
    queues.changed(new Set(plan.jobs.map(({ record }) => record.kind)));
    for (const { key, at } of plan.clearedTimers) owned.due.cleared(key, at);
    for (const { at } of plan.timers) owned.due.set(at);
    if (command !== undefined) owned.mailbox.removed(command.key);
    storedSomehow(new Set(plan.sent.map(({ partition }) => partition)));
    this.#core.wakeups.notify(`exec:${execId}`);
  }

  async #finishIfNeeded(owned: Owned, execId: string): Promise<void> {
    if (owned.unfinished.has(execId)) await this.finish(owned, execId);
  }

  /** Writes the effects of the last commit, as far as they are missing (X2). */
  async finish(owned: Owned, execId: string): Promise<void> {
    const { cells, writer } = this.#core, key = keys.unfinished(owned.partition, execId);
    const [marker] = await cells.get([key]);
    if (marker !== undefined) {
      const intent = new TextDecoder().decode(marker.bytes);
      for await (const page of cellsIn(cells, keys.slicesOf(execId, intent), 16)) {
        for (const { key, bytes, version } of page) {
          const writes: Write[] = [...decodeWrites(bytes), { key, bytes: null }];
          const done = await writer.submit({ checks: [owned.fence, { key, version }], writes });
          if (done === undefined && await owned.isLost(this.#core)) throw fenced(owned);
        }
      }
      const done = await writer.submit({
        checks: [owned.fence, { key, version: marker.version }],
        writes: [{ key, bytes: null }],
      });
      if (done === undefined && await owned.isLost(this.#core)) throw fenced(owned);
    }
    if (owned.unfinished.delete(execId)) {
      owned.due.forget();
      this.#core.wakeups.notify(`timers:${owned.partition}`);
    }
  }

  /** Takes up what was left half done in a partition. */
  async recover(owned: Owned): Promise<void> {
    const { cells } = this.#core, { partition } = owned;
    for await (const page of cellsIn(cells, keys.unfinishedOf(partition))) {
      for (const { key } of page) await this.finish(owned, keys.lastPart(key));
    }
    for await (const page of cellsIn(cells, keys.deletionsOf(partition))) {
      for (const { key } of page) await this.#finishDeletion(owned, keys.lastPart(key));
    }
  }

  async log(execId: string, from?: number, limit = 256): Promise<readonly StoredDecision[]> {
    const { cells, bodies } = this.#core;
    const first = Math.max(from ?? 1, (await this.head(execId))?.firstSeq ?? 1);
    const range = { from: keys.events(execId, first), to: keys.eventsOf(execId).to };
    const decisions: StoredDecision[] = [];
    let size = 0;
    for (const { key, bytes } of await cells.list(range, limit)) {
      const events = await bodies.unpack(bytes);
      decisions.push({ seq: keys.numberOf(keys.lastPart(key)), events });
      size += events.length;
      if (size > MOST_PAGE) break;
    }
    return decisions;
  }

  async snapshot(execId: string): Promise<Snapshot | undefined> {
    const cell = await this.#core.one(keys.snapshot(execId));
    if (cell === undefined) return undefined;
    const stored = await this.#core.bodies.unpack(cell.bytes), end = stored.indexOf("\n");
    return { seq: Number(stored.slice(0, end)), text: stored.slice(end + 1) };
  }

  async truncate(ownership: Ownership, execId: string): Promise<void> {
    const owned = ownedOf(ownership), { cells, bodies, writer } = this.#core;
    const first = (await this.head(execId))?.firstSeq ?? 1;
    const range = { from: keys.eventsOf(execId).from, to: keys.events(execId, first) };
    for await (const page of cellsIn(cells, range)) {
      // A cell that names parts goes behind them, so that it is found again.
      const writes = page.flatMap(({ key, bytes }): Write[] => [
        ...removing(bodies.blobOf(bytes)),
        { key, bytes: null },
      ]);
      if (!await inSlices(writer, writes, [owned.fence])) {
        throw await refused(this.#core, owned, `execution ${execId}`);
      }
    }
  }

  async delete(ownership: Ownership, execId: string): Promise<boolean> {
    const core = this.#core, owned = ownedOf(ownership);
    await this.#finishIfNeeded(owned, execId);
    const head = headOf(await this.head(execId));
    if (head === undefined) return await this.#finishDeletion(owned, execId) && false;
    const packed = await core.bodies.pack(encodeHead({ ...head.record, deleting: true }), blobOwner(execId));
    const hidden = await submit(core, {
      checks: [owned.fence, { key: keys.head(execId), version: head.version }],
      writes: [
        { key: keys.head(execId), bytes: packed.bytes },
        { key: keys.deletion(owned.partition, execId), bytes: new Uint8Array() },
        ...indexKeys(execId, head.summary, core.sealed).map((key) => ({ key, bytes: null })),
      ],
      packed: [packed],
    });
    if (hidden === undefined) throw await refused(core, owned, `execution ${execId}`);
    await this.#finishDeletion(owned, execId);
    core.wakeups.notify(`exec:${execId}`);
    return true;
  }

  /** Removes what an execution has that is being deleted (X3). False: it is not. */
  async #finishDeletion(owned: Owned, execId: string): Promise<boolean> {
    const core = this.#core, { partition, fence } = owned, checks = [fence];
    const [marker, cell] = await core.cells.get([keys.deletion(partition, execId), keys.head(execId)]);
    if (marker === undefined) return false;
    if (cell !== undefined) {
      const { record } = await decodeHead(core.bodies, execId, cell);
      const jobs = Object.entries(record.jobs).map(([id, place]) => ({
        key: keys.job(execId, id, ...place),
        kind: place[0],
      }));
      const timers = Object.entries(record.timers).map(([id, at]) => ({
        key: keys.timer(partition, at, execId, id),
        at,
      }));
      const own = [...jobs, ...timers].map(({ key }) => ({ key, bytes: null }));
      if (!await inSlices(core.writer, own, checks)) throw await refused(core, owned, `execution ${execId}`);
      for (const { kind, key } of jobs) this.#neighbours.queues.removed(kind, key);
      for (const { key, at } of timers) owned.due.cleared(key, at);
    }
    for await (const page of cellsIn(core.cells, keys.rememberedOf(execId))) {
      const writes = page.flatMap(({ key, bytes }) => [
        { key: keys.rememberedUntil(Number(new TextDecoder().decode(bytes)), key), bytes: null },
        { key, bytes: null },
      ]);
      await inSlices(core.writer, writes, checks);
    }
    const ranges = [keys.eventsOf, keys.objectsOf, keys.slicesOfExecution, keys.partsOfExecution];
    for (const range of ranges) await removeAll(core, range(execId), checks);
    const last = [
      keys.snapshot(execId),
      keys.quarantine(execId),
      keys.unfinished(partition, execId),
      keys.head(execId),
      keys.deletion(partition, execId),
    ];
    const done = await core.writer.submit({ checks, writes: last.map((key) => ({ key, bytes: null })) });
    if (done === undefined) throw await refused(core, owned, `execution ${execId}`);
    return true;
  }

  async putObject(ownership: Ownership, execId: string, name: string, text: string): Promise<void> {
    const core = this.#core, owned = ownedOf(ownership), key = keys.object(execId, name);
    const before = await core.one(key);
    if (decodeURIComponent(keys.lastPart(key)) !== name) {
      throw new MailerError(
        "invalid_name",
        `flows: the name ${JSON.stringify(name)} of an object is too long`,
      );
    }
    const packed = await core.bodies.pack(text, blobOwner(execId));
    const done = await submit(core, {
      checks: [owned.fence, { key, version: before?.version ?? null }],
      writes: [{ key, bytes: packed.bytes }],
      packed: [packed],
    });
    if (done === undefined) throw await refused(core, owned, `object ${name} of execution ${execId}`);
    if (before !== undefined) await inSlices(core.writer, removing(core.bodies.blobOf(before.bytes)));
  }

  async object(execId: string, name: string): Promise<string | undefined> {
    const cell = await this.#core.one(keys.object(execId, name));
    return cell && await this.#core.bodies.unpack(cell.bytes);
  }

  async deleteObject(ownership: Ownership, execId: string, name: string): Promise<void> {
    const owned = ownedOf(ownership), key = keys.object(execId, name), before = await this.#core.one(key);
    if (before === undefined) return;
    const writes: Write[] = [...removing(this.#core.bodies.blobOf(before.bytes)), { key, bytes: null }];
    if (!await inSlices(this.#core.writer, writes, [owned.fence])) {
      throw await refused(this.#core, owned, `object ${name} of execution ${execId}`);
    }
  }

  async objects(execId: string): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const page of cellsIn(this.#core.cells, keys.objectsOf(execId))) {
      for (const { key } of page) names.push(decodeURIComponent(keys.lastPart(key)));
    }
    return names;
  }
}

function headBehind(execId: string, head: LogHead | undefined, plan: Plan, version: string): LogHead {
  if (plan.head === undefined) return head!;
  return new LogHead(execId, plan.head.record, version, plan.head.packed.blob);
}
