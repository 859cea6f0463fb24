/**
 * The contract suite of sinks whose records become visible exactly once: registers the tests for what `commits` of the sink says.
 *
 * Sinks that commit (`two-phase`, `atomic`):
 *
 * K1 Nothing is visible before its commit; a commit makes visible what was prepared, in order, and nothing written since.
 * K2 Committing again, also by `recover` and in a later run, changes nothing.
 * K3 What was prepared outlives the run (`two-phase`), or is lost with it (`atomic`), and `recover` says which, each time.
 * K4 A run that goes on from a committable sees nothing of what was written or prepared behind it.
 * K5 What was prepared for a checkpoint that failed belongs to the next.
 * K6 Several checkpoints may be prepared before they are committed in their order.
 * K7 A checkpoint without records is a checkpoint.
 * K8 A close neither commits nor takes back.
 * K9 Committables are JSON values.
 *
 * Those that write the same again without effect (`idempotent`):
 *
 * I1 Records that a later run writes again, from any point on and in other batches, are there once.
 * I2 So are those of a batch that is written again in the same run.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Committable, Recovered, SinkWriter } from "../connector.ts";
import { batchOf, type SinkUnderTest } from "./sink_contract.ts";
import { sinkContext, SOME_VALUES } from "./sink_scene.ts";

/** What the suite is to know. */
export interface CommitContractOptions {
  /** Begins the names of the tests. */
  readonly name: string;
  /** What the sink declares. */
  readonly commits: "two-phase" | "atomic" | "idempotent";
  /**
   * Sets up an empty sink each time it is called. Its `written` gives what readers of the sink's store can see, in the order
   * written: where the store has no order, in that of `values`.
   */
  setUp(): SinkUnderTest | Promise<SinkUnderTest>;
  /** At least six values it can write, each of them once; default some JSON values. */
  readonly values?: readonly unknown[];
  /** Registers a test; default `Deno.test`. */
  readonly test?: (name: string, run: () => Promise<void>) => void;
}

/** Time between checkpoints, as the sink is told, ms. */
const INTERVAL = 10_000;

type Register = (title: string, run: (scene: Scene) => Promise<void>) => void;

/** Registers the tests. */
export function commitContract(options: CommitContractOptions): void {
  const { name, commits, values = SOME_VALUES, test = (title, run) => Deno.test(title, run) } = options;
  const register: Register = (title, run) =>
    test(`${name}: ${title}`, async () => {
      const under = await options.setUp(), scene = new Scene(under, values);
      try {
        assert.equal(under.sink.commits, commits);
        await run(scene);
      } finally {
        await scene.end();
        await under.tearDown?.();
      }
    });
  if (commits === "idempotent") return idempotentContract(register);
  committingContract(register);
  if (commits === "two-phase") twoPhaseContract(register);
  else atomicContract(register);
}

