/**
 * A partition in the hand of its owner: what was handed out, and what is known of what is to come.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Check } from "./cells.ts";
import type { Core } from "./core.ts";
import { FeedLane } from "./feed.ts";
import { Mailbox } from "./inbox.ts";
import * as keys from "./keys.ts";
import type { Ownership } from "./port.ts";
import { DueTimers } from "./timers.ts";

/** An {@link Ownership} that the store itself knows. */
export class Owned implements Ownership {
  readonly partition: number;
  readonly owner: string;
  readonly epoch: number;
  until: number;
  lost = false;
  /** Holds as long as nobody has taken the partition over. */
  readonly fence: Check;
  /** Version of the owner's entry. */
  version: string;
  readonly lane: FeedLane;
  readonly mailbox: Mailbox;
  readonly due: DueTimers;
  /** The last change of the owner's entry. */
  writing: Promise<boolean> = Promise.resolve(true);
  /** Executions whose last commit has effects that are not written yet. */
  readonly unfinished: Set<string> = new Set();

  constructor(core: Core, partition: number, owner: string, epoch: number, until: number, version: string) {
    this.partition = partition;
    this.owner = owner;
    this.epoch = epoch;
    this.until = until;
    this.version = version;
    this.fence = { key: keys.epoch(partition), version };
    this.lane = new FeedLane(core, partition);
    this.mailbox = new Mailbox(core, partition);
    this.due = new DueTimers(core, partition);
  }

  /** Whether it is lost, as the store has it; asked when a commit failed. */
  async isLost(core: Core): Promise<boolean> {
    this.lost ||= (await core.one(this.fence.key))?.version !== this.fence.version;
    return this.lost;
  }
}

/** What the store gave as ownership. */
export function ownedOf(ownership: Ownership): Owned {
  if (!(ownership instanceof Owned)) throw new TypeError("an ownership comes from acquire()");
  return ownership;
}

/** The error of whoever lost a partition. */
export function fenced({ partition, owner }: Ownership): MailerError {
  return new MailerError("fenced", `flows: partition ${partition} is no longer owned by ${owner}`, {
    hint: "another process has taken it over; acquire it again to go on",
  });
}

/** {@link fenced}, or `store_conflict` where the partition is owned and something else came in between. */
export async function refused(core: Core, owned: Owned, what: string): Promise<MailerError> {
  if (await owned.isLost(core)) return fenced(owned);
  return new MailerError("store_conflict", `flows: ${what} was changed by somebody else`, {
    hint: "read it again, and try again",
  });
}
