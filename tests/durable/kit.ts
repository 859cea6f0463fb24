/**
 * What the tests of recovery share: a state backend and a sink that outlive a crash, a crash at any of their calls, and a source
 * that can be read again.
 *
 * A crash here is one in the process: from one moment on nothing that the run still does has any effect. `tests/durable/kill_test.ts`
 * kills processes.
 *
 * @module
 */
import type { StateBackend } from "../../lib/checkpoint/backend.ts";
import type { Recovered, Sink, SinkWriter, Source } from "../../lib/connector.ts";
import { yieldToEventLoop } from "../../lib/scheduling.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { RESIDENT, type StateLimits } from "../../lib/state/log/mod.ts";
import type { PageStore } from "../../lib/state/pages/port.ts";

/** Counts the calls that have an effect outside the process, and crashes at one of them. */
export class CrashPoint {
  /** Calls so far. */
  calls = 0;
  crashed = false;
  /** Resolves when the crash has happened. */
  readonly happened: Promise<void>;
  readonly #happened = Promise.withResolvers<void>();

  /** @param at Number of the call to crash at, from 1. @param before Whether that call itself has no effect. */
  constructor(private readonly at = Infinity, private readonly before = true) {
    this.happened = this.#happened.promise;
  }

  /** Makes a call that has an effect. From the crash on none has, and all fail. */
  async pass<R>(effect: () => R | Promise<R>): Promise<R> {
    if (this.crashed) throw new Error("crashed");
    const isHere = ++this.calls === this.at;
    if (isHere && this.before) this.#crash();
    const result = await effect();
    if (isHere) this.#crash();
    return result;
  }

  #crash(): never {
    this.crashed = true;
    this.#happened.resolve();
    throw new Error("crashed");
  }
}

/** A backend whose pages outlive the runs that use it. */
export function lastingBackend(
  pages: MemoryPages,
  point: CrashPoint,
  limits: StateLimits = RESIDENT,
): StateBackend {
  const store: PageStore = {
    write: (run, first, list) => point.pass(() => pages.write(run, first, list)),
    read: (refs) => pages.read(refs),
    list: (kind, prefix) => pages.list(kind, prefix),
    deleteRuns: (runs) => point.pass(() => pages.deleteRuns(runs)),
    commit: (changes) => point.pass(() => pages.commit(changes)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return {
    type: "memory",
    limits,
    describe: () => ({}),
    open: () => Promise.resolve(store),
    exists: () => Promise.resolve(true),
  };
}

/** What a sink that outlives runs holds. */
export class Outside {
  /** What anybody can see. */
  visible: unknown[] = [];
  /** Prepared, and not committed. */
  readonly prepared = new Map<number, { readonly at: number; readonly rows: readonly unknown[] }>();
}

interface Committed {
  readonly number: number;
  /** How many rows are visible once it is committed. */
  readonly length: number;
}

/** A two-phase sink. */
export function committingSink(outside: Outside, point: CrashPoint): Sink {
  const commit = (committable: unknown): void => {
    const { number, length } = committable as Committed;
    for (const [prepared, { at, rows }] of [...outside.prepared].sort(([a], [b]) => a - b)) {
      if (prepared > number) break;
      if (outside.visible.length < at) throw new Error("a commit was left out");
      outside.visible.splice(at, Infinity, ...rows);
      outside.prepared.delete(prepared);
    }
    if (outside.visible.length !== length) {
      throw new Error(`${outside.visible.length} rows are visible, there should be ${length}`);
    }
  };
  return {
    type: "committing",
    commits: "two-phase",
    describe: () => ({}),
    async recover(committable): Promise<Recovered> {
      await point.pass(() => commit(committable));
      return "committed";
    },
    open({ checkpoints }): SinkWriter {
      const restored = checkpoints!.restored as Committed | undefined;
      outside.visible.length = restored?.length ?? 0;
      outside.prepared.clear();
      let rows: unknown[] = [], length = outside.visible.length;
      return {
        write: (batch) => void rows.push(...batch.values),
        flush: () => {},
        prepare: (number): Promise<Committed> =>
          point.pass(() => {
            if (rows.length > 0) outside.prepared.set(number, { at: length, rows });
            length += rows.length;
            rows = [];
            return { number, length };
          }),
        commit: (committable) => point.pass(() => commit(committable)),
        close: () => {},
      };
    },
  };
}

/** A record of the tests. */
export interface Sample {
  readonly key: string;
  readonly at: number;
  readonly value: number;
}

/** Reads values in splits, some at a time, giving way in between for a number of turns of the event loop. */
export function slowSource(
  splits: Readonly<Record<string, readonly Sample[]>>,
  batch = 4,
  turns = 20,
): Source<Sample> {
  return {
    type: "slow",
    describe: () => ({}),
    open({ restored }) {
      const at = new Map(Object.keys(splits).map((name) => [name, (restored?.get(name) as number) ?? 0]));
      const left = [...at.keys()];
      let turn = 0;
      return {
        splits: [...left],
        async read() {
          for (let i = 0; i < turns; i++) await yieldToEventLoop();
          const name = left[turn++ % Math.max(1, left.length)];
          if (name === undefined) return { kind: "end" };
          const from = at.get(name)!, values = splits[name]!.slice(from, from + batch);
          if (values.length === 0) {
            left.splice(left.indexOf(name), 1);
            return { kind: "ended", split: name };
          }
          at.set(name, from + values.length);
          return { kind: "records", split: name, values, firstOffset: from, position: from + values.length };
        },
        close: () => {},
      };
    },
  };
}

/** Pages that outlive runs. */
export function newPages(): MemoryPages {
  return new MemoryPages();
}