function committingContract(register: Register): void {
  register("K1: nothing is visible before its commit, and all of it then", async (scene) => {
    await scene.open();
    await scene.write(0, 1);
    await scene.write(1, 2);
    await scene.sees(0);
    const first = await scene.prepare();
    await scene.sees(0);
    await scene.write(2, 4);
    await scene.flush();
    await scene.sees(0);
    await scene.commit(first);
    await scene.sees(2);
    const second = await scene.prepare();
    await scene.sees(2);
    await scene.commit(second);
    await scene.sees(4);
    await scene.close("done");
    await scene.sees(4);
  });

  register("K1: a large batch is committed whole", async (scene) => {
    const many = Array.from({ length: 5000 }, (_, i) => scene.values[i % scene.values.length]);
    await scene.open();
    await scene.writeValues(many);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    assert.deepEqual(await scene.written(), many);
  });

  register("K2: committing again changes nothing, in the same run and in later ones", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.commit(first);
    await scene.commit(first);
    await scene.sees(2);
    await scene.close("failed");
    for (let run = 0; run < 2; run++) {
      assert.equal(await scene.recover(first), "committed");
      await scene.sees(2);
      await scene.open(first);
      await scene.sees(2);
      await scene.close("failed");
    }
    await scene.open(first);
    await scene.write(2, 4);
    const second = await scene.prepare();
    await scene.commit(second);
    await scene.commit(second);
    await scene.close("done");
    await scene.sees(4);
  });

  register("K3: of a commit that nobody has heard of, `recover` says that it was made", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.write(2, 3);
    await scene.commit(first);
    await scene.close("failed");
    assert.equal(await scene.recover(first), "committed");
    await scene.sees(2);
    await scene.open(first);
    await scene.write(2, 4);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(4);
  });

  register("K4: what was written or prepared behind the restored committable is gone", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.commit(first);
    await scene.write(2, 4);
    await scene.prepare();
    await scene.write(4, 5);
    await scene.close("failed");
    await scene.open(first);
    await scene.sees(2);
    await scene.write(2, 3);
    await scene.sees(2);
    const third = await scene.prepare();
    await scene.commit(third);
    await scene.sees(3);
    await scene.write(3, 5);
    await scene.close("failed");
    await scene.open(third);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(3);
  });

  register("K4: a first run sees nothing of one that has committed nothing", async (scene) => {
    await scene.open();
    await scene.write(0, 3);
    await scene.prepare();
    await scene.write(3, 4);
    await scene.close("failed");
    await scene.open();
    await scene.sees(0);
    await scene.write(0, 2);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(2);
  });

  register("K5: what was prepared for checkpoints that failed is committed with the next", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    await scene.prepare();
    await scene.write(2, 3);
    await scene.prepare();
    await scene.sees(0);
    await scene.write(3, 4);
    await scene.commit(await scene.prepare());
    await scene.sees(4);
    await scene.write(4, 5);
    await scene.prepare();
    await scene.commit(await scene.prepare()); // nothing was written in between
    await scene.close("done");
    await scene.sees(5);
  });

  register("K6: several are prepared, then committed in their order", async (scene) => {
    await scene.open();
    const prepared: Committable[] = [];
    for (let i = 0; i < 3; i++) {
      await scene.write(2 * i, 2 * i + (i < 2 ? 2 : 1));
      prepared.push(await scene.prepare());
    }
    for (const [i, rows] of [2, 4, 5].entries()) {
      await scene.commit(prepared[i]);
      await scene.sees(rows);
    }
    await scene.write(5, 6);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(6);
  });

  register("K7: checkpoints without records", async (scene) => {
    await scene.open();
    const first = await scene.prepare();
    await scene.commit(first);
    await scene.sees(0);
    await scene.close("failed");
    assert.equal(await scene.recover(first), "committed");
    await scene.open(first);
    await scene.writeValues([]);
    await scene.commit(await scene.prepare());
    await scene.sees(0);
    await scene.write(0, 2);
    await scene.commit(await scene.prepare());
    const last = await scene.prepare();
    await scene.commit(last);
    await scene.sees(2);
    await scene.close("failed");
    await scene.open(last);
    await scene.sees(2);
    await scene.write(2, 3);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(3);
  });

  register("K8: a close commits nothing, and takes nothing back", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.commit(first);
    await scene.write(2, 4);
    await scene.close("failed");
    await scene.sees(2);
    await scene.open(first);
    await scene.close("done");
    await scene.sees(2);
  });
}

function twoPhaseContract(register: Register): void {
  register(
    "K3: what was prepared is committed by a later run, however often it is asked to",
    async (scene) => {
      await scene.open();
      await scene.write(0, 2);
      const first = await scene.prepare();
      await scene.write(2, 3);
      await scene.close("failed");
      await scene.sees(0);
      for (let again = 0; again < 2; again++) {
        assert.equal(await scene.recover(first), "committed");
        await scene.sees(2);
      }
      await scene.open(first);
      await scene.sees(2);
      await scene.write(2, 4);
      await scene.close("failed");
      assert.equal(await scene.recover(first), "committed");
      await scene.open(first);
      await scene.write(2, 5);
      await scene.commit(await scene.prepare());
      await scene.close("done");
      await scene.sees(5);
    },
  );

  register("K3, K5, K6: a later run commits all that was prepared up to the committable", async (scene) => {
    await scene.open();
    await scene.write(0, 1);
    const first = await scene.prepare();
    await scene.write(1, 2);
    await scene.prepare(); // and fails
    await scene.write(2, 4);
    const third = await scene.prepare();
    await scene.write(4, 5);
    await scene.prepare(); // and does not become durable
    await scene.commit(first);
    await scene.sees(1);
    await scene.close("failed");
    assert.equal(await scene.recover(third), "committed");
    await scene.sees(4);
    await scene.open(third);
    await scene.sees(4);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(4);
  });
}

