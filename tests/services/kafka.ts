/**
 * A real Kafka for tests.
 *
 * @module
 */
import { JavaKafka, startJavaClients } from "./java_kafka.ts";
import { KafkaCluster, type KafkaOptions } from "./kafka_cluster.ts";
import { kafkaInstallation } from "./kafka_installation.ts";
import { joinSharedKafka } from "./kafka_shared.ts";
import { Keeper } from "./process.ts";

/** A Kafka that others may be using too: tell topics, groups and transactional ids apart by names of your own. */
export interface Kafka extends AsyncDisposable {
  /** `host:port` of its brokers, PLAINTEXT. */
  readonly brokers: readonly string[];
  /** Kafka's own clients: they lay out topics, write, and judge. */
  readonly java: JavaKafka;
  /** Lets go of it. */
  stop(): Promise<void>;
}

/** Whether one is to be used that runs already. */
export function hasExternalKafka(): boolean {
  return externalBrokers().length > 0;
}

/**
 * Some Kafka with one broker: that of `KAFKA_BROKERS` (`host:port`, by commas), or one that all tests share. With options it is
 * one of the test's own, which can be stopped and killed.
 *
 * @throws {ServiceUnavailable} Where it cannot be had.
 */
export function kafkaService(): Promise<Kafka>;
export function kafkaService(options: KafkaOptions): Promise<KafkaCluster>;
export async function kafkaService(options?: KafkaOptions): Promise<Kafka> {
  if (options !== undefined) return await KafkaCluster.start(options);
  return hasExternalKafka() ? new ExternalKafka(externalBrokers()) : await shared();
}

function javaOf(brokers: readonly string[], port: () => Promise<number>): JavaKafka {
  return new JavaKafka(port, { "bootstrap.servers": brokers.join(",") });
}

async function shared(): Promise<Kafka> {
  const { brokers, javaPort, leave } = await joinSharedKafka();
  let left: Promise<void> | undefined;
  const stop = () => left ??= Promise.resolve(leave());
  return {
    brokers,
    java: javaOf(brokers, () => Promise.resolve(javaPort)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

class ExternalKafka implements Kafka {
  readonly java: JavaKafka;
  #keeper: Keeper | undefined;
  #port: Promise<number> | undefined;

  constructor(readonly brokers: readonly string[]) {
    this.java = javaOf(brokers, () => this.#port ??= this.#startJava());
  }

  async stop(): Promise<void> {
    await this.#keeper?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #startJava(): Promise<number> {
    const installation = await kafkaInstallation();
    this.#keeper = await Keeper.open("kafka-clients");
    return await startJavaClients(this.#keeper, installation);
  }
}

function externalBrokers(): string[] {
  return (Deno.env.get("KAFKA_BROKERS") ?? "").split(",").map((broker) => broker.trim()).filter((broker) =>
    broker !== ""
  );
}
