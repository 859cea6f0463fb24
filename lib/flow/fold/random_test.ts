/** Any flow, any commands, in any order, also twice: nothing throws, and what must hold of every history holds. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type CompiledFlow, compileFlow, parseFlow } from "../definition/mod.ts";
import { Run } from "./fold_fixture.ts";
import {
  type Command,
  type CommandType,
  decideFork,
  type Effect,
  hasEnded,
  jobId,
  type Verdict,
} from "./mod.ts";

const CONDITIONS = [
  "visits['n0'] > 2",
  "input.x == 1",
  "channels.total > 3",
  "results.n1.n > input.none",
  "errors.n0 == nil",
  "len(channels.log) < 4",
  "branches.n2a == 'completed'",
];
const condition = fc.constantFrom(...CONDITIONS);
const way = fc.nat(5);

/** A block of nodes: its entry has the id `n<i>`. `to` gives the id of a random other block. */
type Block = (i: number, next: string, to: (k: number) => string) => string[];

const retry = fc.constantFrom(
  "",
  ", retry: { max_attempts: 2, delay: 1s, jitter: 0.5 }",
  ", retry: { max_attempts: 3, delay: 2s, backoff: exponential, except: [timeout, Refused] }",
);
const timeout = fc.constantFrom("", ", timeout: 20s");
const onFailure = (to: string, i: number) => to === `n${i}` ? "" : `, on_failure: ${to}`;

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.tuple(retry, timeout, way, way, fc.boolean()).map(([r, t, f, d, routed]): Block => (i, next, to) => [
    `{ id: n${i}, type: task, kind: k${r}${t}${next}${routed ? onFailure(to(f), i) : ""}${
      to(d) === `n${i}` ? "" : `, dynamic: [${to(d)}]`
    } }`,
  ]),
  fc.tuple(condition, way, fc.boolean()).map(([when, k, ends]): Block => (i, next, to) => [
    `{ id: n${i}, type: choice, rules: [{ when: "${when}", to: ${to(k) === `n${i}` ? "$end" : to(k)} }, ` +
    `{ default: true, to: ${next === "" || ends ? "$end" : next.slice(8)} }] }`,
  ]),
  fc.tuple(fc.constantFrom("all", "any", "quorum:2"), timeout, way, fc.boolean()).map(
    ([policy, t, f, routed]): Block => (i, next, to) => [
      `{ id: n${i}, type: fanout, branches: [n${i}a, n${i}c, n${i}b], next: n${i}j }`,
      `{ id: n${i}a, type: task, kind: k${t} }`,
      `{ id: n${i}b, type: task, kind: k, retry: { max_attempts: 2, delay: 1s } }`,
      `{ id: n${i}c, type: subflow, flow: child, on_parent_close: ${t === "" ? "cancel" : "abandon"} }`,
      `{ id: n${i}j, type: join, policy: "${policy}"${next}${routed ? onFailure(to(f), i) : ""} }`,
    ],
  ),
  fc.tuple(
    fc.constantFrom("signal: a", "signals: [a, b], policy: all", "signals: [b, a], policy: any"),
    way,
    fc.boolean(),
  )
    .map(([signals, k, routed]): Block => (i, next, to) => [
      `{ id: n${i}, type: await, ${signals}, timeout: 30s${next}${
        routed && to(k) !== `n${i}` ? `, on_timeout: ${to(k)}` : ""
      } }`,
    ]),
  fc.tuple(fc.nat(4), fc.boolean(), retry, way, fc.boolean()).map(
    ([n, flow, r, f, routed]): Block => (i, next, to) => [
      `{ id: n${i}, type: map, over: "[${
        Array.from({ length: n }, (_, k) => `{v: ${k}}`)
      }]", max_parallel: 2, ${flow ? "flow: child" : `kind: k${r}`}${next}${
        routed ? onFailure(to(f), i) : ""
      } }`,
    ],
  ),
  fc.tuple(way, fc.boolean()).map(([f, routed]): Block => (i, next, to) => [
    `{ id: n${i}, type: subflow, flow: child${next}${routed ? onFailure(to(f), i) : ""} }`,
  ]),
  fc.constant<Block>((i, next) => [`{ id: n${i}, type: sleep, for: 5s${next} }`]),
  fc.constant<Block>((i) => [`{ id: n${i}, type: fail, message: "no {{ input.x }}" }`]),
);

const flow: fc.Arbitrary<CompiledFlow> = fc.tuple(
  fc.array(block, { minLength: 1, maxLength: 5 }),
  fc.constantFrom("", "budget: { cost: 6 }\n", "deadline: 1m\n", "output: '{\"a\": results.n0}'\n"),
).map(([blocks, extra]) => {
  const nodes = blocks.flatMap((make, i) => {
    const next = i + 1 < blocks.length ? `, next: n${i + 1}` : "";
    return make(i, next, (k) => `n${k % blocks.length}`);
  });
  return `name: f\nstart: n0\nmax_steps: 25\n${extra}channels:\n  total: { reducer: sum, default: 0 }\n` +
    `  log: { reducer: append, default: [] }\nnodes:\n${nodes.map((node) => `  - ${node}\n`).join("")}`;
}).map((text) => parseFlow(text, { file: "f.yaml" }).flow).filter((found) => found !== undefined).map(
  compileFlow,
);

