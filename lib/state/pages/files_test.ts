import assert from "node:assert/strict";
import { MailerError } from "../../errors.ts";
import { type Disk, type DiskFile, machineDisk } from "./disk.ts";
import { FilePages, openFilePages } from "./files.ts";
import { decodeName, encodeName, fileNameOf } from "./file_names.ts";
import { lockFile } from "./lock.ts";
import { openKvPages, openSqlitePages, type PageRef, type PageStore } from "./mod.ts";

const FOLDER = "/state";
/** Bytes of the head of a file whose run has a name of one letter. */
const HEAD = 13;

/** A disk that loses at a power cut what was not synced: all of it, or some, as `chance` says. */
class ModelDisk implements Disk {
  readonly #live = new Map<string, Inode>();
  readonly #lasting = new Map<string, Inode>();
  /** Is called before each thing that changes the disk; what it throws is what goes wrong. */
  before: (doing: string, path: string) => void = () => {};
  /** What reads wait for. */
  hold: Promise<void> = Promise.resolve();
  openFiles = 0;
  mostOpen = 0;

  open(path: string, make: boolean): Promise<DiskFile | undefined> {
    return this.#do("open", path, () => {
      let inode = this.#live.get(path);
      if (inode === undefined && !make) return undefined;
      if (inode === undefined) {
        this.#live.set(path, inode = { live: new Uint8Array(), lasting: new Uint8Array() });
      }
      this.mostOpen = Math.max(this.mostOpen, ++this.openFiles);
      return this.#file(path, inode);
    });
  }

  #file(path: string, inode: Inode): DiskFile {
    let isClosed = false;
    const isOpen = () => assert(!isClosed, `${path} is closed`);
    return {
      size: () => Promise.resolve(inode.live.length),
      read: async (into, at) => {
        await this.hold;
        const found = inode.live.subarray(at, at + into.length);
        into.set(found);
        return await this.#do("read", path, () => (isOpen(), found.length));
      },
      write: async (bytes, at) => {
        // In two steps, so that a cut may come between them.
        const half = bytes.length >> 1;
        for (const [from, to] of [[0, half], [half, bytes.length]] as const) {
          await this.#do("write", path, () => {
            isOpen();
            const live = new Uint8Array(Math.max(inode.live.length, at + to));
            live.set(inode.live);
            live.set(bytes.subarray(from, to), at + from);
            inode.live = live;
          });
        }
      },
      truncate: (size) => this.#do("truncate", path, () => void (inode.live = inode.live.slice(0, size))),
      sync: () => this.#do("sync", path, () => void (inode.lasting = inode.live.slice())),
      close: () => {
        isOpen();
        isClosed = true;
        return this.#do("close", path, () => void this.openFiles--);
      },
    };
  }

  makeFolder(): Promise<void> {
    return Promise.resolve();
  }

  names(folder: string): Promise<readonly string[]> {
    const names = [...this.#live.keys()].filter((path) => folderOf(path) === folder);
    return Promise.resolve(names.map((path) => path.slice(folder.length + 1)));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#do("rename", from, () => {
      this.#live.set(to, this.#live.get(from)!);
      this.#live.delete(from);
    });
  }

  remove(path: string): Promise<void> {
    return this.#do("remove", path, () => void this.#live.delete(path));
  }

  syncFolder(folder: string): Promise<void> {
    return this.#do("syncFolder", folder, () => {
      for (const path of new Set([...this.#live.keys(), ...this.#lasting.keys()])) {
        if (folderOf(path) === folder) put(this.#lasting, path, this.#live.get(path));
      }
    });
  }

  /** What the disk has after a power cut now. */
  afterCut(chance: () => number): ModelDisk {
    const disk = new ModelDisk();
    for (const path of new Set([...this.#live.keys(), ...this.#lasting.keys()])) {
      const inode = (chance() < 0.5 ? this.#live : this.#lasting).get(path);
      if (inode === undefined) continue;
      const bytes = leftOf(inode, chance), left: Inode = { live: bytes, lasting: bytes };
      for (const entries of [disk.#live, disk.#lasting]) entries.set(path, left);
    }
    return disk;
  }

  /** What the disk has when the process is killed now: all of it, and still not all of it synced. */
  afterKill(): ModelDisk {
    const disk = new ModelDisk(), copies = new Map<Inode, Inode>();
    for (const [from, to] of [[this.#live, disk.#live], [this.#lasting, disk.#lasting]] as const) {
      for (const [path, inode] of from) {
        let copy = copies.get(inode);
        if (copy === undefined) copies.set(inode, copy = { ...inode });
        to.set(path, copy);
      }
    }
    return disk;
  }

  lengthOf(path: string): number {
    return this.#live.get(path)!.live.length;
  }

  /** Changes a file behind the back of the store. */
  edit(path: string, change: (bytes: Bytes) => Bytes): void {
    const inode = this.#live.get(path)!;
    inode.live = change(inode.live.slice());
  }

  async #do<T>(doing: string, path: string, work: () => T): Promise<T> {
    await Promise.resolve();
    this.before(doing, path);
    return work();
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

interface Inode {
  live: Bytes;
  lasting: Bytes;
}

/** Of what was not synced, any block may have got there, or be old, or empty; and the file any length in between. */
function leftOf({ live, lasting }: Inode, chance: () => number): Bytes {
  if (live.length === lasting.length && live.every((byte, i) => byte === lasting[i])) return live.slice();
  const length = lasting.length + Math.floor((live.length - lasting.length + 1) * chance());
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 64) {
    const from = chance() < 0.5 ? live : lasting;
    bytes.set(from.subarray(at, Math.min(at + 64, length)), at);
  }
  return bytes;
}

function put(entries: Map<string, Inode>, path: string, inode: Inode | undefined): void {
  if (inode === undefined) entries.delete(path);
  else entries.set(path, inode);
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function dice(seed: number): () => number {
  let state = seed * 2654435761 >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

/** The pages that a document promises, as text. */
type Promised = readonly (readonly [run: string, page: number, seed: number, size: number])[];

interface Cut {
  /** Left by the power cut. */
  readonly disk: ModelDisk;
  /** Left by a kill at the same moment. */
  readonly killed: ModelDisk;
  /** Commits that had resolved, and that had been begun. */
  readonly resolved: number;
  readonly begun: number;
}

/** Writes, deletes and commits at random; at random moments in between, the power is cut. */
async function cutRuns(seed: number): Promise<{ readonly cuts: readonly Cut[]; readonly mostOpen: number }> {
  const chance = dice(seed), disk = new ModelDisk(), cuts: Cut[] = [];
  let resolved = 0, begun = 0;
  const store = await FilePages.open(disk, FOLDER, undefined, 1 + seed % 3);
  disk.before = () => {
    if (chance() < 0.04) {
      cuts.push({ disk: disk.afterCut(chance), killed: disk.afterKill(), resolved, begun });
    }
  };
  const held = new Map<string, (readonly [number, number, number])[]>();
  for (let round = 0; round < 12; round++) {
    const writing: Promise<void>[] = [];
    for (let i = 0; i < 4; i++) {
      const run = `r/${round}/${Math.floor(chance() * 3)}`;
      let pages = held.get(run);
      if (pages === undefined) held.set(run, pages = []);
      const lot = Array.from({ length: 1 + Math.floor(chance() * 3) }, (_, j) => {
        return [pages.length + j, Math.floor(chance() * 256), Math.floor(chance() * 200)] as const;
      });
      pages.push(...lot);
      if (chance() < 0.5) await Promise.all(writing);
      writing.push(store.write(run, lot[0]![0], lot.map(([, start, size]) => page(start, size))));
    }
    await Promise.all(writing);
    const dropped = [...held.keys()].filter(() => chance() < 0.3);
    for (const run of dropped) held.delete(run);
    const promised: Promised = [...held].flatMap(([run, pages]) => pages.map((p) => [run, ...p] as const));
    begun++;
    // Writes that have not resolved belong to no document, and must not disturb those that have.
    const late = store.write(`r/${round}/0`, 99, [page(9, 300)]);
    const bytes = new TextEncoder().encode(JSON.stringify(promised));
    assert.equal(
      await store.commit([{ name: "m", bytes }, { name: `at/${begun}`, bytes: page(begun) }]),
      true,
    );
    resolved++;
    await late;
    await store.deleteRuns(dropped);
  }
  await store[Symbol.asyncDispose]();
  assert.equal(disk.openFiles, 0, "every file is closed");
  cuts.push({ disk: disk.afterCut(NOTHING_ELSE), killed: disk.afterKill(), resolved, begun });
  return { cuts, mostOpen: disk.mostOpen };
}

/** A chance with which only what was synced is left. */
const NOTHING_ELSE = (): number => 0.99;

/** Opens what a kill has left, tidies up as the owner of runs does, and cuts the power then. */
async function checkAfterKill({ killed }: Cut): Promise<void> {
  await using store = await FilePages.open(killed, FOLDER);
  const found = await promisedBy(store), named = new Set(found.map(([run]) => run));
  const runs = (await store.list("runs", "")).map(({ name }) => name);
  await store.deleteRuns(runs.filter((run) => !named.has(run)));
  await using again = await FilePages.open(killed.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual(await promisedBy(again), found);
  await checkPromised(again, found);
}

async function promisedBy(store: PageStore): Promise<Promised> {
  const [document] = await store.list("documents", "m");
  return document === undefined ? [] : JSON.parse(new TextDecoder().decode(document.bytes)) as Promised;
}

async function checkPromised(store: PageStore, promised: Promised): Promise<void> {
  const read = await store.read(promised.map(([run, page]) => ({ run, page })));
  promised.forEach(([run, n, start, size], i) => {
    assert.deepEqual(Uint8Array.from(read[i]!), page(start, size), `page ${n} of ${run}`);
  });
}

async function checkAfterCut({ disk, resolved, begun }: Cut): Promise<void> {
  await using store = await FilePages.open(disk, FOLDER);
  const commits = (await store.list("documents", "at/")).length;
  assert(commits >= resolved && commits <= begun, `${commits} commits of ${resolved} to ${begun}`);
  assert.equal((await store.list("documents", "m")).length, Math.min(commits, 1));
  const promised = await promisedBy(store);
  await checkPromised(store, promised);
  // And it goes on from there.
  const run = promised[0]?.[0] ?? "new";
  await store.write(run, 500, [page(77)]);
  assert.equal(await store.commit([{ name: "m", bytes: page(1) }]), true);
  await using again = await FilePages.open(disk.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual(await again.read([{ run, page: 500 }]), [page(77)]);
}

Deno.test("P1, P2: whatever a power cut leaves of what was not synced, commits and their pages are there", async () => {
  let count = 0;
  for (let seed = 1; seed <= 25; seed++) {
    const { cuts, mostOpen } = await cutRuns(seed);
    assert(mostOpen <= 8, `${mostOpen} files were open`);
    for (const [i, cut] of cuts.entries()) {
      await checkAfterCut(cut).then(() => checkAfterKill(cut)).catch((error) => {
        throw new Error(`seed ${seed}, cut ${i}`, { cause: error });
      });
    }
    count += cuts.length;
  }
  assert(count > 200, `${count} cuts`);
});

Deno.test("a commit syncs runs, then their folder, then the documents, then renames, then syncs the folder", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1)]);
  const done: string[] = [];
  disk.before = (doing, path) => {
    if (/sync|rename/.test(doing)) done.push(`${doing} ${path}`);
  };
  await store.commit([{ name: "m", bytes: page(2) }]);
  const document = ["sync /state/documents.new", "rename /state/documents.new", "syncFolder /state"];
  assert.deepEqual(done.splice(0), ["sync /state/runs/a.run", "syncFolder /state/runs", ...document]);
  await store.commit([{ name: "m", bytes: page(3) }]);
  assert.deepEqual(done.splice(0), document, "nothing is synced twice");
  assert.equal(await store.commit([{ name: "m", bytes: page(4), expected: "1" }]), false);
  assert.deepEqual(done, [], "nor for a commit that does not happen");
});

Deno.test("a write that fails leaves no trace, and the next one is whole", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1, 400)]);
  let writes = 0;
  disk.before = (doing) => {
    if (doing === "write" && ++writes === 2) throw new MailerError("state_file_error", "no room");
  };
  await assert.rejects(store.write("a", 1, [page(2, 900), page(3, 900)]), /no room/);
  await assert.rejects(store.read([{ run: "a", page: 1 }]), code("page_missing"));
  await store.write("a", 1, [page(4, 30)]);
  await store.commit([]);
  assert.equal(disk.lengthOf(`${FOLDER}/runs/a.run`), HEAD + (16 + 2 + 400) + (16 + 2 + 30));
  const expected = [page(1, 400), page(4, 30)], refs = [{ run: "a", page: 0 }, { run: "a", page: 1 }];
  assert.deepEqual(await store.read(refs), expected);
  await using again = await FilePages.open(disk.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual(await again.read(refs), expected);
  await assert.rejects(again.read([{ run: "a", page: 2 }]), code("page_missing"));
});

Deno.test("R3: after a sync that failed no commit goes through until the run is deleted", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1)]);
  disk.before = (doing, path) => {
    if (doing === "sync" && path.endsWith("a.run")) throw new MailerError("state_file_error", "bad block");
  };
  await assert.rejects(store.commit([{ name: "m", bytes: page(2) }]), /bad block/);
  disk.before = () => {};
  await assert.rejects(store.commit([{ name: "m", bytes: page(2) }]), /bad block/);
  assert.deepEqual(await store.list("documents", ""), []);
  await store.deleteRuns(["a"]);
  assert.equal(await store.commit([{ name: "m", bytes: page(2) }]), true);
});

