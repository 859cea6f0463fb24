/**
 * What keeps servers from outliving their tests, the cache, and what is said where a server cannot be had. None of it needs a
 * server; other processes are programs of a few lines.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { isThere } from "./cache.ts";
import { freePort } from "./ports.ts";
import { Keeper, pause, run } from "./process.ts";

const isBare = Deno.build.os === "windows";

/** Whether a process is there. One that has ended and that nobody has asked after is not. */
async function runs(pid: number): Promise<boolean> {
  const { stdout } = await run(["ps", "-o", "stat=", "-p", String(pid)]);
  return stdout.trim() !== "" && !stdout.trim().startsWith("Z");
}

async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (!await isSo()) {
    assert.ok(performance.now() < deadline, what);
    await pause(50);
  }
}

/** Starts a module of a few lines as a process of its own; resolves with the first line it prints. */
async function started(
  code: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ child: Deno.ChildProcess; line: string }> {
  const url = `data:application/typescript,${encodeURIComponent(code)}`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--no-config", "--no-lock", url],
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let text = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes("\n")) break;
  }
  return { child, line: text.split("\n")[0]! };
}

Deno.test({ name: "a keeper ends its programs and removes its folder", ignore: isBare }, async () => {
  const keeper = await Keeper.open("test");
  const willing = keeper.start(["sleep", "1000"], { name: "willing" });
  const deaf = keeper.start(["sh", "-c", "trap '' TERM INT; echo on; while :; do sleep 0.1; done"], {
    name: "deaf",
  });
  await deaf.ready(async () => (await deaf.log()).includes("on"));
  const ending = deaf.end("SIGTERM", 300); // it does not listen
  await willing.ready(async () => await runs(willing.pid));
  await ending;
  assert.equal(await runs(deaf.pid), false);
  await keeper[Symbol.asyncDispose]();
  assert.equal((await willing.ended).signal, "SIGTERM");
  assert.equal(isThere(keeper.folder), false);
});

Deno.test(
  { name: "a program that ends too early is told with what it printed", ignore: isBare },
  async () => {
    await using keeper = await Keeper.open("test");
    const program = keeper.start(["sh", "-c", "echo no such disk >&2; exit 3"], { name: "server" });
    await assert.rejects(program.ready(() => false), /server has ended:\nno such disk/);
    const slow = keeper.start(["sleep", "1000"], { name: "slow" });
    await assert.rejects(slow.ready(() => false, 50), /slow is not ready after 0.05 s/);
  },
);

Deno.test(
  { name: "2: what a killed process has started ends, and its folder goes", ignore: isBare },
  async () => {
    const { child, line } = await started(`
    import { Keeper } from ${JSON.stringify(new URL("process.ts", import.meta.url).href)};
    const keeper = await Keeper.open("test");
    const willing = keeper.start(["sleep", "1000"], { name: "willing" });
    const deaf = keeper.start(["sh", "-c", "trap '' TERM INT; echo on; while :; do sleep 0.1; done"], { name: "deaf" });
    await deaf.ready(async () => (await deaf.log()).includes("on"));
    console.log(JSON.stringify([keeper.folder, willing.pid, deaf.pid]));
    await new Promise(() => setTimeout(() => {}, 1e6));
  `);
    const [folder, ...pids] = JSON.parse(line) as [string, number, number];
    for (const pid of pids) assert.equal(await runs(pid), true);
    child.kill("SIGKILL");
    await child.status;
    for (const pid of pids) await eventually(`process ${pid} is left over`, async () => !await runs(pid));
    await eventually(`${folder} is left over`, () => !isThere(folder));
  },
);

