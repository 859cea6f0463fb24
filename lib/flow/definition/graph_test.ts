import assert from "node:assert/strict";
import { flowOf, nodes, parsed, problemsOf, warningsOf } from "./kit_test.ts";

const task = (id: string, more = "") => `{ id: ${id}, type: task, kind: k${more === "" ? "" : `, ${more}`} }`;
const FAN = "{ id: f, type: fanout, branches: [a, b], next: j }";
const JOIN = "{ id: j, type: join }";
const A = task("a"), B = task("b");

Deno.test("a good flow of each shape", () => {
  flowOf(nodes(FAN, A, B, JOIN));
  flowOf(nodes(FAN, A, B, "{ id: j, type: join, wait_for: [b], policy: any, next: c }", task("c")));
  flowOf(nodes(FAN, A, "{ id: b, type: subflow, flow: x }", "{ id: j, type: join, policy: 'quorum:2' }"));
  flowOf("start: a\n" + nodes(task("a", "next: b"), task("b", "next: a, on_failure: c"), task("c")));
  flowOf("start: a\n" + nodes(task("a", "dynamic: [a, b], next: b"), B));
  // A join may lead back to its fan-out.
  flowOf(
    "start: f\n" +
      nodes(
        FAN,
        A,
        B,
        "{ id: j, type: join, next: c }",
        "{ id: c, type: choice, rules: [ { when: 'visits.f < 3', to: f }, { default: true, to: $end } ] }",
      ),
  );
  // A choice may lead back to itself: only who says a limit may have one that does nothing else.
  flowOf(
    "max_steps: 9\nstart: c\n" +
      nodes("{ id: c, type: choice, rules: [ { default: true, to: c } ] }"),
  );
  // A fan-out straight behind a join, and a handler that is reached by failure alone.
  flowOf(
    nodes(
      FAN,
      A,
      B,
      "{ id: j, type: join, next: g, on_failure: h }",
      "{ id: g, type: fanout, branches: [c], next: k }",
      task("c"),
      "{ id: k, type: join }",
      task("h"),
    ),
  );
});

Deno.test("G1: ids and names", () => {
  assert.deepEqual(problemsOf(nodes(A, A)), ["4:11 nodes[1].id duplicate_id"]);
  const table: [list: string[], ...problems: string[]][] = [
    [[task("a", "next: x")], "3:41 nodes[0].next unknown_node"],
    [[task("a", "next: $end")], "3:41 nodes[0].next wrong_type"],
    [[task("a", "on_failure: x")], "3:47 nodes[0].on_failure unknown_node"],
    [[task("a", "dynamic: [a, x]")], "3:48 nodes[0].dynamic[1] unknown_node"],
    [
      ["{ id: a, type: await, signal: s, timeout: 1s, on_timeout: x }"],
      "3:63 nodes[0].on_timeout unknown_node",
    ],
    [
      ["{ id: a, type: choice, rules: [ { default: true, to: x } ] }"],
      "3:58 nodes[0].rules[0].to unknown_node",
    ],
    [
      ["{ id: a, type: fanout, branches: [x], next: y }"],
      "3:39 nodes[0].branches[0] unknown_node",
      "3:49 nodes[0].next unknown_node",
    ],
    [[FAN, A, B, "{ id: j, type: join, wait_for: [a, x] }"], "6:40 nodes[3].wait_for[1] unknown_node"],
    [[task("a", "next: a")], "3:41 nodes[0].next self_route"],
    [[task("a", "on_failure: a")], "3:47 nodes[0].on_failure self_route"],
  ];
  for (const [list, ...problems] of table) {
    assert.deepEqual(problemsOf(nodes(...list)), problems, list.join("\n"));
  }
  const [problem] = parsed(nodes(task("charge", "next: chekc"), task("check"))).problems;
  assert.equal(problem!.hint, 'did you mean "check"?');
});

