/**
 * Looking into checkpoints and savepoints of a pipeline that is not running, and putting them in order.
 *
 * I1 Looking creates nothing and deletes nothing; where a pipeline has kept nothing, nothing is opened.
 * I2 Whoever removes the checkpoints that the next run could go on from has to say so.
 * I3 A run of pages is deleted after the last manifest that names it, and only where every manifest that stays can be read.
 * I4 A savepoint is made only of a checkpoint all of whose pages are whole.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { codeOf, MailerError } from "../errors.ts";
import { nearest } from "../expr/mod.ts";
import { PageCache } from "../state/log/mod.ts";
import { checkPage, PageKind } from "../state/log/page.ts";
import { Run, type RunRef } from "../state/log/run.ts";
import type { PageStore } from "../state/pages/port.ts";
import type { StateBackend } from "./backend.ts";
import {
  checkSavepointName,
  type FoundManifest,
  labelOf,
  type Manifest,
  ManifestStore,
  sectionsOf,
  stateBytesOf,
} from "./manifest.ts";

/** Pages that are read at once. */
const PAGES_A_READ = 64;
/** Damaged pages of one run that are named; the others are counted. */
const MOST_NAMED = 5;
/** Codes of errors that say what is stored is damaged. */
const DAMAGE = ["page_missing", "page_corrupt", "page_format"];

/** A checkpoint or savepoint in short. */
export interface CheckpointFacts {
  readonly kind: "checkpoint" | "savepoint";
  /** Undefined of a damaged savepoint. */
  readonly number: number | undefined;
  /** Name of a savepoint. */
  readonly name: string | undefined;
  readonly status: Manifest["status"] | "damaged";
  /** Whether all input had been read and worked through. */
  readonly finished: boolean;
  /** ms since the epoch; undefined of a damaged one, as are the next two. */
  readonly takenAt: number | undefined;
  /** From its barrier until it was durable, ms. */
  readonly durationMs: number | undefined;
  /** Size of the keyed state it names, bytes; checkpoints share most of it with those before. */
  readonly stateBytes: number | undefined;
  /** Why it cannot be read. */
  readonly damage: string | undefined;
}

/** The outcome of reading all that a manifest names. */
export interface Verdict {
  readonly found: FoundManifest;
  /** Runs that it names. */
  readonly runs: number;
  /** Pages of these. */
  readonly pages: number;
  /** What is damaged, a sentence each. Empty: nothing is. */
  readonly damage: readonly string[];
}

/** What was removed. */
export interface Removed {
  /** Runs of pages that went with the manifests. */
  readonly runs: number;
}

/** A savepoint that was made of a checkpoint. */
export interface MadeSavepoint {
  readonly savepoint: Manifest;
  /** Newer checkpoints that could not be taken, and why. */
  readonly passedOver: readonly { readonly found: FoundManifest; readonly why: string }[];
}

/** A checkpoint or savepoint in short. */
export function factsOf({ number, savepoint, manifest }: FoundManifest): CheckpointFacts {
  const kind = savepoint === undefined ? "checkpoint" : "savepoint";
  if (manifest instanceof MailerError) {
    return {
      kind,
      number,
      name: savepoint,
      status: "damaged",
      finished: false,
      takenAt: undefined,
      durationMs: undefined,
      stateBytes: undefined,
      damage: manifest.message,
    };
  }
  const { status, finished, takenAt, durationMs } = manifest;
  return {
    kind,
    number,
    name: savepoint,
    status,
    finished,
    takenAt,
    durationMs,
    stateBytes: stateBytesOf(manifest),
    damage: undefined,
  };
}

/**
 * Opens what a pipeline has kept.
 *
 * @returns undefined where it has kept nothing; then nothing is created either.
 * @throws {MailerError} `state_locked` while the pipeline runs.
 */
