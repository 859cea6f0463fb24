/**
 * Program: the sliding windows in this process. Arguments: records, runs. Prints a list of {@link SlidingResult} as JSON.
 *
 * @module
 */
import { print } from "./print.ts";
import { measureSliding } from "./sliding.ts";

const [records, runs] = Deno.args;
print(JSON.stringify(await measureSliding(Number(records), Number(runs))));
