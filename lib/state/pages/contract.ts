/**
 * What every page store must do: one suite for all of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { MailerError } from "../../errors.ts";
import { LARGEST_DOCUMENT, LARGEST_PAGE, type PageStore } from "./port.ts";

/** Makes an empty store, and opens it again if it outlives being closed. */
export interface PageStoreUnderTest {
  /** Opens it. The second time: with what the first left behind. */
  open(): Promise<PageStore>;
  /** Whether another `open` finds what was committed. */
  readonly survives: boolean;
  /** Removes what is left. */
  dispose(): Promise<void>;
}

/** Registers the suite. `make` is called once a test. */
export function pageStoreContract(name: string, make: () => Promise<PageStoreUnderTest>): void {
  const test = (
    title: string,
    body: (pages: PageStore, under: PageStoreUnderTest) => Promise<void>,
  ): void => {
    Deno.test(`${name} pages: ${title}`, async () => {
      const under = await make();
      try {
        await using pages = await under.open();
        await body(pages, under);
      } finally {
        await under.dispose();
      }
    });
  };

  test("pages are read as they were written, in the order asked for", async (pages) => {
    await pages.write("a/1", 0, [page(1), page(2), page(3)]);
    await pages.write("a/2", 0, [page(4, LARGEST_PAGE), page(5, 0)]);
    const read = await pages.read([
      ref("a/2", 1),
      ref("a/1", 2),
      ref("a/1", 0),
      ref("a/2", 0),
      ref("a/1", 2),
    ]);
    assert.deepEqual(read.map(plain), [page(5, 0), page(3), page(1), page(4, LARGEST_PAGE), page(3)]);
    assert.deepEqual(await pages.read([]), []);
  });

  test("a run can be written in parts, at once and in any order", async (pages) => {
    const all = Array.from({ length: 3000 }, (_, i) => page(i, 100 + i % 900));
    await Promise.all([2000, 0, 1000].map((from) => pages.write("r", from, all.slice(from, from + 1000))));
    const wanted = [...all.keys()].filter((i) => i % 7 === 0 || (i > 1500 && i < 1700));
    const read = await pages.read(wanted.map((i) => ref("r", i)));
    read.forEach((bytes, i) => assert.deepEqual(plain(bytes), all[wanted[i]!], `page ${wanted[i]}`));
  });

  test("many large pages go through", async (pages) => {
    const all = Array.from({ length: 40 }, (_, i) => page(i, LARGEST_PAGE));
    await pages.write("large", 0, all);
    assert.deepEqual((await pages.read(all.map((_, i) => ref("large", i)))).map(plain), all);
  });

  test("a page beyond the limit is refused", async (pages) => {
    await assert.rejects(
      async () => await pages.write("r", 0, [page(1, LARGEST_PAGE + 1)]),
      code("page_too_large"),
    );
  });

  test("a missing page is an error that names run and page", async (pages) => {
    await pages.write("r", 0, Array.from({ length: 10 }, (_, i) => page(i)));
    await assert.rejects(pages.read([ref("r", 10)]), /page 10 of run "r"/);
    await assert.rejects(pages.read([ref("gone", 0)]), code("page_missing"));
    const range = Array.from({ length: 11 }, (_, i) => ref("r", i));
    await assert.rejects(pages.read(range), /page 10 of run "r"/);
  });

  test("runs are listed and deleted by name", async (pages) => {
    for (const run of ["b/1", "a/1", "a/2", "a"]) await pages.write(run, 0, [page(1), page(2)]);
    const names = async (prefix: string) => (await pages.list("runs", prefix)).map(({ name }) => name);
    assert.deepEqual(await names("a/"), ["a/1", "a/2"]);
    assert.deepEqual(await names(""), ["a", "a/1", "a/2", "b/1"]);
    await pages.deleteRuns(["a/1", "nobody", "b/1"]);
    assert.deepEqual(await names(""), ["a", "a/2"]);
    await assert.rejects(pages.read([ref("a/1", 0)]), code("page_missing"));
    assert.equal((await pages.read([ref("a/2", 1)])).length, 1);
    await pages.write("a/1", 0, [page(9)]);
    await assert.rejects(
      pages.read([ref("a/1", 1)]),
      code("page_missing"),
      "the old second page has not come back",
    );
  });

  test("a run of thousands of pages is deleted whole", async (pages) => {
    await pages.write("r", 0, Array.from({ length: 2500 }, (_, i) => page(i, 10)));
    await pages.deleteRuns(["r"]);
    assert.deepEqual(await pages.list("runs", ""), []);
    for (const i of [0, 999, 1000, 2499]) {
      await assert.rejects(pages.read([ref("r", i)]), code("page_missing"));
    }
  });

  test("documents are committed all or none, by the versions expected of them", async (pages) => {
    const versionOf = async (name: string) => {
      return (await pages.list("documents", name)).find((found) => found.name === name)?.version;
    };
    assert.equal(
      await pages.commit([{ name: "m/1", bytes: page(1), expected: null }, { name: "m/2", bytes: page(2) }]),
      true,
    );
    const first = await versionOf("m/1");
    assert.equal(
      await pages.commit([{ name: "m/3", bytes: page(3) }, { name: "m/1", bytes: page(4), expected: null }]),
      false,
    );
    assert.equal(await versionOf("m/3"), undefined);
    assert.equal(
      await pages.commit([{ name: "m/1", bytes: page(4), expected: first! }, {
        name: "m/2",
        bytes: undefined,
      }]),
      true,
    );
    assert.notEqual(await versionOf("m/1"), first);
    assert.equal(await pages.commit([{ name: "m/1", bytes: page(5), expected: first! }]), false);
    const left = await pages.list("documents", "m/");
    assert.deepEqual(left.map(({ name, bytes }) => [name, plain(bytes)]), [["m/1", page(4)]]);
    assert.deepEqual(await pages.list("documents", "n"), []);
  });

  test("of many that expect the same version one gets through", async (pages) => {
    await pages.commit([{ name: "m", bytes: page(0) }]);
    const { version } = (await pages.list("documents", "m"))[0]!;
    const outcomes = await Promise.all(
      Array.from(
        { length: 12 },
        (_, i) => pages.commit([{ name: "m", bytes: page(i + 1), expected: version }]),
      ),
    );
    assert.equal(outcomes.filter(Boolean).length, 1);
    assert.deepEqual(plain((await pages.list("documents", "m"))[0]!.bytes), page(outcomes.indexOf(true) + 1));
  });

  test("documents may be large, shrink and grow; too large is an error", async (pages) => {
    for (const size of [0, 70_000, LARGEST_DOCUMENT, 130_000, 5, 61_000]) {
      assert.equal(await pages.commit([{ name: "m", bytes: page(size, size) }]), true);
      assert.deepEqual(plain((await pages.list("documents", "m"))[0]!.bytes), page(size, size));
    }
    await assert.rejects(
      async () => await pages.commit([{ name: "m", bytes: page(1, LARGEST_DOCUMENT + 1) }]),
      code("document_too_large"),
    );
    await pages.commit([{ name: "m", bytes: undefined }]);
    assert.deepEqual(await pages.list("documents", ""), []);
  });

  test("what is committed, and the pages written before, outlive closing", async (pages, under) => {
    await pages.write("r", 0, [page(1), page(2)]);
    await pages.commit([{ name: "m", bytes: page(3, 100_000) }]);
    if (!under.survives) return;
    await pages[Symbol.asyncDispose]();
    await using again = await under.open();
    assert.deepEqual((await again.read([ref("r", 1)])).map(plain), [page(2)]);
    assert.deepEqual(plain((await again.list("documents", "m"))[0]!.bytes), page(3, 100_000));
    await again.write("s", 0, [page(7)]);
    assert.deepEqual((await again.read([ref("s", 0), ref("r", 0)])).map(plain), [page(7), page(1)]);
  });

  test("versions never come twice, not even those of a document that was deleted", async (pages, under) => {
    const seen = new Set<string>();
    const put = async (store: PageStore) => {
      assert.equal(await store.commit([{ name: "m", bytes: page(1), expected: null }]), true);
      const { version } = (await store.list("documents", "m"))[0]!;
      assert(!seen.has(version), `version ${version} has come before`);
      seen.add(version);
      assert.equal(await store.commit([{ name: "m", bytes: undefined, expected: version }]), true);
      assert.equal(await store.commit([{ name: "m", bytes: page(2), expected: version }]), false);
    };
    for (let i = 0; i < 3; i++) await put(pages);
    if (!under.survives) return;
    await pages[Symbol.asyncDispose]();
    await using again = await under.open();
    await put(again);
  });

  test("a page written again is read as it was written last, after opening, too", async (pages, under) => {
    await pages.write("r", 0, [page(1), page(2, 300), page(3)]);
    await pages.write("r", 1, [page(4, 700)]);
    const check = async (store: PageStore) => {
      const read = await store.read([ref("r", 0), ref("r", 1), ref("r", 2)]);
      assert.deepEqual(read.map(plain), [page(1), page(4, 700), page(3)]);
    };
    await check(pages);
    await pages.commit([]);
    if (!under.survives) return;
    await pages[Symbol.asyncDispose]();
    await using again = await under.open();
    await check(again);
  });

  test("names may be long and of any characters", async (pages, under) => {
    const long = "Größe 🚚/".repeat(60).slice(0, 499);
    const names = ["a", "A", "a%", "../x", "ß~", ".", long, `${long}2`, "o/1.run"];
    for (const [i, name] of names.entries()) await pages.write(name, 0, [page(i)]);
    await pages.commit(names.map((name, i) => ({ name, bytes: page(i) })));
    const check = async (store: PageStore) => {
      for (const kind of ["runs", "documents"] as const) {
        assert.deepEqual(new Set((await store.list(kind, "")).map(({ name }) => name)), new Set(names));
      }
      const read = await store.read(names.map((name) => ref(name, 0)));
      assert.deepEqual(read.map(plain), names.map((_, i) => page(i)));
    };
    await check(pages);
    if (!under.survives) return;
    await pages[Symbol.asyncDispose]();
    await using again = await under.open();
    await check(again);
    await again.deleteRuns(names);
    assert.deepEqual(await again.list("runs", ""), []);
  });

  test("calls for different runs and documents may overlap", async (pages) => {
    await Promise.all(Array.from({ length: 20 }, async (_, i) => {
      const run = `r/${i}`;
      await pages.write(run, 0, [page(i, 5000), page(i + 1)]);
      assert.equal(await pages.commit([{ name: `m/${i}`, bytes: page(i), expected: null }]), true);
      await Promise.all([
        pages.write(run, 2, [page(i + 2)]),
        pages.read([ref(run, 1), ref(run, 0)]).then((read) => {
          assert.deepEqual(read.map(plain), [page(i + 1), page(i, 5000)]);
        }),
      ]);
      if (i % 2 === 1) await pages.deleteRuns([run]);
    }));
    assert.equal((await pages.list("runs", "")).length, 10);
    assert.equal((await pages.list("documents", "m/")).length, 20);
    assert.deepEqual((await pages.read([ref("r/18", 2)])).map(plain), [page(20)]);
  });

  test("a second opening is refused at once while the first is open", async (pages, under) => {
    if (!under.survives) return;
    await pages.write("r", 0, [page(1)]);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(under.open(), (error) => {
        assert(error instanceof MailerError);
        assert.equal(error.code, "state_locked");
        assert.match(error.message, /has the state in .+ open/);
        assert.match(error.hint!, /stop/);
        return true;
      });
    }
    await pages.commit([{ name: "m", bytes: page(2) }]);
    await pages[Symbol.asyncDispose]();
    await pages[Symbol.asyncDispose]();
    await using again = await under.open();
    assert.deepEqual((await again.read([ref("r", 0)])).map(plain), [page(1)]);
  });
}

function ref(run: string, page: number): { run: string; page: number } {
  return { run, page };
}

function page(seed: number, size = 50): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => seed * 31 + i * 7);
}

/** A store may hand out views of other classes. */
function plain(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes);
}

function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof MailerError && error.code === expected;
}
