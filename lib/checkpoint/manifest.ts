/**
 * Manifests: what a checkpoint or savepoint says. It exists only through its manifest, which is written last.
 *
 * M1 `prepared` says: everything it names is durable, and its sinks may or may not have committed. `completed`: they have.
 * M2 Manifests are found by their number; the newest good one is where a run goes on. A savepoint has a name and stays until it is
 *    deleted.
 * M3 A large manifest lies in a run of pages, and its document names that: it changes at once all the same.
 * M4 A damaged manifest is never taken for one that is not there.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Committable } from "../connector.ts";
import { asError, MailerError } from "../errors.ts";
import type { SourceSnapshot } from "../runtime/snapshots.ts";
import { openDocument, sealDocument, type Section, type StateStore } from "../state/log/mod.ts";
import { LARGEST_PAGE, type PageStore } from "../state/pages/port.ts";

/** What is known of an operator. */
export interface OperatorState {
  /** What its instances gave besides their keyed state. */
  readonly snapshots: readonly unknown[];
  /** Its keyed state, if it has any. */
  readonly section: Section | undefined;
}

/** A checkpoint or savepoint. */
export interface Manifest {
  readonly version: 1;
  readonly pipeline: string;
  readonly number: number;
  /** The highest number that anything was prepared under; later checkpoints have higher ones. */
  readonly highest: number;
  /** Name of a savepoint; undefined for a checkpoint. */
  readonly savepoint: string | undefined;
  readonly status: "prepared" | "completed";
  /** When its barrier started, ms since the epoch. */
  readonly takenAt: number;
  /** From there until it was durable, ms. */
  readonly durationMs: number;
  /** Whether all input had been read, and all of it worked through. */
  readonly finished: boolean;
  readonly sources: Readonly<Record<string, SourceSnapshot>>;
  readonly operators: Readonly<Record<string, OperatorState>>;
  /** What sinks have prepared. */
  readonly committables: Readonly<Record<string, Committable>>;
}

/** A manifest as it is found in a store. */
export interface FoundManifest {
  /** Name of its document. */
  readonly document: string;
  readonly number: number | undefined;
  readonly savepoint: string | undefined;
  /** What it says, or why it cannot be read. */
  readonly manifest: Manifest | MailerError;
}

const CHECKPOINTS = "checkpoint/";
const SAVEPOINTS = "savepoint/";
/** Begins the names of the runs that large manifests lie in. */
const RUNS = "manifest:";
const DIGITS = 15;
/** Larger ones lie in pages, bytes: a commit has to hold two. */
const LARGEST_INLINE = 250_000;

/** Name of the document of a manifest. */
export function documentOf({ number, savepoint }: Pick<Manifest, "number" | "savepoint">): string {
  return savepoint === undefined
    ? CHECKPOINTS + String(number).padStart(DIGITS, "0")
    : SAVEPOINTS + savepoint;
}

/** How one is called in a sentence. */
export function labelOf({ number, savepoint }: Pick<FoundManifest, "number" | "savepoint">): string {
  return savepoint === undefined ? `checkpoint ${number}` : `savepoint "${savepoint}"`;
}

/** The keyed state that a manifest names, by operator. */
export function sectionsOf(
  { operators }: Pick<Manifest, "operators">,
): (readonly [operator: string, section: Section])[] {
  return Object.entries(operators).flatMap(([id, { section }]) =>
    section === undefined ? [] : [[id, section] as const]
  );
}

/** Size of the keyed state that a manifest names, bytes. */
export function stateBytesOf(manifest: Pick<Manifest, "operators">): number {
  return sectionsOf(manifest).reduce((sum, [, section]) => sum + sectionBytes(section), 0);
}

/** Size of the keyed state of one operator, in bytes of its runs. */
export function sectionBytes({ runs }: Section): number {
  return runs.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Lets go of what a manifest names that is not there any more, or never will be. */
export async function releaseSections(
  manifest: Pick<Manifest, "operators">,
  stores: ReadonlyMap<string, StateStore>,
): Promise<void> {
  for (const [id, section] of sectionsOf(manifest)) await stores.get(id)?.release(section);
}

/** @throws {MailerError} `invalid_savepoint_name` */
export function checkSavepointName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name)) return;
  throw new MailerError(
    "invalid_savepoint_name",
    `${JSON.stringify(name)} is no name for a savepoint`,
    { hint: "use up to 100 letters, digits, dots, dashes and underscores, a letter or digit first" },
  );
}

