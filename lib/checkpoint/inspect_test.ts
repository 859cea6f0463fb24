import assert from "node:assert/strict";
import { systemClock } from "../clock.ts";
import { MailerError } from "../errors.ts";
import { MemoryPages } from "../state/pages/mod.ts";
import { openStateStore, type Section } from "../state/log/mod.ts";
import { sqlite } from "./backend.ts";
import { Checkpoints, factsOf, openCheckpoints } from "./inspect.ts";
import { documentOf, type Manifest, ManifestStore } from "./manifest.ts";

function manifestOf(number: number, section: Section, more: Partial<Manifest> = {}): Manifest {
  return {
    version: 1,
    highest: 0,
    pipeline: "p",
    number,
    savepoint: undefined,
    status: "completed",
    takenAt: number * 1000,
    durationMs: 5,
    finished: false,
    sources: {},
    operators: { op: { snapshots: [undefined], section } },
    committables: {},
    ...more,
  };
}

/** Checkpoints 1 … `count` of an operator; each has written a run of its own, and names those of the ones before. */
async function written(count: number): Promise<{ pages: MemoryPages; sections: Section[] }> {
  const pages = new MemoryPages(), manifests = new ManifestStore(pages), sections: Section[] = [];
  await using store = await openStateStore({ operator: "op", pages });
  const partition = store.partition();
  for (let number = 1; number <= count; number++) {
    partition.space("s").table().set(`k${number}`, "x".repeat(100_000)); // in pages of its own
    const section = await store.persist([partition.freeze()]);
    await manifests.write(manifestOf(number, section));
    sections.push(section);
  }
  return { pages, sections };
}

async function runsOf(pages: MemoryPages): Promise<string[]> {
  return (await pages.list("runs", "")).map(({ name }) => name);
}

/** A run that is named by this section and by none before. */
function ownRun(section: Section, before: readonly Section[]): Section["runs"][number] {
  const known = new Set(before.flatMap(({ runs }) => runs.map(({ run }) => run)));
  return section.runs.find(({ run }) => !known.has(run))!;
}

async function damage(pages: MemoryPages, run: string, page: number): Promise<void> {
  const [bytes] = await pages.read([{ run, page }]);
  const changed = bytes!.slice();
  changed[changed.length - 1]! ^= 1;
  await pages.write(run, page, [changed]);
}

const rejects = (work: Promise<unknown>, code: string, message: RegExp): Promise<void> =>
  assert.rejects(work, (error: unknown) => {
    assert.ok(error instanceof MailerError);
    assert.equal(error.code, code);
    assert.match(`${error.message}\n${error.hint}`, message);
    return true;
  });

