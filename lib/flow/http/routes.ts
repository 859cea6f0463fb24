/**
 * The table of all calls.
 *
 * @module
 */
import { EXECUTION_ROUTES } from "./executions.ts";
import { JOB_ROUTES } from "./jobs.ts";
import type { Route } from "./route.ts";

/** All of them, in the order of the reference. */
export const ROUTES: readonly Route[] = [...EXECUTION_ROUTES, ...JOB_ROUTES];
