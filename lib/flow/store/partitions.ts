/**
 * Partitions: each has one owner at a time, and an epoch that grows with every owner.
 *
 * O1 Taking over writes owner and epoch at once, and only where the owner's time is over; a renewal does not touch the epoch. So
 *    commits of the owner go on while it renews, and fail from the moment another has taken over.
 *
 * @module
 */
import { cellsIn } from "./cells.ts";
import type { Core } from "./core.ts";
import type { Logs } from "./executions.ts";
import * as keys from "./keys.ts";
import { Owned, ownedOf } from "./owned.ts";
import type { OwnerEntry, Ownership, Partitions } from "./port.ts";

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** FNV-1a, 32 bits, of a text of ASCII characters. */
export function fnv1a(text: string): number {
  let hash = FNV_OFFSET;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

type StoredOwner = readonly [owner: string, epoch: number, until: number];

/** See {@link Partitions}. */
export class KeptPartitions implements Partitions {
  readonly #core: Core;
  readonly #logs: Logs;
  /** What this process has. */
  readonly #owned = new Map<number, Owned>();

  constructor(core: Core, logs: Logs) {
    this.#core = core;
    this.#logs = logs;
  }

  get count(): number {
    return this.#core.settings.partitions;
  }

  of(execId: string): number {
    return fnv1a(execId) % this.count;
  }

  /** What this process has of a partition. */
  owned(partition: number): Owned | undefined {
    const owned = this.#owned.get(partition);
    return owned?.lost === false ? owned : undefined;
  }

  async acquire(partition: number, owner: string, leaseMs: number): Promise<Ownership | undefined> {
    if (!Number.isInteger(partition) || partition < 0 || partition >= this.count) {
      throw new RangeError(`there is no partition ${partition}: there are ${this.count}`);
    }
    const core = this.#core;
    const [own, epochCell] = await core.cells.get([keys.owner(partition), keys.epoch(partition)]);
    const now = core.clock.now(),
      [holder, epoch, until] = own === undefined
        ? ["", 0, 0] as StoredOwner
        : await core.json(own) as StoredOwner;
    if (holder !== owner && until > now) return undefined;
    const mine: StoredOwner = [owner, epoch + 1, now + leaseMs];
    const version = await core.writer.submit({
      checks: [
        { key: keys.owner(partition), version: own?.version ?? null },
        { key: keys.epoch(partition), version: epochCell?.version ?? null },
      ],
      writes: [
        { key: keys.owner(partition), bytes: await core.packJson(mine, "an owner") },
        { key: keys.epoch(partition), bytes: new TextEncoder().encode(String(mine[1])) },
      ],
    });
    if (version === undefined) return undefined;
    const before = this.#owned.get(partition);
    if (before !== undefined) before.lost = true;
    const owned = new Owned(core, partition, owner, mine[1], mine[2], version);
    await this.#logs.recover(owned);
    this.#owned.set(partition, owned);
    return owned;
  }

  async renew(ownership: Ownership, leaseMs: number): Promise<boolean> {
    const owned = ownedOf(ownership);
    if (owned.lost) return false;
    if (!await this.#write(owned, this.#core.clock.now() + leaseMs)) return false;
    for (const execId of owned.unfinished) await this.#logs.finish(owned, execId);
    return true;
  }

  async release(ownership: Ownership): Promise<void> {
    const owned = ownedOf(ownership);
    if (owned.lost) return;
    await this.#write(owned, 0);
    owned.lost = true;
  }

  /** One at a time: a second one waits for the first. */
  #write(owned: Owned, until: number): Promise<boolean> {
    return owned.writing = owned.writing.then(
      () => this.#writeOwner(owned, until),
      () => this.#writeOwner(owned, until),
    );
  }

  async #writeOwner(owned: Owned, until: number): Promise<boolean> {
    const { partition, owner, epoch } = owned, key = keys.owner(partition);
    const stored: StoredOwner = [owner, epoch, until], bytes = await this.#core.packJson(stored, "an owner");
    for (;;) {
      const version = await this.#core.writer.submit({
        checks: [owned.fence, { key, version: owned.version }],
        writes: [{ key, bytes }],
      });
      if (version !== undefined) {
        owned.version = version;
        owned.until = until;
        return true;
      }
      // Only a new owner writes there; or this one did, and did not hear of it.
      const cell = await this.#core.one(key);
      const isMine = cell !== undefined && (await this.#core.json(cell) as StoredOwner)[1] === epoch;
      if (!isMine || await owned.isLost(this.#core)) {
        owned.lost = true;
        return false;
      }
      owned.version = cell.version;
    }
  }

  async owners(): Promise<readonly OwnerEntry[]> {
    const owners: OwnerEntry[] = [];
    for await (const page of cellsIn(this.#core.cells, keys.OWNERS)) {
      for (const cell of page) {
        const [owner, epoch, until] = await this.#core.json(cell) as StoredOwner;
        owners.push({ partition: parseInt(keys.lastPart(cell.key), 36), owner, epoch, until });
      }
    }
    return owners;
  }
}
