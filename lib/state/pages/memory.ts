/**
 * Pages in this process: for tests, and for state that need not outlive it.
 *
 * @module
 */
import {
  checkDocuments,
  checkPages,
  type DocumentChange,
  type Listed,
  pageMissing,
  type PageRef,
  type PageStore,
} from "./port.ts";

interface Held {
  readonly bytes: Uint8Array;
  readonly version: string;
}

/** A page store in memory; several state stores may share one. */
export class MemoryPages implements PageStore {
  readonly #runs = new Map<string, Uint8Array[]>();
  readonly #documents = new Map<string, Held>();
  #commits = 0;

  write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void> {
    checkPages(run, first, pages);
    let held = this.#runs.get(run);
    if (held === undefined) this.#runs.set(run, held = []);
    for (let i = 0; i < pages.length; i++) held[first + i] = pages[i]!;
    return Promise.resolve();
  }

  read(refs: readonly PageRef[]): Promise<Uint8Array[]> {
    const pages: Uint8Array[] = [];
    for (const ref of refs) {
      const page = this.#runs.get(ref.run)?.[ref.page];
      if (page === undefined) return Promise.reject(pageMissing(ref, "memory"));
      pages.push(page);
    }
    return Promise.resolve(pages);
  }

  list(kind: "documents" | "runs", prefix: string): Promise<readonly Listed[]> {
    const found: Listed[] = [];
    if (kind === "runs") {
      for (const name of this.#runs.keys()) {
        if (name.startsWith(prefix)) found.push({ name, bytes: new Uint8Array(), version: "" });
      }
    } else {
      for (const [name, { bytes, version }] of this.#documents) {
        if (name.startsWith(prefix)) found.push({ name, bytes: bytes.slice(), version });
      }
    }
    return Promise.resolve(found.sort((a, b) => a.name < b.name ? -1 : 1));
  }

  deleteRuns(runs: readonly string[]): Promise<void> {
    for (const run of runs) this.#runs.delete(run);
    return Promise.resolve();
  }

  commit(changes: readonly DocumentChange[]): Promise<boolean> {
    checkDocuments(changes);
    for (const { name, expected } of changes) {
      if (expected === undefined) continue;
      if ((this.#documents.get(name)?.version ?? null) !== expected) return Promise.resolve(false);
    }
    const version = String(++this.#commits);
    for (const { name, bytes } of changes) {
      if (bytes === undefined) this.#documents.delete(name);
      else this.#documents.set(name, { bytes: bytes.slice(), version });
    }
    return Promise.resolve(true);
  }

  /** Forgets everything. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#runs.clear();
    this.#documents.clear();
    return Promise.resolve();
  }
}
