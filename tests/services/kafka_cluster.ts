/**
 * A Kafka of the test's own: one broker or three, each broker also a controller.
 *
 * @module
 */
import { cached, digestOf } from "./cache.ts";
import { type Certificates, certificates } from "./certificates.ts";
import { javaCommand, type JavaOptions, sharedClasses } from "./java.ts";
import { JavaKafka, startJavaClients } from "./java_kafka.ts";
import { type KafkaInstallation, kafkaInstallation } from "./kafka_installation.ts";
import {
  type BrokerPorts,
  brokerProperties,
  type ClusterProperties,
  type Listener,
  LOGGING,
  propertiesFile,
} from "./kafka_properties.ts";
import { freePort } from "./ports.ts";
import { Keeper, type Program, run } from "./process.ts";
import type { Proxy, Toxiproxy } from "./toxiproxy.ts";

/** How a Kafka is laid out. */
export interface KafkaOptions {
  /** Default 1. With 3, topics have three replicas and need two of them. */
  readonly brokers?: 1 | 3;
  /** How clients may speak to it; default `["PLAINTEXT"]`. */
  readonly listeners?: readonly Listener[];
  /** Names and passwords for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; default `{ alice: "alice-secret" }`. */
  readonly users?: Readonly<Record<string, string>>;
  /** More properties of the brokers. */
  readonly properties?: Readonly<Record<string, string | number | boolean>>;
  /** Clients, not brokers among themselves, come through proxies of this one; see `proxy`. */
  readonly through?: Toxiproxy;
  /** `fast` for benchmarks: starts slower and runs as fast as Kafka can. Default `quick`. */
  readonly compiler?: JavaOptions["compiler"];
}

/** All of them format their storage with this: what belongs together, and clusters never meet. */
const CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg";

interface Broker {
  readonly ports: BrokerPorts;
  readonly properties: string;
  program: Program | undefined;
}

/** A running Kafka whose brokers can be stopped and killed. */
export class KafkaCluster implements AsyncDisposable {
  /** `host:port` of every broker, of the first listener that was asked for. */
  readonly brokers: readonly string[];
  /** Kafka's own clients. They go past proxies. */
  readonly java: JavaKafka;
  #port: Promise<number> | undefined;

  private constructor(
    private readonly keeper: Keeper,
    private readonly options: KafkaOptions,
    private readonly installation: KafkaInstallation,
    private readonly flags: readonly string[],
    private readonly archive: string | undefined,
    private readonly list: readonly Broker[],
    /** What clients trust and show, where there is a listener with TLS. */
    readonly certificates: Certificates | undefined,
  ) {
    this.brokers = this.addresses((options.listeners ?? ["PLAINTEXT"])[0]!);
    const internal = list.map(({ ports }) => `127.0.0.1:${ports.internal}`);
    this.java = new JavaKafka(() => this.javaPort(), { "bootstrap.servers": internal.join(",") });
  }

  /** Starts one. The first time on a machine it is fetched: half a minute. */
  static async start(options: KafkaOptions = {}): Promise<KafkaCluster> {
    const { installation, archive } = await KafkaCluster.prepare();
    return await KafkaCluster.#open(options, installation, archive, []);
  }

  /** Fetches and builds what a start needs and is not there yet. */
  static async prepare(): Promise<{ installation: KafkaInstallation; archive: string | undefined }> {
    const installation = await kafkaInstallation();
    const archive = await sharedClasses(installation.name, async (flags) => {
      await using cluster = await KafkaCluster.#open({}, installation, undefined, flags);
      await cluster.stop(1);
    });
    return { installation, archive };
  }

