/**
 * A member of a consumer group: joins, keeps its place with heartbeats, gives partitions up when the group is shared out anew.
 *
 * G1 Between `assigned` and the end of `revoked` the partitions are this member's, unless `revoked` says they were lost.
 * G2 Heartbeats depend on the clock alone, not on how busy anybody is.
 * G3 Offsets are committed with the generation they were read in: a member that has lost its place cannot overwrite others.
 *
 * @module
 */
import { delay } from "../../../lib/clock.ts";
import { asError } from "../../../lib/errors.ts";
import type {
  CallOptions,
  GroupMembership,
  GroupOptions,
  KafkaGroup,
  PartitionOffset,
  TopicPartition,
} from "../client.ts";
import { GenerationLostError, KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import type { Api } from "../protocol/requests/api.ts";
import { heartbeat, type JoinAnswer, joinGroup, leaveGroup, syncGroup } from "../protocol/requests/groups.ts";
import type { ErrorAnswer } from "../protocol/requests/transactions.ts";
import {
  type Assignor,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  range,
  roundrobin,
} from "./assignors.ts";
import { type Cluster, nextPause, type Purpose, REPORT_AFTER_MS } from "./cluster.ts";
import { commitOffsets } from "./committed.ts";

const ASSIGNORS: Readonly<Record<NonNullable<GroupOptions["assignor"]>, Assignor>> = { range, roundrobin };

const DEFAULTS = {
  sessionTimeoutMs: 45_000,
  rebalanceTimeoutMs: 300_000,
  heartbeatMs: 3_000,
  discoverMs: 30_000,
  giveUpAfterMs: 120_000,
};

const LEAVE_TIMEOUT_MS = 3000;

const UNKNOWN_MEMBER_ID = 25;
const REBALANCE_IN_PROGRESS = 27;
const ILLEGAL_GENERATION = 22;
const MEMBER_ID_REQUIRED = 79;
const FENCED_INSTANCE_ID = 82;

/** How a round ended: the group is shared out anew, or this member is out. */
type EndOfRound = "rebalance" | "lost";

/** A round: partitions this member has until the next one. */
interface Round {
  readonly member: GroupMembership;
  readonly partitions: readonly TopicPartition[];
  /** Numbers of partitions the leader shared out; undefined with other members. */
  readonly shared: ReadonlyMap<string, number> | undefined;
}

/** A member of a group. */
export class Group implements KafkaGroup {
  readonly #cluster: Cluster;
  readonly #options: GroupOptions & typeof DEFAULTS;
  readonly #purpose: Purpose;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #memberId = "";
  #round: Round | undefined;

  constructor(cluster: Cluster, options: GroupOptions) {
    this.#cluster = cluster;
    this.#purpose = cluster.ownPurpose("group");
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...DEFAULTS, ...given } as GroupOptions & typeof DEFAULTS;
    this.#running = this.#run();
  }

  get member(): GroupMembership | undefined {
    return this.#round?.member;
  }

  get assignment(): readonly TopicPartition[] {
    return this.#round?.partitions ?? [];
  }

  /** G3 */
  async commit(offsets: readonly PartitionOffset[], options?: CallOptions): Promise<void> {
    if (this.#round === undefined) throw new GenerationLostError(this.#options.group);
    const { group, instanceId } = this.#options;
    await commitOffsets(
      this.#cluster,
      { group, instanceId, ...this.#round.member },
      offsets,
      options?.signal,
    );
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(
        new KafkaError("kafka_closed", `the member of group "${this.#options.group}" was closed`),
      );
    }
    await this.#running;
  }

  // The life of a member

  /** Never rejects: what goes wrong for good is told to `failed`. */
  async #run(): Promise<void> {
    const { clock } = this.#cluster.context;
    let pause: number | undefined;
    let failingSince: number | undefined;
    let reported = false;
    try {
      while (!this.#closing.signal.aborted) {
        try {
          await this.#oneRound();
          pause = failingSince = undefined;
          reported = false;
        } catch (thrown) {
          if (this.#closing.signal.aborted && !(thrown instanceof CallbackError)) break;
          failingSince ??= clock.monotonic();
          const tooLong = clock.monotonic() - failingSince >= this.#options.giveUpAfterMs;
          if (!(thrown instanceof KafkaError) || !thrown.retriable || tooLong) throw thrown;
          pause = nextPause(pause, thrown);
          const failingForMs = clock.monotonic() - failingSince;
          this.#report(failingForMs, pause, thrown, reported);
          reported ||= failingForMs >= REPORT_AFTER_MS;
          await this.#cluster.pause(pause, this.#closing.signal).catch(() => {}); // closing ends the loop
        }
      }
      await this.#leave();
    } catch (thrown) {
      await this.#leave();
      if (!this.#closing.signal.aborted || thrown instanceof CallbackError) {
        this.#options.failed(asError(thrown instanceof CallbackError ? thrown.thrown : thrown));
      }
    }
  }

  /** Joins, holds the partitions until they are taken away, gives them up. */
  async #oneRound(): Promise<void> {
    const round = await this.#join();
    this.#round = round;
    const over = new AbortController();
    const failed = Promise.withResolvers<EndOfRound>();
    let failure: CallbackError | undefined;
    const assigned = this.#callAssigned(round, over.signal).catch((thrown) => {
      if (over.signal.aborted) return; // it was told to stop
      failure = new CallbackError(thrown);
      failed.resolve("rebalance");
    });
    let end: EndOfRound = "lost";
    try {
      end = await Promise.race([this.#hold(round, over.signal), failed.promise]);
    } finally {
      over.abort();
      await assigned;
      await this.#giveUp(round, end);
    }
    if (failure !== undefined) throw failure;
  }

  async #callAssigned(round: Round, signal: AbortSignal): Promise<void> {
    await this.#options.assigned(round.partitions, round.member, signal);
  }

  /** Heartbeats go on while `revoked` runs, so that it may commit. */
  async #giveUp(round: Round, end: EndOfRound): Promise<void> {
    const lost = end === "lost";
    if (lost) this.#round = undefined;
    const over = new AbortController();
    const beating = lost ? Promise.resolve() : this.#beatUntil(round.member, over.signal);
    try {
      await this.#options.revoked(round.partitions, lost);
    } catch (thrown) {
      throw new CallbackError(thrown);
    } finally {
      over.abort();
      await beating;
      this.#round = undefined;
    }
  }

  // Joining

  async #join(): Promise<Round> {
    const { group, topics, assignor, instanceId, sessionTimeoutMs, rebalanceTimeoutMs } = this.#options;
    const metadata = encodeSubscription(topics);
    const question = {
      group,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      memberId: this.#memberId,
      instanceId,
      protocols: [{ name: assignor ?? "range", metadata }],
    };
    const timeoutMs = rebalanceTimeoutMs + this.#cluster.requestTimeoutMs;
    const joined = await this.#askAs(joinGroup, question, timeoutMs);
    if (joined.error === MEMBER_ID_REQUIRED) {
      this.#memberId = joined.memberId;
      return await this.#join();
    }
    this.#check(joined.error, "joining");
    this.#memberId = joined.memberId;
    return await this.#sync(joined);
  }

  async #sync(joined: JoinAnswer): Promise<Round> {
    const { group, instanceId, rebalanceTimeoutMs } = this.#options;
    const { generation, memberId } = joined;
    const isLeader = joined.leader === memberId;
    const shares = isLeader ? await this.#share(joined) : undefined;
    const assignments = [...shares?.shares ?? []].map(([memberId, partitions]) => ({
      memberId,
      bytes: encodeAssignment(partitions),
    }));
    const question = { group, generation, memberId, instanceId, assignments };
    const synced = await this.#askAs(
      syncGroup,
      question,
      rebalanceTimeoutMs + this.#cluster.requestTimeoutMs,
    );
    this.#check(synced.error, "waiting for its partitions");
    return {
      member: { memberId, generation },
      partitions: decodeAssignment(synced.assignment),
      shared: shares?.counts,
    };
  }

  /** As the leader: who gets what. Topics that do not exist are nobody's until they do. */
  async #share(
    { protocol, members }: JoinAnswer,
  ): Promise<{ shares: ReturnType<Assignor>; counts: Map<string, number> }> {
    const assignor = protocol === "roundrobin" ? roundrobin : ASSIGNORS.range;
    const subscribers = members.map(({ memberId, metadata }) => ({
      memberId,
      topics: decodeSubscription(metadata),
    }));
    const counts = await this.#count([...new Set(subscribers.flatMap(({ topics }) => topics))]);
    return { shares: assignor(subscribers, counts), counts };
  }

  async #count(topics: readonly string[]): Promise<Map<string, number>> {
    const { topics: found } = await this.#cluster.refresh(topics, this.#closing.signal);
    return new Map(
      found.filter(({ partitions }) => partitions.length > 0).map((
        { name, partitions },
      ) => [name, partitions.length]),
    );
  }

  /** Errors of joining: some mean to begin as a stranger, some to just join again. */
  #check(error: number, doing: string): void {
    if (error === 0) return;
    const { group } = this.#options;
    const cause = errorOf(error, `${doing} group "${group}"`);
    if (error === FENCED_INSTANCE_ID) {
      throw new GenerationLostError(group, {
        cause,
        hint: "another member has the same instance id: give each its own",
      });
    }
    if (error === UNKNOWN_MEMBER_ID) this.#memberId = "";
    const again = error === UNKNOWN_MEMBER_ID || error === REBALANCE_IN_PROGRESS ||
      error === ILLEGAL_GENERATION;
    throw again ? new KafkaError("kafka_generation_lost", cause.message, { cause, retriable: true }) : cause;
  }

  // Holding

  /** Resolves when the partitions are to be given up. */
  async #hold({ member, shared }: Round, signal: AbortSignal): Promise<EndOfRound> {
    const ended = new AbortController();
    const either = AbortSignal.any([signal, this.#closing.signal, ended.signal]);
    try {
      const ends = [this.#beat(member, either)];
      if (shared !== undefined) ends.push(this.#watch(shared, either));
      return await Promise.race(ends);
    } finally {
      ended.abort();
    }
  }

  /** Heartbeats until one says the round is over, or there was none for too long (G2). */
  async #beat(member: GroupMembership, signal: AbortSignal): Promise<EndOfRound> {
    const { clock } = this.#cluster.context;
    const { group, instanceId, sessionTimeoutMs, heartbeatMs } = this.#options;
    let last = clock.monotonic();
    for (;;) {
      try {
        await delay(clock, heartbeatMs, signal);
        const { error } = await this.#askAs(
          heartbeat,
          { group, instanceId, ...member },
          sessionTimeoutMs,
          signal,
        );
        if (error === 0) last = clock.monotonic();
        else if (error === REBALANCE_IN_PROGRESS) return "rebalance";
        else if (!brokerError(error).retriable) {
          if (error === UNKNOWN_MEMBER_ID) this.#memberId = "";
          this.#log("the group went on without this member", { error: brokerError(error).name });
          return "lost";
        }
      } catch (thrown) {
        if (signal.aborted) return "rebalance";
        if (!(thrown instanceof KafkaError) || !thrown.retriable) throw thrown;
      }
      if (clock.monotonic() - last >= sessionTimeoutMs) return "lost";
    }
  }

  /** Keeps the place while partitions are given up; what comes of it shows when joining again. */
  async #beatUntil(member: GroupMembership, signal: AbortSignal): Promise<void> {
    const { clock } = this.#cluster.context;
    const { group, instanceId, sessionTimeoutMs, heartbeatMs } = this.#options;
    while (!signal.aborted) {
      await delay(clock, heartbeatMs, signal)
        .then(() => this.#askAs(heartbeat, { group, instanceId, ...member }, sessionTimeoutMs, signal))
        .catch((thrown) => {
          if (!signal.aborted) this.#log("a heartbeat failed", { error: asError(thrown).message });
        });
    }
  }

  /** As the leader: resolves when topics have other numbers of partitions than were shared out. */
  async #watch(shared: ReadonlyMap<string, number>, signal: AbortSignal): Promise<EndOfRound> {
    const topics = [...new Set([...shared.keys(), ...this.#options.topics])];
    for (;;) {
      try {
        await delay(this.#cluster.context.clock, this.#options.discoverMs, signal);
        const counts = await this.#count(topics);
        if (topics.some((topic) => counts.has(topic) && counts.get(topic) !== shared.get(topic))) {
          return "rebalance";
        }
      } catch (thrown) {
        if (signal.aborted) return "rebalance";
        this.#log("looking for new partitions failed", { error: asError(thrown).message });
      }
    }
  }

  // Leaving

  /** A courtesy: without it the others wait for the session to run out. So it is not waited for long. */
  async #leave(): Promise<void> {
    const { group, instanceId } = this.#options;
    if (this.#memberId === "" || instanceId !== undefined || this.#cluster.closed.aborted) return;
    const over = new AbortController();
    const alarm = this.#cluster.context.clock.schedule(
      LEAVE_TIMEOUT_MS,
      () => over.abort(new Error("no answer in time")),
    );
    const question = { group, memberId: this.#memberId, instanceId };
    const options = { timeoutMs: LEAVE_TIMEOUT_MS, signal: over.signal };
    try {
      // On another connection than usual: that may still wait for the group.
      const answer = await this.#cluster.coordinated(
        { of: "group", name: group },
        leaveGroup,
        question,
        options,
      );
      if (answer.error !== 0) {
        this.#log("leaving the group failed", { error: brokerError(answer.error).name });
      }
    } catch (thrown) {
      this.#log("leaving the group failed", { error: asError(thrown).message });
    } finally {
      alarm.cancel();
    }
  }

  // Asking

  async #askAs<Question, Answer extends ErrorAnswer>(
    api: Api<Question, Answer>,
    question: Question,
    timeoutMs: number,
    signal: AbortSignal = this.#closing.signal,
  ): Promise<Answer> {
    const to = { of: "group", name: this.#options.group, purpose: this.#purpose } as const;
    return await this.#cluster.coordinated(to, api, question, { timeoutMs, signal });
  }

  /** A coordinator that moves is nothing to speak of; what lasts is. */
  #report(failingForMs: number, pauseMs: number, { message, hint }: KafkaError, reported: boolean): void {
    const { group } = this.#options;
    const level = failingForMs >= REPORT_AFTER_MS && !reported ? "warn" : "debug";
    this.#cluster.context.logger.log(level, "a group cannot be joined, trying again", {
      group,
      failingForMs: Math.round(failingForMs),
      pauseMs,
      error: message,
      hint,
    });
  }

  #log(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#cluster.context.logger.log("debug", message, { group: this.#options.group, ...fields });
  }
}

/** What a callback threw: never a reason to try again. */
class CallbackError {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    this.thrown = thrown;
  }
}