function atomicContract(register: Register): void {
  register("K3: what was prepared and not committed is lost, and comes again", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.commit(first);
    await scene.write(2, 4);
    const second = await scene.prepare();
    await scene.close("failed");
    for (let again = 0; again < 2; again++) {
      assert.equal(await scene.recover(second), "lost");
      await scene.sees(2);
    }
    assert.equal(await scene.recover(first), "committed");
    await scene.open(first);
    await scene.write(2, 5);
    const third = await scene.prepare();
    await scene.commit(third);
    await scene.sees(5);
    await scene.close("failed");
    assert.equal(await scene.recover(third), "committed");
    await scene.sees(5);
  });

  register("K3: lost before anything was committed", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    const first = await scene.prepare();
    await scene.close("failed");
    assert.equal(await scene.recover(first), "lost");
    await scene.sees(0);
    await scene.open();
    await scene.write(0, 3);
    await scene.commit(await scene.prepare());
    await scene.close("done");
    await scene.sees(3);
  });
}

function idempotentContract(register: Register): void {
  register("I1: records that a later run writes again are there once", async (scene) => {
    await scene.open();
    await scene.write(0, 2);
    await scene.flush();
    await scene.write(2, 4);
    await scene.flush();
    await scene.sees(4);
    await scene.close("failed");
    await scene.open();
    await scene.write(0, 4);
    await scene.flush();
    await scene.sees(4);
    await scene.close("failed");
    await scene.open();
    await scene.write(1, 3);
    await scene.write(3, 6);
    await scene.flush();
    await scene.close("done");
    await scene.sees(6);
  });

  register("I2: a batch that is written again is there once", async (scene) => {
    await scene.open();
    for (let again = 0; again < 2; again++) await scene.write(0, 3);
    await scene.flush();
    await scene.sees(3);
    await scene.write(2, 5);
    await scene.flush();
    await scene.close("done");
    await scene.sees(5);
  });
}

/** A sink, one run after the other, and an input of values of which any stretch can be written. */
class Scene {
  readonly values: readonly unknown[];
  readonly #under: SinkUnderTest;
  #writer: SinkWriter | undefined;
  #checkpoint = 0;

  constructor(under: SinkUnderTest, values: readonly unknown[]) {
    this.#under = under;
    this.values = values;
  }

  async open(restored?: Committable): Promise<void> {
    this.#writer = await this.#under.sink.open(
      sinkContext({ checkpoints: { restored, interval: INTERVAL } }),
    );
  }

  /** Writes the values from one number to another, as one batch. */
  async write(from: number, to: number): Promise<void> {
    await this.#run.write(batchOf(this.values.slice(from, to), from));
  }

  async writeValues(values: readonly unknown[]): Promise<void> {
    await this.#run.write(batchOf(values));
  }

  async flush(): Promise<void> {
    await this.#run.flush();
  }

  /** @returns The committable, as it is after it has been stored. */
  async prepare(): Promise<Committable> {
    const writer = this.#run;
    assert.ok(writer.prepare !== undefined, "the writer has no `prepare`");
    const committable = await writer.prepare(++this.#checkpoint);
    const text: string | undefined = JSON.stringify(committable);
    assert.ok(text !== undefined, "K9: the committable is no JSON value");
    assert.deepEqual(JSON.parse(text), committable, "K9: JSON changes the committable");
    return JSON.parse(text);
  }

  async commit(committable: Committable): Promise<void> {
    const writer = this.#run;
    assert.ok(writer.commit !== undefined, "the writer has no `commit`");
    await writer.commit(committable);
  }

  async recover(committable: Committable): Promise<Recovered> {
    const { sink } = this.#under, { id, clock, logger, signal } = sinkContext();
    assert.ok(sink.recover !== undefined, "the sink has no `recover`");
    return await sink.recover(committable, { id, clock, logger, signal });
  }

  async close(outcome: "done" | "failed"): Promise<void> {
    const writer = this.#run;
    this.#writer = undefined;
    await writer.close(outcome);
  }

  /** Closes what a failed test has left open. */
  async end(): Promise<void> {
    if (this.#writer !== undefined) await this.close("failed");
  }

  async written(): Promise<unknown[]> {
    return await this.#under.written();
  }

  /** Checks that the first so many values are visible, and nothing else. */
  async sees(count: number): Promise<void> {
    assert.deepEqual(await this.written(), this.values.slice(0, count));
  }

  get #run(): SinkWriter {
    assert.ok(this.#writer !== undefined, "no writer is open");
    return this.#writer;
  }
}
