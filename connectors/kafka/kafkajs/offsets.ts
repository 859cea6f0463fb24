/**
 * Looks offsets up at the leaders.
 *
 * @module
 */
import type { OffsetSpec, TopicPartition } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import { EARLIEST, LATEST, listOffsets } from "../protocol/requests/records.ts";
import type { Cluster } from "./cluster.ts";

/** One place to look up. */
export type OffsetQuestion = TopicPartition & { readonly at: OffsetSpec };

/** A question as it is asked: the same partition may be asked for once only in one request. */
interface Wanted extends TopicPartition {
  readonly index: number;
  readonly timestamp: number;
  readonly committedOnly: boolean;
}

/** One answer for each question, in their order. */
export async function lookUpOffsets(
  cluster: Cluster,
  questions: readonly OffsetQuestion[],
  signal?: AbortSignal,
): Promise<number[]> {
  const found: number[] = new Array(questions.length).fill(-1);
  let open = questions.map(asWanted);
  let failure: KafkaError | undefined;
  await cluster.retry({ until: cluster.within(cluster.requestTimeoutMs), signal }, async () => {
    failure = undefined;
    const still: Wanted[] = [];
    const leaders = await cluster.leaders(open, signal);
    await Promise.all(
      requests(open, leaders).map(async ({ leader, wanted }) => {
        const answers = await ask(cluster, leader, wanted, signal);
        for (const [i, answer] of answers.entries()) {
          if (typeof answer === "number") found[wanted[i]!.index] = answer;
          else {
            still.push(wanted[i]!);
            if (failure === undefined || failure.retriable) failure = answer;
          }
        }
      }),
    );
    open = still;
    if (failure !== undefined) throw failure;
  });
  return await atEndWhereNone(cluster, questions, found, signal);
}

function asWanted({ topic, partition, at }: OffsetQuestion, index: number): Wanted {
  const timestamp = at === "earliest" ? EARLIEST : typeof at === "string" ? LATEST : Math.trunc(at.timestamp);
  if (typeof at !== "string" && !(timestamp >= 0)) {
    throw new RangeError(`${at.timestamp} is no timestamp to look for`);
  }
  return { topic, partition, index, timestamp, committedOnly: at === "stable" };
}

/** Cuts questions into requests: one leader, one isolation, each partition once. */
function requests(
  wanted: readonly Wanted[],
  leaders: readonly number[],
): { leader: number; wanted: Wanted[] }[] {
  const made: { leader: number; committedOnly: boolean; partitions: Set<string>; wanted: Wanted[] }[] = [];
  wanted.forEach((question, i) => {
    const leader = leaders[i]!;
    const key = `${question.topic}/${question.partition}`;
    let request = made.find((entry) =>
      entry.leader === leader && entry.committedOnly === question.committedOnly && !entry.partitions.has(key)
    );
    if (request === undefined) {
      made.push(
        request = { leader, committedOnly: question.committedOnly, partitions: new Set(), wanted: [] },
      );
    }
    request.partitions.add(key);
    request.wanted.push(question);
  });
  return made;
}

/** Offsets, or why there is none; where the leader has moved, metadata is asked for. */
async function ask(
  cluster: Cluster,
  leader: number,
  wanted: readonly Wanted[],
  signal: AbortSignal | undefined,
): Promise<(number | KafkaError)[]> {
  const topics = [...new Set(wanted.map(({ topic }) => topic))];
  let results;
  try {
    const link = await cluster.link(leader, "main", signal);
    const question = { committedOnly: wanted[0]!.committedOnly, partitions: wanted };
    ({ results } = await link.request(listOffsets, question, cluster.usual(signal)));
  } catch (error) {
    if (!(error instanceof KafkaError) || !error.retriable) throw error;
    await cluster.refresh(topics, signal);
    return wanted.map(() => error);
  }
  const answers = wanted.map(({ topic, partition }) => {
    const result = results.find((entry) => entry.topic === topic && entry.partition === partition);
    if (result?.error === 0) return result.offset;
    if (result !== undefined) return errorOf(result.error, `looking for an offset of ${topic}/${partition}`);
    return new KafkaError("kafka_incomplete_answer", `the broker did not answer for ${topic}/${partition}`, {
      retriable: true,
    });
  });
  if (results.some(({ error }) => brokerError(error).moved)) await cluster.refresh(topics, signal);
  return answers;
}

/** A timestamp behind the last record has no offset: then it is the end. */
async function atEndWhereNone(
  cluster: Cluster,
  questions: readonly OffsetQuestion[],
  found: readonly number[],
  signal: AbortSignal | undefined,
): Promise<number[]> {
  const none = questions.flatMap((question, i) =>
    found[i] === -1 ? [{ ...question, at: "end" as const, index: i }] : []
  );
  if (none.length === 0) return [...found];
  const ends = await lookUpOffsets(cluster, none, signal);
  const all = [...found];
  none.forEach(({ index }, i) => all[index] = ends[i]!);
  return all;
}
