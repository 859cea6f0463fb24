/**
 * Markers of transactions, and whether one can be seen.
 *
 * M1 A marker is written by the transaction it stands for. Its key is the id of the sink, its value names the run and the checkpoint:
 *    a marker of another run proves nothing.
 * M2 Whoever asks has fenced the producers before: nothing of theirs is open or under way. So what is not visible will never be.
 * M3 "Not there" is said only after a look at everything up to an end that lies behind the place of the marker. What was deleted,
 *    made anew or cannot be read is an error, never an answer.
 * M4 Commits are made in their order. So a marker that is visible answers for all in front of it, which a compacted topic may not
 *    have any more.
 *
 * @module
 */
import { type Clock, delay } from "../../../lib/clock.ts";
import { asError, type ErrorOptionsWithHint, MailerError } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { SinkRecovery } from "../../../lib/connector.ts";
import type { KafkaClient, TopicPartition } from "../client.ts";
import { KafkaError, OffsetOutOfRangeError } from "../errors.ts";
import type { MarkerPlace, PreparedTransaction } from "./committable.ts";
import { findVisible } from "./visible_records.ts";

/** What a marker says. */
export interface Marker {
  /** Id of the sink. */
  readonly transactionalId: string;
  readonly run: string;
  readonly checkpoint: number;
}

/** Where all markers lie: order between them has a meaning. */
export const MARKER_PARTITION = 0;

/** How to look for a marker. */
export interface ProbeContext {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long to wait for others' transactions to end, and for answers, ms. */
  readonly timeoutMs: number;
}

/** Between two looks at how far a reader gets, ms. */
const PAUSE_MS = 100;
const TEXT = new TextDecoder();

/** The text of a marker record. */
export function markerValue({ run, checkpoint }: Marker): string {
  return JSON.stringify({ run, checkpoint });
}

/** Sees to it that the topic of markers exists. Made here it has one partition, and keeps the last marker of each sink. */
export async function ensureMarkerTopic(
  client: KafkaClient,
  topic: string,
  { logger, signal }: { logger: Logger; signal: AbortSignal },
): Promise<void> {
  const { topics } = await client.metadata([topic], { signal });
  if (topics.length > 0) return;
  const config = { "cleanup.policy": "compact" };
  try {
    const made = await client.admin.createTopics([{ name: topic, partitions: 1, config }], { signal });
    if (made.length > 0) logger.log("info", "marker topic made", { topic });
  } catch (error) {
    if (!(error instanceof KafkaError) || error.code !== "kafka_not_authorised") throw error;
    throw new MailerError(
      "no_marker_topic",
      `the marker topic "${topic}" does not exist and may not be made`,
      {
        cause: error,
        lasting: true,
        hint: "create it with one partition and cleanup.policy=compact, or give the user the right to",
      },
    );
  }
}

/**
 * Which of the transactions were committed: so many of them, from the oldest. See M2.
 *
 * @throws {MailerError} `checkpoint_undecided` where that cannot be told.
 */
export async function countCommitted(
  client: KafkaClient,
  of: Omit<Marker, "checkpoint">,
  transactions: readonly PreparedTransaction[],
  context: ProbeContext,
): Promise<number> {
  for (let count = transactions.length; count > 0; count--) { // M4
    const { checkpoint, marker } = transactions[count - 1]!;
    if (await isVisible(client, { ...of, checkpoint }, marker, context)) return count;
  }
  return 0;
}

/** Whether one marker can be seen. */
async function isVisible(
  client: KafkaClient,
  marker: Marker,
  place: MarkerPlace,
  context: ProbeContext,
): Promise<boolean> {
  const probe = new Probe(client, marker, place, context);
  try {
    return await probe.run();
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof KafkaError && error.code === "kafka_unknown_topic") {
      throw probe.undecided(`there is no topic "${place.topic}" any more`, { cause: error });
    }
    if (error instanceof OffsetOutOfRangeError) {
      throw probe.undecided(`the place of its marker has been deleted from "${place.topic}"`, {
        cause: error,
      });
    }
    throw error;
  }
}

class Probe {
  readonly #client: KafkaClient;
  readonly #marker: Marker;
  readonly #place: MarkerPlace;
  readonly #at: TopicPartition;
  readonly #context: ProbeContext;

  constructor(client: KafkaClient, marker: Marker, place: MarkerPlace, context: ProbeContext) {
    this.#client = client;
    this.#marker = marker;
    this.#place = place;
    this.#at = { topic: place.topic, partition: place.partition };
    this.#context = context;
  }

  async run(): Promise<boolean> {
    const end = await this.#ask("end"), { offset, from } = this.#place;
    // A place that is known has to be behind us; one that is not, can be anywhere up to here (M2).
    const target = offset === null ? end : offset + 1;
    if (end < target || end <= from) {
      throw this.undecided(
        `"${this.#place.topic}" ends in front of its marker: it was made anew, or has lost records`,
      );
    }
    await this.#until(target);
    const earliest = await this.#ask("earliest"), first = offset ?? from;
    if (earliest > first) {
      throw this.undecided(`the place of its marker has been deleted from "${this.#place.topic}"`);
    }
    return await this.#scan(first, target);
  }