  static async #open(
    options: KafkaOptions,
    installation: KafkaInstallation,
    archive: string | undefined,
    flags: readonly string[],
  ): Promise<KafkaCluster> {
    const keeper = await Keeper.open("kafka");
    try {
      const tls = await certificatesFor(options, keeper);
      const ports = await choosePorts(options);
      const common = commonProperties(options, tls);
      const list = ports.map((own, i) => {
        const properties = brokerProperties(i + 1, ports, `${keeper.folder}/broker-${i + 1}`, common);
        return { ports: own, properties: propertiesFile(properties), program: undefined };
      });
      const cluster = new KafkaCluster(keeper, options, installation, flags, archive, list, tls);
      await cluster.#lay();
      await Promise.all(list.map((_, i) => cluster.start(i + 1)));
      return cluster;
    } catch (error) {
      await keeper[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Where it works; gone at the end. */
  get folder(): string {
    return this.keeper.folder;
  }

  /** `host:port` of every broker, of one listener. */
  addresses(listener: Listener): string[] {
    return this.list.map(({ ports }) => `127.0.0.1:${ports.advertised[listener]}`);
  }

  /** The proxy in front of a broker, where the cluster was started `through` a toxiproxy. Brokers count from 1. */
  proxy(broker: number, listener: Listener = (this.options.listeners ?? ["PLAINTEXT"])[0]!): Proxy {
    const port = this.#broker(broker).ports.advertised[listener];
    const proxy = this.options.through?.proxies.find((proxy) => proxy.port === port);
    if (proxy === undefined) throw new Error(`there is no proxy in front of ${listener} of broker ${broker}`);
    return proxy;
  }

  /** Kills a broker: no goodbye, nothing written. Brokers count from 1. */
  async kill(broker: number): Promise<void> {
    await this.#broker(broker).program?.end("SIGKILL");
  }

  /** Stops a broker as an operator would, its leaderships handed on; without a number, ends it all. */
  async stop(broker?: number): Promise<void> {
    if (broker !== undefined) return await this.#broker(broker).program?.end("SIGTERM", 60_000);
    // One after the other they would wait for each other to hand on what they lead.
    for (const { program } of this.list) program?.signal("SIGKILL");
    await this.keeper[Symbol.asyncDispose]();
  }

  /** Starts a broker again with the data it had, and waits until it is up. */
  async start(broker: number): Promise<void> {
    const entry = this.#broker(broker);
    if (entry.program !== undefined && !entry.program.hasEnded) {
      throw new Error(`broker ${broker} runs already`);
    }
    const folder = this.keeper.folder;
    const command = javaCommand({
      classPath: this.installation.broker,
      main: "kafka.Kafka",
      args: [`${folder}/broker-${broker}.properties`],
      compiler: this.options.compiler ?? "quick",
      heap: this.options.compiler === "fast" ? 1024 : 256,
      sharedClasses: this.archive,
      flags: [`-Dlog4j2.configurationFile=${folder}/log4j2.properties`, ...this.flags],
    });
    const program = this.keeper.start(command, { name: `broker-${broker}` });
    entry.program = program;
    await program.ready(async () => (await program.log()).includes("Kafka Server started"), 120_000);
  }

  /** Whether a broker runs. */
  isUp(broker: number): boolean {
    return this.#broker(broker).program?.hasEnded === false;
  }

  /** What a broker has printed since it was last started. */
  async log(broker: number): Promise<string> {
    return await this.#broker(broker).program?.log() ?? "";
  }

  /** Kafka's own clients, by one of the listeners, with more settings as Java has them, such as `sasl.mechanism`. */
  clients(listener: Listener, settings: Readonly<Record<string, string>> = {}): JavaKafka {
    const common = { "bootstrap.servers": this.addresses(listener).join(","), "security.protocol": listener };
    return new JavaKafka(() => this.javaPort(), { ...common, ...settings });
  }

  /** The port of the Java clients, which are started when they are first needed. */
  javaPort(): Promise<number> {
    return this.#port ??= startJavaClients(this.keeper, this.installation, this.archive);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #broker(number: number): Broker {
    const broker = this.list[number - 1];
    if (broker === undefined) throw new Error(`there is no broker ${number}: they count from 1`);
    return broker;
  }

  /** Files and formatted storage. */
  async #lay(): Promise<void> {
    const { folder } = this.keeper;
    await Deno.writeTextFile(`${folder}/log4j2.properties`, LOGGING);
    for (const [i, { properties }] of this.list.entries()) {
      await Deno.writeTextFile(`${folder}/broker-${i + 1}.properties`, properties);
      const template = await formatted(
        this.installation,
        i + 1,
        this.list.length,
        scramUsers(this.options),
        this.archive,
      );
      const { success, output } = await run(["cp", "-R", template, `${folder}/broker-${i + 1}`]);
      if (!success) throw new Error(`Kafka's storage could not be copied: ${output}`);
    }
  }
}

function listenersOf(options: KafkaOptions): readonly Listener[] {
  return options.listeners ?? ["PLAINTEXT"];
}

function usersOf(options: KafkaOptions): Readonly<Record<string, string>> {
  return options.users ?? { alice: "alice-secret" };
}

/** Those whose passwords lie in the storage. */
function scramUsers(options: KafkaOptions): Readonly<Record<string, string>> {
  return listenersOf(options).some((listener) => listener.startsWith("SASL_")) ? usersOf(options) : {};
}

async function certificatesFor(options: KafkaOptions, keeper: Keeper): Promise<Certificates | undefined> {
  if (!listenersOf(options).some((listener) => listener.endsWith("SSL"))) return undefined;
  await Deno.mkdir(`${keeper.folder}/tls`);
  return await certificates(`${keeper.folder}/tls`);
}

function commonProperties(options: KafkaOptions, tls: Certificates | undefined): ClusterProperties {
  const common = { users: usersOf(options), extra: options.properties ?? {} };
  return tls === undefined ? common : { ...common, tls: tls.files };
}

async function choosePorts(options: KafkaOptions): Promise<BrokerPorts[]> {
  const all: BrokerPorts[] = [];
  for (let id = 1; id <= (options.brokers ?? 1); id++) {
    const listeners: Partial<Record<Listener, number>> = {},
      advertised: Partial<Record<Listener, number>> = {};
    for (const listener of listenersOf(options)) {
      const port = listeners[listener] = freePort();
      const name = `kafka-${port}-${listener.toLowerCase()}`;
      advertised[listener] = options.through === undefined
        ? port
        : (await options.through.open(name, port)).port;
    }
    all.push({ controller: freePort(), internal: freePort(), listeners, advertised });
  }
  return all;
}

/** Storage as `StorageTool format` leaves it, in the cache: it takes a JVM, and is the same every time. */
function formatted(
  installation: KafkaInstallation,
  id: number,
  count: number,
  users: Readonly<Record<string, string>>,
  archive: string | undefined,
): Promise<string> {
  const scram = Object.entries(users).flatMap(([name, password]) =>
    ["SCRAM-SHA-256", "SCRAM-SHA-512"].flatMap((
      mechanism,
    ) => ["--add-scram", `${mechanism}=[name=${name},password=${password}]`])
  );
  const name = `${installation.name}-storage-${digestOf(CLUSTER_ID, String(id), String(count), ...scram)}`;
  return cached(name, async (folder) => {
    const ports = Array.from({ length: count }, (_, i) => ({
      controller: 2 * i + 1,
      internal: 2 * i + 2,
      listeners: {},
      advertised: {},
    }));
    const properties = brokerProperties(id, ports, folder, { users: {}, extra: {} });
    const work = await Deno.makeTempDir({ prefix: "mailer-format-" });
    try {
      await Deno.writeTextFile(`${work}/server.properties`, propertiesFile(properties));
      const command = javaCommand({
        classPath: installation.broker,
        main: "kafka.tools.StorageTool",
        args: ["format", "-t", CLUSTER_ID, "-c", `${work}/server.properties`, ...scram],
        sharedClasses: archive,
      });
      const { success, output } = await run(command);
      if (!success) throw new Error(`Kafka's storage could not be formatted:\n${output}`);
    } finally {
      await Deno.remove(work, { recursive: true });
    }
  });
}
