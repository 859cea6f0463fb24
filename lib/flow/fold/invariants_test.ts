/** The oracle can tell right from wrong: every rule, on a history that breaks it. */
import assert from "node:assert/strict";
import { flowOf, Run } from "./fold_fixture.ts";
import { checkHistory, type FlowEvent } from "./mod.ts";

const FLOW = flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, timeout: 1m, next: fan }
  - { id: fan, type: fanout, branches: [b, c], next: join }
  - { id: b, type: task, kind: k }
  - { id: c, type: task, kind: k }
  - { id: join, type: join, next: w }
  - { id: w, type: await, signal: go, timeout: 1h }
`);

function history(): FlowEvent[] {
  const run = new Run(FLOW);
  run.start();
  run.complete("a", { n: 1 });
  run.complete("b");
  run.complete("c");
  run.signal("go", 1);
  assert.equal(run.state!.phase, "completed");
  return run.log.flat();
}

/** Problems of a history changed by hand; indexes are put right again. */
function problems(change: (events: FlowEvent[]) => FlowEvent[], renumber = true): string[] {
  const events = change(history()).map((event, i) => renumber ? { ...event, i: i + 1 } : event);
  return [...checkHistory(FLOW, [events]).problems];
}

const at = (events: readonly FlowEvent[], type: FlowEvent["type"], n = 0): number =>
  events.map((event, i) => event.type === type ? i : -1).filter((i) => i >= 0).at(n)!;
const without = (type: FlowEvent["type"], n = 0) => (events: FlowEvent[]): FlowEvent[] =>
  events.toSpliced(at(events, type, n), 1);
const twice = (type: FlowEvent["type"], n = 0) => (events: FlowEvent[]): FlowEvent[] =>
  events.toSpliced(at(events, type, n), 0, events[at(events, type, n)]!);

Deno.test("a right history has no problems", () => {
  assert.deepEqual(problems((events) => events), []);
});

Deno.test("every rule finds what breaks it", () => {
  const table: readonly (readonly [string, string[], RegExp])[] = [
    ["a gap", problems(without("NodeEntered"), false), /cannot be folded: event 3/],
    ["no beginning", problems((events) => events.slice(1)), /cannot be the first/],
    ["begun twice", problems(twice("ExecutionStarted")), /came twice/],
    ["ended twice", problems(twice("ExecutionCompleted")), /comes behind the end/],
    ["scheduled twice", problems(twice("NodeScheduled")), /was scheduled before/],
    ["settled twice", problems(twice("NodeCompleted")), /was not open/],
    ["settled unasked", problems(without("NodeScheduled")), /was not open/],
    ["never settled", problems(without("NodeCompleted", 1)), /has no answer/],
    ["a join twice", problems(twice("JoinCompleted")), /settles a join that is not open/],
    ["a signal twice", problems(twice("SignalConsumed")), /not the oldest/],
    ["a number twice", problems(twice("TimerScheduled", 1)), /number \d+ was given before/],
    [
      "a timer from nowhere",
      problems((events) =>
        events.toSpliced(4, 0, { type: "TimerFired", v: 1, time: 0, i: 0, data: { id: "t77" } })
      ),
      /timer that was not set/,
    ],
    [
      "no join",
      problems((events) => events.filter(({ type }) => type !== "JoinCompleted")),
      /something is open|nothing is to come/,
    ],
    ["nothing to come", problems((events) => events.slice(0, 2)), /nothing is to come/],
  ];
  for (const [name, found, expected] of table) {
    assert.ok(found.some((problem) => expected.test(problem)), `${name}: ${found.join(" | ")}`);
  }
  assert.deepEqual(checkHistory(FLOW, [[]]).problems, ["an empty decision was stored"]);
});
