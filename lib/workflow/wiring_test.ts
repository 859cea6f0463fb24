import assert from "node:assert/strict";
import { parsed, pipeline, problemsOf, specOf } from "./kit_test.ts";

const KEY = "  - { id: k, type: keyBy, keyBy: { field: a } }";
const COUNT = "  - { id: n, type: reduce, reduce: { function: count } }";
const WINDOW = "  - { id: w, type: window, window: { type: tumbling, size: 1m } }";
const filter = (id: string, from = "") => `  - { id: ${id}, type: filter,${from} filter: { where: 'true' } }`;
const ROUTE = "  - { id: split, type: route, route: { routes: [ { name: x, when: 'true' } ], default: y } }";
const two = (...lines: string[]) =>
  pipeline(...lines).replace(
    /source: .*/,
    "sources: [ { name: a, source: { type: stdin } }, { name: b, source: { type: slice, records: [] } } ]",
  );

Deno.test("what a document may wire", () => {
  const table: [what: string, text: string][] = [
    ["nothing between source and sink", pipeline()],
    ["an empty pipeline", pipeline().replace("pipeline:\n\n", "pipeline: []\n")],
    ["no pipeline", pipeline().replace("pipeline:\n\n", "")],
    [
      "order is free",
      pipeline(filter("a", " from: b,"), filter("b", " from: source,")).replace("stdout", "stdout, from: a"),
    ],
    ["a union", pipeline(filter("a"), filter("b", " from: source,"), filter("c", " from: [a, b],"))],
    [
      "outputs of a route",
      pipeline(ROUTE, filter("a", " from: split.x,"), filter("b", " from: [split.y, a],")),
    ],
    ["a key taken in front of a filter stays", pipeline(KEY, filter("a"), COUNT)],
    [
      "a union behind a key of its own",
      pipeline(filter("a"), filter("b", " from: source,"), KEY.replace("type", "from: [a, b], type"), COUNT),
    ],
    ["a key through a route", pipeline(KEY, ROUTE, COUNT.replace("type", "from: split.x, type"))],
    [
      "late records keep the key",
      pipeline(KEY, WINDOW, COUNT, "  - { id: l, from: w.late, type: reduce, reduce: { function: count } }"),
    ],
    [
      "windows on windows under the same key",
      pipeline(
        KEY,
        WINDOW,
        COUNT,
        "  - { id: v, type: window, window: { type: tumbling, size: 1h } }",
        "  - { id: m, type: aggregate, aggregate: { functions: [ { function: max, field: count } ] } }",
      ),
    ],
    [
      "two results of one window",
      pipeline(KEY, WINDOW, COUNT, "  - { id: t, from: w, type: topN, topN: { n: 1, by: a } }"),
    ],
    ["a process behind a window", pipeline(KEY, WINDOW, "  - { id: p, type: process, process: { ref: x } }")],
    [
      "outputs of code that does not say them",
      pipeline("  - { id: p, type: process, process: { ref: x } }", filter("a", " from: p.any,")),
    ],
    ["several sources, each named", two(filter("x", " from: a,"), filter("y", " from: [x, b],"))],
    [
      "a join of sources by the keys they read",
      two("  - { id: j, type: join, join: { left: a, right: b, within: 1m } }"),
    ],
    [
      "the older names of a join",
      two("  - { id: j, type: join, join: { leftSource: a, rightSource: b, before: 1m, after: 2m } }"),
    ],
    [
      "a join of sources that records carry",
      pipeline(KEY, "  - { id: j, type: join, join: { leftSource: x, rightSource: y, within: 1m } }"),
    ],
    [
      "an operator may read a source that is also read elsewhere",
      pipeline(filter("a"), filter("b", " from: source,")),
    ],
  ];
  for (const [what, text] of table) assert.deepEqual(problemsOf(text), [], what);
});