export async function openCheckpoints(
  backend: StateBackend,
  pipeline: string,
  clock: Clock,
): Promise<Checkpoints | undefined> {
  if (!await backend.exists(pipeline)) return undefined;
  try {
    return new Checkpoints(await backend.open(pipeline, clock));
  } catch (error) {
    if (codeOf(error) !== "state_locked") throw error;
    throw new MailerError("state_locked", `workflow "${pipeline}" is running: its state is in use`, {
      cause: error,
      hint: "stop it first",
    });
  }
}

/** The checkpoints and savepoints of one pipeline. */
export class Checkpoints implements AsyncDisposable {
  /** Where they lie. */
  readonly pages: PageStore;
  readonly #manifests: ManifestStore;
  /** What is damaged of runs that have been read. */
  readonly #read = new Map<string, readonly string[]>();

  /** @param pages Is closed with it. */
  constructor(pages: PageStore) {
    this.pages = pages;
    this.#manifests = new ManifestStore(pages);
  }

  /** All there are: savepoints by name, then checkpoints, the newest first. */
  list(): Promise<FoundManifest[]> {
    return this.#manifests.list();
  }

  /**
   * Finds one by its number or name: a checkpoint's number first, then a savepoint's name, then the number of a savepoint.
   *
   * @throws {MailerError} `no_checkpoint`
   */
  async find(which: string): Promise<FoundManifest> {
    const all = await this.list(), number = /^\d+$/.test(which) ? Number(which) : undefined;
    return all.find((one) => one.savepoint === undefined && one.number === number) ??
      all.find((one) => one.savepoint === which) ??
      all.find((one) => number !== undefined && one.number === number) ??
      raise(absent(which, all));
  }

  /**
   * The manifest of a number or name, or the newest one that can be read.
   *
   * @throws {MailerError} `no_checkpoint`, `no_good_checkpoint`, and what a damaged manifest is damaged by.
   */
  async manifest(which: string | undefined): Promise<Manifest> {
    if (which !== undefined) {
      const { manifest } = await this.find(which);
      if (manifest instanceof MailerError) throw manifest;
      return manifest;
    }
    const all = await this.list();
    const readable = all.flatMap(({ manifest }) => manifest instanceof MailerError ? [] : [manifest]);
    const newest = readable.find(({ savepoint }) => savepoint === undefined) ??
      readable.sort((a, b) => b.number - a.number)[0];
    if (newest !== undefined) return newest;
    throw new MailerError(
      "no_good_checkpoint",
      all.length === 0 ? "there are no checkpoints" : `all of ${all.length} checkpoints are damaged`,
    );
  }

  /** Reads every page that a manifest names. A run that several name is read once. */
  async verify(found: FoundManifest): Promise<Verdict> {
    const { manifest } = found;
    if (manifest instanceof MailerError) return { found, runs: 0, pages: 0, damage: [manifest.message] };
    const refs = sectionsOf(manifest).flatMap(([, { runs }]) => runs), damage: string[] = [];
    for (const ref of refs) damage.push(...await this.#damageOf(ref));
    return { found, runs: refs.length, pages: refs.reduce((sum, { pages }) => sum + pages, 0), damage };
  }

  async #damageOf(ref: RunRef): Promise<readonly string[]> {
    const id = `${ref.footer} ${ref.filter} ${ref.pages} ${ref.entries} ${ref.run}`;
    let known = this.#read.get(id);
    if (known === undefined) this.#read.set(id, known = await damageOfRun(ref, this.pages));
    return known;
  }

  /**
   * Removes checkpoints, and the runs of pages that nothing else names.
   *
   * @param force Also those that the next run could go on from.
   * @throws {MailerError} `checkpoint_needed`; then nothing is removed.
   */
  async removeCheckpoints(numbers: readonly number[], force: boolean): Promise<Removed> {
    const all = await this.list();
    const checkpoints = all.filter(({ savepoint }) => savepoint === undefined);
    const chosen = numbers.map((number) =>
      checkpoints.find((one) => one.number === number) ?? raise(absent(String(number), checkpoints))
    );
    if (!force) await this.#checkSpared(chosen, checkpoints);
    return await this.#remove(chosen, all);
  }

