import assert from "node:assert/strict";
import { count } from "../aggregate/mod.ts";
import { PipelineError } from "../errors.ts";
import { createEnv, type Env } from "../stream/env.ts";
import type { Stream } from "../stream/stream.ts";
import { collectingSink, scriptedSource } from "../testing/mod.ts";
import { count as countWindows, global, session, tumbling } from "../window/mod.ts";

/** A pipeline over numbers, and what it is planned as. */
function planOf(build: (numbers: Stream<number>, env: Env) => void) {
  const env = createEnv({ name: "test" });
  build(env.fromSource(scriptedSource<number>().source), env);
  return env.describe();
}
const sink = () => collectingSink<unknown>().sink;
const stagesOf = (build: (numbers: Stream<number>) => void) =>
  planOf(build).stages.map(({ id, kind, instances, nodes }) =>
    `${id} ${kind} x${instances}: ${nodes.join(" ")}`
  );

Deno.test("P1: stateless operators behind each other are one stage, branches included", () => {
  const stages = stagesOf((numbers) => {
    const mapped = numbers.map((n) => n + 1);
    mapped.filter((n) => n > 1).toSink(sink());
    mapped.flatMap((n) => [n]).toSink(sink());
  });
  assert.deepEqual(stages, [
    "source source x1: source",
    "map stateless x1: map filter flatMap",
    "sink sink x1: sink",
    "sink-2 sink x1: sink-2",
  ]);
});

Deno.test("P1: another parallelism begins another stage", () => {
  const stages = stagesOf((numbers) => {
    numbers.map((n) => n).map((n) => n).withParallelism(3).filter(() => true).withParallelism(3).map((n) => n)
      .toSink(sink());
  });
  assert.deepEqual(stages, [
    "source source x1: source",
    "map stateless x1: map",
    "map-2 stateless x3: map-2 filter",
    "map-3 stateless x1: map-3",
    "sink sink x1: sink",
  ]);
});

Deno.test("P2: a keyBy takes in all behind it, up to the next keyBy", () => {
  const stages = stagesOf((numbers) => {
    numbers.map((n) => n).keyBy((n) => n, { partitions: 3 }).filter(() => true).window(tumbling(10))
      .aggregate({ count: count() })
      .map((row) => row.count).keyBy((n) => n, { partitions: 2 }).reduce((_, n) => n).toSink(sink());
  });
  assert.deepEqual(stages, [
    "source source x1: source",
    "map stateless x1: map",
    "keyBy keyed x3: keyBy filter aggregate map-2",
    "keyBy-2 keyed x2: keyBy-2 reduce",
    "sink sink x1: sink",
  ]);
});

Deno.test("P2: an explicit parallelism ends a keyed stage", () => {
  const stages = stagesOf((numbers) => {
    numbers.keyBy((n) => n, { partitions: 2 }).map((n) => n).withParallelism(5).toSink(sink());
  });
  assert.deepEqual(stages.slice(1, 3), ["keyBy keyed x2: keyBy", "map stateless x5: map"]);
});

Deno.test("P3: unions, waiting operators, sources and sinks begin stages of their own", () => {
  const described = planOf((numbers, env) => {
    const more = env.fromSource(scriptedSource<number>().source);
    numbers.map((n) => n).union(more).map((n) => n).throttle(5).map((n) => n).toSink(sink());
  });
  assert.deepEqual(described.stages.map(({ id, kind, nodes }) => `${id} ${kind}: ${nodes.join(" ")}`), [
    "source source: source",
    "source-2 source: source-2",
    "map stateless: map",
    "union stateless: union map-2",
    "throttle async: throttle",
    "map-3 stateless: map-3",
    "sink sink: sink",
  ]);
  assert.deepEqual(described.edges.map(({ name }) => name), [
    "source->map",
    "map->union",
    "source-2->union",
    "map-2->throttle",
    "throttle->map-3",
    "map-3->sink",
  ]);
});

