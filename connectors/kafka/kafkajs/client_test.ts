/** The client on kafkajs, against real brokers. */
import { clientContract } from "../client_contract.ts";
import { kafkaClient } from "./mod.ts";

clientContract("kafkajs", kafkaClient);
