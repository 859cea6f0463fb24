import assert from "node:assert/strict";
import { ShutdownTimeoutError } from "../../errors.ts";
import { createEnv, type Env } from "../../stream/env.ts";
import {
  type CollectingSink,
  collectingSink,
  scriptedSource,
  type ScriptStep,
  settle,
  VirtualClock,
} from "../../testing/mod.ts";
import type { Closing } from "./closing.ts";
import { RunGroup } from "./group.ts";

interface Piece {
  readonly env: Env;
  readonly name: string;
  readonly out: CollectingSink<number>;
}

function piece(name: string, clock: VirtualClock, ...steps: ScriptStep<number>[]): Piece {
  const env = createEnv({ name }).withClock(clock).withShutdownTimeout("5s");
  const out = collectingSink<number>();
  env.fromSource(scriptedSource<number>(steps).source, { id: "in" }).toSink(out.sink, { id: "out" });
  return { env, name, out };
}

const one: ScriptStep<number> = { do: "records", values: [1] };
const end: ScriptStep<number> = { do: "end" };

function grouped(clock: VirtualClock, ...pieces: Piece[]) {
  const closings: Record<string, Closing> = {}, running: string[] = [];
  const group = new RunGroup(pieces, clock, {
    running: ({ name }) => running.push(name),
    over: ({ name }, closing) => closings[name] = closing,
  });
  const outcomes = () =>
    Object.fromEntries(Object.entries(closings).map(([name, { outcome }]) => [name, outcome]));
  return { group, closings, outcomes, running };
}

Deno.test("a group is over when every pipeline is", async () => {
  const clock = new VirtualClock();
  const { group, outcomes, running } = grouped(
    clock,
    piece("a", clock, one, end),
    piece("b", clock, one, one, end),
  );
  assert.deepEqual(await group.end(), { kind: "done" });
  assert.deepEqual([outcomes(), running], [{ a: "finished", b: "finished" }, ["a", "b"]]);
});

Deno.test("G1: the first failure stops the others gracefully", async () => {
  const clock = new VirtualClock(), error = new Error("no luck");
  const endless = piece("endless", clock, one);
  const { group, outcomes, closings } = grouped(clock, endless, piece("bad", clock, { do: "crash", error }));
  assert.deepEqual(await group.end(), { kind: "failed", error });
  assert.deepEqual(outcomes(), { bad: "failed", endless: "stopped" });
  assert.equal(closings["bad"]!.error, error);
  assert.deepEqual([endless.out.values, endless.out.flushed], [[1], 1]);
});

Deno.test("G2: one interrupt stops gracefully", async () => {
  const clock = new VirtualClock(), endless = piece("a", clock, one);
  const { group, outcomes } = grouped(clock, endless);
  const over = group.end();
  await settle();
  assert.equal(group.interrupt(), "draining");
  assert.deepEqual(await over, { kind: "done" });
  assert.deepEqual([outcomes(), endless.out.flushed], [{ a: "stopped" }, 1]);
});

Deno.test("G2: a second interrupt stops at once, a third would end the process", async () => {
  const clock = new VirtualClock(), stuck = piece("a", clock, one);
  stuck.out.block();
  const { group, outcomes } = grouped(clock, stuck);
  const over = group.end();
  await settle();
  assert.deepEqual([group.interrupt(), group.interrupt(), group.interrupt()], [
    "draining",
    "aborting",
    "exit",
  ]);
  assert.deepEqual(await over, { kind: "aborted" });
  assert.deepEqual([outcomes(), stuck.out.flushed, stuck.out.closed], [{ a: "aborted" }, 0, 1]);
});

Deno.test("a drain that takes too long fails with the stages that are stuck", async () => {
  const clock = new VirtualClock(), stuck = piece("a", clock, one);
  stuck.out.block();
  const { group } = grouped(clock, stuck);
  const over = group.end();
  await settle();
  group.interrupt();
  await clock.advance("5s");
  const ended = await over;
  assert.ok(ended.kind === "failed" && ended.error instanceof ShutdownTimeoutError);
  assert.ok(ended.error.stages.includes("out"));
});

Deno.test("where one pipeline cannot start, none runs", async () => {
  const clock = new VirtualClock(), good = piece("good", clock, one);
  const bad = { ...piece("bad", clock, one), env: createEnv({ name: "no sink" }) };
  assert.throws(() => grouped(clock, good, bad), { code: "invalid_pipeline" });
  await settle();
  assert.deepEqual([good.out.values, good.out.flushed], [[], 0]);
});
