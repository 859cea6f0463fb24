/**
 * What the durable engine needs of a store.
 *
 * P1 A decision is one atomic commit: its events and all that follows from them are there, or nothing is.
 * P2 Of several decisions made on the same head of a log one is committed; the others hear `conflict`.
 * P3 Whoever lost a partition commits nothing in it any more: every commit compares the partition's epoch.
 * P4 What was committed survives the end of the process, at any instant.
 * P5 Commands, jobs and timers are handed out at least once, and are gone with the commit that answers them.
 * P6 Texts come back as they were given, digit for digit, at any size.
 * P7 What is deleted leaves nothing behind, and an interrupted deletion is taken up again by the next owner.
 *
 * The store knows nothing of what events mean: a decision is a JSON text to it. Times are milliseconds since the epoch.
 * Ids of executions, flows and kinds are tokens: 1 to 128 letters, digits, `_` and `-`.
 *
 * @module
 */

/**
 * Turns everything at rest into something else and back, such as an encrypted form. Keys, which hold ids,
 * are not touched.
 */
export interface Codec {
  /** What is stored instead of `plain`. */
  encode(plain: Uint8Array): Uint8Array | Promise<Uint8Array>;
  /** What {@link Codec.encode} was given. An error names nothing of the content. */
  decode(stored: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The right to commit in a partition. It is lost when another owner takes the partition over. */
export interface Ownership {
  /** Number of the partition, from 0 on. */
  readonly partition: number;
  /** Who has it. */
  readonly owner: string;
  /** Grows with every change of owner. */
  readonly epoch: number;
  /** Until when nobody else may take it, ms. */
  readonly until: number;
  /** Whether it is known to be lost, or was given back. */
  readonly lost: boolean;
}

/** Who may commit where. */
export interface Partitions {
  /** How many there are; fixed when the store was made. */
  readonly count: number;
  /** Partition of an execution: FNV-1a, 32 bits, of its id. */
  of(execId: string): number;
  /**
   * Takes a partition that nobody has, whose owner's time is over, or that is this owner's already. First finishes what
   * the former owner left half done.
   *
   * @param owner Unique among processes and starts of a process.
   * @returns `undefined` while another has it.
   */
  acquire(partition: number, owner: string, leaseMs: number): Promise<Ownership | undefined>;
  /** Prolongs it, from now on, and takes up what an error left half done. False: it is lost. */
  renew(ownership: Ownership, leaseMs: number): Promise<boolean>;
  /** Gives it back, so that another need not wait. */
  release(ownership: Ownership): Promise<void>;
  /** Who has which partition; also of those whose time is over. */
  owners(): Promise<readonly OwnerEntry[]>;
}

/** A line of {@link Partitions.owners}. */
export interface OwnerEntry {
  /** Number of the partition. */
  readonly partition: number;
  /** Who has it, or had it. */
  readonly owner: string;
  /** Grows with every change of owner. */
  readonly epoch: number;
  /** ms */
  readonly until: number;
}

/** What lists show of an execution. */
export interface Summary {
  /** Name of its flow. */
  readonly flow: string;
  /** Version of its flow. */
  readonly flowHash: string;
  /** How it stands. */
  readonly status: string;
  /** Never changes: lists are in this order. ms */
  readonly createdAt: number;
  /** ms */
  readonly updatedAt: number;
  /** ms */
  readonly endedAt?: number;
  /** Search attributes. */
  readonly attrs: Readonly<Record<string, string>>;
  /** It was moved to cold storage. */
  readonly archived?: boolean;
  /** It is parked. */
  readonly quarantined?: boolean;
  /** Whatever else there is to show: parent, origin, error. JSON. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** The end of an execution's log: what a decision is made on. Handed back as it came. */
export interface Head {
  /** The execution. */
  readonly execId: string;
  /** Sequence of the last decision; 0 = none yet. */
  readonly seq: number;
  /** Sequence of the first decision of the live log. */
  readonly firstSeq: number;
  /** Index of the last event. */
  readonly events: number;
  /** What lists show of it. */
  readonly summary: Summary;
  /** Tells this head from every other; not to be read. */
  readonly version: string;
  /** Ids of the timers that are set, with their times. */
  readonly timers: Readonly<Record<string, number>>;
  /** Ids of the jobs that are queued or handed out, with where they are. */
  readonly jobs: Readonly<Record<string, JobPlace>>;
  /** Sequence the snapshot stands for. */
  readonly snapshotSeq: number | undefined;
}

/** Kind, priority and order of a job. */
export type JobPlace = readonly [kind: string, priority: number, order: number];

/** A stored decision. */
export interface StoredDecision {
  /** Its place in the log, from 1 on, without gaps. */
  readonly seq: number;
  /** JSON text of its events, as it was given. */
  readonly events: string;
}

/** A state as it was behind a decision. */
export interface Snapshot {
  /** Sequence of that decision. */
  readonly seq: number;
  /** JSON text, as it was given. */
  readonly text: string;
}

/** A job to be queued. */
export interface NewJob {
  /** Names it in its execution; a job with this id is replaced. */
  readonly id: string;
  /** Whoever asks for this kind may get it. */
  readonly kind: string;
  /** What whoever does it is told, at most 48 KB: point to the decision, do not copy it. */
  readonly text: string;
  /** Higher comes first, −100 to 100. Default 0. */
  readonly priority?: number;
  /**
   * Place in its priority, a whole number from 0 on; of equal ones the lesser id comes first. Default: now,
   * ms.
   */
  readonly order?: number;
  /** Not handed out before, ms. */
  readonly notBefore?: number;
  /** Handed out as soon as it is there, to a worker that waits for it: saves a commit. */
  readonly lease?: { readonly worker: string; readonly leaseMs: number };
}

/** A timer to be set. */
export interface NewTimer {
  /** Names it in its execution; a timer with this id is replaced. */
  readonly id: string;
  /** When it is due, ms. */
  readonly at: number;
  /** Comes back when it is due. */
  readonly text: string;
}

/** A command for an execution. */
export interface NewCommand {
  /** The execution it is for. */
  readonly execId: string;
  /** Tells repetitions, at most 256 characters. */
  readonly id: string;
  /** JSON text. */
  readonly text: string;
  /** Whether it is dropped where one with this id was stored within the dedup window. Default false. */
  readonly once?: boolean;
}

/** A result that may be used again. */
export interface CacheEntry {
  /** What it is found by. */
  readonly key: string;
  /** The result, as it was given. */
  readonly text: string;
  /** ms */
  readonly expiresAt: number;
}

/** Something that could not be done. */
export interface NewDeadLetter {
  /** `cmd`, `job`, `trigger` or `dispatch`. */
  readonly kind: string;
  /** What it was about: an execution, a job. */
  readonly key: string;
  /** JSON text. */
  readonly text: string;
}

/** All that one command led to. */
export interface Commit {
  /** The execution. */
  readonly execId: string;
  /** Ownership of its partition. */
  readonly ownership: Ownership;
  /** What it was decided on; absent: there is no such execution yet. */
  readonly head?: Head | undefined;
  /** JSON text of the events. Absent: nothing happened, but the rest is still to be done. */
  readonly events?: string;
  /** Index of the last event. Needed with `events`. */
  readonly lastIndex?: number;
  /** What lists show from now on. Needed for a new execution. */
  readonly summary?: Summary;
  /** The command this answers: it leaves its inbox. */
  readonly command?: Delivery;
  /** Ids that must not have been committed within the dedup window, and are remembered. */
  readonly dedup?: readonly string[];
  /** Jobs that are queued. */
  readonly jobs?: readonly NewJob[];
  /** Ids of jobs that go, or `"all"`; unknown ones count for nothing. */
  readonly removeJobs?: readonly string[] | "all";
  /** Timers that are set. */
  readonly timers?: readonly NewTimer[];
  /** Ids of timers that go, or `"all"`; unknown ones count for nothing. */
  readonly clearTimers?: readonly string[] | "all";
  /** Commands for other executions. */
  readonly send?: readonly NewCommand[];
  /** JSON text of the state behind this decision; replaces the one before. `null` removes it. */
  readonly snapshot?: string | null;
  /** Results that may be used again; each replaces one of its key. */
  readonly cache?: readonly CacheEntry[];
  /** What could not be done. */
  readonly deadLetters?: readonly NewDeadLetter[];
  /** Parks the execution, or (`null`) lifts that. */
  readonly quarantine?: Quarantine | null;
  /** The live log begins here from now on; see {@link Executions.truncate}. */
  readonly firstSeq?: number;
  /** Told to readers of the feed, e.g. the types of the events. */
  readonly note?: string;
}

/** What became of a {@link Commit}. */
export type CommitOutcome =
  | {
    readonly kind: "committed";
    readonly head: Head;
    /** Jobs that were put with a lease. */
    readonly leased: readonly LeasedJob[];
  }
  /** The head is another by now: load, and decide again. */
  | { readonly kind: "conflict" }
  /** One of `dedup` was committed before. */
  | { readonly kind: "duplicate"; readonly id: string }
  /** Another owns the partition. */
  | { readonly kind: "fenced" };

/** Logs of executions, and all that belongs to one. */
export interface Executions {
  /** `undefined`: there is none. */
  head(execId: string): Promise<Head | undefined>;
  /** Heads in the order of their ids. */
  heads(execIds: readonly string[]): Promise<readonly (Head | undefined)[]>;
  /** Commits a decision. Rejects where it is not known whether it was committed: load the head again. */
  commit(commit: Commit): Promise<CommitOutcome>;
  /**
   * Decisions in their order, from the live log.
   *
   * @param from First sequence. Default: the first of the live log.
   * @param limit Most decisions, default 256; fewer come where they are large, and none only behind the end.
   */
  log(execId: string, from?: number, limit?: number): Promise<readonly StoredDecision[]>;
  /** The newest snapshot. */
  snapshot(execId: string): Promise<Snapshot | undefined>;
  /** Removes decisions in front of the live log. May be interrupted, and repeated. */
  truncate(ownership: Ownership, execId: string): Promise<void>;
  /** Removes the execution and all that is its own. May be interrupted. False: there is none. */
  delete(ownership: Ownership, execId: string): Promise<boolean>;
  /**
   * Stores a text of the execution by name: a segment of its history, an archive. It replaces one of this
   * name.
   */
  putObject(ownership: Ownership, execId: string, name: string, text: string): Promise<void>;
  /** A text stored by name. */
  object(execId: string, name: string): Promise<string | undefined>;
  /** Removes a text stored by name. */
  deleteObject(ownership: Ownership, execId: string, name: string): Promise<void>;
  /** Names of stored texts. */
  objects(execId: string): Promise<readonly string[]>;
}

/** A condition on a search attribute; numbers are compared as numbers where both sides are. */
export interface AttributeFilter {
  /** Name of the attribute; who lacks it does not fit. */
  readonly name: string;
  /** How they are compared. */
  readonly op: "=" | "!=" | "<" | "<=" | ">" | ">=" | "prefix";
  /** What its value is compared with. */
  readonly value: string;
}

/** Which executions, and in which order. All conditions hold at once. */
export interface Query {
  /** Only of this status. */
  readonly status?: string;
  /** Only of this flow. */
  readonly flow?: string;
  /** Only with attributes like these. */
  readonly attrs?: readonly AttributeFilter[];
  /** Created then or later, ms. */
  readonly from?: number;
  /** Created before, ms. */
  readonly to?: number;
  /** By time of creation. Default `newest`. */
  readonly order?: "newest" | "oldest";
  /** Most entries of a page, 1 to 1,000. Default 50. */
  readonly limit?: number;
  /** Where the page before ended. */
  readonly cursor?: string;
}

/** A page of a list. */
export interface Page<T> {
  /** At most as many as were asked for. */
  readonly items: readonly T[];
  /** For the next page; absent on the last. A page may be empty and not the last. */
  readonly cursor?: string;
}

/** An execution in a list. */
export interface Listed {
  /** The execution. */
  readonly execId: string;
  /** Sequence of its last decision. */
  readonly seq: number;
  /** What there is to show. */
  readonly summary: Summary;
}

/** Lists of executions. */
export interface Index {
  /**
   * A page. While pages are read, an execution that fits all along is seen exactly once; one that is made, or changes,
   * may be seen or not.
   *
   * @throws {MailerError} `invalid_cursor`; `invalid_query`.
   */
  list(query: Query): Promise<Page<Listed>>;
}

/** A command that is handed out. */
export interface Delivery {
  /** The execution it is for. */
  readonly execId: string;
  /** Tells repetitions. */
  readonly id: string;
  /** As it was given. */
  readonly text: string;
  /**
   * It was handed out at least so often, this time included. Every return counts, and every owner that died
   * with it.
   */
  readonly deliveries: number;
  /** Where it lies; for the store. */
  readonly key: string;
  /** How many parts its text has; for the store. */
  readonly parts: number;
  /** Whether its deliveries are written down; for the store. */
  readonly counted: boolean;
  /** Tells it from what lay there before; for the store. */
  readonly version: string;
}

/** Commands that wait for their decision. */
export interface Inbox {
  /**
   * Stores commands, at most 64, all or none of them. What was stored before and is `once` is left out and
   * answered `false`.
   */
  push(commands: readonly NewCommand[]): Promise<readonly boolean[]>;
  /**
   * Hands out the oldest, of each sender in the order they were stored; again only after a release, or to
   * the next owner.
   */
  pull(ownership: Ownership, limit: number): Promise<readonly Delivery[]>;
  /** Gives a command back, to be handed out again no sooner than `delayMs` from now. Default 0. */
  release(ownership: Ownership, delivery: Delivery, delayMs?: number): Promise<void>;
  /**
   * Removes a command that leads to no decision, perhaps with a dead letter in its place. False: it was
   * gone.
   */
  remove(ownership: Ownership, delivery: Delivery, deadLetter?: NewDeadLetter): Promise<boolean>;
}

/** A job that is handed out. */
export interface LeasedJob {
  /** The execution it belongs to. */
  readonly execId: string;
  /** Its name in the execution. */
  readonly id: string;
  /** Its kind. */
  readonly kind: string;
  /** As it was given. */
  readonly text: string;
  /** Whose it is. */
  readonly worker: string;
  /** How often it was handed out, this time included. Durable. */
  readonly deliveries: number;
  /** Until when it is nobody else's, ms. */
  readonly until: number;
  /** Where it lies; for the store. */
  readonly key: string;
  /** Tells this lease from every other; for the store. */
  readonly token: string;
}

/** Which jobs a worker wants. */
export interface JobRequest {
  /** Kind of the jobs. */
  readonly kind: string;
  /** Most jobs. */
  readonly max: number;
  /** Whose they are to be. */
  readonly worker: string;
  /** How long they are the worker's, ms. */
  readonly leaseMs: number;
  /**
   * Limits of a job, by its text. A job for which one of them has no room is passed over and stays as it was. Default: none.
   */
  readonly limitsOf?: (text: string) => readonly JobLimit[];
}

/** A limit on jobs, over all who work on the store. A job holds its place as long as it is leased. */
export interface JobLimit {
  /** Names it among all limits: jobs with one name share it. */
  readonly name: string;
  /** Most jobs, at least 1. */
  readonly max: number;
  /** Most that are handed out within this time, ms. Absent: most at once. */
  readonly per?: number;
}

/** Work by kind. A job goes with the commit that answers it. */
export interface Jobs {
  /**
   * Hands out what is ready, best priority first; also jobs whose lease is over. Never one job to two at a
   * time.
   */
  lease(request: JobRequest): Promise<readonly LeasedJob[]>;
  /** Prolongs leases, from now on. `undefined`: the job is gone, or another's. */
  extend(jobs: readonly LeasedJob[], leaseMs: number): Promise<readonly (LeasedJob | undefined)[]>;
  /** A job as it lies in its queue; its `worker` is empty where it is nobody's. `undefined`: it is gone. */
  peek(execId: string, id: string, place: JobPlace): Promise<LeasedJob | undefined>;
  /**
   * Puts a job back in its place, to be handed out no sooner than `delayMs` from now. False: it was gone, or
   * another's.
   */
  release(job: LeasedJob, options?: ReleaseOptions): Promise<boolean>;
}

/** How a job is put back. */
export interface ReleaseOptions {
  /** Default 0. */
  readonly delayMs?: number;
  /** Whether this delivery counts. Default true. */
  readonly counts?: boolean;
}

/** A timer that is due. */
export interface DueTimer {
  /** The execution it belongs to. */
  readonly execId: string;
  /** Its name in the execution. */
  readonly id: string;
  /** ms */
  readonly at: number;
  /** As it was given. */
  readonly text: string;
  /** Where it lies; for the store. */
  readonly key: string;
}

/** Timers by time. A timer goes with the commit that clears it. */
export interface Timers {
  /** Hands out timers that are due, the earliest first; again only after a release, or to the next owner. */
  due(ownership: Ownership, limit: number): Promise<readonly DueTimer[]>;
  /** When the next one that is not handed out is due, ms. */
  next(ownership: Ownership): Promise<number | undefined>;
  /** Gives a timer back. */
  release(ownership: Ownership, timer: DueTimer): void;
  /** Removes a timer whose execution is gone. */
  drop(ownership: Ownership, timer: DueTimer): Promise<void>;
}

/** A stored version of a flow. */
export interface StoredDefinition {
  /** Name of the flow. */
  readonly name: string;
  /** Hash of the definition. */
  readonly hash: string;
  /** As it was given. */
  readonly text: string;
}

/** Definitions of flows by name and hash. */
export interface Definitions {
  /**
   * Stores a version, and makes it the newest of its name. The same one again changes only which is the newest.
   *
   * @throws {MailerError} `definition_collision` where another text has this hash.
   */
  put(definition: StoredDefinition): Promise<void>;
  /** A version; without a hash the newest. */
  get(name: string, hash?: string): Promise<StoredDefinition | undefined>;
  /** Names and hashes, those of a name together; whether it is the newest of its name. */
  list(): Promise<readonly { readonly name: string; readonly hash: string; readonly latest: boolean }[]>;
  /** Removes a version. False: there is none. */
  delete(name: string, hash: string): Promise<boolean>;
}

/** A schedule as it is stored. */
export interface StoredSchedule {
  /** Names it among all. */
  readonly name: string;
  /** As it was given. */
  readonly text: string;
  /** Tells whether it has changed since it was read. */
  readonly version: string;
}

/** StoredSchedules by name. */
export interface StoredSchedules {
  /** A schedule as it is now. */
  get(name: string): Promise<StoredSchedule | undefined>;
  /** All of them, by name. */
  list(): Promise<readonly StoredSchedule[]>;
  /**
   * Writes a schedule and sends commands with it, at once or not at all: so an occurrence starts once.
   *
   * @param text `null` removes it.
   * @param expected Version it must have; `null`: it must not exist; absent: whatever there is.
   * @returns False where it has another version.
   */
  write(
    name: string,
    text: string | null,
    expected?: string | null,
    send?: readonly NewCommand[],
  ): Promise<boolean>;
}

/** Results of tasks that may be used again. */
export interface ResultCache {
  /** The text, until it expires. */
  get(key: string): Promise<string | undefined>;
}

/** Why an execution is parked. */
export interface Quarantine {
  /** Decision that cannot be carried out. */
  readonly seq: number;
  /** What was wrong with it, for a person. */
  readonly reason: string;
}

/** A dead letter as it is stored. */
export interface DeadLetter extends NewDeadLetter {
  /** Later ones are greater. */
  readonly id: string;
  /** ms */
  readonly time: number;
}

/** What could not be done, kept for a person to look at. */
export interface DeadLetters {
  /** Stores a letter; its id. */
  add(letter: NewDeadLetter): Promise<string>;
  /** A letter by its id. */
  get(id: string): Promise<DeadLetter | undefined>;
  /** Newest first. */
  list(options?: { readonly limit?: number; readonly cursor?: string }): Promise<Page<DeadLetter>>;
  /** Removes a letter, and sends commands with that, at once or not at all. False: it was gone. */
  remove(id: string, send?: readonly NewCommand[]): Promise<boolean>;
}

/** Executions that are parked. */
export interface Quarantines {
  /** Why it is parked; `undefined`: it is not. */
  get(execId: string): Promise<Quarantine | undefined>;
  /** All that are parked. */
  list(): Promise<readonly (Quarantine & { readonly execId: string })[]>;
}

/** A decision as readers of a feed hear of it. */
export interface FeedItem {
  /** Grows by one from decision to decision of a partition. */
  readonly position: number;
  /** The execution. */
  readonly execId: string;
  /** Place of the decision in its log. */
  readonly seq: number;
  /** What the commit said of it. */
  readonly note?: string;
}

/** Decisions of a partition in the order they were committed. */
export interface Feed {
  /**
   * From a position on. Default limit 256.
   *
   * @throws {MailerError} `feed_trimmed` where what was there is forgotten.
   */
  read(partition: number, from: number, limit?: number): Promise<readonly FeedItem[]>;
  /** Position of the first decision that is still known. */
  begin(partition: number): Promise<number>;
  /** Position the next decision gets. */
  end(partition: number): Promise<number>;
  /** Forgets what is in front of a position, perhaps but for a few; how many entries, each of one commit, were removed. */
  trim(partition: number, before: number): Promise<number>;
}

/** What may have changed: `inbox:PARTITION`, `jobs:KIND`, `timers:PARTITION`, `feed:PARTITION`, `exec:ID`. */
export type Topic = `${"inbox" | "jobs" | "timers" | "feed" | "exec"}:${string | number}`;

/** Wakes whoever waits for changes. */
export interface Watch {
  /**
   * Resolves when one of the topics may have changed since the last call: at once where it was in this process, or after
   * the poll interval, as other processes cannot be heard.
   */
  next(signal?: AbortSignal): Promise<void>;
  /** Ends it. */
  close(): void;
  /** Has `next` resolve as if something had changed. */
  wake(): void;
}

/** What the store has done since it was opened. */
export interface StoreStats {
  /** Atomic operations that were committed. */
  readonly commits: number;
  /** Decisions that were committed. */
  readonly decisions: number;
  /**
   * Writes of any kind that were committed, decisions among them: so many shared {@link StoreStats.commits}.
   */
  readonly units: number;
  /** Keys written or deleted. */
  readonly mutations: number;
  /** Writes that found something else than they had expected. */
  readonly conflicts: number;
  /** Groups that were committed one by one as one of them had a conflict. */
  readonly splitGroups: number;
  /** Tries that found the store busy with another process. */
  readonly busy: number;
}

/** What a sweep removed. */
export interface Swept {
  /** Ids whose window was over. */
  readonly dedup: number;
  /** Results that had expired. */
  readonly cache: number;
  /** Parts of large texts, and effects, that no commit has named. */
  readonly orphans: number;
  /** Dead letters of a certain age. */
  readonly deadLetters: number;
  /** Limits that held nothing. */
  readonly limits: number;
  /** Entries of feeds, each of one commit. */
  readonly feed: number;
}

/** The store of the engine. */
export interface FlowStore extends AsyncDisposable {
  /** Who may commit where. */
  readonly partitions: Partitions;
  /** Logs, and all that belongs to one. */
  readonly executions: Executions;
  /** Lists of executions. */
  readonly index: Index;
  /** Commands that wait. */
  readonly inbox: Inbox;
  /** Work by kind. */
  readonly jobs: Jobs;
  /** Timers by time. */
  readonly timers: Timers;
  /** Flows by name and hash. */
  readonly definitions: Definitions;
  /** StoredSchedules by name. */
  readonly schedules: StoredSchedules;
  /** Results that may be used again. */
  readonly cache: ResultCache;
  /** What could not be done. */
  readonly deadLetters: DeadLetters;
  /** Executions that are parked. */
  readonly quarantines: Quarantines;
  /** Decisions in the order they were committed. */
  readonly feed: Feed;
  /** Wakes when one of these may have changed. */
  watch(topics: readonly Topic[]): Watch;
  /** Removes what has expired, a slice of each kind; call it now and then, until it removes nothing. */
  sweep(): Promise<Swept>;
  /** Counted since the store was opened. */
  stats(): StoreStats;
}

/** How a store behaves, whatever it lies in. */
export interface FlowStoreOptions {
  /** How many partitions, 1 to 1,024; fixed with the first opening. Default 16, or what there is. */
  readonly partitions?: number;
  /** How long ids of commands are remembered, ms. Default 10 minutes. */
  readonly dedupWindowMs?: number;
  /** How long dead letters are kept, ms. Default 30 days. */
  readonly deadLetterMs?: number;
  /** How many decisions of each partition the feed knows at least; a sweep removes older ones. Default 100,000. */
  readonly feedDecisions?: number;
  /** How often other processes are looked for changes, ms. Default 200. */
  readonly pollMs?: number;
  /** For everything at rest. Default: none. */
  readonly codec?: Codec;
}
