// deno-lint-ignore-file no-console -- it reports on the terminal
/**
 * Makes the single binary, `dist/mailer`, and tries it on the examples.
 *
 * `deno compile` fetches its runtime once. Where that cannot be had, this says so, proves instead that everything the binary
 * would hold can be embedded, and tries the same examples on the bundle of the same program: the binary itself was then not run.
 *
 * @module
 */
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const binary = `${root}dist/mailer`, bundle = `${root}dist/mailer.js`;
// `--bundle`: one of the metrics client's dependencies ships a test that the embedding of whole packages chokes on. Types are
// checked by `deno task check`.
const COMPILE = [
  "compile",
  "-A",
  "--bundle",
  "--no-check",
  "--unstable-kv",
  "--unstable-no-legacy-abort",
  "--output",
  binary,
  "cli.ts",
];

interface Result {
  readonly success: boolean;
  readonly output: string;
}

async function deno(args: readonly string[], env: Record<string, string> = {}): Promise<Result> {
  const command = new Deno.Command(Deno.execPath(), { args: [...args], cwd: root, env });
  const { success, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

function fail(what: string, output: string): never {
  console.error(`${what}:\n${output}`);
  Deno.exit(1);
}

/** Runs the program on what it should be able to do anywhere. */
async function smoke(program: readonly string[]): Promise<void> {
  const run = async (...args: string[]): Promise<string> => {
    const [command, ...first] = program;
    const { success, stdout, stderr } = await new Deno.Command(command!, {
      args: [...first, ...args],
      cwd: root,
    }).output();
    if (!success) fail(`${program.join(" ")} ${args.join(" ")}`, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout);
  };
  const totals = await run("run", "--quiet", "examples/order-totals.yaml");
  const expected = ["10", "15", "7"];
  const sums = totals.trim().split("\n").map((line) => String((JSON.parse(line) as { sum: number }).sum));
  if (sums.join() !== expected.join()) fail("the running sums of order-totals.yaml are wrong", totals);
  await run("validate", "examples/flight-delays.yaml");
  await run("test", "examples/order-totals.test.yaml");
  JSON.parse(await run("schema"));
  console.log(`ok     ${await run("version")}`.trim());
}

await Deno.mkdir(`${root}dist`, { recursive: true });
const compiled = await deno(COMPILE);
if (compiled.success) {
  await smoke([binary]);
  console.log(`ok     ${binary}: compiled and run`);
} else {
  console.log("the runtime that deno compile puts into a binary cannot be fetched here; what it said:");
  console.log(
    compiled.output.split("\n").filter((line) => line.includes("error")).map((line) => `  ${line}`).join(
      "\n",
    ),
  );
  const embedded = await deno(COMPILE, { DENORT_BIN: Deno.execPath() });
  if (!embedded.success) fail("the program cannot be embedded", embedded.output);
  await Deno.remove(binary).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  const bundled = await deno(["bundle", "--minify", "--output", bundle, "cli.ts"]);
  if (!bundled.success) fail("the program cannot be bundled", bundled.output);
  await smoke([Deno.execPath(), "run", "-A", "--unstable-kv", "--unstable-no-legacy-abort", bundle]);
  console.log(
    "ok     everything embeds, and the bundle passes the same trials; the binary itself was not run",
  );
}
