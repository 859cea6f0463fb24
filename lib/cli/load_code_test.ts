import assert from "node:assert/strict";
import { codeLoader } from "./load_code.ts";

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
  return folder;
}

Deno.test("a ref is found in its module, relative to the document", async () => {
  const folder = await folderWith({
    "ops with space.ts": "export const twice = (n: number): number => 2 * n;",
  });
  const load = codeLoader({ carried: {}, isStandalone: false });
  const twice = await load({ module: "./ops with space.ts", name: "twice" }, { folder });
  assert.equal((twice as (n: number) => number)(4), 8);
  await assert.rejects(load({ module: "./ops with space.ts", name: "twise" }, { folder }), {
    code: "unknown_ref",
    message: 'the module of "./ops with space.ts#twise" does not export "twise"',
    hint: 'did you mean "twice"?',
  });
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a module that cannot be loaded is named, with the reason", async () => {
  const folder = await folderWith({ "broken.ts": "throw new Error('no luck');" });
  const load = codeLoader({ carried: {}, isStandalone: false });
  await assert.rejects(load({ module: "./broken.ts", name: "x" }, { folder }), {
    code: "ref_failed",
    message: 'cannot load the code "./broken.ts#x": no luck',
  });
  await assert.rejects(load({ module: "./missing.ts", name: "x" }, { folder }), {
    code: "ref_failed",
    message: /missing\.ts/,
  });
  await Deno.remove(folder, { recursive: true });
});

Deno.test("C1: code the program carries comes first, by name or by ref", async () => {
  const carried = { plain: 1, "./ops.ts#explode": 2 };
  const load = codeLoader({ carried, isStandalone: false });
  assert.equal(await load({ name: "plain" }, { folder: "/nowhere" }), 1);
  assert.equal(await load({ module: "./ops.ts", name: "explode" }, { folder: "/nowhere" }), 2);
  await assert.rejects(load({ name: "plain2" }, { folder: "/nowhere" }), {
    code: "unknown_ref",
    hint: 'did you mean "plain"?',
  });
  await assert.rejects(load({ name: "toString" }, { folder: "/nowhere" }), { code: "unknown_ref" });
});

Deno.test("C2: a compiled binary says which refs it carries", async () => {
  const ref = { module: "./ops.ts", name: "x" };
  await assert.rejects(
    codeLoader({ carried: { "./ops.ts#explode": 1 }, isStandalone: true })(ref, { folder: "/" }),
    {
      code: "ref_not_carried",
      hint: "it carries: ./ops.ts#explode",
    },
  );
  await assert.rejects(codeLoader({ carried: {}, isStandalone: true })(ref, { folder: "/" }), {
    code: "ref_not_carried",
    hint: /^it carries none/,
  });
});
