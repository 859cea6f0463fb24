import assert from "node:assert/strict";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { MailerError } from "../../errors.ts";
import { pageStoreContract } from "./contract.ts";
import { openKvPages } from "./kv.ts";
import { BUSY, whileBusy } from "./retry.ts";
import { openSqlitePages } from "./sqlite.ts";
import { PAGE_STORES } from "./stores.ts";

for (const [name, make] of PAGE_STORES) pageStoreContract(name, make);

Deno.test("without KV the error is one sentence that names both remedies", async () => {
  const openKv = Deno.openKv;
  Reflect.deleteProperty(Deno, "openKv");
  try {
    await assert.rejects(openKvPages({ path: ":memory:" }), (error) => {
      assert(error instanceof MailerError);
      assert.equal(error.code, "kv_unavailable");
      assert.match(error.message, /"unstable": \["kv"\].*deno\.json at the root.*--unstable-kv$/);
      return true;
    });
  } finally {
    Object.defineProperty(Deno, "openKv", { value: openKv, configurable: true, writable: true });
  }
});

Deno.test("a SQLite file that cannot be opened is named", async () => {
  const folder = await Deno.makeTempDir(), path = `${folder}/state`;
  try {
    await Deno.mkdir(path);
    for (let i = 0; i < 2; i++) { // the second time: the lock has been released
      await assert.rejects(openSqlitePages({ path }), (error) => {
        return error instanceof MailerError && error.code === "store_unavailable" &&
          error.message.includes(path);
      });
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a busy store is tried again, with waits by the clock, and other errors are not", async () => {
  const clock = new VirtualClock();
  let tries = 0;
  const done = whileBusy("work", clock, () => {
    tries++;
    if (tries === 1) return Promise.reject(new Error("database is locked"));
    return Promise.resolve(tries === 2 ? BUSY : "done");
  });
  await clock.advance(1000);
  assert.equal(await done, "done");
  assert.equal(tries, 3);
  await assert.rejects(
    whileBusy("work", clock, () => Promise.reject(new Error("database or disk is full"))),
    (error: MailerError) => {
      assert.deepEqual([error.code, error.message], [
        "store_failed",
        "state: work failed: database or disk is full",
      ]);
      assert.match(error.hint!, /make room/);
      return true;
    },
  );
});

Deno.test("a store that stays busy is given up on in the end", async () => {
  const clock = new VirtualClock();
  const given = assert.rejects(
    whileBusy("work", clock, () => Promise.resolve(BUSY)),
    /work did not get through/,
  );
  for (let i = 0; i < 100; i++) await clock.advance(1000);
  await given;
});