Deno.test("after a commit that may or may not have happened nothing is committed or deleted any more", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1)]);
  disk.before = (doing, path) => {
    if (doing === "syncFolder" && path === FOLDER) throw new MailerError("state_file_error", "bad block");
  };
  await assert.rejects(store.commit([{ name: "m", bytes: page(2) }]), /bad block/);
  disk.before = () => {};
  await assert.rejects(store.commit([{ name: "m", bytes: page(2) }]), /bad block/);
  await assert.rejects(store.deleteRuns(["a"]), /bad block/);
  assert.deepEqual(await store.read([{ run: "a", page: 0 }]), [page(1)]);
});

Deno.test("a commit for which there is no room changes nothing, and the next one goes through", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.commit([{ name: "m", bytes: page(1) }]);
  for (const failing of ["write", "sync"]) {
    disk.before = (doing) => {
      if (doing === failing) throw new MailerError("state_file_error", "no room");
    };
    await assert.rejects(store.commit([{ name: "m", bytes: page(2, 5000) }]), /no room/);
  }
  disk.before = () => {};
  assert.deepEqual((await store.list("documents", "")).map(({ bytes }) => bytes), [page(1)]);
  await using again = await FilePages.open(disk.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual((await again.list("documents", "")).map(({ bytes }) => bytes), [page(1)]);
  assert.equal(await store.commit([{ name: "m", bytes: page(3) }]), true);
  await using third = await FilePages.open(disk.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual((await third.list("documents", "")).map(({ bytes }) => bytes), [page(3)]);
});

Deno.test("deleting and closing wait for the reads that are under way", async () => {
  const disk = new ModelDisk();
  const store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1), page(2)]);
  await store.write("b", 0, [page(3)]);
  const { promise, resolve } = Promise.withResolvers<void>();
  disk.hold = promise;
  const reads = [store.read([{ run: "a", page: 1 }]), store.read([{ run: "b", page: 0 }])];
  const ends = [store.deleteRuns(["a"]), store[Symbol.asyncDispose]()];
  for (let turns = 0; turns < 100; turns++) await Promise.resolve();
  resolve();
  assert.deepEqual(await Promise.all(reads), [[page(2)], [page(3)]]);
  await Promise.all(ends);
  assert.equal(disk.openFiles, 0);
  await assert.rejects(async () => await store.read([]), code("store_closed"));
});