Deno.test("what a document may not wire, with the place and nothing that follows from it", () => {
  const table: [what: string, text: string, problems: string[]][] = [
    ["an id twice", pipeline(filter("a"), filter("a")), ["5 pipeline[1].id duplicate_id"]],
    ["the id of the source", pipeline(filter("source")), ["4 pipeline[0].id duplicate_id"]],
    ["the id of the sink", pipeline(filter("sink")), ["5 sink.id duplicate_id"]],
    ["an id with a point", pipeline(filter("a.b")), ["4 pipeline[0].id wrong_type"]],
    ["no id", pipeline("  - { type: filter, filter: { where: 'true' } }"), ["4 pipeline[0].id missing"]],
    ["an unknown node", pipeline(filter("a", " from: b,")), ["4 pipeline[0].from unknown_node"]],
    ["an unknown node in a union", pipeline(filter("a"), filter("b", " from: [a, c],"), COUNT), [
      "5 pipeline[1].from[1] unknown_node",
    ]],
    ["a node twice in a union", pipeline(filter("a"), filter("b", " from: [a, a],")), [
      "5 pipeline[1].from[1] duplicate",
    ]],
    ["an empty union", pipeline(filter("a", " from: [],")), ["4 pipeline[0].from wrong_type"]],
    ["an unknown output", pipeline(ROUTE, filter("a", " from: split.z,")), [
      "5 pipeline[1].from unknown_output",
    ]],
    ["an output of what has none", pipeline(filter("a"), filter("b", " from: a.x,")), [
      "5 pipeline[1].from unknown_output",
    ]],
    ["the route itself, by name", pipeline(ROUTE, filter("a", " from: split,")), [
      "5 pipeline[1].from reads_route",
    ]],
    ["the route itself, by order", pipeline(ROUTE, filter("a")), ["5 pipeline[1].from reads_route"]],
    ["the route itself, by a sink", pipeline(ROUTE), ["5 sink.from reads_route"]],
    ["a sink", pipeline(filter("a", " from: sink,")), ["4 pipeline[0].from not_readable"]],
    ["the dlq", pipeline(filter("a", " from: dlq,")) + "dlq: { type: file, file: { path: x } }\n", [
      "4 pipeline[0].from not_readable",
    ]],
    ["itself", pipeline(filter("a", " from: a,")), ["4 pipeline[0].from cycle"]],
    [
      "a cycle of three, and what is behind it",
      pipeline(
        filter("x"),
        filter("a", " from: c,"),
        filter("b"),
        filter("c", " from: [b, x],"),
        filter("d"),
        COUNT,
      ),
      [
        "5 pipeline[1].from cycle",
      ],
    ],
    [
      "two cycles",
      pipeline(
        filter("a", " from: b,"),
        filter("b", " from: a,"),
        filter("c", " from: d,"),
        filter("d", " from: [c, b],"),
      ),
      [
        "4 pipeline[0].from cycle",
        "6 pipeline[2].from cycle",
      ],
    ],
    ["reduce without a key", pipeline(COUNT), ["4 pipeline[0] needs_key"]],
    [
      "aggregate without a key",
      pipeline("  - { id: n, type: aggregate, aggregate: { functions: [ { function: count } ] } }"),
      ["4 pipeline[0] needs_key"],
    ],
    ["dedupe without a key", pipeline("  - { id: n, type: dedupe, dedupe: { ttl: 1m } }"), [
      "4 pipeline[0] needs_key",
    ]],
    ["window without a key", pipeline(WINDOW, COUNT), ["4 pipeline[0] needs_key", "5 pipeline[1] needs_key"]],
    [
      "a union of keyed nodes has no key",
      pipeline(KEY, filter("a"), filter("b", " from: k,"), COUNT.replace("type", "from: [a, b], type")),
      [
        "7 pipeline[3] needs_key",
      ],
    ],
    [
      "one way without a key",
      pipeline(KEY, filter("a"), filter("b", " from: source,"), COUNT.replace("type", "from: [a, b], type")),
      [
        "7 pipeline[3] needs_key",
      ],
    ],
    ["a window that nothing sums up", pipeline(KEY, WINDOW, filter("a", " from: source,")), [
      "5 pipeline[1] window_without_result",
    ]],
    ["a filter behind a window", pipeline(KEY, WINDOW, filter("a"), COUNT), ["6 pipeline[2] after_window"]],
    [
      "a keyBy behind a window",
      pipeline(KEY, WINDOW, "  - { id: l, type: keyBy, keyBy: { field: b } }", COUNT),
      ["6 pipeline[2] after_window"],
    ],
    ["a sink behind a window", pipeline(KEY, WINDOW), ["6 sink after_window"]],
    ["topN without a window", pipeline(KEY, "  - { id: t, type: topN, topN: { n: 1, by: a } }"), [
      "5 pipeline[1] needs_window",
    ]],
    [
      "topN behind late records",
      pipeline(KEY, WINDOW, COUNT, "  - { id: t, from: w.late, type: topN, topN: { n: 1, by: a } }"),
      ["7 pipeline[3] needs_window"],
    ],
    [
      "a ttl behind a window",
      pipeline(KEY, WINDOW, "  - { id: r, type: reduce, reduce: { function: count, ttl: 1h } }"),
      ["6 pipeline[2].reduce.ttl ttl_behind_window"],
    ],
    [
      "a window over running results",
      pipeline(
        KEY,
        COUNT,
        filter("f"),
        WINDOW,
        "  - { id: m, type: reduce, reduce: { function: max, field: count } }",
      ),
      [
        "7 pipeline[3] window_after_reduce",
      ],
    ],
    ["which of several sources", two(filter("x")), ["4 pipeline[0].from missing"]],
    ["which of several sources, without operators", two(), ["5 sink.from missing"]],
    ["two sources of one name", two(filter("x", " from: a,")).replace("name: b", "name: a"), [
      "2 sources[1].name duplicate_id",
    ]],
    [
      "a join without keys",
      pipeline(
        filter("a"),
        filter("b", " from: source,"),
        "  - { id: j, type: join, join: { left: a, right: b, within: 1m } }",
      ),
      [
        "6 pipeline[2].join.left needs_key",
        "6 pipeline[2].join.right needs_key",
      ],
    ],
    ["a join with from", two("  - { id: j, type: join, from: a, join: { left: a, right: b, within: 1m } }"), [
      "4 pipeline[0].from excluded",
    ]],
    ["a join of nobody", two("  - { id: j, type: join, join: { left: a, right: c, within: 1m } }"), [
      "4 pipeline[0].join.right unknown_node",
    ]],
    ["no source", pipeline().replace(/source: .*\n/, ""), ["1 source missing"]],
    ["source and sources", two(filter("x", " from: a,")) + "source: { type: stdin }\n", [
      "6 source excluded",
    ]],
    ["no sink", pipeline().replace(/sink: .*\n/, ""), ["1 sink missing"]],
    ["sink and sinks", pipeline() + "sinks: [ { id: x, type: stdout } ]\n", ["6 sinks excluded"]],
    [
      "sinks without ids",
      pipeline().replace("sink: { type: stdout }", "sinks: [ { type: stdout }, { id: s, type: stdout } ]"),
      ["5 sinks[0].id missing"],
    ],
    ["no sinks at all", pipeline().replace("sink: { type: stdout }", "sinks: []"), ["5 sinks too_few"]],
  ];
  for (const [what, text, problems] of table) assert.deepEqual(problemsOf(text), problems, what);
});