Deno.test("F70 G2: fan-outs, branches and joins", () => {
  const table: [list: string[], ...problems: string[]][] = [
    // branches
    [[FAN, task("a", "next: c"), B, JOIN, task("c")], "4:41 nodes[1].next branch_route"],
    [[FAN, task("a", "on_failure: c"), B, JOIN, task("c")], "4:47 nodes[1].on_failure branch_route"],
    [[FAN, task("a", "dynamic: [c]"), B, JOIN, task("c")], "4:44 nodes[1].dynamic branch_route"],
    [[FAN, "{ id: a, type: sleep, for: 1s }", B, JOIN], "3:39 nodes[0].branches[0] bad_branch"],
    [[FAN, "{ id: a, type: map, over: input.x, kind: k }", B, JOIN], "3:39 nodes[0].branches[0] bad_branch"],
    [["{ id: f, type: fanout, branches: [a, j], next: j }", A, JOIN], "3:42 nodes[0].branches[1] bad_branch"],
    [[
      "{ id: f, type: fanout, branches: [a], next: j }",
      A,
      "{ id: j, type: join, next: g }",
      "{ id: g, type: fanout, branches: [a, b], next: k }",
      B,
      "{ id: k, type: join }",
    ], "6:39 nodes[3].branches[0] branch_twice"],
    // joins
    [["{ id: f, type: fanout, branches: [a], next: c }", A, task("c")], "3:49 nodes[0].next no_join"],
    [[task("a", "next: b"), B, JOIN], "5:11 nodes[2].id join_without_fanout"],
    [[
      "{ id: c, type: choice, rules: [ { when: 'true', to: f }, { default: true, to: g } ] }",
      "{ id: f, type: fanout, branches: [a], next: j }",
      "{ id: g, type: fanout, branches: [b], next: j }",
      A,
      B,
      JOIN,
    ], "5:49 nodes[2].next join_twice"],
    // ways in
    [[task("c", "next: f, on_failure: a"), FAN, A, B, JOIN], "3:56 nodes[0].on_failure into_branch"],
    [[task("c", "next: f, on_failure: j"), FAN, A, B, JOIN], "3:56 nodes[0].on_failure into_join"],
    [[
      "{ id: c, type: choice, rules: [ { when: 'true', to: j }, { default: true, to: f } ] }",
      FAN,
      A,
      B,
      JOIN,
    ], "3:57 nodes[0].rules[0].to into_join"],
  ];
  for (const [list, ...problems] of table) {
    assert.deepEqual(problemsOf(nodes(...list)), problems, list.join("\n"));
  }
});

Deno.test("G3: what a join waits for", () => {
  const table: [join: string, ...problems: string[]][] = [
    ["{ id: j, type: join, wait_for: [a, c], next: c }", "6:40 nodes[3].wait_for[1] unknown_branch"],
    ["{ id: j, type: join, policy: 'quorum:3', next: c }", "6:34 nodes[3].policy quorum_too_high"],
    [
      "{ id: j, type: join, wait_for: [a], policy: 'quorum:2', next: c }",
      "6:49 nodes[3].policy quorum_too_high",
    ],
    ["{ id: j, type: join, wait_for: [a], policy: 'quorum:1', next: c }"],
    ["{ id: j, type: join, policy: 'quorum:2', next: c }"],
  ];
  for (const [join, ...problems] of table) {
    assert.deepEqual(problemsOf(nodes(FAN, A, B, join, task("c"))), problems, join);
  }
});

Deno.test("G4: where it starts", () => {
  assert.equal(flowOf(nodes(B, task("a", "next: b"))).definition.start, "a");
  assert.deepEqual(problemsOf(nodes(A, B)), ["1:1 start several_starts"]);
  assert.deepEqual(
    problemsOf(nodes(task("a", "next: b, dynamic: [c]"), task("b", "next: a"), task("c", "next: a"))),
    [
      "1:1 start no_start",
    ],
  );
  assert.deepEqual(problemsOf("start: a\n" + nodes(FAN, A, B, JOIN)), ["1:8 start bad_start"]);
  assert.deepEqual(problemsOf("start: j\n" + nodes(FAN, A, B, JOIN)), ["1:8 start bad_start"]);
  const message = (...list: string[]) => parsed(nodes(...list)).problems[0]!.message;
  assert.equal(message(A, B), 'it is not clear where it starts: nothing leads to "a", "b"');
  assert.equal(
    message(task("a", "next: b, dynamic: [c]"), task("b", "next: a"), task("c", "next: a")),
    "it is not clear where it starts: something leads to every node (b, c → a; a → b; a → c)",
  );
});

