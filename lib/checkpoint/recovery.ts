/**
 * Where a run goes on: the newest checkpoint that is whole, or the savepoint that was asked for.
 *
 * R1 Only a store without any manifest is a first run. One whose manifests are all damaged is an error.
 * R2 A damaged manifest, or one whose pages are damaged or gone, is passed over for the one before, and it is said.
 *    Savepoints count by their numbers like checkpoints.
 * R3 A manifest that is `prepared` is good if what its sinks prepared is committed, now or before. Where all of it is lost, the one
 *    before counts; where some is committed and some is lost, there is no consistent place to go on from, and it is an error.
 *    That is looked at when all keyed state has been read, so nothing is committed for a checkpoint that cannot be used.
 * R4 State of an operator or source that the pipeline does not have is an error, unless it is allowed.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Sink } from "../connector.ts";
import { asError, codeOf, MailerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Plan } from "../plan/plan.ts";
import { atomicFirst } from "./commit_order.ts";
import type { Restored } from "../runtime/snapshots.ts";
import {
  openStateStore,
  PageCache,
  type Section,
  type StateLimits,
  type StateStore,
} from "../state/log/mod.ts";
import type { PageStore } from "../state/pages/port.ts";
import {
  documentOf,
  type FoundManifest,
  labelOf,
  type Manifest,
  type ManifestStore,
  releaseSections,
  sectionsOf,
} from "./manifest.ts";

/** What to recover with. */
export interface RecoveryOptions {
  readonly plan: Plan;
  readonly pages: PageStore;
  readonly manifests: ManifestStore;
  readonly maxKeyGroups: number;
  readonly limits: StateLimits;
  /** Name of the savepoint to go on from; undefined: the newest checkpoint. */
  readonly savepoint: string | undefined;
  /** Numbers of checkpoints that have turned out to be of no use when the run was restored, and why. */
  readonly passedOver: ReadonlyMap<number, "damaged" | "lost">;
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
  /** To be called once the run is under way: what belongs to another past is removed, a savepoint is the newest checkpoint. */
  settle(): Promise<void>;
}

/** Codes of errors that say a manifest cannot be used and an older one may. */
const DAMAGE = ["page_missing", "page_corrupt", "document_corrupt"];

/** Why a checkpoint is passed over: it is damaged, or what its sinks prepared is lost. Undefined: the error is about something else. */
export function reasonToPassOver(error: unknown): "damaged" | "lost" | undefined {
  if (codeOf(error) === "checkpoint_lost") return "lost";
  return DAMAGE.includes(codeOf(error)) ? "damaged" : undefined;
}

/**
 * Finds where to go on, and opens the keyed state there. Nothing is changed that another recovery would need: that is done when
 * the run is under way, by {@link Recovered.settle}.
 */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const { manifests, savepoint, logger, passedOver } = options;
  const found = await manifests.list();
  const candidates = candidatesOf(found, savepoint);
  let damage: MailerError | undefined;
  for (const { document, number, manifest } of candidates) {
    if (number !== undefined && passedOver.has(number)) {
      if (passedOver.get(number) === "damaged") damage ??= damaged(document);
      continue;
    }
    if (manifest instanceof MailerError) {
      damage ??= manifest;
      logger.log("warn", "checkpoint passed over", { checkpoint: document, error: manifest.message });
      continue;
    }
    checkMatch(manifest, options);
    try {
      return await openAt(manifest, found, options);
    } catch (error) {
      if (reasonToPassOver(error) === undefined) throw error;
      damage ??= error as MailerError;
      logger.log("warn", "checkpoint passed over", { checkpoint: document, error: asError(error).message });
    }
  }
  if (damage === undefined && savepoint === undefined) return await openAt(undefined, found, options);
  throw new MailerError(
    "no_good_checkpoint",
    `none of ${candidates.length} checkpoints can be used` +
      (damage === undefined ? ": they were not committed" : `, the newest because: ${damage.message}`),
    { cause: damage, hint: "restore the state from a backup, or remove it to start over" },
  );
}

function damaged(document: string): MailerError {
  return new MailerError("page_corrupt", `pages of "${document}" are damaged or gone`);
}

/** Newest first. A savepoint counts like a checkpoint: its sinks have committed as well. */
function candidatesOf(found: readonly FoundManifest[], savepoint: string | undefined): FoundManifest[] {
  if (savepoint === undefined) {
    return found.toSorted((a, b) =>
      (b.number ?? -1) - (a.number ?? -1) || (a.savepoint === undefined ? -1 : 1)
    );
  }
  const named = found.filter((one) => one.savepoint === savepoint);
  if (named.length > 0) return named;
  const names = found.flatMap((one) => one.savepoint === undefined ? [] : [`"${one.savepoint}"`]);
  throw new MailerError("no_savepoint", `there is no savepoint "${savepoint}"`, {
    hint: names.length === 0 ? "there are no savepoints" : `there are: ${names.join(", ")}`,
  });
}

