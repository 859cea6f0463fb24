/**
 * Program: one workload in this process. Arguments: name, records, runs, where its state is, time between checkpoints. Prints a {@link Contest} as JSON.
 *
 * @module
 */
import { contest } from "./contest.ts";
import type { Workload } from "./data.ts";
import type { StateKind } from "./pipelines.ts";
import { print } from "./print.ts";

const [name, records, runs, state, interval] = Deno.args;
const result = await contest(name as Workload, Number(records), Number(runs), state as StateKind, interval!);
print(JSON.stringify(result));
