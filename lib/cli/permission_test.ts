import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { errorText } from "./error_text.ts";
import { exitCodeOf } from "./exit_code.ts";
import { permitted, refusalOf } from "./permission.ts";

Deno.test("a refusal of Deno is one sentence and the flag that lifts it, exit code 2", () => {
  const cases: readonly (readonly [Error, string])[] = [
    [
      new Deno.errors.NotCapable('Requires env access to "A_B", run again with the --allow-env flag'),
      'error: env access to "A_B" is not permitted\nhint: start deno with --allow-env, or with -A\n',
    ],
    [
      new TypeError('Requires read access to "/x y.ts", run again with the --allow-read flag'), // of an import
      'error: read access to "/x y.ts" is not permitted\nhint: start deno with --allow-read, or with -A\n',
    ],
    [
      new Deno.errors.NotCapable("Requires env access, run again with the --allow-env flag"),
      "error: env access is not permitted\nhint: start deno with --allow-env, or with -A\n",
    ],
  ];
  for (const [error, text] of cases) {
    assert.equal(errorText(error), text);
    assert.equal(exitCodeOf(error), 2);
  }
  assert.match(errorText(cases[0]![0], { detail: "stack" }), /caused by NotCapable: Requires env access/);
});

Deno.test("other errors are none", () => {
  for (
    const other of [new Error("Requires patience"), new MailerError("x", "y"), "Requires env access", null]
  ) {
    assert.equal(refusalOf(other), undefined);
  }
  const error = new Error("no luck");
  assert.throws(() =>
    permitted(() => {
      throw error;
    }), (thrown) => thrown === error);
  assert.equal(permitted(() => 1), 1);
});

/** Runs the program in a process of its own that may do only this. */
async function restricted(...args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--quiet", ...args],
    env: { NO_COLOR: "1" },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test("without a permission the program says which flag is missing, and shows no stack", async () => {
  const cli = new URL("../../cli.ts", import.meta.url).pathname;
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/copy.yaml`;
    await Deno.writeTextFile(file, 'name: "${HOME}"\nsource: { type: stdin }\nsink: { type: stdout }\n');
    assert.deepEqual(await restricted(cli, "validate", file), {
      code: 2,
      out: "",
      err:
        'error: env access to "INIT_CWD" is not permitted\nhint: start deno with --allow-env, or with -A\n',
    });
    assert.deepEqual(await restricted("--allow-env", cli, "validate", file), {
      code: 2,
      out: `error: cannot read ${file}: no permission\nhint: start deno with --allow-read, or with -A\n`,
      err: "",
    });
    const named = await restricted("--allow-read", "--allow-env", "--deny-env=HOME", cli, "validate", file);
    assert.equal(
      named.out,
      `${file}:1:7: name: \${HOME}: env access to "HOME" is not permitted (start deno with --allow-env, or with -A)\n`,
    );
    assert.equal(named.code, 2);
    const written = await restricted("--allow-env", cli, "new", "workflow", `${folder}/x`);
    assert.equal(
      written.err,
      `error: write access to "${folder}/x.yaml" is not permitted\nhint: start deno with --allow-write, or with -A\n`,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