/** R4. */
function checkMatch(
  manifest: Manifest,
  options: RecoveryOptions,
): void {
  const { plan, allowUnmatched, logger } = options, { operators, sources, committables } = manifest;
  const ids = new Set(plan.nodes.map(({ id }) => id));
  const held = Object.entries(operators).flatMap(([id, { section, snapshots }]) =>
    section !== undefined || snapshots.some((own) => own !== undefined) ? [id] : []
  );
  const lost = [...Object.keys(sources), ...held, ...Object.keys(committables)].filter((id) => !ids.has(id));
  if (lost.length === 0) return;
  const list = lost.map((id) => `"${id}"`).join(", ");
  const where = labelOf(manifest);
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

/**
 * R3: sees to it that what the sinks of a checkpoint prepared is committed.
 *
 * @throws {MailerError} `checkpoint_lost` where all of it is lost, `half_committed` where some is.
 */
export async function confirmCommitted(manifest: Manifest, options: RecoveryOptions): Promise<void> {
  const { plan, manifests, clock, logger, signal } = options;
  if (manifest.status === "completed") return;
  const committed: string[] = [], lost: string[] = [];
  const sinks = plan.nodes.flatMap((node) =>
    node.kind === "sink" && Object.hasOwn(manifest.committables, node.id)
      ? [{ id: node.id, sink: node.sink, commits: node.sink.commits }]
      : []
  );
  for (const { id, sink, commits } of atomicFirst(sinks)) {
    if (commits !== "atomic" && lost.length > 0) break; // the checkpoint counts for nothing: nothing more of it is committed
    const outcome = await recoverSink(id, sink, manifest, { id, clock, logger, signal });
    (outcome === "committed" ? committed : lost).push(id);
  }
  if (lost.length === 0) return await manifests.write({ ...manifest, status: "completed" });
  const names = (ids: readonly string[]): string => ids.map((id) => `"${id}"`).join(", ");
  if (committed.length === 0) {
    throw new MailerError("checkpoint_lost", `checkpoint ${manifest.number} was lost by ${names(lost)}`);
  }
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
  options: RecoveryOptions,
): Promise<Recovered> {
  const { plan, pages, maxKeyGroups, manifests } = options;
  const all = found.flatMap(({ manifest }) => manifest instanceof MailerError ? [] : [manifest]);
  const numbers = found.map(({ number, manifest }) => {
    return manifest instanceof MailerError ? number ?? 0 : Math.max(manifest.number, manifest.highest);
  });
  const cache = new PageCache(32 * 2 ** 20), stores = new Map<string, StateStore>();
  try {
    for (const node of plan.nodes) {
      if (node.kind !== "operator" || !node.keyed) continue;
      const section = from === undefined ? undefined : sectionOf(from, node.id);
      stores.set(
        node.id,
        await openStateStore({
          operator: node.id,
          pages,
          maxKeyGroups,
          ...(section === undefined ? {} : { section }),
          retained: all.filter((one) => one !== from).flatMap((one) => sectionOf(one, node.id) ?? []),
          limits: options.limits,
          paging: "asked",
          cache,
        }),
      );
    }
  } catch (error) {
    for (const store of stores.values()) await store[Symbol.asyncDispose]();
    throw error;
  }
  const lastNumber = Math.max(0, ...numbers);
  // A crash before the first checkpoint of this run is to find the savepoint again.
  const first: Manifest | undefined = from?.savepoint === undefined || options.savepoint === undefined
    ? undefined
    : { ...from, savepoint: undefined, number: lastNumber + 1, highest: lastNumber + 1, status: "completed" };
  const isStale = isOfAnotherPast(from, options.savepoint);
  const stale = all.filter(isStale);
  return {
    from,
    restored: from === undefined ? undefined : restoredOf(from),
    retained: [...(first === undefined ? [] : [first]), ...all.filter((one) => !isStale(one))],
    lastNumber: first?.number ?? lastNumber,
    stores,
    async settle() {
      if (first !== undefined) {
        await manifests.write(first);
        for (const [id, section] of sectionsOf(first)) stores.get(id)?.hold(section);
      }
      await manifests.remove(stale.map(documentOf));
      for (const one of stale) await releaseSections(one, stores);
    },
  };
}

/** What was taken after the place to go on from belongs to a past that has not been; savepoints that are complete are kept. */
function isOfAnotherPast(
  from: Manifest | undefined,
  savepoint: string | undefined,
): (one: Manifest) => boolean {
  return (one) => {
    if (one === from || (one.savepoint !== undefined && one.status === "completed")) return false;
    return from === undefined || savepoint !== undefined || one.number > from.number;
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