Deno.test("a source straight to a sink needs no operators", () => {
  assert.deepEqual(stagesOf((numbers) => numbers.toSink(sink())), [
    "source source x1: source",
    "sink sink x1: sink",
  ]);
});

Deno.test("the dead-letter sink stands behind everything that sends there, and only then", () => {
  const build = (onError: "dlq" | "fail") =>
    planOf((numbers, env) => {
      env.withDeadLetters(sink());
      numbers.map((n) => n, { onError }).filter(() => true, { onError }).toSink(sink());
    });
  const edges = build("dlq").edges.map(({ name }) => name);
  assert.deepEqual(edges.slice(-3), ["map.$dlq->dlq.all", "filter.$dlq->dlq.all", "dlq.all->dlq"]);
  assert.deepEqual(build("fail").edges.map(({ name }) => name), ["source->map", "filter->sink"]);
});

/** Everything that is wrong with a pipeline. */
function problemsOf(build: (numbers: Stream<number>, env: Env) => void): readonly string[] {
  try {
    planOf(build);
  } catch (error) {
    assert.ok(error instanceof PipelineError);
    assert.equal(error.code, "invalid_pipeline");
    return error.problems;
  }
  return [];
}

const PROBLEMS: readonly [string, (numbers: Stream<number>, env: Env) => void, string][] = [
  ["no sink", (numbers) => void numbers.map((n) => n), "there is no sink: end with toSink or toReadable"],
  [
    "only a dead-letter sink",
    (numbers, env) => {
      env.withDeadLetters(sink());
      numbers.map((n) => n, { onError: "dlq" });
    },
    "there is no sink: end with toSink or toReadable",
  ],
  [
    "an id twice",
    (numbers) => numbers.map((n) => n, { id: "x" }).filter(() => true).uid("x").toSink(sink()),
    'two parts are called "x": ids must be unique',
  ],
  [
    "dead letters without a sink for them",
    (numbers) => numbers.map((n) => n, { id: "x", onError: "dlq" }).toSink(sink()),
    '"x" sends failed records to the dead-letter sink, but the pipeline has none',
  ],
  [
    "keyed state without a keyBy: the union's inputs are keyed, the union is not",
    (numbers) => {
      const keyed = numbers.keyBy((n) => n);
      const union = keyed.scope.keyed<number, number>(keyed.scope, keyed.union(keyed.map((n) => n)).origin);
      union.reduce((_, n) => n, { id: "sum" }).toSink(sink());
    },
    '"sum" (reduce) keeps state by key: put a keyBy in front of it',
  ],
  [
    "partitions 0",
    (numbers) => numbers.keyBy((n) => n, { id: "by", partitions: 0 }).toSink(sink()),
    '"by": partitions must be a whole number from 1 to 128 (the number of key groups), not 0',
  ],
  [
    "more partitions than key groups",
    (numbers) => numbers.keyBy((n) => n, { id: "by", partitions: 129 }).toSink(sink()),
    '"by": partitions must be a whole number from 1 to 128 (the number of key groups), not 129',
  ],
  [
    "a broken parallelism",
    (numbers) => numbers.map((n) => n, { id: "x" }).withParallelism(1.5).toSink(sink()),
    '"x": parallelism must be a whole number from 1, not 1.5',
  ],
];
for (const [name, build, message] of PROBLEMS) {
  Deno.test(`a pipeline that cannot run says so before anything starts: ${name}`, () => {
    assert.deepEqual(problemsOf(build), [message]);
  });
}

Deno.test("a pipeline without a source says so", () => {
  assert.throws(() => createEnv().describe(), (error: PipelineError) => {
    assert.deepEqual(error.problems, [
      "there is no source: begin with fromSource or fromReadable",
      "there is no sink: end with toSink or toReadable",
    ]);
    return true;
  });
});

