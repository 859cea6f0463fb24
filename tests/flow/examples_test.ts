/**
 * Every example of flows is run as its reader would run it: the cases by `mailer flow test`, the programs as programs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url)), folder = "examples/flows";

async function run(...args: readonly string[]): Promise<string[]> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...args],
    cwd: root,
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output(), out = new TextDecoder().decode(stdout);
  assert.equal(code, 0, new TextDecoder().decode(stderr) + out);
  return out.trimEnd().split("\n");
}

/** What each program prints, and whether the order is of no account. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  "approval.ts": [
    `asked: {"requester":"ann","what":"a new desk"}`,
    `completed {"approved":true,"by":"bob"}`,
  ],
  // a stream is a flow of records / a flow is a graph of nodes / a record starts a flow
  "map_reduce.ts": ["6 a", "3 flow", "2 is"],
  "agent.ts": [
    `it asks: {"question":"may I pay 12 euros?"}`,
    `{"answer":"which trains are there? / 8:00, 30 euros / 9:00, 12 euros / the one at nine / paid","tokens":2000,"turns":3}`,
  ],
  "nightly_report.ts": [
    "next: 2026-03-28T01:30:00.000Z",
    "next: 2026-03-29T01:00:00.000Z",
    "next: 2026-03-30T00:30:00.000Z",
    `nightly-20250329T013000Z completed {"country":"de","night":"2025-03-29T01:30:00Z"}`,
    `nightly-20250330T010000Z completed {"country":"de","night":"2025-03-30T01:00:00Z"}`,
    `nightly-20250331T003000Z completed {"country":"de","night":"2025-03-31T00:30:00Z"}`,
  ],
  "orders_to_flows.ts": [
    // In any order: which partition of the store comes first is of no account.
    `charged: 2`,
    `{"outcome":"shipped","count":1}`,
    `{"outcome":"shipped","count":2}`,
    `{"outcome":"undone","count":1}`,
  ],
};

const names: string[] = [];
for await (const { name } of Deno.readDir(root + folder)) names.push(name);
names.sort();

for (const name of names.filter((each) => each.endsWith(".test.yaml"))) {
  Deno.test(`example ${name}`, async () => {
    const lines = await run("cli.ts", "flow", "test", "--json", `${folder}/${name}`);
    const cases = lines.map((line) => JSON.parse(line) as { case: string; ok: boolean; problems: string[] });
    assert.ok(cases.length > 0);
    for (const { ok, problems } of cases) assert.ok(ok, problems.join());
  });
}

for (const name of names.filter((each) => each.endsWith(".yaml") && !each.endsWith(".test.yaml"))) {
  Deno.test(`example ${name} is in order`, async () => {
    await run("cli.ts", "flow", "validate", `${folder}/${name}`);
  });
}

for (const [name, expected] of Object.entries(PROGRAMS)) {
  Deno.test(`example ${name}`, async () => {
    const lines = await run(`${folder}/${name}`), isSorted = name === "orders_to_flows.ts";
    assert.deepEqual(isSorted ? lines.sort() : lines, isSorted ? [...expected].sort() : expected);
  });
}

Deno.test("there is no program without a test", () => {
  const programs = names.filter((name) => name.endsWith(".ts") && name !== "embedded.ts");
  assert.deepEqual(Object.keys(PROGRAMS).sort(), programs);
});
