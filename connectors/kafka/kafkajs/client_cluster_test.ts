/** The client on kafkajs, against three real brokers of which one dies. */
import { clientClusterContract } from "../client_contract.ts";
import { kafkaClient } from "./mod.ts";

clientClusterContract("kafkajs", kafkaClient);
