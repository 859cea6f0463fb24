/**
 * Where the pages of keyed state lie: the small port under the log-structured core.
 *
 * Two kinds of things are kept. A *run* is a numbered sequence of pages that is written once and never changed. A *document* is a
 * small named value that is replaced atomically: the manifest of a checkpoint, for one. A run exists only through a document that
 * names it: runs that none names are left over from a crash, and whoever owns them deletes them.
 *
 * P1 Once `commit` has resolved to true, its documents survive a crash, and so does every `write` that had resolved before.
 * P2 `commit` does all or nothing.
 * P3 Pages of a run are read as they were written, or not at all: a page that is not there is an error, never empty.
 * P4 Calls may overlap; those that concern different runs or documents do not disturb each other.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";

/** The largest page that may be written, bytes. */
export const LARGEST_PAGE: number = 61_440;
/** The largest document that may be committed, bytes; all documents of one commit together, too. */
export const LARGEST_DOCUMENT: number = 600_000;

/** A page of a run. */
export interface PageRef {
  /** Name of the run. */
  readonly run: string;
  /** Number of the page in its run, from 0. */
  readonly page: number;
}

/** A document as it lies in the store; of a run only its name is filled in. */
export interface Listed {
  /** Name of the document or run. */
  readonly name: string;
  /** What it says; empty for a run. */
  readonly bytes: Uint8Array;
  /** Changes with every commit of this document; for {@link DocumentChange.expected}. */
  readonly version: string;
}

/** What a commit does to one document. */
export interface DocumentChange {
  /** Name of the document. */
  readonly name: string;
  /** What it says from now on; `undefined` deletes it. */
  readonly bytes: Uint8Array | undefined;
  /** The version it must have for the commit to happen; `null`: it must not exist. Left out: whatever it is. */
  readonly expected?: string | null;
}

/** Keeps runs and documents. The names of both are texts of at most 500 characters. Closing it twice is closing it once. */
export interface PageStore extends AsyncDisposable {
  /**
   * Writes pages of a run, numbered `first`, `first + 1`, … A run may be written in several calls, which may overlap. Pages of at
   * most {@link LARGEST_PAGE} bytes. They are as good as lost until a later `commit` has resolved (P1).
   */
  write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void>;
  /**
   * Reads pages, in any order and number.
   *
   * @returns One for each ref, in their order. Nobody else changes them, and the caller must not either.
   * @throws {MailerError} `page_missing`, naming run and page.
   */
  read(refs: readonly PageRef[]): Promise<Uint8Array[]>;
  /** Documents, or runs, whose name starts with `prefix`, by name. */
  list(kind: "documents" | "runs", prefix: string): Promise<readonly Listed[]>;
  /** Deletes runs with all their pages; a run that is not there is nothing to complain about. */
  deleteRuns(runs: readonly string[]): Promise<void>;
  /**
   * Changes documents, all or none.
   *
   * @returns false, and nothing is changed, where one has not the version expected of it.
   * @throws {MailerError} `document_too_large`
   */
  commit(changes: readonly DocumentChange[]): Promise<boolean>;
}

/** The error of a page that should be there. */
export function pageMissing({ run, page }: PageRef, store: string): MailerError {
  return new MailerError("page_missing", `state: page ${page} of run "${run}" is not in ${store}`, {
    hint: "the store was changed from outside or restored in part; go back to an older checkpoint",
  });
}

/** @throws {MailerError} `page_too_large`, `document_too_large` */
export function checkPages(run: string, first: number, pages: readonly Uint8Array[]): void {
  pages.forEach(({ length }, i) => {
    if (length <= LARGEST_PAGE) return;
    throw new MailerError(
      "page_too_large",
      `state: page ${first + i} of run "${run}" has ${length} bytes, at most ${LARGEST_PAGE} are possible`,
    );
  });
}

/** @throws {MailerError} `document_too_large` */
export function checkDocuments(changes: readonly DocumentChange[]): void {
  let total = 0;
  for (const { name, bytes } of changes) {
    total += bytes?.length ?? 0;
    if (total <= LARGEST_DOCUMENT) continue;
    throw new MailerError(
      "document_too_large",
      `state: document "${name}" makes a commit of ${total} bytes, at most ${LARGEST_DOCUMENT} are possible`,
    );
  }
}