Deno.test("a run that cannot be deleted is still there, and synced by the next commit", async () => {
  const disk = new ModelDisk();
  await using store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1)]);
  disk.before = (doing) => {
    if (doing === "remove") throw new MailerError("state_file_error", "not allowed");
  };
  await assert.rejects(store.deleteRuns(["a"]), /not allowed/);
  assert.deepEqual(await store.read([{ run: "a", page: 0 }]), [page(1)]);
  await store.commit([]);
  disk.before = () => {};
  await using again = await FilePages.open(disk.afterCut(NOTHING_ELSE), FOLDER);
  assert.deepEqual(await again.read([{ run: "a", page: 0 }]), [page(1)]);
  await store.deleteRuns(["a"]);
  assert.deepEqual(await store.list("runs", ""), []);
});

Deno.test("a torn tail of a run is ignored, wherever it was torn, and written over", async () => {
  const disk = new ModelDisk(), path = `${FOLDER}/runs/a.run`;
  let whole = new Uint8Array(), good = 0;
  {
    await using store = await FilePages.open(disk, FOLDER);
    await store.write("a", 0, [page(1, 40), page(2, 40)]);
    disk.edit(path, (bytes) => (good = bytes.length, bytes));
    await store.write("a", 2, [page(3, 40), page(4, 40)]);
    disk.edit(path, (bytes) => whole = bytes);
  }
  const refs = Array.from({ length: 4 }, (_, page): PageRef => ({ run: "a", page }));
  for (let length = 0; length <= whole.length; length++) {
    disk.edit(path, () => whole.slice(0, length));
    await using store = await FilePages.open(disk, FOLDER);
    const there = length === whole.length ? 4 : length >= good ? 2 : 0;
    assert.equal((await store.read(refs.slice(0, there))).length, there, `cut to ${length}`);
    for (const ref of refs.slice(there)) await assert.rejects(store.read([ref]), code("page_missing"));
    await store.write("a", 2, [page(5, 7)]);
    await store[Symbol.asyncDispose]();
    const kept = there === 0 ? HEAD : there === 2 ? good : whole.length;
    assert.equal(disk.lengthOf(path), kept + 16 + 2 + 7, `cut to ${length}`);
    await using again = await FilePages.open(disk, FOLDER);
    assert.deepEqual(await again.read([refs[2]!]), [page(5, 7)], `cut to ${length}`);
  }
});

