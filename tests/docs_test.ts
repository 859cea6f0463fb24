/**
 * The pages say what is so: the reference is what the program prints, paths and commands that the pages name are there, and
 * their code runs and prints what the page says.
 */
import assert from "node:assert/strict";
import { dirname, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { createEnv } from "@mailer/core";
import { COMMANDS } from "../lib/cli/commands.ts";
import { EXIT } from "../lib/cli/exit_code.ts";
import { COMPONENTS, workflowReference } from "../lib/workflow/mod.ts";
import project from "../deno.json" with { type: "json" };

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => Deno.readTextFile(`${root}${path}`);

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `deno` in the root of the project. */
async function deno(args: readonly string[], input = ""): Promise<Result> {
  const command = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: root,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  const child = command.spawn(), writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** A fenced block. */
interface Block {
  readonly language: string;
  readonly code: string;
  /** The last example that a link in front of the block goes to. */
  readonly example: string | undefined;
  /** Lines the block after it shows as output. */
  readonly output: readonly string[];
}

function blocksOf(page: string): Block[] {
  const fences = [...page.matchAll(/^```(\w+)[^\n]*\n(.*?)\n```$/gms)];
  return fences.map(({ index, 1: language, 2: code }, i) => {
    const before = page.slice(i === 0 ? 0 : fences[i - 1]!.index + fences[i - 1]![0].length, index);
    const next = fences[i + 1];
    return {
      language: language!,
      code: code!,
      example: before.match(/(?<=\]\()examples\/[\w./-]+(?=\):)/)?.[0],
      output: next?.[1] === "json" ? next[2]!.split("\n") : [],
    };
  });
}

/** Runs a block of TypeScript as a program that has the package; what it prints. */
async function runCode(code: string): Promise<string> {
  const { code: exit, stdout, stderr } = await deno(["run", "--check", "-A", "-"], code);
  assert.equal(exit, 0, `${code}\n${stderr}`);
  return stdout;
}

/** What is in `code spans`, outside fenced blocks. */
function spansOf(page: string): string[] {
  return [...page.replaceAll(/^```.*?^```$/gms, "").matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!);
}

/** Files of the program below these folders, without their tests. */
async function sourceFiles(...folders: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const folder of folders) {
    for await (const { name, isDirectory } of Deno.readDir(`${root}${folder}`)) {
      const path = `${folder}/${name}`;
      if (isDirectory) files.push(...await sourceFiles(path));
      else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) files.push(path);
    }
  }
  return files;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(`${root}${path}`);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test("docs/workflow.md is the reference that the program prints", async () => {
  const { stdout, code, stderr } = await deno(["fmt", "--ext", "md", "-"], workflowReference());
  assert.equal(code, 0, stderr);
  const again = "deno task mailer reference > docs/workflow.md && deno fmt docs/workflow.md";
  assert.ok(await read("docs/workflow.md") === stdout, `docs/workflow.md is out of date: ${again}`);
});