  /** Removes savepoints. @throws {MailerError} `no_savepoint`; then nothing is removed. */
  async removeSavepoints(names: readonly string[]): Promise<Removed> {
    const all = await this.list();
    const savepoints = all.filter(({ savepoint }) => savepoint !== undefined);
    const chosen = names.map((name) =>
      savepoints.find(({ savepoint }) => savepoint === name) ?? raise(absentSavepoint(name, savepoints))
    );
    return await this.#remove(chosen, all);
  }

  /** I2: one that is `prepared` may turn out to be lost, so the newest completed one is needed as well. */
  async #checkSpared(chosen: readonly FoundManifest[], checkpoints: readonly FoundManifest[]): Promise<void> {
    let newest = "newest good one";
    for (const found of checkpoints) {
      const { manifest } = found;
      if (manifest instanceof MailerError || (await this.verify(found)).damage.length > 0) continue;
      if (chosen.includes(found)) {
        throw new MailerError(
          "checkpoint_needed",
          `${labelOf(found)} is the ${newest}: the next run may have to go on from there`,
          { hint: "nothing has been removed; --force removes it all the same" },
        );
      }
      if (manifest.status === "completed") return;
      newest = "newest completed one";
    }
  }

  async #remove(chosen: readonly FoundManifest[], all: readonly FoundManifest[]): Promise<Removed> {
    await this.#manifests.remove(chosen.map(({ document }) => document));
    const rest = all.filter((one) => !chosen.includes(one));
    // I3: what cannot be read may name any run.
    if (rest.some(({ manifest }) => manifest instanceof MailerError)) return { runs: 0 };
    const needed = new Set(rest.flatMap(runsOf));
    const free = [...new Set(chosen.flatMap(runsOf))].filter((run) => !needed.has(run));
    if (free.length > 0) await this.pages.deleteRuns(free);
    return { runs: free.length };
  }

  /**
   * Makes a savepoint of the newest completed checkpoint that is whole.
   *
   * @throws {MailerError} `invalid_savepoint_name`, `savepoint_exists`, `no_good_checkpoint`
   */
  async createSavepoint(name: string): Promise<MadeSavepoint> {
    checkSavepointName(name);
    const all = await this.list(), passedOver: { found: FoundManifest; why: string }[] = [];
    if (all.some(({ savepoint }) => savepoint === name)) {
      throw new MailerError("savepoint_exists", `there is a savepoint "${name}" already`, {
        hint: "choose another name, or remove that one first",
      });
    }
    for (const found of all.filter(({ savepoint }) => savepoint === undefined)) {
      const { manifest } = found, [damage] = (await this.verify(found)).damage;
      if (damage !== undefined) passedOver.push({ found, why: damage });
      else if (!(manifest instanceof MailerError)) {
        if (manifest.status === "completed") {
          const savepoint: Manifest = { ...manifest, savepoint: name };
          await this.#manifests.write(savepoint);
          return { savepoint, passedOver };
        }
        passedOver.push({ found, why: "its sinks may not have committed it; the next run sees to that" });
      }
    }
    throw new MailerError(
      "no_good_checkpoint",
      passedOver.length === 0
        ? "there is no checkpoint to make a savepoint of"
        : `no checkpoint can be made a savepoint:${
          passedOver.map(({ found, why }) => `\n  ${labelOf(found)}: ${why}`).join("")
        }`,
      { hint: "run the workflow until it has completed a checkpoint" },
    );
  }

  /** Closes the store. */
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.pages[Symbol.asyncDispose]());
  }
}

function raise(error: Error): never {
  throw error;
}

