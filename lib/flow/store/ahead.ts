/**
 * Writes too large for one atomic operation: what can lie there unseen is written ahead, and the commit that names it is small.
 *
 * A1 Before anything is written ahead there is a note of it, which the commit removes. So what no commit has named is found.
 * A2 The commit checks the note: what was swept away in between is never named.
 *
 * @module
 */
import type { Packed } from "./bodies.ts";
import { cellsIn, type Check, type Range, type Write } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import { inSlices, sliced } from "./slices.ts";
import { fits, type Unit } from "./writer.ts";

/** A unit that may be large. */
export interface Draft extends Unit {
  /** Texts its writes name. */
  readonly packed?: readonly Packed[];
  /** What else may be written ahead, and where all of it lies. */
  readonly hidden?: { readonly writes: readonly Write[]; readonly range: Range };
}

const NO_PACKED: readonly Packed[] = [];

/** {@link Writer.submit} for units of any size. */
export async function submit(core: Core, draft: Draft): Promise<string | undefined> {
  const { packed = NO_PACKED, hidden } = draft;
  let parts: Write[] | undefined;
  for (const { writes } of packed) if (writes.length > 0) (parts ??= []).push(...writes);
  if (parts === undefined && hidden === undefined) return await core.writer.submit(draft);
  const { packed: _packed, hidden: _hidden, ...unit } = draft;
  if (hidden === undefined) {
    const whole = { ...unit, writes: [...unit.writes, ...parts!] };
    if (fits(whole)) return await core.writer.submit(whole);
  }
  const ranges = packed.flatMap(({ blob }) => blob === undefined ? [] : [keys.parts(blob.owner, blob.id)]);
  if (hidden !== undefined) ranges.push(hidden.range);
  return await submitAhead(core, unit, [...parts ?? [], ...hidden?.writes ?? []], ranges);
}

async function submitAhead(
  core: Core,
  unit: Unit,
  ahead: readonly Write[],
  ranges: readonly Range[],
): Promise<string | undefined> {
  const { writer } = core, note = keys.ahead(core.clock.now(), core.newId());
  const bytes = new TextEncoder().encode(JSON.stringify(ranges));
  const version = await writer.submit({ checks: [], writes: [{ key: note, bytes }] });
  await Promise.all(sliced(ahead).map((writes) => writer.submit({ checks: [], writes })));
  const done = await writer.submit({
    ...unit,
    checks: [...unit.checks, { key: note, version: version! }],
    writes: [...unit.writes, { key: note, bytes: null }],
  });
  if (done === undefined) await removeAhead(core, note, ranges);
  return done;
}

/** Removes what a note tells of, and the note. */
async function removeAhead(core: Core, note: string, ranges: readonly Range[]): Promise<number> {
  let removed = 0;
  for (const range of ranges) removed += await removeAll(core, range);
  await core.writer.submit({ checks: [], writes: [{ key: note, bytes: null }] });
  return removed;
}

/** Removes a range, slice by slice, each only while `checks` hold. Answers how many cells there were. */
export async function removeAll(core: Core, range: Range, checks: readonly Check[] = []): Promise<number> {
  let removed = 0;
  for await (const page of cellsIn(core.cells, range)) {
    if (!await inSlices(core.writer, page.map(({ key }) => ({ key, bytes: null })), checks)) break;
    removed += page.length;
  }
  return removed;
}

/** Removes what was written ahead before a time and never named, a slice of it. Answers how many cells. */
export async function sweepAhead(core: Core, before: number, limit: number): Promise<number> {
  let removed = 0;
  for (const { key, bytes, version } of await core.cells.list(keys.until(keys.AHEAD, before), limit)) {
    // Another version: a commit that would still name what is there fails (A2).
    const claimed = await core.writer.submit({ checks: [{ key, version }], writes: [{ key, bytes }] });
    if (claimed === undefined) continue;
    removed += await removeAhead(core, key, JSON.parse(new TextDecoder().decode(bytes)) as Range[]);
  }
  return removed;
}

/** What became of a {@link submitOnce}. */
export type OnceOutcome =
  | { readonly kind: "committed"; readonly version: string }
  | { readonly kind: "duplicate"; readonly index: number }
  | { readonly kind: "conflict" };

/**
 * Submits, if none of some ids was remembered within the dedup window, and remembers them.
 *
 * The window is looked at only where a check fails: usually an id is new.
 */
export async function submitOnce(
  core: Core,
  ids: readonly (readonly [execId: string, id: string])[],
  draft: Draft,
): Promise<OnceOutcome> {
  if (ids.length === 0) {
    const version = await submit(core, draft);
    return version === undefined ? { kind: "conflict" } : { kind: "committed", version };
  }
  const cells = ids.map(([execId, id]) => keys.remembered(execId, id));
  let found: readonly ({ readonly version: string; readonly until: number } | undefined)[] = ids.map(() =>
    undefined
  );
  for (;;) {
    const until = Math.ceil(core.clock.now()) + core.settings.dedupWindowMs;
    const bytes = new TextEncoder().encode(String(until));
    const version = await submit(core, {
      ...draft,
      checks: [...draft.checks, ...cells.map((key, i) => ({ key, version: found[i]?.version ?? null }))],
      writes: [
        ...draft.writes,
        ...cells.map((key) => ({ key, bytes })),
        ...cells.map((key) => ({ key: keys.rememberedUntil(until, key), bytes: new Uint8Array() })),
        ...found.flatMap((old, i) => {
          // The same time again is the same key: it stays.
          return old === undefined || old.until === until
            ? []
            : [{ key: keys.rememberedUntil(old.until, cells[i]!), bytes: null }];
        }),
      ],
    });
    if (version !== undefined) return { kind: "committed", version };
    const before = found;
    found = (await core.cells.get(cells)).map((cell) => {
      return cell && { version: cell.version, until: Number(new TextDecoder().decode(cell.bytes)) };
    });
    const now = core.clock.now(), index = found.findIndex((old) => old !== undefined && old.until > now);
    if (index >= 0) return { kind: "duplicate", index };
    if (found.every((old, i) => old?.version === before[i]?.version)) return { kind: "conflict" };
  }
}