Deno.test("a damaged head of a lot ends the run there; lots of another run are none", async () => {
  const disk = new ModelDisk(), path = `${FOLDER}/runs/a.run`;
  let first = 0, second = 0;
  const store = await FilePages.open(disk, FOLDER);
  await store.write("a", 0, [page(1, 40)]);
  disk.edit(path, (bytes) => (first = bytes.length, bytes));
  await store.write("a", 1, [page(2, 40)]);
  disk.edit(path, (bytes) => (second = bytes.length, bytes));
  await store.write("a", 2, [page(3, 40)]);
  await store.write("b", 0, [page(4, 40)]);
  await store[Symbol.asyncDispose]();
  let other = new Uint8Array();
  disk.edit(`${FOLDER}/runs/b.run`, (bytes) => other = bytes);
  const readable = async () => {
    await using again = await FilePages.open(disk, FOLDER);
    const found: number[] = [];
    for (const page of [0, 1, 2]) {
      await again.read([{ run: "a", page }]).then(() => found.push(page), (error) => {
        assert(code("page_missing")(error));
      });
    }
    return found;
  };
  assert.deepEqual(await readable(), [0, 1, 2]);
  for (let at = first; at < first + 18; at++) {
    disk.edit(path, (bytes) => flipped(bytes, at));
    assert.deepEqual(await readable(), [0], `byte ${at}`);
    disk.edit(path, (bytes) => flipped(bytes, at));
  }
  const head = other.length - (second - first); // the head of a file names its run
  disk.edit(path, (bytes) => Uint8Array.from([...bytes.subarray(0, second), ...other.subarray(head)]));
  assert.deepEqual(await readable(), [0, 1]);
  disk.edit(path, (bytes) => flipped(bytes, 5));
  assert.deepEqual(await readable(), []);
});

