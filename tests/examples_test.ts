/**
 * Every example is run as its reader would run it, and what it prints is compared with what an independent program
 * (`examples/expected/compute.py`) made of the same data.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

interface Example {
  readonly name: string;
  readonly script: string;
  /** Files the workflow writes, with the file each is compared with. */
  readonly files?: Readonly<Record<string, string>>;
}

const EXAMPLES: readonly Example[] = [
  { name: "wordcount", script: "word_count.ts" },
  { name: "order-totals", script: "order_totals.ts" },
  {
    name: "flight-delays",
    script: "flight_delays.ts",
    files: { "out/late-flights.ndjson": "flight-delays.late-flights.ndjson" },
  },
  {
    name: "earthquake-swarms",
    script: "earthquake_swarms.ts",
    files: { "out/late-quakes.ndjson": "earthquake-swarms.late-quakes.ndjson" },
  },
];

async function run(...args: string[]): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd: root, stdout: "piped", stderr: "piped" });
  const { code, stdout, stderr } = await command.output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

/** Rows in any order, as values. */
function rows(text: string): string[] {
  return text.split("\n").filter((line) => line !== "").map((line) =>
    JSON.stringify(sorted(JSON.parse(line)))
  ).sort();
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const).sort(([a], [b]) =>
      a < b ? -1 : 1
    ),
  );
}

for (const { name, script, files = {} } of EXAMPLES) {
  const expected = (file: string) => Deno.readTextFile(`${root}examples/expected/${file}`);

  Deno.test(`example ${name}.yaml prints what an independent program computed`, async () => {
    const stdout = await run("run", "-A", "cli.ts", "run", "--quiet", `examples/${name}.yaml`);
    assert.deepEqual(rows(stdout), rows(await expected(`${name}.stdout.ndjson`)));
    for (const [file, want] of Object.entries(files)) {
      assert.deepEqual(
        rows(await Deno.readTextFile(`${root}examples/${file}`)),
        rows(await expected(want)),
        file,
      );
    }
  });

  Deno.test(`example ${script} prints what an independent program computed`, async () => {
    const stdout = await run("run", "-A", `examples/${script}`);
    assert.deepEqual(rows(stdout), rows(await expected(`${name}.stdout.ndjson`)));
  });
}

Deno.test("the unit tests of the example workflows pass", async () => {
  const tests = ["order-totals", "flight-delays", "earthquake-swarms"].map((name) =>
    `examples/${name}.test.yaml`
  );
  const stdout = await run("run", "-A", "cli.ts", "test", ...tests);
  assert.match(stdout, /\b0 failed/);
});
