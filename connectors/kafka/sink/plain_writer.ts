/**
 * Writer of the Kafka sink that writes at once.
 *
 * S1 What fails on its way shows at the next call, and stays at its place: a call that is made again sends it again.
 * S2 After a flush every record is acknowledged, or has been through the failure policy.
 * S3 A batch that the broker refuses for what is in it is halved until the record is alone that has to go.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { SinkContext, SinkWriter } from "../../../lib/connector.ts";
import { asError } from "../../../lib/errors.ts";
import type { Batch } from "../../../lib/record.ts";
import type { KafkaClient, KafkaProducer } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { sendAcknowledged } from "./acknowledged.ts";
import { Chunk, Lanes } from "./lanes.ts";
import { RecordWriter } from "./record_writer.ts";
import { connect, type RecordSettings } from "./settings.ts";
import { Topics } from "./topics.ts";

/** {@link RecordSettings} and who has to have a batch before it counts as written. */
export interface PlainSettings extends RecordSettings {
  readonly acks: "all" | "leader" | "none";
}

/** Opens a writer, and looks whether the topic is there. */
export async function openPlainWriter(
  settings: PlainSettings,
  context: SinkContext,
): Promise<SinkWriter<unknown>> {
  const { clock, logger, signal } = context;
  const client = await connect(settings, context);
  try {
    const topics = new Topics(client, { clock, logger, signal });
    if (typeof settings.topic === "string") {
      const known = await abortable(topics.find(settings.topic), signal);
      if (known instanceof KafkaError) throw known;
    }
    return new PlainWriter(settings, context, client, topics);
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** A record that the broker does not take. */
interface Refused {
  readonly batch: Batch;
  readonly index: number;
  readonly error: Error;
}

class PlainWriter implements SinkWriter<unknown> {
  readonly #context: SinkContext;
  readonly #client: KafkaClient;
  readonly #producer: KafkaProducer;
  readonly #records: RecordWriter;
  readonly #lanes: Lanes;
  readonly #refused: Refused[] = [];
  /** Somebody has been told of what failed. */
  #isReported = false;

  constructor(settings: PlainSettings, context: SinkContext, client: KafkaClient, topics: Topics) {
    this.#context = context;
    this.#client = client;
    this.#producer = client.producer({
      acks: settings.acks,
      codec: settings.codec,
      deliveryTimeoutMs: settings.deliveryTimeoutMs,
    });
    this.#records = new RecordWriter(settings, context, topics);
    this.#lanes = new Lanes(settings, context.clock, {
      send: (chunk) => this.#deliver(chunk),
      taken: (chunk) => this.#records.taken(chunk),
    });
  }

  write(batch: Batch): Promise<void> {
    return this.#call(() => this.#records.write(batch, () => this.#lanes));
  }

  flush(): Promise<void> {
    return this.#call(() => abortable(this.#lanes.drain(), this.#context.signal));
  }

  async close(): Promise<void> {
    this.#lanes.close();
    await this.#producer.close();
    await this.#client.close();
  }

  /** S1, S2. */
  async #call(work: () => Promise<void>): Promise<void> {
    if (this.#isReported) this.#lanes.resume(); // it is called again
    this.#isReported = false;
    try {
      this.#rejectRefused();
      if (this.#lanes.failure !== undefined) throw this.#lanes.failure.error;
      await work();
      this.#rejectRefused();
    } catch (error) {
      this.#isReported = error === this.#lanes.failure?.error;
      throw error;
    }
  }

  #rejectRefused(): void {
    for (let refused = this.#refused.shift(); refused !== undefined; refused = this.#refused.shift()) {
      this.#context.reject(refused.batch, refused.index, refused.error);
    }
  }

  /** Sends a chunk; S3. */
  async #deliver(chunk: Chunk): Promise<readonly Chunk[]> {
    try {
      await sendAcknowledged(this.#producer, [chunk]);
      return [];
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const { count } = chunk.records, middle = count >> 1;
      if (count > 1) return [this.#part(chunk, 0, middle), this.#part(chunk, middle, count)];
      this.#refused.push({ batch: chunk.batches[0]!, index: chunk.indexes[0]!, error: asError(error) });
      return [];
    }
  }

  #part({ topic, partition, batches, indexes }: Chunk, from: number, to: number): Chunk {
    const part = new Chunk(topic, partition);
    this.#records.encoder.lookAtClock();
    for (let i = from; i < to; i++) {
      part.add(this.#records.encoder.content(batches[i]!, indexes[i]!), batches[i]!, indexes[i]!);
    }
    return part;
  }
}

/** Whether the broker has looked at the records and does not want them. */
function isRefusal(error: unknown): boolean {
  return error instanceof KafkaError && !error.retriable &&
    (error.code === "kafka_record_too_large" || error.code === "kafka_invalid_record");
}