Deno.test("all problems are told at once", () => {
  const problems = problemsOf((numbers) => {
    numbers.keyBy((n) => n, { id: "a", partitions: -1 }).map((n) => n, { id: "a" }).withParallelism(0);
  });
  assert.equal(problems.length, 4, problems.join("\n"));
});

Deno.test("misuse that needs no plan is an error where it is written", () => {
  const code = (code: string) => (error: { code?: string }) => error.code === code;
  const numbers = createEnv().fromSource(scriptedSource<number>().source);
  const keyed = numbers.keyBy((n) => n);
  assert.throws(() => numbers.withParallelism(2), code("invalid_option"));
  assert.throws(() => keyed.reduce((_, n) => n).withParallelism(2), code("invalid_option"));
  assert.throws(() => numbers.sample(1.5), code("invalid_option"));
  assert.throws(() => numbers.throttle(0), code("invalid_option"));
  assert.throws(() => keyed.dedupe({ ttl: 0 }), code("invalid_option"));
  assert.throws(() => keyed.aggregate({}), code("invalid_option"));
  assert.throws(() => keyed.window(tumbling(10)).allowedLateness(-1), code("invalid_window"));
  assert.throws(() => keyed.window(tumbling(10)).trigger({ every: 0 }), code("invalid_window"));
  assert.throws(() => keyed.window(tumbling(10)).trigger({ early: 0 }), code("invalid_window"));
  const counted = keyed.window(countWindows(3)), all = keyed.window(global()), sums = { count: count() };
  assert.throws(() => counted.trigger({ every: 2 }).aggregate(sums), code("invalid_window"));
  assert.throws(() => counted.allowedLateness(1).aggregate(sums), code("invalid_window"));
  assert.throws(() => counted.inProcessingTime().aggregate(sums), code("invalid_window"));
  assert.throws(() => all.allowedLateness(1).aggregate(sums), code("invalid_window"));
  assert.throws(() => numbers.sideOutput("late"), code("no_side_output"));
  assert.throws(() => numbers.map((n) => n).sideOutput("late"), code("no_side_output"));
  assert.throws(
    () => numbers.route([{ name: "a", when: () => true }], { fallback: "a" }),
    code("invalid_option"),
  );
  assert.throws(() => createEnv().withBufferSize(0), code("invalid_option"));
  assert.throws(() => createEnv().withBufferBytes(0), code("invalid_option"));
});

Deno.test("L5: lateness is zero unless it is set, and explain shows it, with what becomes of late records", () => {
  const env = createEnv({ name: "late" });
  const keyed = env.fromSource(scriptedSource<number>().source).keyBy((n) => n);
  keyed.window(tumbling("1m")).aggregate({ count: count() }, { id: "strict" }).toSink(sink());
  const lenient = keyed.window(tumbling("1m")).allowedLateness("5m").aggregate({ count: count() }, {
    id: "lenient",
  });
  lenient.toSink(sink());
  lenient.sideOutput("late").toSink(sink());
  const text = env.explain();
  assert.match(text, /strict: aggregate \(window tumbling 1m, allowedLateness 0ms\)/);
  assert.match(text, /lenient: aggregate \(window tumbling 1m, allowedLateness 5m\)/);
  assert.match(text, /note: "strict": records that come too late are dropped and counted/);
  assert.doesNotMatch(text, /note: "lenient"/);
});

Deno.test("explain tells the guarantee, where order is lost, and what keeps every record", () => {
  const env = createEnv({ name: "notes" });
  const numbers = env.fromSource(scriptedSource<number>().source);
  numbers.map((n) => n).withParallelism(2).toSink(sink());
  numbers.keyBy((n) => n).window(session("1m")).reduce((_, n) => n, { id: "sessions" }).toSink(sink());
  const text = env.explain();
  assert.match(text, /^guarantee: at-most-once: there is no checkpointing/m);
  assert.match(text, /note: stage "map" has 2 instances: order is not kept through it/);
  assert.match(text, /note: "sessions" keeps every record of an open session/);
});