Deno.test("names of files are short, tell runs apart without upper case, and say which run it is", () => {
  const runs = [
    "a",
    "A",
    "a%41",
    "%",
    "u0041",
    "ö",
    "😀",
    "\ud800",
    "x/y",
    "a b",
    "z".repeat(500),
    "Z".repeat(500),
  ];
  assert.equal(new Set(runs.map((run) => fileNameOf(run).toLowerCase())).size, runs.length);
  for (const run of runs) {
    assert.match(fileNameOf(run), /^[a-z0-9_.%~-]{1,244}$/);
    assert.equal(decodeName(encodeName(run)), run);
  }
  for (const foreign of ["A", "%4", "%41x%", "%u0041", "%5A"]) assert.equal(decodeName(foreign), undefined);
});

Deno.test("copies of the folder, taken at any moment, have what was committed", async () => {
  await inFolder(async (folder) => {
    await using store = await openFilePages({ path: `${folder}/state` });
    for (let i = 0; i < 8; i++) {
      await store.write(`r/${i}`, 0, [page(i, 3000), page(i + 1)]);
      const uncommitted = await copied(`${folder}/state`, `${folder}/copy`);
      await check(uncommitted, i);
      await store.commit([{ name: "m", bytes: page(i) }]);
      await store.write("half", i, [page(i, 50_000)]);
      await check(await copied(`${folder}/state`, `${folder}/copy`), i + 1);
    }
  });

  async function check(path: string, commits: number): Promise<void> {
    await using store = await openFilePages({ path });
    const [document] = await store.list("documents", "");
    assert.deepEqual(document?.bytes, commits === 0 ? undefined : page(commits - 1));
    const refs = Array.from({ length: commits }, (_, i): PageRef => ({ run: `r/${i}`, page: 0 }));
    assert.deepEqual(await store.read(refs), refs.map((_, i) => page(i, 3000)));
  }
});

