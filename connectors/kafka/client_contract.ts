/**
 * What every client behind the port must do, on real brokers. The tests carry the names of what goes wrong with clients as they
 * are: records that vanish, come twice or should not have come.
 *
 * In three parts, so that they can run beside each other.
 *
 * @module
 */
import type { KafkaClientFactory } from "./client.ts";
import { brokersContract } from "./contract/brokers.ts";
import { faultsContract } from "./contract/faults.ts";
import { groupsContract } from "./contract/groups.ts";
import { readingContract } from "./contract/reading.ts";
import { securityContract } from "./contract/security.ts";
import { transactionsContract } from "./contract/transactions.ts";
import { writingContract } from "./contract/writing.ts";

/** Reading, writing, transactions and groups, on a broker that may be anyone's; `name` is in front of every test. */
export function clientContract(name: string, factory: KafkaClientFactory): void {
  readingContract(name, factory);
  writingContract(name, factory);
  transactionsContract(name, factory);
  groupsContract(name, factory);
}

/** Logins, TLS and what it says when they fail; lost answers and broken connections. */
export function clientConnectionContract(name: string, factory: KafkaClientFactory): void {
  securityContract(name, factory);
  faultsContract(name, factory);
}

/** Brokers that die. */
export function clientClusterContract(name: string, factory: KafkaClientFactory): void {
  brokersContract(name, factory);
}
