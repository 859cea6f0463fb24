/**
 * Where a run goes on: the newest checkpoint that is whole, or the savepoint that was asked for.
 *
 * R1 Only a store without any manifest is a first run. One whose manifests are all damaged is an error.
 * R2 A damaged manifest, or one whose pages are damaged or gone, is passed over for the one before, and it is said.
 * R3 A manifest that is `prepared` is good if what its sinks prepared is committed, now or before. Where all of it is lost, the one
 *    before counts; where some is committed and some is lost, there is no consistent place to go on from, and it is an error.
 * R4 State of an operator or source that the pipeline does not have is an error, unless it is allowed.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Sink } from "../connector.ts";
import { asError, codeOf, MailerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Plan } from "../plan/plan.ts";
import type { Restored } from "../runtime/snapshots.ts";
import { openStateStore, PageCache, RESIDENT, type Section, type StateStore } from "../state/log/mod.ts";
import type { PageStore } from "../state/pages/port.ts";
import { documentOf, type FoundManifest, type Manifest, type ManifestStore } from "./manifest.ts";

/** What to recover with. */
export interface RecoveryOptions {
  readonly plan: Plan;
  readonly pages: PageStore;
  readonly manifests: ManifestStore;
  readonly maxKeyGroups: number;
  /** Name of the savepoint to go on from; undefined: the newest checkpoint. */
  readonly savepoint: string | undefined;
  /** Numbers of checkpoints that have turned out to be damaged when their state was read. */
  readonly passedOver: ReadonlySet<number>;
  /** Whether state that nobody asks for any more may be left behind. */
  readonly allowUnmatched: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Where a run goes on. */
export interface Recovered {
  /** Undefined on a first run. */
  readonly from: Manifest | undefined;
  readonly restored: Restored | undefined;
  /** Manifests that stay, savepoints and then checkpoints, the newest first. */
  readonly retained: readonly Manifest[];
  readonly lastNumber: number;
  /** Keyed state by operator: of every keyed operator of the plan. */
  readonly stores: ReadonlyMap<string, StateStore>;
}

/** Codes of errors that say a manifest cannot be used and an older one may. */
const DAMAGE = ["page_missing", "page_corrupt", "document_corrupt"];

/** Whether an error says that a checkpoint is damaged, so that an older one may be better. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.includes(codeOf(error));
}

/** Finds where to go on, and opens the keyed state there. */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const { manifests, savepoint, logger } = options;
  const found = await manifests.list();
  const lastNumber = Math.max(0, ...found.map(({ number }) => number ?? 0));
  const candidates = candidatesOf(found, savepoint);
  if (candidates.length === 0) return await openAt(undefined, found, lastNumber, options);
  let damage: MailerError | undefined;
  for (const { document, number, manifest } of candidates) {
    if (number !== undefined && options.passedOver.has(number)) continue;
    if (manifest instanceof MailerError) {
      damage ??= manifest;
      logger.log("warn", "checkpoint passed over", { checkpoint: document, error: manifest.message });
      continue;
    }
    try {
      checkMatch(manifest, options);
      if (!await isCommitted(manifest, options)) {
        logger.log("warn", "checkpoint passed over: it was not committed", { checkpoint: document });
        continue;
      }
      return await openAt(manifest, found, lastNumber, options);
    } catch (error) {
      if (!isDamage(error)) throw error;
      damage ??= error as MailerError;
      logger.log("warn", "checkpoint passed over", { checkpoint: document, error: asError(error).message });
    }
  }
  if (damage === undefined && options.passedOver.size === 0) {
    return await openAt(undefined, found, lastNumber, options);
  }
  throw new MailerError(
    "no_good_checkpoint",
    `none of ${candidates.length} checkpoints can be used` +
      (damage === undefined ? "" : `, the newest because: ${damage.message}`),
    { cause: damage, hint: "restore the state from a backup, or remove it to start over" },
  );
}

function candidatesOf(found: readonly FoundManifest[], savepoint: string | undefined): FoundManifest[] {
  if (savepoint === undefined) return found.filter((one) => one.savepoint === undefined);
  const named = found.filter((one) => one.savepoint === savepoint);
  if (named.length > 0) return named;
  const names = found.flatMap((one) => one.savepoint === undefined ? [] : [`"${one.savepoint}"`]);
  throw new MailerError("no_savepoint", `there is no savepoint "${savepoint}"`, {
    hint: names.length === 0 ? "there are no savepoints" : `there are: ${names.join(", ")}`,
  });
}