/** What stands in the outside world after all effects. */
class World {
  readonly timers = new Set<string>();
  readonly jobs = new Set<string>();
  readonly children = new Set<string>();
  notices = 0;
  #seen = 0;

  take(effects: readonly Effect[]): void {
    for (const effect of effects.slice(this.#seen)) this.#one(effect);
    this.#seen = effects.length;
  }

  #one(effect: Effect): void {
    switch (effect.type) {
      case "timer_set":
        this.timers.add(effect.id);
        return;
      case "timer_delete":
        this.timers.delete(effect.id);
        return;
      case "job":
        assert.ok(!this.jobs.has(effect.id), `job ${effect.id} went out twice`);
        this.jobs.add(effect.id);
        return;
      case "child_start":
        assert.ok(!this.children.has(effect.command.exec_id));
        this.children.add(effect.command.exec_id);
        return;
      case "child_cancel":
        assert.ok(this.children.has(effect.command.exec_id), "a child is cancelled that was never started");
        return;
      case "parent_notice":
        this.notices++;
        return;
      default:
        return;
    }
  }

  check({ state, execId }: Run): void {
    assert.ok(state !== undefined);
    const timers = state.timers.values();
    if (state.paused === undefined) {
      assert.deepEqual([...this.timers].sort(), timers.map(({ id }) => id).sort());
    }
    for (const task of state.tasks.values()) {
      if (task.status === "scheduled") {
        assert.ok(this.jobs.has(jobId(execId, task)), `no job for ${task.key}`);
      }
    }
    for (const id of state.children.keys()) {
      assert.ok(this.children.has(id), `the child ${id} was not started`);
    }
    assert.equal(this.notices, hasEnded(state) ? 1 : 0);
  }
}

interface Step {
  readonly what: number;
  readonly pick: number;
  readonly twice: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({ what: fc.nat(23), pick: fc.nat(9), twice: fc.boolean() });

/** A command out of three numbers, mostly one that means something now. */
function commandOf(run: Run, { what, pick }: Step): [CommandType, unknown] {
  const state = run.state!,
    tasks = state.tasks.values(),
    timers = state.timers.values(),
    children = state.children.values();
  const task = tasks[pick % Math.max(tasks.length, 1)], timer = timers[pick % Math.max(timers.length, 1)];
  const child = children[pick % Math.max(children.length, 1)];
  const attempt = {
    key: task?.key ?? "n0",
    generation: task?.generation ?? pick,
    attempt: (task?.attempt ?? 1) + (what === 20 ? 1 : 0),
  };
  switch (what) {
    case 0:
    case 1:
    case 2:
    case 20:
      return ["complete", {
        ...attempt,
        output: { n: pick },
        writes: { total: 1, log: pick },
        usage: { cost: 1 },
      }];
    case 3:
      return ["complete", { ...attempt, output: [7] }];
    case 4:
      return ["complete", { ...attempt, writes: { total: "x" } }];
    case 5:
      return ["complete", { ...attempt, next: `n${pick}`, usage: pick === 0 ? "much" : { cost: 0.5 } }];
    case 6:
    case 7:
      return ["fail", {
        ...attempt,
        error: "e",
        retryable: pick % 3 > 0,
        ...(pick === 4 ? { name: "Refused" } : {}),
      }];
    case 8:
      return ["interrupt", { ...attempt, payload: pick, usage: { cost: 0.5 } }];
    case 9:
      return ["resume", { node: task?.node ?? "n0", ...(pick > 5 ? { value: pick } : {}) }];
    case 10:
      return ["signal", { name: pick % 2 ? "a" : "b", payload: pick }];
    case 11:
    case 12:
    case 13:
      return ["timer", { timer_id: timer?.id ?? "t99" }];
    case 14:
    case 15:
      return ["child_done", {
        child_id: child?.childId ?? "x-c99",
        status: ["completed", "failed", "cancelled"][pick % 3],
        output: {},
        counters: { cost: 1 },
      }];
    case 16:
      return ["update", { writes: pick > 7 ? { nothing: 1 } : { total: pick } }];
    case 17:
      return pick < 2 ? ["cancel", { reason: "enough" }] : ["pause", {}];
    case 18:
    case 21:
      return ["unpause", {}];
    case 19:
      return ["start", { flow: "f", signals: [{ id: `s${pick}`, name: "a" }] }];
    case 22:
      return ["continue", {
        segment: { object: "o", first_index: 1, last_index: state.events, first_seq: 1, last_seq: 2 },
      }];
    default:
      return ["fail", {
        ...attempt,
        error: "lost",
        retryable: true,
        reason: "heartbeat_timeout",
        progress: pick,
      }];
  }
}

function ask(run: Run, [type, data]: [CommandType, unknown], id: string): Verdict {
  return run.ask<CommandType>(type, data as never, id);
}

function carryOut(run: Run, world: World, [type, data]: [CommandType, unknown], id: string): void {
  const verdict = ask(run, [type, data], id);
  world.take(run.effects);
  const due = (data as { readonly timer_id?: string }).timer_id;
  if (verdict.ok && type === "timer" && due !== undefined) world.timers.delete(due); // it has fired, whatever came of it
  world.check(run);
}

/** Takes any execution to its end, by answering and waking all that is open. */
function finish(run: Run, world: World): void {
  for (let i = 0; i < 600 && !hasEnded(run.state!); i++) {
    const state = run.state!;
    const task = state.tasks.values().find((each) => each.status === "scheduled");
    const asked = state.tasks.values().find((each) => each.status === "interrupted");
    const child = state.children.any(), timer = state.timers.any();
    const command: [CommandType, unknown] = state.paused !== undefined
      ? ["unpause", {}]
      : task !== undefined
      ? ["complete", { key: task.key, generation: task.generation, attempt: task.attempt, output: { n: i } }]
      : asked !== undefined
      ? ["resume", { node: asked.node, key: asked.key }]
      : child !== undefined
      ? ["child_done", { child_id: child.childId, status: "completed" }]
      : ["timer", { timer_id: timer?.id }];
    carryOut(run, world, command, `end${i}`);
  }
  assert.ok(hasEnded(run.state!), "it never ended");
}

Deno.test("F41 random flows under random commands", () => {
  const ends = new Set<string>();
  fc.assert(
    fc.property(flow, fc.array(step, { maxLength: 40 }), fc.nat(100_000), (compiled, steps, wait) => {
      const run = new Run(compiled, { reload: wait % 2 === 0 }), world = new World();
      run.start({ x: 1 }, { parent: { exec_id: "p", node: "s", child_n: 1 } });
      world.take(run.effects);
      world.check(run);
      for (const [i, each] of steps.entries()) {
        run.now += wait % 7000;
        const command = commandOf(run, each), before = run.log.length;
        carryOut(run, world, command, `s${i}`);
        if (!each.twice || command[0] === "continue") continue;
        const after = run.log.length;
        const again = ask(run, command, `s${i}`);
        world.take(run.effects);
        const repeated = again.ok ? again.events.length === 0 : true;
        const isSecond = command[0] === "resume" && after > before && again.ok && again.events.length > 0;
        assert.ok(repeated || isSecond, `${command[0]} came twice and did something twice`);
      }
      finish(run, world);
      ends.add(run.state!.phase);
    }),
    { numRuns: 200 },
  );
  assert.ok(ends.has("completed") && ends.has("failed"), "flows end in every way");
});

Deno.test("random forks go on and leave their source alone", () => {
  fc.assert(
    fc.property(flow, fc.array(step, { maxLength: 25 }), fc.nat(), (compiled, steps, at) => {
      const run = new Run(compiled), world = new World();
      run.start({ x: 1 }, { parent: { exec_id: "p", node: "s", child_n: 1 } });
      world.take(run.effects);
      const states = [run.state!];
      for (const [i, each] of steps.entries()) {
        carryOut(run, world, commandOf(run, each), `s${i}`);
        states.push(run.state!);
      }
      const source = states[at % states.length]!;
      const command = { id: "fork.y", type: "fork", exec_id: "y", data: { from: "x", seq: at } } as const;
      const verdict = decideFork(compiled, undefined, source, command as Command & { type: "fork" }, run.now);
      assert.ok(verdict.ok);
      const fork = new Run(compiled, { execId: "y" }), other = new World();
      fork.keep(verdict);
      other.take(fork.effects);
      if (!hasEnded(fork.state!)) {
        for (let i = 0; i < 600 && !hasEnded(fork.state!); i++) finishFork(fork, i);
        assert.ok(hasEnded(fork.state!), "the fork never ended");
      }
      for (const effect of fork.effects) {
        assert.notEqual(effect.type, "parent_notice");
        if (effect.type === "child_cancel") assert.match(effect.command.exec_id, /^y-c/);
      }
      finish(run, world);
    }),
    { numRuns: 80 },
  );
});

function finishFork(run: Run, i: number): void {
  const state = run.state!;
  const task = state.tasks.values().find((each) => each.status === "scheduled");
  const asked = state.tasks.values().find((each) => each.status === "interrupted");
  const child = state.children.any(), timer = state.timers.any();
  if (task !== undefined) run.complete(task.key, { n: i });
  else if (asked !== undefined) run.send("resume", { node: asked.node });
  else if (child !== undefined) run.childDone(child.key);
  else run.send("timer", { timer_id: timer!.id });
}
