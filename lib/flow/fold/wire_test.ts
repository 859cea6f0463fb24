/** Events, commands and states as JSON. */
import assert from "node:assert/strict";
import { parseExact, stringifyJson } from "../../json.ts";
import { nodesOf, Run, T0 } from "./fold_fixture.ts";
import {
  applyAll,
  type Command,
  COMMAND_TYPES,
  decodeCommand,
  decodeEvent,
  decodeEvents,
  decodeState,
  encodeCommand,
  encodeEvents,
  encodeState,
  EVENT_TYPES,
  sameState,
} from "./mod.ts";

const DIGITS =
  '{"whole":12345678901234567890,"negative":-9007199254740993,"decimal":0.1234567890123456789,"list":[9007199254740993]}';

Deno.test("numbers keep every digit: input, output, writes, payloads, items, edits", () => {
  const run = new Run(nodesOf(
    "id: m, type: map, over: input.list, kind: k, next: w",
    "id: w, type: await, signal: go, timeout: 1h, next: s",
    "id: s, type: subflow, flow: child, input: signals.go",
  ));
  const value = parseExact(DIGITS);
  run.start(value);
  run.complete("m#0", value);
  run.signal("go", value);
  const log = run.log.map(encodeEvents).join("\n");
  assert.equal(log.split(DIGITS).length - 1, 4, "input, output, payload, input of the child");
  assert.match(log, /"items":\[9007199254740993\]/);
  const state = stringifyJson(encodeState(run.state!));
  for (const text of [log, state, encodeEvents(decodeEvents(encodeEvents(run.log.flat())))]) {
    assert.ok(text.includes(`"input":${DIGITS}`));
  }
  const folded = applyAll(
    run.flow,
    undefined,
    run.log.flatMap((decision) => decodeEvents(encodeEvents(decision))),
  );
  assert.ok(sameState(folded!, run.state!));
  const command: Command = { id: "u", type: "update", exec_id: "x", data: { writes: value } };
  assert.ok(encodeCommand(decodeCommand(encodeCommand(command))).includes(DIGITS));
});

Deno.test("an event as JSON: envelope, times as text", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k, timeout: 1m"));
  run.ask("start", { flow: "f", start_at: T0 + 1500 }, "start.x");
  const [started, timer] = JSON.parse(encodeEvents(run.log[0]!));
  assert.deepEqual(started, {
    type: "ExecutionStarted",
    v: 1,
    time: "2026-03-01T10:00:00.000Z",
    i: 1,
    cmd_id: "start.x",
    data: {
      exec_id: "x",
      flow: "f",
      flow_hash: run.flow.hash,
      input: {},
      start_at: "2026-03-01T10:00:01.500Z",
    },
  });
  assert.deepEqual(timer.data, { id: "t1", n: 1, at: "2026-03-01T10:00:01.500Z", purpose: "start" });
});

Deno.test("trace context goes from the command to its events, and on to children", () => {
  const run = new Run(nodesOf("id: s, type: subflow, flow: child"));
  const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const text = encodeCommand({ id: "c", type: "start", exec_id: "x", data: { flow: "f" }, trace, time: T0 });
  const command = decodeCommand(text) as Extract<Command, { readonly type: "start" }>;
  assert.equal(command.time, T0);
  const verdict = run.decide(command);
  assert.ok(verdict.ok && verdict.events.every((event) => event.trace === trace && event.cmd_id === "c"));
  assert.equal(run.effectsOf("child_start")[0]!.command.trace, trace);
});