/** R4. */
function checkMatch(
  { operators, sources, committables, savepoint, number }: Manifest,
  options: RecoveryOptions,
): void {
  const { plan, allowUnmatched, logger } = options;
  const ids = new Set(plan.nodes.map(({ id }) => id));
  const held = Object.entries(operators).flatMap(([id, { section, snapshots }]) =>
    section !== undefined || snapshots.some((own) => own !== undefined) ? [id] : []
  );
  const lost = [...Object.keys(sources), ...held, ...Object.keys(committables)].filter((id) => !ids.has(id));
  if (lost.length === 0) return;
  const list = lost.map((id) => `"${id}"`).join(", ");
  const where = savepoint === undefined ? `checkpoint ${number}` : `savepoint "${savepoint}"`;
  if (allowUnmatched) {
    logger.log("warn", "state left behind", { checkpoint: where, parts: list });
    return;
  }
  throw new MailerError(
    "unmatched_state",
    `${where} has state of ${list}, which the pipeline does not have`,
    {
      hint: "give parts of a pipeline ids that stay, or allow state to be left behind",
    },
  );
}

/** R3. */
async function isCommitted(manifest: Manifest, options: RecoveryOptions): Promise<boolean> {
  const { plan, manifests, clock, logger, signal } = options;
  if (manifest.status === "completed") return true;
  const committed: string[] = [], lost: string[] = [];
  for (const node of plan.nodes) {
    if (node.kind !== "sink" || !Object.hasOwn(manifest.committables, node.id)) continue;
    const { id, sink } = node;
    const outcome = await recoverSink(id, sink, manifest, { id, clock, logger, signal });
    (outcome === "committed" ? committed : lost).push(id);
  }
  if (lost.length === 0) {
    await manifests.write({ ...manifest, status: "completed" });
    return true;
  }
  if (committed.length === 0) return false;
  const names = (ids: readonly string[]): string => ids.map((id) => `"${id}"`).join(", ");
  throw new MailerError(
    "half_committed",
    `checkpoint ${manifest.number} was committed by ${names(committed)} and lost by ${names(lost)}`,
    { hint: "their outputs do not belong together any more; restore all of them to one checkpoint" },
  );
}

async function recoverSink(
  id: string,
  sink: Sink,
  { committables }: Manifest,
  context: { id: string; clock: Clock; logger: Logger; signal: AbortSignal },
): Promise<"committed" | "lost"> {
  if (sink.recover === undefined) {
    throw new MailerError("invalid_sink", `sink "${id}" (${sink.type}) commits, but cannot recover`);
  }
  return await sink.recover(committables[id], context);
}

/** Opens keyed state; runs of pages that no manifest names are deleted by that. */
async function openAt(
  from: Manifest | undefined,
  found: readonly FoundManifest[],
  lastNumber: number,
  options: RecoveryOptions,
): Promise<Recovered> {
  const { plan, pages, maxKeyGroups } = options;
  const all = found.flatMap(({ manifest }) => manifest instanceof MailerError ? [] : [manifest]);
  // What was taken after the place to go on from belongs to a past that has not been.
  const stale = all.filter((one) =>
    one.savepoint === undefined &&
    (from === undefined || from.savepoint !== undefined || one.number > from.number)
  );
  const retained = all.filter((one) => !stale.includes(one));
  if (from?.savepoint !== undefined) {
    // A crash before the first checkpoint of this run is to find the savepoint again, not that past.
    const first: Manifest = { ...from, savepoint: undefined, number: lastNumber + 1 };
    await options.manifests.write(first);
    retained.push(first);
  }
  const cache = new PageCache(8 * 2 ** 20), stores = new Map<string, StateStore>();
  for (const node of plan.nodes) {
    if (node.kind !== "operator" || !node.keyed) continue;
    const section = from === undefined ? undefined : sectionOf(from, node.id);
    const others = retained.filter((one) => one !== from).flatMap((one) => sectionOf(one, node.id) ?? []);
    stores.set(
      node.id,
      await openStateStore({
        operator: node.id,
        pages,
        maxKeyGroups,
        ...(section === undefined ? {} : { section }),
        retained: others,
        limits: RESIDENT,
        cache,
      }),
    );
  }
  if (stale.length > 0) await options.manifests.remove(stale.map(documentOf));
  return {
    from,
    restored: from === undefined ? undefined : restoredOf(from),
    retained,
    lastNumber: from?.savepoint === undefined ? lastNumber : lastNumber + 1,
    stores,
  };
}

function sectionOf({ operators }: Manifest, id: string): Section | undefined {
  return Object.hasOwn(operators, id) ? operators[id]!.section : undefined;
}

function restoredOf({ sources, operators, committables }: Manifest): Restored {
  return {
    sources: new Map(Object.entries(sources)),
    operators: new Map(Object.entries(operators).map(([id, { snapshots }]) => [id, snapshots])),
    committables: new Map(Object.entries(committables)),
  };
}
