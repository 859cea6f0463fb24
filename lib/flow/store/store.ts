/**
 * The store, whatever it lies in.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { sweepAhead } from "./ahead.ts";
import type { Cells } from "./cells.ts";
import { type Core, openCore } from "./core.ts";
import { Logs } from "./executions.ts";
import { KeptFeed } from "./feed.ts";
import { Inboxes, type PackedCommand } from "./inbox.ts";
import { Queues } from "./jobs.ts";
import { Lists } from "./lists.ts";
import { KeptPartitions } from "./partitions.ts";
import type { FlowStore, FlowStoreOptions, StoreStats, Swept, Topic, Watch } from "./port.ts";
import { KeptDefinitions, KeptSchedules } from "./registry.ts";
import {
  KeptDeadLetters,
  KeptQuarantines,
  KeptResults,
  sweepLetters,
  sweepRemembered,
  sweepResults,
} from "./shelf.ts";
import { KeptTimers } from "./timers.ts";

/** What a sweep looks at, of each kind. */
const SWEEP = 500;
/** What was written ahead so long ago belongs to no commit any more. */
const ORPHAN_MS = 60 * 60_000;

/**
 * Opens the store in some cells; closing it closes them.
 *
 * @throws {MailerError} `partitions_fixed` where it has another number of partitions; `unknown_store`.
 */
export async function openStore(cells: Cells, clock: Clock, options: FlowStoreOptions): Promise<FlowStore> {
  return new Store(await openCore(cells, clock, options));
}

class Store implements FlowStore {
  readonly partitions: KeptPartitions;
  readonly executions: Logs;
  readonly index: Lists;
  readonly inbox: Inboxes;
  readonly jobs: Queues;
  readonly timers: KeptTimers;
  readonly definitions: KeptDefinitions;
  readonly schedules: KeptSchedules;
  readonly cache: KeptResults;
  readonly deadLetters: KeptDeadLetters;
  readonly quarantines: KeptQuarantines;
  readonly feed: KeptFeed;
  readonly #core: Core;
  #closing: Promise<void> | undefined;

  constructor(core: Core) {
    this.#core = core;
    const partitionOf = (execId: string): number => this.partitions.of(execId);
    const stored = (commands: readonly PackedCommand[], version: string): void => {
      for (const { partition, letter } of commands) {
        this.partitions.owned(partition)?.mailbox.stored({ ...letter, version });
        core.wakeups.notify(`inbox:${partition}`);
      }
    };
    const storedSomehow = (partitions: Iterable<number>): void => {
      for (const partition of partitions) {
        this.partitions.owned(partition)?.mailbox.forget();
        core.wakeups.notify(`inbox:${partition}`);
      }
    };
    this.jobs = new Queues(core);
    this.executions = new Logs(core, { queues: this.jobs, partitionOf, stored, storedSomehow });
    this.partitions = new KeptPartitions(core, this.executions);
    this.index = new Lists(core, this.executions);
    this.inbox = new Inboxes(core, partitionOf, stored);
    this.timers = new KeptTimers(core);
    this.definitions = new KeptDefinitions(core);
    this.schedules = new KeptSchedules(core, partitionOf, stored);
    this.cache = new KeptResults(core);
    this.deadLetters = new KeptDeadLetters(core, partitionOf, stored);
    this.quarantines = new KeptQuarantines(core);
    this.feed = new KeptFeed(core);
  }

  watch(topics: readonly Topic[]): Watch {
    return this.#core.wakeups.watch(topics);
  }

  async sweep(): Promise<Swept> {
    const core = this.#core;
    return {
      dedup: await sweepRemembered(core, SWEEP),
      cache: await sweepResults(core, SWEEP),
      orphans: await sweepAhead(core, core.clock.now() - ORPHAN_MS, SWEEP),
      deadLetters: await sweepLetters(core, SWEEP),
      feed: await this.feed.sweep(),
      limits: await this.jobs.sweepLimits(SWEEP),
    };
  }

  stats(): StoreStats {
    return { ...this.#core.writer.stats };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    await this.#core.writer.close();
    await this.#core.cells[Symbol.asyncDispose]();
  }
}