Deno.test("hints name what could have been meant", () => {
  const hint = (text: string) => parsed(text).problems[0]?.hint;
  assert.equal(hint(pipeline(filter("totals"), filter("b", " from: totls,"))), 'did you mean "totals"?');
  assert.equal(hint(pipeline(ROUTE, filter("a", " from: split.xx,"))), 'did you mean "split.x"?');
  assert.equal(hint(pipeline(ROUTE, filter("a", " from: spilt.x,"))), 'did you mean "split.x"?');
  assert.equal(hint(pipeline(ROUTE, filter("a"))), "from: split.x or split.y");
  assert.equal(hint(pipeline(KEY, WINDOW, COUNT, filter("a", " from: w.lat,"))), 'did you mean "w.late"?');
  const behind = (lines: string[], from: string) =>
    hint(pipeline(...lines).replace("sink: {", `sink: { from: ${from},`));
  assert.equal(
    behind([KEY, WINDOW, COUNT.replace("id: n", "id: total")], "w"),
    "a window has no rows of its own: from: total reads those made in it",
  );
  assert.equal(
    behind([KEY, WINDOW, COUNT, COUNT.replace("id: n", "id: m, from: w")], "w"),
    "a window has no rows of its own: from: n or m reads those made in it",
  );
  assert.match(behind([KEY, WINDOW], "w")!, /^reduce, aggregate, topN or process follows a window;/);
  assert.match(
    parsed(pipeline(filter("a", " from: b,"), filter("b", " from: a,"))).problems[0]!.message,
    /"a" reads "b" reads "a"/,
  );
});

