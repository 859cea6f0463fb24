/**
 * Manifests: what a checkpoint or savepoint says. It exists only through its manifest, which is written last.
 *
 * M1 `prepared` says: everything it names is durable, and its sinks may or may not have committed. `completed`: they have.
 * M2 Manifests are found by their number; the newest good one is where a run goes on. A savepoint has a name and stays until it is
 *    deleted.
 * M3 A damaged manifest is never taken for one that is not there.
 *
 * @module
 */
import type { Committable } from "../connector.ts";
import { asError, MailerError } from "../errors.ts";
import type { SourceSnapshot } from "../runtime/snapshots.ts";
import { openDocument, sealDocument, type Section } from "../state/log/mod.ts";
import type { PageStore } from "../state/pages/port.ts";

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
const DIGITS = 15;

/** Name of the document of a manifest. */
export function documentOf({ number, savepoint }: Pick<Manifest, "number" | "savepoint">): string {
  return savepoint === undefined
    ? CHECKPOINTS + String(number).padStart(DIGITS, "0")
    : SAVEPOINTS + savepoint;
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
    return [...savepoints!, ...checkpoints!.toReversed()].map(({ name, bytes }) => found(name, bytes));
  }

  /** A manifest becomes what a run may go on from. */
  async write(manifest: Manifest): Promise<void> {
    await this.pages.commit([{ name: documentOf(manifest), bytes: sealDocument(manifest) }]);
  }

  async remove(documents: readonly string[]): Promise<void> {
    await this.pages.commit(documents.map((name) => ({ name, bytes: undefined })));
  }
}

function found(document: string, bytes: Uint8Array): FoundManifest {
  const isSavepoint = document.startsWith(SAVEPOINTS);
  const name = document.slice((isSavepoint ? SAVEPOINTS : CHECKPOINTS).length);
  const place = {
    document,
    number: isSavepoint ? undefined : Number(name),
    savepoint: isSavepoint ? name : undefined,
  };
  try {
    const manifest = openDocument(document, bytes) as Manifest;
    if (manifest.version !== 1) {
      throw new MailerError("document_format", `"${document}" has version ${manifest.version}, not 1`);
    }
    return { ...place, number: manifest.number, manifest };
  } catch (thrown) {
    const error = asError(thrown);
    const code = error instanceof MailerError ? error.code : "document_corrupt";
    return { ...place, manifest: new MailerError(code, error.message, { cause: thrown }) };
  }
}
