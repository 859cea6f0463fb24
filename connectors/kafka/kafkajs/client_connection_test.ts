/** The client on kafkajs, against real brokers: logins, TLS, lost answers, broken connections. */
import { clientConnectionContract } from "../client_contract.ts";
import { kafkaClient } from "./mod.ts";

clientConnectionContract("kafkajs", kafkaClient);