Deno.test("I1: where nothing was kept, nothing is created; looking changes nothing", async () => {
  const folder = await Deno.makeTempDir();
  try {
    assert.equal(await openCheckpoints(sqlite(folder), "p", systemClock), undefined);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  const { pages } = await written(2);
  await pages.write("op/77", 0, [new Uint8Array(3)]); // stray
  await using checkpoints = new Checkpoints(pages);
  const runs = await runsOf(pages);
  for (const found of await checkpoints.list()) {
    assert.deepEqual((await checkpoints.verify(found)).damage, []);
  }
  await rejects(checkpoints.find("9"), "no_checkpoint", /no checkpoint 9\nthere are checkpoints 2, 1$/);
  assert.deepEqual(await runsOf(pages), runs);
});

Deno.test("verify: any page of any kind that is changed or gone is found, in each checkpoint that names it", async () => {
  const { sections: [first] } = await written(2);
  const { pages: count } = first!.runs[0]!;
  assert.ok(count >= 5, "entries, chunks, index, filter");
  for (let page = 0; page < count; page++) {
    const { pages } = await written(2);
    await damage(pages, first!.runs[0]!.run, page);
    await using checkpoints = new Checkpoints(pages);
    const verdicts = await Promise.all((await checkpoints.list()).map((found) => checkpoints.verify(found)));
    for (const { damage } of verdicts) {
      assert.equal(damage.length, 1);
      assert.match(damage[0]!, new RegExp(`page ${page} of run "op/1" is damaged: its checksum`));
    }
  }
  const { pages, sections } = await written(2);
  const own = ownRun(sections[1]!, [sections[0]!]);
  await pages.deleteRuns([own.run]);
  await using checkpoints = new Checkpoints(pages);
  const [second, before] = await checkpoints.list();
  assert.deepEqual((await checkpoints.verify(before!)).damage, []);
  const { damage: missing } = await checkpoints.verify(second!);
  assert.match(missing[0]!, new RegExp(`page 0 of run "${own.run}" is not in memory`));
  assert.equal(missing.length, Math.min(own.pages, 6));
});

Deno.test("verify: a page of another run is no damage to its checksum, and is found by what it holds", async () => {
  const pages = new MemoryPages(), sections: Section[] = [];
  await using store = await openStateStore({ operator: "op", pages });
  const partition = store.partition(), table = partition.space("s").table();
  for (const keys of [["a"], ["b", "c"]]) {
    for (const key of keys) table.set(key, 1);
    sections.push(await store.persist([partition.freeze()]));
  }
  await new ManifestStore(pages).write(manifestOf(1, sections[1]!));
  const [newer, older] = sections[1]!.runs;
  await pages.write(older!.run, 0, await pages.read([{ run: newer!.run, page: 0 }]));
  await using checkpoints = new Checkpoints(pages);
  const { damage } = await checkpoints.verify(await checkpoints.find("1"));
  assert.deepEqual(damage, [`state: run "${older!.run}" has 2 entries, 1 were written`]);
});

Deno.test("I2: the newest good checkpoint is spared, and below a prepared one the newest completed one", async () => {
  const { pages, sections } = await written(4);
  await new ManifestStore(pages).write(manifestOf(3, sections[2]!, { status: "prepared" }));
  const own = ownRun(sections[3]!, sections.slice(0, 3));
  await damage(pages, own.run, 0);
  await using checkpoints = new Checkpoints(pages);
  await rejects(
    checkpoints.removeCheckpoints([1, 3], false),
    "checkpoint_needed",
    /checkpoint 3 is the newest good/,
  );
  await rejects(
    checkpoints.removeCheckpoints([2], false),
    "checkpoint_needed",
    /checkpoint 2 is the newest completed/,
  );
  await rejects(
    checkpoints.removeCheckpoints([1, 9], false),
    "no_checkpoint",
    /there are checkpoints 4, 3, 2, 1$/,
  );
  assert.equal((await checkpoints.list()).length, 4);
  assert.deepEqual(await checkpoints.removeCheckpoints([4, 1], false), { runs: 1 }); // 4 is damaged; runs of 1 are 2's, too
  assert.deepEqual((await checkpoints.list()).map(({ number }) => number), [3, 2]);
  assert.equal((await runsOf(pages)).includes(own.run), false);
  await checkpoints.removeCheckpoints([3, 2], true);
  assert.deepEqual([await checkpoints.list(), await runsOf(pages)], [[], []]);
});

Deno.test("I3: runs that are named elsewhere stay, and all where a manifest cannot be read", async () => {
  const { pages, sections } = await written(3);
  await using checkpoints = new Checkpoints(pages);
  const { savepoint } = await checkpoints.createSavepoint("safe");
  assert.deepEqual([savepoint.number, savepoint.savepoint], [3, "safe"]);
  assert.deepEqual(await checkpoints.removeCheckpoints([1, 2, 3], true), { runs: 0 });
  assert.deepEqual(await runsOf(pages), sections[2]!.runs.map(({ run }) => run).sort());
  const bad = documentOf({ number: 7, savepoint: undefined });
  await pages.commit([{ name: bad, bytes: new Uint8Array(20) }]);
  assert.match(factsOf(await checkpoints.find("7")).damage!, /"checkpoint\/0+7" is damaged/);
  assert.deepEqual(await checkpoints.removeSavepoints(["safe"]), { runs: 0 });
  assert.equal((await runsOf(pages)).length, 3);
  await checkpoints.removeCheckpoints([7], false);
  assert.deepEqual(await checkpoints.list(), []);
});

Deno.test("I4: a savepoint is made of the newest completed checkpoint that is whole, and no name is taken twice", async () => {
  const { pages, sections } = await written(3);
  await new ManifestStore(pages).write(manifestOf(4, sections[2]!, { status: "prepared" }));
  await damage(pages, ownRun(sections[2]!, sections.slice(0, 2)).run, 1);
  await using checkpoints = new Checkpoints(pages);
  const { savepoint, passedOver } = await checkpoints.createSavepoint("safe");
  assert.equal(savepoint.number, 2);
  assert.deepEqual(passedOver.map(({ found }) => found.number), [4, 3]);
  const { manifest } = await checkpoints.find("safe");
  assert.deepEqual(manifest, manifestOf(2, sections[1]!, { savepoint: "safe" }));
  await rejects(checkpoints.createSavepoint("safe"), "savepoint_exists", /"safe"/);
  await rejects(checkpoints.createSavepoint("a/b"), "invalid_savepoint_name", /"a\/b"/);
  await rejects(checkpoints.find("save"), "no_checkpoint", /did you mean "safe"\?/);
  await rejects(checkpoints.removeSavepoints(["safe", "x"]), "no_savepoint", /"x"/);
  await checkpoints.removeCheckpoints([2, 1], true);
  await rejects(
    checkpoints.createSavepoint("other"),
    "no_good_checkpoint",
    /\n {2}checkpoint 4: .*\n {2}checkpoint 3: .*damaged/,
  );
});

Deno.test("find: a checkpoint's number, a savepoint's name, a savepoint's number, in this order", async () => {
  const { pages, sections } = await written(2);
  const manifests = new ManifestStore(pages);
  await manifests.write(manifestOf(3, sections[1]!, { savepoint: "2" }));
  await manifests.write(manifestOf(5, sections[1]!, { savepoint: "4" }));
  await using checkpoints = new Checkpoints(pages);
  const document = async (which: string) => (await checkpoints.find(which)).document;
  assert.equal(await document("2"), documentOf({ number: 2, savepoint: undefined }));
  assert.equal(await document("3"), "savepoint/2");
  assert.equal(await document("4"), "savepoint/4");
  assert.equal(await document("5"), "savepoint/4");
  assert.equal((await checkpoints.manifest(undefined)).number, 2);
  await checkpoints.removeCheckpoints([1, 2], true);
  assert.equal((await checkpoints.manifest(undefined)).number, 5);
});