Deno.test({ name: "the cache: of many who ask at once, one makes it", ignore: isBare }, async () => {
  const folder = await Deno.makeTempDir();
  try {
    const code = `
      import { cached } from ${JSON.stringify(new URL("cache.ts", import.meta.url).href)};
      const log = ${JSON.stringify(`${folder}/log`)};
      const ask = () => cached("thing-1", async (folder) => {
        await Deno.writeTextFile(log, "made\\n", { append: true });
        await new Promise((resolve) => setTimeout(resolve, 100));
        await Deno.writeTextFile(folder + "/content", "whole");
      });
      const paths = await Promise.all([ask(), ask()]);
      console.log(await Deno.readTextFile(paths[1] + "/content"));
    `;
    const env = { MAILER_SERVICES_CACHE: `${folder}/cache` };
    const all = await Promise.all([started(code, env), started(code, env), started(code, env)]);
    for (const { child, line } of all) {
      assert.equal(line, "whole");
      assert.equal((await child.status).success, true);
    }
    assert.equal(await Deno.readTextFile(`${folder}/log`), "made\n");
    const left = [...Deno.readDirSync(`${folder}/cache`)].map(({ name }) => name);
    assert.deepEqual(left.toSorted(), ["thing-1", "thing-1.lock"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({ name: "the cache keeps nothing of what could not be made", ignore: isBare }, async () => {
  const folder = await Deno.makeTempDir();
  try {
    const code = `
      import { cached } from ${JSON.stringify(new URL("cache.ts", import.meta.url).href)};
      let tries = 0;
      const ask = () => cached("thing-1", async (folder) => {
        await Deno.writeTextFile(folder + "/content", "half");
        if (++tries === 1) throw new Error("no network");
      });
      const first = await ask().catch((error) => error.message);
      console.log(first + ", then " + (await ask()).endsWith("thing-1"));
    `;
    const { child, line } = await started(code, { MAILER_SERVICES_CACHE: folder });
    assert.equal(line, "no network, then true");
    assert.equal((await child.status).success, true);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("ports are given once", () => {
  const ports = Array.from({ length: 200 }, freePort);
  assert.equal(new Set(ports).size, 200);
  const taken = Deno.listen({ hostname: "127.0.0.1", port: ports[0]! });
  taken.close();
});

/** Runs a test on a machine that has these programs (name and script) and nothing else. */
async function onBareMachine(
  test: string,
  env: Readonly<Record<string, string>>,
  programs: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = await machineWith(programs);
  try {
    const url = JSON.stringify(new URL("mod.ts", import.meta.url).href);
    await Deno.writeTextFile(
      `${folder}/bare_test.ts`,
      `import { kafkaService, serviceTest } from ${url};\n${test}`,
    );
    const deno = ["test", "-A", "--no-check", "--no-config", "--no-lock", `${folder}/bare_test.ts`];
    const { output } = await run([Deno.execPath(), ...deno], {
      env: {
        NO_COLOR: "1",
        PATH: folder,
        MAILER_SERVICES_CACHE: `${folder}/cache`,
        KAFKA_BROKERS: "",
        MAILER_SERVICES: "",
        CI: "",
        ...env,
      },
    });
    return output;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A folder with programs. */
async function machineWith(programs: Readonly<Record<string, string>>): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, script] of Object.entries(programs)) {
    await Deno.writeTextFile(`${folder}/${name}`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

const NEEDS_MUCH =
  `serviceTest("needs much", ["kafka", "toxiproxy", "certificates"], () => console.log("it ran"));`;
const NEEDS_KAFKA = `serviceTest("needs Kafka", ["kafka"], async () => { await kafkaService(); });`;

Deno.test({ name: "where nothing is there, a test is left out and says why", ignore: isBare }, async () => {
  const output = await onBareMachine(NEEDS_MUCH, {});
  assert.match(output, /0 passed \| 0 failed \| 1 ignored/);
  assert.match(output, /left out: Apache Kafka [\d.]+ needs java and mvn on the PATH/);
  assert.match(output, /or set KAFKA_BROKERS; toxiproxy .* needs go .*; certificates need openssl/);
});

for (const env of [{ CI: "true" }, { MAILER_SERVICES: "required" }]) {
  Deno.test({ name: `where ${Object.keys(env)} is set, it fails and says why`, ignore: isBare }, async () => {
    const output = await onBareMachine(NEEDS_MUCH, env);
    assert.match(output, /0 passed \| 1 failed/);
    assert.match(
      output,
      /Apache Kafka [\d.]+ needs java and mvn on the PATH .*run tests\/services\/install\.sh/,
    );
    assert.doesNotMatch(output, /it ran/);
  });
}

Deno.test({ name: "Kafka that runs already needs nothing here", ignore: isBare }, async () => {
  const output = await onBareMachine(NEEDS_MUCH, { KAFKA_BROKERS: "127.0.0.1:9092", CI: "true" });
  assert.doesNotMatch(output, /Apache Kafka/);
  assert.match(output, /toxiproxy .* needs go/);
});

Deno.test({ name: "what cannot be fetched counts as not there", ignore: isBare }, async () => {
  const offline = { java: "exit 1", mvn: "echo Unknown host; exit 1" };
  const output = await onBareMachine(NEEDS_KAFKA, {}, offline);
  assert.match(output, /left out: needs Kafka: Maven could not fetch from Maven Central:\nUnknown host/);
  assert.match(output, /1 passed \| 0 failed/);
  const required = await onBareMachine(NEEDS_KAFKA, { CI: "1" }, offline);
  assert.match(required, /ServiceUnavailable: Maven could not fetch from Maven Central:\nUnknown host/);
  assert.match(required, /0 passed \| 1 failed/);
});

Deno.test({ name: "install.sh installs what is missing and nothing else", ignore: isBare }, async () => {
  const apt = { "apt-get": `echo "apt-get $*" >>"$LOG"`, "apt-cache": "exit 0", sudo: `exec "$@"` };
  const system = { id: `[ "$1" = -u ] && echo 0; exit 0`, setpriv: "exit 1" };
  const rest = Object.fromEntries(
    ["java", "mvn", "openssl", "go", "initdb", "postgres"].map((name) => [name, "exit 1"]),
  );
  const install = async (programs: Readonly<Record<string, string>>) => {
    const folder = await machineWith(programs);
    try {
      const script = fileURLToPath(new URL("install.sh", import.meta.url));
      const env = { PATH: folder, LOG: `${folder}/log`, MAILER_SERVICES_CACHE: `${folder}/cache` };
      const { success, output } = await run(["/bin/sh", script], { env });
      return [success, isThere(env.LOG) ? await Deno.readTextFile(env.LOG) : output] as const;
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  };
  assert.deepEqual(await install({ ...apt, ...system, ...rest }), [true, ""]);
  const { mvn: _mvn, go: _go, ...most } = rest;
  assert.deepEqual(await install({ ...apt, ...system, ...most }), [
    true,
    "apt-get update -qq\napt-get install -y -qq --no-install-recommends maven golang-go\n",
  ]);
  const [success, output] = await install({ ...system, ...most });
  assert.equal(success, false);
  assert.match(output, /need these, or what they are called here: maven golang-go/);
});

Deno.test({ name: "nobody downloads the schema registry unasked", ignore: isBare }, async () => {
  const programs = { java: "exit 1", mvn: "echo Unknown host; exit 1" };
  const test = `serviceTest("needs schemas", ["schema registry"], () => { throw new Error("it ran"); });`;
  const output = await onBareMachine(test, {}, programs);
  assert.match(output, /left out: the schema registry is a download of 142 MB: deno run -A tests/);
  assert.match(await onBareMachine(test, { CI: "1" }, programs), /it ran/);
});