/** The manifests in one store. */
export class ManifestStore {
  constructor(private readonly pages: PageStore) {}

  /** All there are: savepoints by name, then checkpoints, the newest first. */
  async list(): Promise<FoundManifest[]> {
    const [savepoints, checkpoints] = await Promise.all(
      [SAVEPOINTS, CHECKPOINTS].map((prefix) => this.pages.list("documents", prefix)),
    );
    const all = [...savepoints!, ...checkpoints!.toReversed()];
    return await Promise.all(all.map(({ name, bytes }) => this.#found(name, bytes)));
  }

  /**
   * A manifest becomes what a run may go on from. One of the same number or name is replaced.
   *
   * @param use `new`: there must not be one of the name yet.
   * @throws {MailerError} `savepoint_exists`
   */
  async write(manifest: Manifest, use: "new" | "replace" = "replace"): Promise<void> {
    const name = documentOf(manifest), sealed = sealDocument(manifest), run = runOf(manifest);
    const isLarge = sealed.length > LARGEST_INLINE;
    if (isLarge) await this.pages.write(run, 0, pagesOf(sealed));
    const bytes = isLarge ? sealDocument({ run, length: sealed.length }) : sealed;
    const change = { name, bytes, ...(use === "new" ? { expected: null } : {}) };
    if (await this.pages.commit([change])) return;
    throw new MailerError("savepoint_exists", `there is a savepoint "${manifest.savepoint}" already`, {
      hint: "take another name, or delete that one first",
    });
  }

  /** @param documents Names of those that are to go. */
  async remove(documents: readonly string[]): Promise<void> {
    if (documents.length === 0) return;
    await this.pages.commit(documents.map((name) => ({ name, bytes: undefined })));
    await this.#sweep();
  }

  /** Deletes the pages of manifests that are not there any more. */
  async #sweep(): Promise<void> {
    const runs = await this.pages.list("runs", RUNS);
    if (runs.length === 0) return;
    const named = new Set((await this.list()).flatMap(({ document }) => [`${RUNS}${document}/`]));
    const stray = runs.filter(({ name }) => ![...named].some((prefix) => name.startsWith(prefix)));
    if (stray.length > 0) await this.pages.deleteRuns(stray.map(({ name }) => name));
  }

  async #found(document: string, bytes: Uint8Array): Promise<FoundManifest> {
    const isSavepoint = document.startsWith(SAVEPOINTS);
    const name = document.slice((isSavepoint ? SAVEPOINTS : CHECKPOINTS).length);
    const savepoint = isSavepoint ? name : undefined;
    try {
      const manifest = await this.#open(document, bytes);
      if (manifest.version !== 1) {
        throw new MailerError("document_format", `"${document}" has version ${manifest.version}, not 1`);
      }
      return { document, number: manifest.number, savepoint, manifest };
    } catch (thrown) {
      const error = asError(thrown);
      const code = error instanceof MailerError ? error.code : "document_corrupt";
      const number = isSavepoint ? undefined : Number(name);
      return {
        document,
        number,
        savepoint,
        manifest: new MailerError(code, error.message, { cause: thrown }),
      };
    }
  }

  async #open(document: string, bytes: Uint8Array): Promise<Manifest> {
    const opened = openDocument(document, bytes) as Manifest | {
      readonly run: string;
      readonly length: number;
    };
    if (!("run" in opened)) return opened;
    const { run, length } = opened, count = Math.ceil(length / LARGEST_PAGE);
    const pages = await this.pages.read(Array.from({ length: count }, (_, page) => ({ run, page })));
    return openDocument(document, Buffer.concat(pages)) as Manifest;
  }
}

function runOf({ number, savepoint, status }: Manifest): string {
  return `${RUNS}${documentOf({ number, savepoint })}/${number}-${status}`;
}

function pagesOf(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.length / LARGEST_PAGE);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * LARGEST_PAGE, (i + 1) * LARGEST_PAGE));
}