for (const page of ["README.md", "ARCHITECTURE.md"]) {
  Deno.test(`${page}: every path and every link leads somewhere`, async () => {
    const text = await read(page), paths = new Set<string>();
    for (const [, link] of text.matchAll(/\]\(([^)]+)\)/g)) if (!/^https?:/.test(link!)) paths.add(link!);
    for (const [path] of text.matchAll(/\b(?:examples|lib|connectors|tests|tools|bench|docs)\/[\w./-]*\w/g)) {
      // What a workflow writes is there after it has run.
      if (!path.startsWith("examples/out")) paths.add(path);
    }
    const absent: string[] = [];
    for (const path of paths) if (!await exists(normalize(path.replace(/#.*/, "")))) absent.push(path);
    assert.deepEqual(absent, []);
    assert.ok(paths.size > 5);
  });

  Deno.test(`${page}: every command and every task is there`, async () => {
    const text = await read(page);
    const commands = [...COMMANDS.map(({ name }) => name), "help"];
    for (const span of spansOf(text)) {
      const [, command] = /^mailer ([a-z-]+)/.exec(span) ?? [];
      if (command !== undefined) assert.ok(commands.includes(command), span);
    }
    for (const [, task] of text.matchAll(/\b(?:deno|deno@[\d.]+) task ([a-z]+)/g)) {
      assert.ok(Object.hasOwn(project.tasks, task!), task);
    }
  });
}

Deno.test("README.md names all commands, exit codes and metrics", async () => {
  const text = await read("README.md");
  for (const { name } of COMMANDS) assert.match(text, new RegExp(`^\\| \`mailer ${name}[\` ]`, "m"));
  const codes = [...text.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(codes, Object.values(EXIT));
  const metrics = [...(await createEnv().metrics()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!);
  const named = spansOf(text).filter((span) => span.startsWith("mailer_"));
  assert.deepEqual(named.toSorted(), metrics.toSorted());
});

Deno.test("README.md says of every component whether this build runs it", async () => {
  const text = await read("README.md");
  const start = text.indexOf("## What is there"), end = text.indexOf("\n## ", start + 1);
  const split = text.indexOf("**Described and validated", start);
  const there = spansOf(text.slice(start, split)), later = spansOf(text.slice(split, end));
  assert.ok(start > 0 && split > start && end > split);
  for (const { kind, type, carried } of COMPONENTS) {
    assert.equal((carried ? there : later).includes(type), true, `${kind} ${type}`);
    const isBoth = COMPONENTS.some((other) => other.type === type && other.carried !== carried);
    if (!isBoth) assert.equal((carried ? later : there).includes(type), false, `${kind} ${type}`);
  }
});

Deno.test("README.md: its code runs, and prints what the page shows", async () => {
  const blocks = blocksOf(await read("README.md"));
  let tried = 0;
  for (const { language, code, example, output } of blocks) {
    if (language !== "ts" && language !== "yaml") continue;
    tried++;
    if (example === undefined) {
      assert.notEqual(await runCode(code), "");
      continue;
    }
    assert.ok((await read(example)).includes(code), `${example} is not what the page shows`);
    const args = language === "ts" ? ["run", "-A", example] : ["task", "-q", "run", example];
    const { code: exit, stdout, stderr } = await deno(args);
    assert.equal(exit, 0, stderr);
    assert.ok(output.length > 0);
    assert.deepEqual(stdout.split("\n").slice(0, output.length), output);
  }
  assert.equal(tried, 3);
});

Deno.test("README.md: the least permissions are enough", async () => {
  const [command] = (await read("README.md")).match(/^deno run --allow-env=.*$/m)!;
  const { code, stderr } = await deno(["run", "--no-prompt", ...command.split(" ").slice(2)]);
  assert.equal(code, 0, stderr);
});

Deno.test("ARCHITECTURE.md: imports point down the list of rooms", async () => {
  const [, list] = (await read("ARCHITECTURE.md")).match(/^```rooms\n(.*?)^```$/ms)!;
  const rooms = list!.trim().split("\n").map((line) => line.split(" ")[0]!);
  const folders = [...Deno.readDirSync(`${root}lib`)].filter(({ isDirectory }) => isDirectory).map((
    { name },
  ) => name);
  assert.deepEqual(rooms.toSorted(), ["connectors", ...folders].toSorted());
  /** The room of a file; what belongs to none is below all. */
  const roomOf = (path: string): number => {
    const [first, second] = path.split("/");
    const found = rooms.indexOf(first === "lib" ? second! : first!);
    return found === -1 ? rooms.length : found;
  };
  const upwards: string[] = [];
  let imports = 0;
  for (const file of await sourceFiles("lib", "connectors")) {
    // `import type` and `export type` leave nothing behind that could be imported.
    for (
      const [, from] of (await read(file)).matchAll(/^(?:import|export)(?! type)[^;"]*? from "(\.[^"]+)";/gm)
    ) {
      imports++;
      const target = normalize(`${dirname(file)}/${from}`);
      if (roomOf(target) < roomOf(file)) upwards.push(`${file} -> ${target}`);
    }
  }
  assert.ok(imports > 500);
  assert.deepEqual(upwards, []);
});

Deno.test("the examples in the doc comments run", async () => {
  // `deno test --doc` imports all that a module exports, and what its example does not use counts as unused.
  const { code, stdout, stderr } = await deno([
    "test",
    "--doc",
    "--no-check",
    "-A",
    "lib/expr/mod.ts",
    "lib/workflow/mod.ts",
  ]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /2 passed/);
  let tried = 0;
  for (const file of Object.values(project.exports)) {
    const comments = [...(await read(file)).matchAll(/\/\*\*.*?\*\//gs)].map(([comment]) =>
      comment.replaceAll(/^ *\* ?/gm, "")
    );
    for (const { code } of comments.flatMap(blocksOf)) {
      assert.notEqual(await runCode(code), "", file);
      tried++;
    }
  }
  assert.equal(tried, 5);
});
