/**
 * What a broker is told: its `server.properties`.
 *
 * @module
 */

/** How clients may speak to a broker. SSL asks for a client's certificate. */
export type Listener = "PLAINTEXT" | "SASL_PLAINTEXT" | "SSL" | "SASL_SSL";

/** For brokers among themselves, and for the Java clients: never through a proxy, open to all. */
const INTERNAL = "INTERNAL";

/** Ports of a broker. */
export interface BrokerPorts {
  readonly controller: number;
  readonly internal: number;
  /** What it listens to. */
  readonly listeners: Readonly<Partial<Record<Listener, number>>>;
  /** What it tells its clients: that of a proxy, where one is in between. */
  readonly advertised: Readonly<Partial<Record<Listener, number>>>;
}

/** What all brokers of a cluster have in common. */
export interface ClusterProperties {
  readonly users: Readonly<Record<string, string>>;
  /** PEM files, where there is a listener with TLS. */
  readonly tls?: { readonly server: string; readonly authority: string };
  readonly extra: Readonly<Record<string, string | number | boolean>>;
}

/** The properties of broker `id`, from 1. */
export function brokerProperties(
  id: number,
  ports: readonly BrokerPorts[],
  folder: string,
  { users, tls, extra }: ClusterProperties,
): Record<string, string | number | boolean> {
  const own = ports[id - 1]!, count = ports.length, majority = count > 1 ? 2 : 1;
  const at = (listeners: Readonly<Record<string, number>>) =>
    Object.entries(listeners).map(([name, port]) => `${name}://127.0.0.1:${port}`).join(",");
  return {
    "process.roles": "broker,controller",
    "node.id": id,
    "controller.quorum.voters": ports.map(({ controller }, i) => `${i + 1}@127.0.0.1:${controller}`).join(
      ",",
    ),
    "listeners": at({ CONTROLLER: own.controller, [INTERNAL]: own.internal, ...own.listeners }),
    "advertised.listeners": at({ [INTERNAL]: own.internal, ...own.advertised }),
    "listener.security.protocol.map": `CONTROLLER:PLAINTEXT,${INTERNAL}:PLAINTEXT,PLAINTEXT:PLAINTEXT,` +
      "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": INTERNAL,
    "log.dirs": folder,
    "num.partitions": 1,
    "default.replication.factor": count,
    "min.insync.replicas": majority,
    "offsets.topic.replication.factor": count,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": count,
    "transaction.state.log.min.isr": majority,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": false,
    // How long a broker that was killed holds what it leads, and its own place when it comes back. Kafka's default: 9 s.
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 1_000,
    ...saslProperties(own, users),
    ...(tls === undefined ? {} : tlsProperties(tls)),
    ...extra,
  };
}

/** A properties file. */
export function propertiesFile(properties: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(properties).map(([key, value]) =>
    `${key}=${String(value).replaceAll("\\", "\\\\")}\n`
  ).join("");
}

/** What all brokers print: when they are up, and what worries them. */
export const LOGGING = `status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
`;

const MODULES = "org.apache.kafka.common.security";

function saslProperties(
  { listeners }: BrokerPorts,
  users: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = Object.keys(listeners).filter((name) => name.startsWith("SASL_"));
  if (names.length === 0) return {};
  const accounts = Object.entries(users).map(([name, password]) => ` user_${name}="${password}"`).join("");
  const properties: Record<string, string> = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
  };
  for (const name of names) {
    const prefix = `listener.name.${name.toLowerCase()}`;
    properties[`${prefix}.plain.sasl.jaas.config`] = `${MODULES}.plain.PlainLoginModule required${accounts};`;
    for (const mechanism of ["scram-sha-256", "scram-sha-512"]) {
      properties[`${prefix}.${mechanism}.sasl.jaas.config`] = `${MODULES}.scram.ScramLoginModule required;`;
    }
  }
  return properties;
}

function tlsProperties({ server, authority }: { server: string; authority: string }): Record<string, string> {
  return {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": server,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": authority,
    "listener.name.ssl.ssl.client.auth": "required",
  };
}
