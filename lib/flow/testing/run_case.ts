/**
 * Running one test of a flow, and comparing what came of it with what was expected.
 *
 * @module
 */
import { formatDuration } from "../../duration.ts";
import { stringifyJson } from "../../json.ts";
import { sameJson } from "../../same_json.ts";
import type { CompiledFlow } from "../definition/mod.ts";
import { hasEnded } from "../fold/mod.ts";
import { Answers } from "./answers.ts";
import { BEGINNING, type Simulated, Simulation } from "./simulator.ts";
import type { Expected, FlowTest, OUTCOMES } from "./test_document.ts";

/** What came of a test. */
export interface FlowTestReport {
  readonly case: string;
  readonly ok: boolean;
  readonly status: typeof OUTCOMES[number];
  readonly output: unknown;
  /** Why it failed, or was not started. */
  readonly reason: string | null;
  /** Nodes in the order they were entered. */
  readonly visited: readonly string[];
  /** Attempts of the last round by node; of a map, the most of its items. */
  readonly attempts: Readonly<Record<string, number>>;
  readonly counters: Readonly<Record<string, number>>;
  readonly channels: Readonly<Record<string, unknown>>;
  /** Virtual time until it settled. */
  readonly elapsedMs: number;
  /** What is not as it should be, one sentence each. */
  readonly problems: readonly string[];
}

/** The execution under test. */
const ID = "test";

/**
 * Runs a test on virtual time.
 *
 * @param flow Name of the flow under test.
 * @param flows All flows, by name.
 */
export function runFlowTest(
  test: FlowTest,
  flow: string,
  flows: ReadonlyMap<string, CompiledFlow>,
): FlowTestReport {
  const simulation = new Simulation(flows, new Answers(test.tasks));
  const refusal = simulation.start(ID, flow, test.input);
  for (const { after, name, payload } of test.signals) simulation.signal(ID, after, name, payload);
  for (const { after, type, data } of test.commands) simulation.command(ID, after, type, data);
  if (refusal === undefined) simulation.run(ID, test.limit);
  const execution = simulation.execution(ID);
  const outcome = execution === undefined ? rejected(refusal!) : outcomeOf(execution, simulation.now);
  const problems = [
    ...simulation.problems,
    ...simulation.check(),
    ...differences(test.expect, outcome, refusal),
  ];
  return { case: test.name, ok: problems.length === 0, ...outcome, problems };
}

type Outcome = Omit<FlowTestReport, "case" | "ok" | "problems">;

function rejected(reason: string): Outcome {
  const nothing = { visited: [], attempts: {}, counters: {}, channels: {} };
  return { status: "rejected", output: null, reason, ...nothing, elapsedMs: 0 };
}

function outcomeOf({ state, decisions }: Simulated, now: number): Outcome {
  const { phase, failure, cancelReason, output, endedAt } = state;
  const visited: string[] = [], attempts = new Map<string, Map<string, number>>();
  for (const { type, data } of decisions.flat()) {
    if (type === "NodeEntered") {
      visited.push(data.node);
      attempts.delete(data.node); // another visit is another round
    } else if (type === "NodeScheduled") {
      const { node, key, attempt } = data;
      attempts.set(node, (attempts.get(node) ?? new Map()).set(key, attempt));
    }
  }
  return {
    status: hasEnded(state) ? phase as "completed" | "failed" | "cancelled" : "waiting",
    output: output ?? null,
    reason: failure?.reason ?? cancelReason ?? null,
    visited,
    attempts: Object.fromEntries([...attempts].map(([node, keys]) => [node, Math.max(...keys.values())])),
    counters: state.counters.toObject(),
    channels: state.channels.toObject(),
    elapsedMs: (endedAt ?? now) - BEGINNING,
  };
}

function differences(expect: Expected, got: Outcome, refusal: string | undefined): string[] {
  const problems: string[] = [];
  const compare = (name: string, expected: unknown, found: unknown): void => {
    if (sameJson(expected, found)) return;
    problems.push(`${name}: ${stringifyJson(found)}, expected ${stringifyJson(expected)}`);
  };
  if (expect.status !== undefined && expect.status !== got.status) {
    const because = refusal ?? got.reason, why = because === null ? "" : ` (${because})`;
    problems.push(`status: ${got.status}${why}, expected ${expect.status}`);
  }
  if ("output" in expect) compare("output", expect.output, got.output);
  if (expect.visited !== undefined) compare("visited", expect.visited, got.visited);
  for (const [node, attempts] of Object.entries(expect.attempts ?? {})) {
    const found = Object.hasOwn(got.attempts, node) ? got.attempts[node]! : 0;
    if (found !== attempts) problems.push(`attempts of ${node}: ${found}, expected ${attempts}`);
  }
  if (expect.elapsed !== undefined && expect.elapsed !== got.elapsedMs) {
    problems.push(`elapsed: ${formatDuration(got.elapsedMs)}, expected ${formatDuration(expect.elapsed)}`);
  }
  if ("channels" in expect) compare("channels", expect.channels, got.channels);
  if ("counters" in expect) compare("counters", expect.counters, got.counters);
  if (expect.reason !== undefined) compare("reason", expect.reason, got.reason);
  return problems;
}
