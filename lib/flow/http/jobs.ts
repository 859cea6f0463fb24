/**
 * The calls of workers.
 *
 * @module
 */
import { amounts, any, flag, list, must, object, text, token, whole } from "./fields.ts";
import { type Route, route } from "./route.ts";

/** Longest time a call waits, ms. */
export const LONGEST_WAIT = 60_000;
/** For how long a job is leased unless a worker says otherwise, ms. */
export const LEASE_MS = 30_000;

const LEASE = must(text("The lease, as it came with the job", { max: 300 }));
const USAGE = amounts("Amounts to add to counters, by name");
const RECEIPT = {
  summary: "Whether the answer counts. What comes too late, or again, changes nothing, and is told so.",
  schema: {
    type: "object",
    properties: { accepted: { type: "boolean" }, reason: { type: "string" } },
    required: ["accepted"],
  },
};

/** All of them. */
export const JOB_ROUTES: readonly Route[] = [
  route({
    method: "POST",
    path: "/v1/jobs/lease",
    tag: "jobs",
    summary: "Hands out jobs; waits until there is one",
    waits: true,
    body: {
      kinds: must(list("Kinds of work the worker does", token("A kind"), { min: 1, max: 64 })),
      max: whole("Most jobs", { min: 1, max: 100, byDefault: 1 }),
      worker: must(text("Names the worker among all", { max: 128 })),
      leaseMs: whole("For how long a job is the worker's without a heartbeat, ms", {
        min: 100,
        max: 3_600_000,
        byDefault: LEASE_MS,
      }),
      waitMs: whole("How long to wait for a job, ms", { max: LONGEST_WAIT, byDefault: 0 }),
    },
    answers: {
      summary: "Jobs, none where there were none in time.",
      schema: {
        type: "object",
        properties: { jobs: { type: "array", items: { $ref: "#/components/schemas/Job" } } },
        required: ["jobs"],
      },
    },
    handle: async ({ jobs }, { body, signal }) => {
      const { kinds, max = 1, worker, leaseMs = LEASE_MS, waitMs = 0 } = body;
      return { jobs: await jobs.lease({ kinds: [...new Set(kinds)], max, worker, leaseMs, waitMs }, signal) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/jobs/{id}/heartbeat",
    tag: "jobs",
    summary: "Prolongs a lease, tells progress, and hears whether the job is still wanted",
    waits: "if-room",
    body: {
      lease: LEASE,
      leaseMs: whole("From now on, ms; by default as long as it was leased for", {
        min: 100,
        max: 3_600_000,
      }),
      progress: any("How far it has got: the next attempt finds it as context.progress where this one fails"),
      keep: flag("Only keep the lease: for the heartbeat of the node it does not count"),
      waitMs: whole("Wait so long with the answer, as long as the job is wanted, ms", {
        max: LONGEST_WAIT,
        byDefault: 0,
      }),
    },
    answers: {
      summary: "Whether an answer is still wanted; where not, the worker stops and gives none.",
      schema: {
        type: "object",
        properties: {
          wanted: { type: "boolean" },
          reason: { type: "string" },
          until: { type: "integer", description: "End of the lease, ms since 1970" },
        },
        required: ["wanted"],
      },
    },
    handle: ({ jobs }, { path, body: { lease, ...more }, signal, mayWait }) => {
      return jobs.heartbeat(path.id, lease, mayWait ? more : { ...more, waitMs: 0 }, signal);
    },
  }),
  route({
    method: "POST",
    path: "/v1/jobs/{id}/complete",
    tag: "jobs",
    summary: "The task is done",
    body: {
      lease: LEASE,
      output: any("Output of the task: an object, or nothing"),
      writes: object("What is written to channels, by name"),
      next: text("The next node, where the task may choose", { max: 128 }),
      usage: USAGE,
    },
    answers: RECEIPT,
    handle: ({ jobs }, { path, body: { lease, ...data } }) => jobs.answer(path.id, lease, "complete", data),
  }),
  route({
    method: "POST",
    path: "/v1/jobs/{id}/fail",
    tag: "jobs",
    summary: "The attempt has failed",
    body: {
      lease: LEASE,
      error: must(text("Why, one sentence")),
      retryable: flag("Whether another attempt may go better. Default true"),
      name: text("Name of the error, for the retry policy of the node", { max: 128 }),
      usage: USAGE,
      progress: any("How far it has got; by default what the last heartbeat told"),
    },
    answers: RECEIPT,
    handle: ({ jobs }, { path, body: { lease, retryable = true, ...data } }) => {
      return jobs.answer(path.id, lease, "fail", { ...data, retryable });
    },
  }),
  route({
    method: "POST",
    path: "/v1/jobs/{id}/interrupt",
    tag: "jobs",
    summary: "The task waits for a person: it goes on as a new attempt when somebody resumes it",
    body: { lease: LEASE, payload: any("What is asked"), usage: USAGE },
    answers: RECEIPT,
    handle: ({ jobs }, { path, body: { lease, ...data } }) => jobs.answer(path.id, lease, "interrupt", data),
  }),
  route({
    method: "POST",
    path: "/v1/jobs/{id}/release",
    tag: "jobs",
    summary: "Puts a job back for another worker; it counts as not handed out",
    body: { lease: LEASE, delayMs: whole("Not before, ms from now", { max: 86_400_000, byDefault: 0 }) },
    answers: {
      summary: "Whether the job was this lease's.",
      schema: {
        type: "object",
        properties: { released: { type: "boolean" } },
        required: ["released"],
      },
    },
    handle: async ({ jobs }, { path, body: { lease, delayMs } }) => {
      return { released: await jobs.release(path.id, lease, delayMs) };
    },
  }),
];