Deno.test("results, keys and window have names of their own", () => {
  const aggregate = (functions: string) =>
    `  - { id: n, type: aggregate, aggregate: { functions: [ ${functions} ] } }`;
  const reduce = (block: string) => `  - { id: n, type: reduce, reduce: { ${block} } }`;
  const table: [lines: string[], problems: string[]][] = [
    [[KEY, reduce("function: sum, field: a, as: a")], ["5 pipeline[1].reduce.as name_taken"]],
    [[KEY, reduce("function: sum, field: a, as: a.b")], ["5 pipeline[1].reduce.as name_taken"]],
    [[KEY, reduce("function: sum, field: a, as: ab")], []],
    [[KEY, reduce("function: sum, field: a, as: window")], ["5 pipeline[1].reduce.as name_taken"]],
    [[KEY.replace("field: a", "field: count"), COUNT], ["5 pipeline[1].reduce.as name_taken"]],
    [[KEY.replace("field: a", "field: customer.id"), COUNT.replace("count }", "count, as: customer }")], [
      "5 pipeline[1].reduce.as name_taken",
    ]],
    [[KEY.replace("field: a", "fields: [x, y]"), COUNT.replace("count }", "count, as: y }")], [
      "5 pipeline[1].reduce.as name_taken",
    ]],
    [[KEY.replace("field: a", "expr: 'value.a'"), COUNT.replace("count }", "count, as: key }")], [
      "5 pipeline[1].reduce.as name_taken",
    ]],
    [[KEY, aggregate("{ function: count }, { function: count }")], [
      "5 pipeline[1].aggregate.functions[1].as name_taken",
    ]],
    [[KEY, aggregate("{ function: count }, { as: count, function: sum, field: x }")], [
      "5 pipeline[1].aggregate.functions[1].as name_taken",
    ]],
    [[KEY, aggregate("{ as: x, function: count }, { as: x.y, function: sum, field: x }")], [
      "5 pipeline[1].aggregate.functions[1].as name_taken",
    ]],
    [[KEY, aggregate("{ as: n, function: count }, { as: m, function: count }")], []],
    [[KEY, WINDOW, aggregate("{ as: window, function: count }")], [
      "6 pipeline[2].aggregate.functions[0].as name_taken",
    ]],
  ];
  for (const [lines, problems] of table) {
    assert.deepEqual(problemsOf(pipeline(...lines)), problems, lines.join());
  }
});

Deno.test("a spec has its readings resolved, and says what keys and windows there are", () => {
  const spec = specOf(pipeline(
    ROUTE,
    "  - { id: k, from: [split.x, split.y], type: keyBy, keyBy: { field: a, partitions: 0 } }",
    WINDOW,
    COUNT,
    filter("f"),
  ));
  assert.deepEqual(spec.operators.map(({ id, from, keyedBy, windowed }) => [id, from, keyedBy, windowed]), [
    ["split", [{ node: "source" }], undefined, false],
    ["k", [{ node: "split", output: "x" }, { node: "split", output: "y" }], "k", false],
    ["w", [{ node: "k" }], "k", false],
    ["n", [{ node: "w" }], "k", false],
    ["f", [{ node: "n" }], "k", true],
  ]);
  assert.deepEqual(spec.sinks.map(({ id, from }) => [id, from]), [["sink", [{ node: "f" }]]]);
  const [, key] = spec.operators;
  assert.deepEqual(key?.type === "keyBy" && key.keyBy, { field: "a", partitions: 16 });
  assert.deepEqual(key?.place, { line: 5, column: 5 });
  assert.equal(key?.path, "pipeline[1]");
});

Deno.test("long chains are no deeper than short ones", () => {
  const lines = Array.from(
    { length: 5_000 },
    (_, i) => `  - { id: f${i}, type: filter, filter: { field: a, operator: exists } }`,
  );
  assert.equal(specOf(pipeline(...lines)).operators.length, 5_000);
  const first = filter("f0", " from: f4999,");
  assert.deepEqual(problemsOf(pipeline(first, ...lines.slice(1))), ["4 pipeline[0].from cycle"]);
});
