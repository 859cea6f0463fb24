/**
 * Real servers for tests, brought up and taken down again: Kafka, PostgreSQL, toxiproxy, a schema registry.
 *
 * ```ts
 * import { kafkaService, postgresService, serviceTest, toxiproxy } from "../services/mod.ts";
 *
 * serviceTest("what it shows", ["kafka"], async () => {
 *   await using kafka = await kafkaService(); // shared by all tests: 0 to 3 s
 *   const topic = await kafka.java.createTopic("orders", { partitions: 4 }); // with a name of its own
 *   await kafka.java.produce(topic, [{ key: "k", value: "v" }], { codec: "zstd" });
 *   const records = await kafka.java.records(topic); // what is committed, read by Kafka's Java consumer
 * });
 *
 * serviceTest("what a crash does", ["own kafka", "toxiproxy"], async () => {
 *   await using proxies = await toxiproxy();
 *   await using kafka = await kafkaService({ brokers: 3, listeners: ["SASL_SSL"], through: proxies });
 *   await kafka.kill(2); // kill -9; stop(2) as an operator would
 *   await kafka.start(2);
 *   await kafka.proxy(1).add({ type: "timeout", timeout: 0 }); // answers of broker 1 are lost
 * });
 *
 * serviceTest("what is in the table", ["own postgres"], async () => {
 *   await using postgres = await postgresService({ own: true }); // half a second
 *   await postgres.execute("create table t (id int)");
 *   await postgres.kill();
 *   await postgres.start();
 *   const rows = await postgres.rows("select * from t"); // read by psql
 * });
 * ```
 *
 * - `KAFKA_BROKERS` and `DATABASE_URL` name servers that run already; tests that ask for their own do not use them.
 * - What is downloaded or built lies in `MAILER_SERVICES_CACHE` (`~/.cache/mailer-services`) and stays; `warm.ts` fetches it
 *   beforehand, `install.sh` installs what the system has to have.
 * - Everything else lies in temporary folders, listens on 127.0.0.1 on free ports, and ends with the test or with its process,
 *   however that ends. The shared broker ends 20 s after its last user.
 * - Open and dispose of them within the test, as above: then the sanitizers of resources are content.
 *
 * @module
 */
export { type Certificate, type Certificates, certificates } from "./certificates.ts";
export {
  type GroupOffset,
  JavaKafka,
  type PartitionOffsets,
  type PartitionState,
  type ReadRecord,
  type RecordToWrite,
  type TopicOptions,
  type WriteOptions,
} from "./java_kafka.ts";
export { type Kafka, kafkaService } from "./kafka.ts";
export type { KafkaCluster, KafkaOptions } from "./kafka_cluster.ts";
export type { Listener } from "./kafka_properties.ts";
export { areServicesRequired, missingServices, type Need, serviceTest } from "./kit.ts";
export { type Postgres, type PostgresOptions, postgresService } from "./postgres.ts";
export { type SchemaRegistry, schemaRegistry } from "./registry.ts";
export { type Proxy, type Toxic, type ToxicPlace, type Toxiproxy, toxiproxy } from "./toxiproxy.ts";
export { ServiceUnavailable } from "./unavailable.ts";
