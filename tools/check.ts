// deno-lint-ignore-file no-console -- it reports on the terminal
/**
 * Everything that can be said of the code without running it: types, lint, form, documentation, publishability.
 *
 * @module
 */

interface Step {
  readonly name: string;
  readonly args: readonly string[];
}

const { exports } = JSON.parse(await Deno.readTextFile(new URL("../deno.json", import.meta.url))) as {
  exports: Readonly<Record<string, string>>;
};

const STEPS: readonly Step[] = [
  { name: "types", args: ["check", "."] },
  { name: "lint", args: ["lint"] },
  { name: "form", args: ["fmt", "--check"] },
  { name: "documentation of the exports", args: ["doc", "--lint", ...Object.values(exports)] },
  { name: "publish (dry run)", args: ["publish", "--dry-run", "--allow-dirty", "--quiet"] },
];

let failed = 0;
for (const { name, args } of STEPS) {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args] }).output();
  const decoder = new TextDecoder();
  console.log(`${success ? "ok    " : "FAILED"} ${name}`);
  if (success) continue;
  failed++;
  console.log(decoder.decode(stdout) + decoder.decode(stderr));
}
Deno.exit(failed > 0 ? 1 : 0);
