/**
 * Groups of the cluster in memory: eager rebalances, generations, offsets.
 *
 * G1 In a rebalance all members give all partitions up; who takes longer than its rebalance timeout is out.
 * G2 Calls back of one member never overlap. Those of several members do.
 * G3 Offsets are taken from members of the current round only, also while they give their partitions up.
 *
 * @module
 */
import type { Alarm } from "../../../lib/clock.ts";
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
import { type FakeKafka, nameOf } from "./fake_kafka.ts";

/** What the broker knows of a group. */
export class FakeCoordinator {
  readonly kafka: FakeKafka;
  readonly name: string;
  readonly offsets = new Map<string, number>();
  generation = 0;
  readonly #members = new Set<FakeGroup>();
  #isWanted = false;
  #isRunning = false;

  constructor(kafka: FakeKafka, name: string) {
    this.kafka = kafka;
    this.name = name;
  }

  get memberIds(): string[] {
    return [...this.#members].map(({ memberId }) => memberId);
  }

  has(member: FakeGroup): boolean {
    return this.#members.has(member);
  }

  join(member: FakeGroup): void {
    member.out = Promise.withResolvers();
    this.#members.add(member);
    this.rebalance();
  }

  leave(member: FakeGroup): void {
    if (this.#members.delete(member)) this.rebalance();
  }

  expire(memberId: string): void {
    const member = [...this.#members].find((each) => each.memberId === memberId);
    if (member === undefined) throw new Error(`group "${this.name}" has no member "${memberId}"`);
    member.out.resolve();
    this.leave(member);
    void member.lose();
  }

  store(offsets: readonly PartitionOffset[]): void {
    for (const at of offsets) this.offsets.set(nameOf(at), at.offset);
  }

  /** Hands the partitions out anew. */
  rebalance(): void {
    this.#isWanted = true;
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    await null;
    while (this.#isWanted) {
      this.#isWanted = false;
      await Promise.all([...this.#members].map((member) => this.#revoke(member)));
      if (this.#isWanted) continue;
      this.generation++;
      const shares = this.#shares();
      for (const [member, share] of shares) member.assign(share, this.generation);
    }
    this.#isRunning = false;
  }

  async #revoke(member: FakeGroup): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const alarm = this.kafka.clock.schedule(member.rebalanceTimeoutMs, () => {
      if (this.#members.delete(member)) void member.lose();
      resolve();
    });
    await Promise.race([member.revoke(), promise, member.out.promise]);
    alarm.cancel();
  }

  /** As the range assignor does. */
  #shares(): Map<FakeGroup, TopicPartition[]> {
    const members = [...this.#members].sort((a, b) => a.memberId < b.memberId ? -1 : 1);
    const shares = new Map(members.map((member): [FakeGroup, TopicPartition[]] => [member, []]));
    for (const topic of new Set(members.flatMap(({ topics }) => topics))) {
      const takers = members.filter(({ topics }) => topics.includes(topic));
      const count = this.kafka.hasTopic(topic) ? this.kafka.topic(topic).partitions.length : 0;
      for (const [i, member] of takers.entries()) {
        const each = Math.floor(count / takers.length), more = count % takers.length;
        const first = i * each + Math.min(i, more), last = first + each + (i < more ? 1 : 0);
        for (let partition = first; partition < last; partition++) {
          shares.get(member)!.push({ topic, partition });
        }
      }
    }
    return shares;
  }
}

/** A member. */
export class FakeGroup implements KafkaGroup {
  readonly memberId: string;
  readonly topics: readonly string[];
  readonly rebalanceTimeoutMs: number;
  /** Resolves when the coordinator waits for it no more. */
  out: PromiseWithResolvers<void> = Promise.withResolvers();
  member: GroupMembership | undefined;
  assignment: readonly TopicPartition[] = [];
  readonly #kafka: FakeKafka;
  readonly #coordinator: FakeCoordinator;
  readonly #options: GroupOptions;
  #calls: Promise<void> = Promise.resolve();
  #round: AbortController | undefined;
  #discovery: Alarm | undefined;
  #known = "";
  #isOver = false;
  #hasCrashed = false;
  #closing: Promise<void> | undefined;

  constructor(kafka: FakeKafka, options: GroupOptions) {
    this.#kafka = kafka;
    this.#options = options;
    this.#coordinator = kafka.group(options.group);
    this.memberId = kafka.newMemberId();
    this.topics = options.topics;
    this.rebalanceTimeoutMs = options.rebalanceTimeoutMs ?? 300_000;
    void this.#join();
  }

  async #join(): Promise<void> {
    try {
      await this.#kafka.call("join", this.#options.group, undefined, () => {
        if (this.#isOver) return;
        this.#known = this.#partitions();
        this.#coordinator.join(this);
        this.#discover();
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  #partitions(): string {
    return this.topics.map((topic) =>
      `${topic} ${this.#kafka.hasTopic(topic) ? this.#kafka.topic(topic).partitions.length : 0}`
    ).join();
  }

  #discover(): void {
    this.#discovery = this.#kafka.clock.schedule(this.#options.discoverMs ?? 30_000, () => {
      const found = this.#partitions();
      if (found !== this.#known) this.#coordinator.rebalance();
      this.#known = found;
      this.#discover();
    });
  }

  assign(partitions: readonly TopicPartition[], generation: number): void {
    const member = { memberId: this.memberId, generation }, round = new AbortController();
    this.member = member;
    this.assignment = partitions;
    this.#round = round;
    this.#known = this.#partitions();
    void this.#callBack(() => this.#options.assigned(partitions, member, round.signal));
  }

  /** All partitions are to be given up. Resolves when they have been. */
  async revoke(): Promise<void> {
    if (this.#hasCrashed) await new Promise(() => {});
    await this.#takeAway(false);
  }

  /** They are somebody else's already; then it joins again. */
  async lose(): Promise<void> {
    if (this.#hasCrashed) return;
    this.#discovery?.cancel();
    this.member = undefined;
    await this.#takeAway(true);
    if (!this.#isOver) await this.#join();
  }

  async #takeAway(lost: boolean): Promise<void> {
    const round = this.#round;
    if (round === undefined) return;
    this.#round = undefined;
    const partitions = this.assignment;
    round.abort(new KafkaError("kafka_generation_lost", "the partitions are taken away"));
    await this.#callBack(() => this.#options.revoked(partitions, lost));
    if (!lost) this.member = undefined;
    this.assignment = [];
  }

  #callBack(call: () => void | Promise<void>): Promise<void> {
    return this.#calls = this.#calls.then(async () => {
      if (this.#isOver && this.#closing === undefined) return;
      try {
        await call();
      } catch (error) {
        this.#fail(error);
      }
    });
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#discovery?.cancel();
    this.#coordinator.leave(this);
    this.#options.failed(asError(error));
  }

  async commit(offsets: readonly PartitionOffset[], options: CallOptions = {}): Promise<void> {
    const what = `${this.#options.group} ${offsets.map((at) => `${nameOf(at)}:${at.offset}`).join(" ")}`;
    await this.#kafka.call("groupCommit", what, options.signal, () => {
      const { member } = this;
      if (
        member === undefined || member.generation !== this.#coordinator.generation ||
        !this.#coordinator.has(this)
      ) {
        throw new GenerationLostError(this.#options.group);
      }
      this.#coordinator.store(offsets);
    });
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Says and hears nothing any more: the group waits for it until its rebalance timeout, or until it expires. */
  crash(): void {
    this.#isOver = true;
    this.#hasCrashed = true;
    this.#discovery?.cancel();
  }

  async #close(): Promise<void> {
    if (this.#isOver) return;
    this.#discovery?.cancel();
    await this.#takeAway(false);
    this.#isOver = true;
    this.#coordinator.leave(this);
  }
}