Deno.test("a run file that is gone is missing pages, before and after opening again", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/state`;
    for (const isOpen of [true, false]) {
      const store = await openFilePages({ path });
      await store.write("a", 0, [page(1)]);
      await store.write("b", 0, [page(2)]);
      await store.commit([]);
      await store[Symbol.asyncDispose]();
      const before = isOpen ? await openFilePages({ path }) : undefined;
      await Deno.remove(`${path}/runs/a.run`);
      await using again = before ?? await openFilePages({ path });
      await assert.rejects(again.read([{ run: "a", page: 0 }]), code("page_missing"));
      assert.deepEqual(await again.read([{ run: "b", page: 0 }]), [page(2)]);
      await again.write("a", 0, [page(3)]);
      assert.deepEqual(await again.read([{ run: "a", page: 0 }]), [page(3)]);
    }
  });
});

Deno.test("damaged documents are an error that names the file, never an empty store", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/state`, file = `${path}/documents`;
    {
      await using store = await openFilePages({ path });
      await store.write("a", 0, [page(1)]);
      await store.commit([{ name: "m", bytes: page(1) }, { name: "n", bytes: page(2) }]);
    }
    const good = await Deno.readFile(file);
    const isRefused = async () => {
      await assert.rejects(openFilePages({ path }), (error) => {
        assert(error instanceof MailerError && error.hint !== undefined);
        assert.equal(error.code, "documents_corrupt");
        assert(error.message.includes(file));
        return true;
      });
    };
    for (let at = 0; at < good.length; at++) {
      await Deno.writeFile(file, flipped(good.slice(), at));
      await isRefused();
    }
    for (let length = 0; length < good.length; length += 7) {
      await Deno.writeFile(file, good.subarray(0, length));
      await isRefused();
    }
    await Deno.remove(file);
    await isRefused();
    await Deno.writeFile(file, good);
    await using store = await openFilePages({ path });
    assert.equal((await store.list("documents", "")).length, 2);
  });
});

Deno.test("leftovers of a crash are removed on opening; strange files are left alone", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/state`, long = "N".repeat(300);
    {
      await using store = await openFilePages({ path });
      await store.write(long, 0, [page(1)]);
      await store.commit([{ name: "m", bytes: page(1) }]);
    }
    await Deno.writeFile(`${path}/documents.new`, page(7));
    await Deno.writeFile(`${path}/runs/${fileNameOf(`${long}x`)}`, page(1, 5));
    await Deno.writeTextFile(`${path}/runs/README`, "mine");
    await using store = await openFilePages({ path });
    assert.deepEqual((await store.list("runs", "")).map(({ name }) => name), [long]);
    assert.deepEqual((await store.list("documents", "")).map(({ bytes }) => bytes), [page(1)]);
    assert.deepEqual((await machineDisk.names(path)).toSorted(), ["documents", "lock", "runs"]);
    assert.deepEqual(
      (await machineDisk.names(`${path}/runs`)).toSorted(),
      [fileNameOf(long), "README"].toSorted(),
    );
  });
});

Deno.test("errors of the file system name the file and what was done", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    await assert.rejects(openFilePages({ path: `${folder}/file` }), (error) => {
      assert(code("state_file_error")(error));
      assert.match((error as Error).message, /\/file": making the folder failed: /);
      return true;
    });
    await Deno.mkdir(`${folder}/state/documents`, { recursive: true });
    await assert.rejects(openFilePages({ path: `${folder}/state` }), /\/documents": opening failed: /);
    await Deno.remove(`${folder}/state/documents`);
    await using _store = await openFilePages({ path: `${folder}/state` }); // the lock was released
  });
});

Deno.test({
  name: "a full disk is an error with a hint",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const full = (await machineDisk.open("/dev/full", false))!;
    try {
      await assert.rejects(full.write(page(1), 0), (error) => {
        assert(error instanceof MailerError);
        assert.match(error.message, /^state: file "\/dev\/full": writing failed: No space left/);
        assert.match(error.hint!, /make room/);
        return true;
      });
    } finally {
      await full.close();
    }
  },
});

Deno.test("reads and writes of one file at many places at once do not mix", async () => {
  await inFolder(async (folder) => {
    const file = (await machineDisk.open(`${folder}/file`, true))!;
    try {
      const places = Array.from({ length: 300 }, (_, i) => (i * 37) % 300);
      await Promise.all(places.map((i) => file.write(page(i, 100), i * 100)));
      await Promise.all(places.map(async (i) => {
        const bytes = new Uint8Array(100);
        assert.equal(await file.read(bytes, i * 100), 100);
        assert.deepEqual(bytes, page(i, 100));
      }));
    } finally {
      await file.close();
    }
  });
});

Deno.test("a lock is for one opening, and can be taken again", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/lock`;
    const lock = await lockFile(path);
    await assert.rejects(lockFile(path, "the state"), /another process has the state in the state open/);
    await lock[Symbol.asyncDispose]();
    await lock[Symbol.asyncDispose]();
    await using _again = await lockFile(path);
    await assert.rejects(lockFile(path), code("state_locked"));
  });
});