  /** An error that says what is not known, why, and what to do. */
  undecided(why: string, { cause, lasting = true }: ErrorOptionsWithHint = {}): MailerError {
    const { transactionalId, checkpoint } = this.#marker;
    return new MailerError(
      "checkpoint_undecided",
      `transactional id "${transactionalId}": whether checkpoint ${checkpoint} was committed cannot be told: ${why}`,
      {
        cause,
        lasting,
        hint:
          "look whether the last records of the output are those of the checkpoint; if so, go on from a savepoint behind them, " +
          "else remove that checkpoint; and keep the records of the marker topic",
      },
    );
  }

  async #ask(at: "earliest" | "end" | "stable"): Promise<number> {
    const [offset] = await this.#client.listOffsets([{ ...this.#at, at }], { signal: this.#context.signal });
    return offset!;
  }

  /** Waits until a reader gets to `target`: transactions of others may hold it back for a while. */
  async #until(target: number): Promise<void> {
    const { clock, signal, timeoutMs } = this.#context, until = clock.monotonic() + timeoutMs;
    for (let stable = await this.#ask("stable"); stable < target; stable = await this.#ask("stable")) {
      if (clock.monotonic() >= until) {
        throw this.undecided(
          `an open transaction of another producer keeps readers of "${this.#place.topic}" at offset ${stable}`,
          { lasting: false },
        );
      }
      await delay(clock, PAUSE_MS, signal);
    }
  }

  async #scan(from: number, to: number): Promise<boolean> {
    const { timeoutMs } = this.#context, { offset: place, topic } = this.#place;
    const late = () =>
      this.undecided(`"${topic}" could not be read within ${timeoutMs} ms`, { lasting: false });
    return await findVisible(
      this.#client,
      { ...this.#at, from, to },
      this.#context,
      late,
      (key, value, offset) => {
        if (isSame(readMarker(key, value), this.#marker)) return true;
        if (offset !== place) return false;
        throw this.undecided(`another record lies where its marker was: "${topic}" was made anew`);
      },
    );
  }
}

/** How far back to look for markers of a sink whose run begins anew. */
const LOOK_BACK = 1000;
/** How long that may take, ms. */
const LOOK_TIMEOUT_MS = 10_000;

/**
 * Says so where readers can see what was committed behind the place that a run goes on from: it will be there again. That is so when
 * one goes back to a savepoint, and when state was lost or put back from a copy.
 *
 * @param from No marker up to the checkpoint the run goes on from lies behind it; undefined: the run begins anew.
 */
export async function warnOfVisible(
  client: KafkaClient,
  transactionalId: string,
  { topic, from }: { readonly topic: string; readonly from: number | undefined },
  { clock, logger, signal, id }: SinkRecovery,
): Promise<void> {
  const at = { topic, partition: MARKER_PARTITION };
  let found: Marker | undefined;
  try {
    const ends = [{ ...at, at: "earliest" }, { ...at, at: "stable" }] as const;
    const [earliest, to] = await client.listOffsets(ends, { signal });
    const begin = Math.max(from ?? to! - LOOK_BACK, earliest!);
    const late = () => new MailerError("markers_unread", `not read within ${LOOK_TIMEOUT_MS} ms`);
    const context = { clock, signal, timeoutMs: LOOK_TIMEOUT_MS };
    await findVisible(client, { ...at, from: begin, to: to! }, context, late, (key, value) => {
      const marker = readMarker(key, value);
      if (marker?.transactionalId === transactionalId) found = marker;
      return false;
    });
  } catch (error) {
    signal.throwIfAborted();
    logger.log("warn", "not looked for what was committed before", {
      sink: id,
      topic,
      error: asError(error).message,
    });
  }
  if (found === undefined) return;
  logger.log("warn", "readers see more than the run knows of: it will be there twice", {
    sink: id,
    transactionalId,
    through: `checkpoint ${found.checkpoint}`,
    goesOnFrom: from === undefined ? "the start" : "an earlier checkpoint",
  });
}

/** What a record of the marker topic says; undefined where it is no marker. */
function readMarker(key: Uint8Array | null, value: Uint8Array | null): Marker | undefined {
  if (key === null || value === null) return undefined;
  try {
    const { run, checkpoint } = (JSON.parse(TEXT.decode(value)) ?? {}) as Partial<Marker>;
    if (typeof run !== "string" || typeof checkpoint !== "number") return undefined;
    return { transactionalId: TEXT.decode(key), run, checkpoint };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined; // somebody else's
    throw error;
  }
}

function isSame(found: Marker | undefined, marker: Marker): boolean {
  return found?.transactionalId === marker.transactionalId && found.run === marker.run &&
    found.checkpoint === marker.checkpoint;
}
