/**
 * Errors of the client, with what to do about them in terms of the source's settings.
 *
 * @module
 */
import { nearest } from "../../../lib/expr/suggest.ts";
import type { CallOptions, KafkaClient } from "../client.ts";
import { KafkaError, type KafkaErrorCode } from "../errors.ts";
import type { CheckedKafkaSource } from "./options.ts";

/** Most names a hint lists. */
const LISTED = 12;

/** The same error with a hint, where there is something to say; others as they are. */
export function explained(error: unknown, options: CheckedKafkaSource): unknown {
  if (!(error instanceof KafkaError)) return error;
  const hint = hintFor(error.code, options);
  if (hint === undefined) return error;
  const tried = error.code === "kafka_unreachable" ? `, tried ${options.connection.brokers.join(", ")}` : "";
  return new KafkaError(error.code, `kafka source: ${error.message}${tried}`, {
    cause: error,
    hint,
    retriable: error.retriable,
    ...(error.broker === undefined ? {} : { broker: error.broker }),
  });
}

function hintFor(code: KafkaErrorCode, { connection, group }: CheckedKafkaSource): string | undefined {
  const { tls, sasl } = connection;
  switch (code) {
    case "kafka_authentication_failed":
      return sasl === undefined
        ? "the broker wants a login on this port: give `sasl` with mechanism, username and password"
        : `look at mechanism (${sasl.mechanism}), username and password of \`sasl\`, and that the port is the one for them`;
    case "kafka_tls":
      return tls === undefined
        ? "the port speaks TLS: give `tls`, or the port for plain text"
        : "look at `tls` (ca, cert, key, serverName), and that the port speaks TLS at all";
    case "kafka_not_authorised":
      return "the user needs READ and DESCRIBE on the topics" +
        (group === undefined ? "" : `, and READ on the group "${group}"`);
    case "kafka_unreachable":
      return "look whether the brokers run and the ports are right; a port that speaks TLS or wants a login " +
        `hangs up too (tls is ${tls === undefined ? "off" : "on"}, sasl is ${
          sasl === undefined ? "off" : "on"
        })`;
    default:
      return undefined;
  }
}

/** Names the topics that do not exist, and those that may have been meant. Else undefined. */
export async function unknownTopics(
  client: KafkaClient,
  topics: readonly string[],
  call: CallOptions,
): Promise<KafkaError | undefined> {
  const { topics: all } = await client.metadata(undefined, call);
  const names = all.filter(({ internal }) => !internal).map(({ name }) => name);
  const missing = topics.filter((topic) => !all.some(({ name }) => name === topic));
  if (missing.length === 0) return undefined;
  const listed = missing.map((topic) => `"${topic}"`).join(", ");
  return new KafkaError(
    "kafka_unknown_topic",
    `kafka source: ${missing.length === 1 ? "topic" : "topics"} ${listed} not found`,
    { hint: hintForNames(missing, names), broker: "UNKNOWN_TOPIC_OR_PARTITION" },
  );
}

function hintForNames(missing: readonly string[], names: readonly string[]): string {
  const near = missing.map((topic) => nearest(topic, names)).filter((name) => name !== undefined);
  if (near.length > 0) return `did you mean ${near.map((name) => `"${name}"`).join(", ")}?`;
  if (names.length === 0) return "the cluster has no topics that this user may see";
  return names.length <= LISTED ? `there are: ${names.join(", ")}` : "create it first, or look at its name";
}