const OPENINGS: readonly (readonly [name: string, open: (folder: string) => Promise<PageStore>])[] = [
  ["files", (folder) => openFilePages({ path: `${folder}/files` })],
  ["kv", (folder) => openKvPages({ path: `${folder}/kv` })],
  ["sqlite", (folder) => openSqlitePages({ path: `${folder}/sqlite` })],
];

Deno.test("a second process is refused while the first is there, and let in once it is killed", async () => {
  const url = new URL("./mod.ts", import.meta.url).href;
  const opening = `
    const { openFilePages, openKvPages, openSqlitePages } = await import("${url}");
    const folder = Deno.args[0], opened = [];
    for (const [open, path] of [[openFilePages, "files"], [openKvPages, "kv"], [openSqlitePages, "sqlite"]]) {
      opened.push(await open({ path: folder + "/" + path }).then(() => "open", (error) => error.code));
    }
    console.log(opened.join());
    if (opened[0] === "open") await new Promise((resolve) => addEventListener("unload", resolve, setInterval(() => {}, 1000)));
    Deno.exit();`;
  const start = (folder: string) => {
    const args = ["run", "-A", "--no-check", "--no-lock", "--unstable-kv", `${folder}/other.ts`, folder];
    return new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "piped", stderr: "inherit" })
      .spawn();
  };
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/other.ts`, opening);
    const stores = await Promise.all(OPENINGS.map(([, open]) => open(folder)));
    const refused = await start(folder).output();
    assert.equal(text(refused.stdout), "state_locked,state_locked,state_locked\n");
    for (const store of stores) await store[Symbol.asyncDispose]();

    const holder = start(folder), said = holder.stdout.getReader();
    assert.equal(text((await said.read()).value!), "open,open,open\n");
    for (const [name, open] of OPENINGS) await assert.rejects(open(folder), code("state_locked"), name);
    holder.kill("SIGKILL");
    await holder.status;
    await said.cancel();
    for (const [, open] of OPENINGS) await (await open(folder))[Symbol.asyncDispose]();
  });
});

Deno.test("what is in no file is not locked", async () => {
  for (const open of [openKvPages, openSqlitePages]) {
    await using _one = await open({ path: ":memory:" });
    await using _other = await open({ path: ":memory:" });
  }
  await assert.rejects(Deno.stat(":memory:.lock"), Deno.errors.NotFound);
});

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-files-" });
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A copy of a folder, in place of the last one. */
async function copied(from: string, to: string): Promise<string> {
  await Deno.remove(to, { recursive: true }).catch((error) => assert(error instanceof Deno.errors.NotFound));
  await Deno.mkdir(`${to}/runs`, { recursive: true });
  for (const folder of ["", "/runs"]) {
    for await (const { name, isFile } of Deno.readDir(from + folder)) {
      if (isFile) await Deno.copyFile(`${from}${folder}/${name}`, `${to}${folder}/${name}`);
    }
  }
  return to;
}

function page(seed: number, size = 50): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => seed * 31 + i * 7);
}

function flipped(bytes: Bytes, at: number): Bytes {
  bytes[at]! ^= 0x10;
  return bytes;
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof MailerError && error.code === expected;
}
