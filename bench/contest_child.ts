/**
 * Program: one workload in this process. Arguments: name, records, runs. Prints a {@link Contest} as JSON.
 *
 * @module
 */
import { contest } from "./contest.ts";
import type { Workload } from "./data.ts";
import { print } from "./print.ts";

const [name, records, runs] = Deno.args;
print(JSON.stringify(await contest(name as Workload, Number(records), Number(runs))));