Deno.test("unknown types and versions of events are refused, and so is what does not fit", () => {
  const good = { type: "NodeEntered", v: 1, time: "2026-03-01T10:00:00Z", i: 3, data: { node: "a" } };
  assert.equal(decodeEvent(good).time, T0);
  const table: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ ...good, type: "NodeVanished" }, /unknown_event.*event type "NodeVanished" is unknown/],
    [{ ...good, type: "toString" }, /unknown_event/],
    [{ ...good, v: 2 }, /unknown_event.*version 2 of the event NodeEntered is unknown/],
    [{ ...good, v: "1" }, /unknown_event/],
    [{ ...good, data: {} }, /invalid_event.*has no "node"/],
    [{ ...good, data: { node: 7 } }, /invalid_event.*"node"/],
    [{ ...good, i: -1 }, /invalid_event/],
    [{ ...good, time: "now" }, /invalid_event/],
    [{ ...good, data: null }, /invalid_event/],
  ];
  for (const [value, expected] of table) {
    assert.throws(
      () => decodeEvent(value),
      (error: Error & { code?: string }) => expected.test(`${error.code} ${error.message}`),
    );
  }
  assert.throws(() => decodeEvents("{}"), /list/);
  assert.throws(() => decodeEvents("[7]"), /object/);
  assert.equal(EVENT_TYPES.length, 31);
});

Deno.test("commands: what does not fit is refused, what a worker gives is taken as it comes", () => {
  const good = { id: "c", type: "complete", exec_id: "x", data: { key: "a", generation: 1, attempt: 1 } };
  const decode = (value: unknown) => decodeCommand(JSON.stringify(value));
  assert.deepEqual(decode({ ...good, data: { ...good.data, output: [1], usage: "much" } }).data, {
    ...good.data,
    output: [1],
    usage: "much",
  });
  const bad: readonly unknown[] = [
    [],
    { ...good, type: "explode" },
    { ...good, id: "" },
    { ...good, id: "x".repeat(257) },
    { ...good, exec_id: "a.b" },
    { ...good, exec_id: "*" },
    { ...good, exec_id: "" },
    { ...good, data: { key: "a", generation: 1.5, attempt: 1 } },
    { ...good, data: { key: "a", generation: 1 } },
    { ...good, type: "signal", data: { name: "a b" } },
    { ...good, type: "start", data: { flow: "f", parent: { exec_id: "p" } } },
    { ...good, type: "start", data: { flow: "f", start_at: "tomorrow" } },
    { ...good, type: "child_done", data: { child_id: "c", status: "gone" } },
  ];
  for (const value of bad) {
    assert.throws(
      () => decode(value),
      (error: { readonly code?: string }) => error.code === "invalid_command",
    );
  }
  const nested = (depth: number) => `${"[".repeat(depth)}"\\"]${"]".repeat(50)}"${"]".repeat(depth)}`;
  const text = (depth: number) =>
    `{"id":"c","type":"complete","exec_id":"x","data":{"key":"a","generation":1,"attempt":1,"output":${
      nested(depth)
    }}}`;
  assert.equal(decodeCommand(text(998)).type, "complete");
  assert.throws(() => decodeCommand(text(999)), /nested no deeper than 1000/);
  assert.equal(decode({ ...good, type: "pause", data: undefined }).type, "pause");
  assert.equal(COMMAND_TYPES.length, 18);
});

Deno.test("states of another version, or that are none, are refused", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k"));
  run.start();
  const state = encodeState(run.state!);
  const code = (expected: string) => (error: { readonly code?: string }) => error.code === expected;
  assert.throws(() => decodeState({ ...state, v: 2 }), code("unknown_state"));
  assert.throws(() => decodeState({ ...state, steps: "many" }), code("invalid_state"));
  assert.throws(() => decodeState([]), code("invalid_state"));
  assert.throws(() => decodeState({ ...state, tasks: undefined }), code("invalid_state"));
});

Deno.test("F2 a history that does not fit is refused at the first event that does not, naming both sides", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k"));
  run.start();
  const events = run.log.flat();
  const code = (error: { readonly code?: string }) => error.code === "broken_history";
  assert.throws(
    () => applyAll(run.flow, undefined, events.slice(1)),
    /event 2, NodeEntered, cannot be the first/,
  );
  assert.throws(
    () => applyAll(run.flow, undefined, [events[0]!, events[2]!]),
    /event 3, NodeScheduled, follows event 1 of "x"/,
  );
  assert.throws(() => applyAll(run.flow, undefined, [events[0]!, { ...events[0]!, i: 2 }]), code);
  assert.throws(() => applyAll(run.flow, run.state, [events[2]!]), code);
});