function absent(which: string, among: readonly FoundManifest[]): MailerError {
  const names = among.flatMap(({ savepoint }) => savepoint ?? []);
  const numbers = among.flatMap(({ savepoint, number }) => savepoint === undefined ? [number] : []);
  const near = nearest(which, names), lists: string[] = [];
  if (numbers.length > 0) lists.push(`checkpoints ${numbers.join(", ")}`);
  if (names.length > 0) lists.push(`savepoints ${names.map((name) => `"${name}"`).join(", ")}`);
  const there = lists.length === 0 ? "there are none" : `there are ${lists.join(" and ")}`;
  return new MailerError(
    "no_checkpoint",
    /^\d+$/.test(which) ? `there is no checkpoint ${which}` : `there is no savepoint "${which}"`,
    { hint: near === undefined ? there : `did you mean "${near}"? ${there}` },
  );
}

function absentSavepoint(name: string, savepoints: readonly FoundManifest[]): MailerError {
  const { hint } = absent(name, savepoints);
  return new MailerError(
    "no_savepoint",
    `there is no savepoint "${name}"`,
    hint === undefined ? {} : { hint },
  );
}

function runsOf({ manifest }: FoundManifest): string[] {
  if (manifest instanceof MailerError) return [];
  return sectionsOf(manifest).flatMap(([, { runs }]) => runs.map(({ run }) => run));
}

/** Reads all pages of a run. */
async function damageOfRun(ref: RunRef, store: PageStore): Promise<readonly string[]> {
  const damage: string[] = [];
  let damaged = 0, entries = 0;
  const note = (error: unknown): void => {
    if (!DAMAGE.includes(codeOf(error))) throw error;
    if (++damaged <= MOST_NAMED) damage.push((error as MailerError).message);
  };
  for (let from = 0; from < ref.pages; from += PAGES_A_READ) {
    const to = Math.min(from + PAGES_A_READ, ref.pages);
    for (const [page, bytes] of await readPages(store, ref.run, from, to, note)) {
      try {
        entries += entriesOf(checkedPage(bytes, ref, page));
      } catch (error) {
        note(error);
      }
    }
  }
  if (damaged > MOST_NAMED) damage.push(`state: ${damaged - MOST_NAMED} more pages of run "${ref.run}"`);
  if (damaged > 0) return damage;
  if (entries !== ref.entries) {
    return [`state: run "${ref.run}" has ${entries} entries, ${ref.entries} were written`];
  }
  try {
    const [run] = await Run.open([ref], store, new PageCache(0));
    await run!.loadFilter();
  } catch (error) {
    note(error);
  }
  return damage;
}

/** Those that are there, with their numbers. */
async function readPages(
  store: PageStore,
  run: string,
  from: number,
  to: number,
  note: (error: unknown) => void,
): Promise<(readonly [page: number, bytes: Uint8Array])[]> {
  const refs = Array.from({ length: to - from }, (_, i) => ({ run, page: from + i }));
  try {
    const pages = await store.read(refs);
    return pages.map((bytes, i) => [from + i, bytes]);
  } catch (error) {
    if (refs.length === 1) {
      note(error);
      return [];
    }
    if (!DAMAGE.includes(codeOf(error))) throw error;
  }
  const found: (readonly [number, Uint8Array])[] = [];
  for (let page = from; page < to; page++) found.push(...await readPages(store, run, page, page + 1, note));
  return found;
}

function checkedPage(bytes: Uint8Array, { run, footer, filter }: RunRef, page: number): Uint8Array {
  const kinds = page < footer
    ? [PageKind.entries, PageKind.mixed, PageKind.chunk]
    : [page < filter ? PageKind.index : PageKind.filter];
  checkPage(bytes, run, page, kinds);
  return bytes;
}

/** Number of entries that the head of a page tells; of a page that has none by its kind, 0. */
function entriesOf(bytes: Uint8Array): number {
  const kind = bytes[5];
  if (kind !== PageKind.entries && kind !== PageKind.mixed) return 0;
  return new DataView(bytes.buffer, bytes.byteOffset).getUint16(6, true);
}
