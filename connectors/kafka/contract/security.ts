/**
 * How a client logs in and speaks TLS, and what it says when that does not work.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../../lib/clock.ts";
import { kafkaService, type Listener, serviceTest } from "../../../tests/services/mod.ts";
import type { KafkaClientFactory, KafkaConnection, KafkaSasl } from "../client.ts";
import { KafkaError, type KafkaErrorCode } from "../errors.ts";
import { batch, pause, readAll, texts, timed, unique, withClient } from "./kit.ts";

/** A connection that does not work, and what is said of it. */
interface Wrong {
  readonly what: string;
  readonly listener: Listener;
  readonly connection: Omit<KafkaConnection, "brokers">;
  readonly code: KafkaErrorCode;
  /** In message or hint. */
  readonly says: RegExp;
}

const login = (mechanism: KafkaSasl["mechanism"], password = "alice-secret"): KafkaSasl => ({
  mechanism,
  username: "alice",
  password,
});

/** The suite. */
export function securityContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(`${name}: logins and TLS`, ["own kafka", "certificates"], async (test) => {
    await using kafka = await kafkaService({
      listeners: ["SASL_PLAINTEXT", "SSL", "SASL_SSL", "PLAINTEXT"],
      properties: { "connections.max.reauth.ms": 11_000 }, // clients do it 10 s before
    });
    const { authority: ca, client: { certificate: cert, key }, stranger } = kafka.certificates!;
    const tls = { ca, cert, key };
    const works: readonly [string, Listener, Omit<KafkaConnection, "brokers">][] = [
      ["PLAIN", "SASL_PLAINTEXT", { sasl: login("plain") }],
      ["SCRAM-SHA-256", "SASL_PLAINTEXT", { sasl: login("scram-sha-256") }],
      ["SCRAM-SHA-512", "SASL_PLAINTEXT", { sasl: login("scram-sha-512") }],
      ["TLS with a client certificate", "SSL", { tls }],
      ["TLS by another name of the certificate", "SSL", { tls: { ...tls, serverName: "localhost" } }],
      ["TLS and PLAIN", "SASL_SSL", { tls, sasl: login("plain") }],
      ["TLS and SCRAM-SHA-512", "SASL_SSL", { tls, sasl: login("scram-sha-512") }],
    ];
    for (const [what, listener, connection] of works) {
      await test.step(`${what} works, for everything`, () =>
        withClient(factory, { brokers: kafka.addresses(listener), ...connection }, async (client) => {
          const topic = unique("secure");
          await client.admin.createTopics([{ name: topic, partitions: 1 }]);
          const id = unique("t");
          const producer = await client.transactionalProducer({
            transactionalId: id,
            transactionTimeoutMs: 60_000,
          });
          await producer.send([batch(topic, 0, [what])]);
          await producer.sendOffsets(unique("g"), [{ topic, partition: 0, offset: 1 }]);
          await producer.commit();
          await client.transactionalProducer({ transactionalId: id, transactionTimeoutMs: 60_000 });
          assert.deepEqual(texts(await readAll(client, [{ topic, partition: 0 }])), [what]);
        }));
    }
    await test.step("a login that runs out is renewed while requests go on", () => {
      const connection = { brokers: kafka.addresses("SASL_PLAINTEXT"), sasl: login("scram-sha-256") };
      return withClient(factory, connection, async (client) => {
        const topic = unique("renewed");
        await client.admin.createTopics([{ name: topic, partitions: 4 }]);
        const partitions = [0, 1, 2, 3].map((partition) => ({ topic, partition }));
        const producer = client.producer();
        const end = systemClock.monotonic() + 4000;
        let count = 0;
        while (systemClock.monotonic() < end) {
          await Promise.all(
            partitions.map(({ partition }) => producer.send([batch(topic, partition, [String(count)])])),
          );
          count++;
          await pause(20);
        }
        assert.equal((await readAll(client, partitions)).length, 4 * count);
      });
    });
    const wrongs: readonly Wrong[] = [
      ...(["plain", "scram-sha-256", "scram-sha-512"] as const).map((mechanism): Wrong => ({
        what: `a wrong password (${mechanism})`,
        listener: "SASL_PLAINTEXT",
        connection: { sasl: login(mechanism, "not it") },
        code: "kafka_authentication_failed",
        says: /check user, password/,
      })),
      {
        what: "no login where one is expected",
        listener: "SASL_PLAINTEXT",
        connection: {},
        code: "kafka_unreachable",
        says: /expects a login and sasl is not set/,
      },
      {
        what: "a login where none is expected",
        listener: "PLAINTEXT",
        connection: { sasl: login("plain") },
        code: "kafka_authentication_failed",
        says: /expects a login/,
      },
      {
        what: "plain text where TLS is expected",
        listener: "SSL",
        connection: {},
        code: "kafka_unreachable",
        says: /expects TLS and tls is not set/,
      },
      {
        what: "TLS where plain text is expected",
        listener: "PLAINTEXT",
        connection: { tls },
        code: "kafka_tls",
        says: /does not speak TLS and tls is set/,
      },
      {
        what: "an authority that is not trusted",
        listener: "SSL",
        connection: { tls: { cert, key } },
        code: "kafka_tls",
        says: /check the certificates/,
      },
      {
        what: "a name that is not in the certificate",
        listener: "SSL",
        connection: { tls: { ...tls, serverName: "elsewhere.example" } },
        code: "kafka_tls",
        says: /server name/,
      },
      {
        what: "no client certificate where one is expected",
        listener: "SSL",
        connection: { tls: { ca } },
        code: "kafka_tls",
        says: /expects a client certificate/,
      },
      {
        what: "a client certificate the broker does not trust",
        listener: "SSL",
        connection: { tls: { ca, cert: stranger.certificate, key: stranger.key } },
        code: "kafka_tls",
        says: /check the certificates/,
      },
    ];
    for (const { what, listener, connection, code, says } of wrongs) {
      await test.step(`${what} is said in so many words`, async () => {
        const took = await timed(async () => {
          const options = {
            brokers: kafka.addresses(listener),
            requestTimeoutMs: 2000,
            connectTimeoutMs: 5000,
            ...connection,
          };
          await withClient(
            factory,
            options,
            (client) =>
              assert.rejects(client.metadata(undefined), (error) => {
                assert.ok(error instanceof KafkaError, String(error));
                const said = `${error.message}; ${error.hint}`;
                assert.equal(error.code, code, said);
                assert.match(said, says);
                assert.doesNotMatch(said, /alice-secret|not it/);
                return true;
              }),
          );
        });
        assert.ok(took < 10_000, `${took} ms`);
      });
    }
    await test.step("a port nobody listens to, and an address that is none", async () => {
      const nobody = { brokers: ["127.0.0.1:1"], requestTimeoutMs: 500 };
      await withClient(
        factory,
        nobody,
        (client) =>
          assert.rejects(client.metadata(undefined), {
            code: "kafka_unreachable",
            message: /127\.0\.0\.1:1/,
          }),
      );
      const unknown = { brokers: ["tls-broker.invalid:9092"], requestTimeoutMs: 500, tls };
      await withClient(
        factory,
        unknown,
        (client) =>
          assert.rejects(client.metadata(undefined), {
            code: "kafka_unreachable",
            message: /tls-broker\.invalid/,
          }),
      );
      for (const brokers of [[], ["kafka"], ["kafka:99999"], ["kafka:9092/x"], ["http://kafka:9092"]]) {
        const make = () => withClient(factory, { brokers }, (client) => client.metadata([]));
        await assert.rejects(async () => await make(), { code: "kafka_invalid_setting" }, String(brokers));
      }
    });
  });
}
