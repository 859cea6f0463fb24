/**
 * Whether a run with a Kafka sink could start; nothing is changed, and no producer is started.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { CheckContext, Finding } from "../../../lib/connector.ts";
import { formatDuration } from "../../../lib/duration.ts";
import type { KafkaClient } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { connect, type RecordSettings } from "./settings.ts";
import { type TransactionalSettings, transactionTimeout } from "./transactional_settings.ts";

/** Looks whether the topic is there. */
export async function checkPlain(
  settings: RecordSettings,
  context: CheckContext,
): Promise<readonly Finding[]> {
  return await withClient(
    settings,
    context,
    async (client) => [await topicFinding(client, settings, context)],
  );
}

/** Looks whether records could be written and committed. */
export async function checkTransactional(
  settings: TransactionalSettings,
  context: CheckContext,
): Promise<readonly Finding[]> {
  return await withClient(settings, context, async (client) => [
    await topicFinding(client, settings, context),
    await timeoutFinding(client, settings, context),
    await markerFinding(client, settings, context),
    ...await openFindings(client, settings, context),
  ]);
}

async function withClient(
  settings: RecordSettings,
  context: CheckContext,
  look: (client: KafkaClient) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const client = await connect(settings, context);
  try {
    return await abortable(look(client), context.signal);
  } finally {
    await client.close();
  }
}

async function topicFinding(
  client: KafkaClient,
  { topic, connection }: RecordSettings,
  { signal }: CheckContext,
): Promise<Finding> {
  const at = connection.brokers.join(", ");
  if (typeof topic === "function") {
    const { brokers } = await client.metadata([], { signal });
    return { ok: true, text: `${brokers.length === 1 ? "1 broker" : `${brokers.length} brokers`} at ${at}` };
  }
  const partitions = (await client.requireTopics([topic], { signal })).get(topic)!;
  const count = partitions === 1 ? "1 partition" : `${partitions} partitions`;
  return { ok: true, text: `topic "${topic}" at ${at}, ${count}` };
}

async function timeoutFinding(
  client: KafkaClient,
  settings: TransactionalSettings,
  context: CheckContext,
): Promise<Finding> {
  const { checkpointInterval } = context;
  if (checkpointInterval === undefined) {
    const text = "it commits with checkpoints, and the pipeline takes none";
    return { ok: false, text, hint: "switch checkpointing on with an interval" };
  }
  const timeout = formatDuration(await transactionTimeout(client, settings, checkpointInterval, context));
  const interval = formatDuration(checkpointInterval);
  return { ok: true, text: `transactions may take ${timeout}, checkpoints are ${interval} apart` };
}

async function markerFinding(
  client: KafkaClient,
  { markerTopic }: TransactionalSettings,
  { signal }: CheckContext,
): Promise<Finding> {
  const { topics } = await client.metadata([markerTopic], { signal });
  return { ok: true, text: `marker topic "${markerTopic}"${topics.length > 0 ? "" : " will be made"}` };
}

/** An open transaction is no obstacle, but somebody may want to know before a start puts an end to it. */
async function openFindings(
  client: KafkaClient,
  { transactionalId }: TransactionalSettings,
  { signal }: CheckContext,
): Promise<readonly Finding[]> {
  try {
    const [known] = await client.admin.describeTransactions([transactionalId], { signal });
    if (known?.state !== "Ongoing") return [];
    const text = `transactional id "${transactionalId}" has an open transaction, which a start aborts: ` +
      "another instance runs with it, or was killed";
    return [{ ok: true, text }];
  } catch (error) {
    if (error instanceof KafkaError && error.code === "kafka_unsupported") return []; // the broker is too old to say
    throw error;
  }
}