Deno.test("G5: what cannot be reached is told once for each knot", () => {
  const unreachable = (...list: string[]) => problemsOf("start: a\n" + nodes(...list));
  assert.deepEqual(unreachable(A, task("b", "next: c"), task("c")), ["5:11 nodes[1].id unreachable"]);
  assert.deepEqual(unreachable(A, task("b", "next: c"), task("c", "dynamic: [b], next: d"), task("d")), [
    "5:11 nodes[1].id unreachable",
  ]);
  assert.deepEqual(unreachable(A, B, task("c")), [
    "5:11 nodes[1].id unreachable",
    "6:11 nodes[2].id unreachable",
  ]);
  assert.deepEqual(unreachable(task("a"), FAN.replace("a, b", "b"), B, JOIN), [
    "5:11 nodes[1].id unreachable",
  ]);
});

Deno.test("G5: loops without a way out", () => {
  const loop = [task("a", "next: b"), "{ id: b, type: sleep, for: 1s, next: a }"];
  const start = "start: a\n";
  assert.deepEqual(problemsOf(start + nodes(...loop)), ["4:11 nodes[0].id no_exit"]);
  assert.equal(parsed(start + nodes(...loop)).problems[0]!.message, "the loop a → b → a has no way out");
  // Limits that somebody chose.
  for (const limit of ["max_steps: 50", "budget: { tokens: 5 }", "deadline: 1h", "max_steps: 0"]) {
    flowOf(`${limit}\n${start}${nodes(...loop)}`);
  }
  // Ways out.
  flowOf(start + nodes(loop[0]!, "{ id: b, type: await, signal: s, timeout: 1h, next: a }"));
  flowOf(start + nodes(task("a", "next: b, on_failure: c"), loop[1]!, "{ id: c, type: fail, message: no }"));
  flowOf(
    start +
      nodes(
        loop[0]!,
        "{ id: b, type: choice, rules: [ { when: 'input.x', to: $end }, { default: true, to: a } ] }",
      ),
  );
  assert.deepEqual(
    problemsOf(start + nodes("{ id: a, type: choice, rules: [ { default: true, to: a } ] }")),
    ["4:11 nodes[0].id no_exit"],
  );
  // A loop behind the start, through a fan-out, and two of them.
  const more = (...list: string[]) =>
    problemsOf("start: s\n" + nodes("{ id: s, type: sleep, for: 1s, next: x }", ...list));
  assert.deepEqual(
    more("{ id: x, type: sleep, for: 1s, next: y }", "{ id: y, type: sleep, for: 1s, next: x }"),
    [
      "5:11 nodes[1].id no_exit",
    ],
  );
  assert.deepEqual(
    more("{ id: x, type: fanout, branches: [b], next: j }", B, "{ id: j, type: join, next: x }"),
    ["5:11 nodes[1].id no_exit"],
  );
  assert.deepEqual(
    problemsOf(
      start +
        nodes(
          "{ id: a, type: choice, rules: [ { when: 'input.x', to: b }, { default: true, to: c } ] }",
          task("b", "next: d"),
          task("c", "next: e"),
          task("d", "next: b"),
          task("e", "next: c"),
        ),
    ),
    ["5:11 nodes[1].id no_exit", "6:11 nodes[2].id no_exit"],
  );
});

Deno.test("G6: one mistake is one problem", () => {
  // The name that is not known would make two nodes unreachable and the join without a fan-out.
  assert.deepEqual(
    problemsOf("start: s\n" + nodes(task("s", "next: ff"), FAN, A, B, JOIN)),
    ["4:41 nodes[0].next unknown_node"],
  );
  // A node with a mistake in it keeps the graph from being looked at.
  assert.deepEqual(problemsOf("start: s\n" + nodes(task("s", "nxt: f"), FAN, A, B, JOIN)), [
    "4:35 nodes[0].nxt unknown_key",
  ]);
});

Deno.test("a flow of many nodes is checked in no time", () => {
  const chain = Array.from({ length: 5000 }, (_, i) => task(`n${i}`, `next: n${i + 1}, on_failure: end`));
  const flow = flowOf(nodes(...chain, task("n5000"), "{ id: end, type: fail, message: no }"));
  assert.equal(flow.definition.start, "n0");
  // Each name that is not known is compared with all that are, up to a limit.
  const lost = Array.from({ length: 3000 }, (_, i) => task(`n${i}`, `next: m${i}`));
  const { problems } = parsed(nodes(...lost));
  assert.equal(problems.length, 3000);
  assert.equal(problems[0]!.hint, 'did you mean "n0"?');
  assert.equal(problems.at(-1)!.hint, undefined);
  assert.deepEqual(warningsOf(nodes(A)), []);
});
