/**
 * One checkpoint or savepoint in full.
 *
 * @module
 */
import { factsOf } from "../../checkpoint/inspect.ts";
import { labelOf, sectionBytes } from "../../checkpoint/manifest.ts";
import { spacesOf } from "../../checkpoint/inspect_state.ts";
import type { Manifest } from "../../checkpoint/manifest.ts";
import { MailerError } from "../../errors.ts";
import type { SourceSnapshot, SplitSnapshot } from "../../runtime/snapshots.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import { nothingKept, type Opened } from "./open.ts";
import {
  ageText,
  bytesText,
  type Column,
  isoTime,
  plain,
  tableText,
  timeText,
  tookText,
  valueJson,
  valueText,
} from "./text.ts";

const SPLITS: readonly Column[] = [
  { title: "source" },
  { title: "split" },
  { title: "position" },
  { title: "watermark" },
  { title: "" },
];
const OPERATORS: readonly Column[] = [
  { title: "operator" },
  { title: "space" },
  { title: "tables", align: "right" },
  { title: "keys", align: "right" },
  { title: "state", align: "right" },
  { title: "runs", align: "right" },
];
const SINKS: readonly Column[] = [{ title: "sink" }, { title: "prepared" }];

/** Shows one. */
export async function show(opened: Opened, which: string): Promise<ExitCode> {
  const { checkpoints, flags, host, print } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const found = await checkpoints.find(which), { manifest } = found;
  if (manifest instanceof MailerError) throw manifest;
  if (flags.json === true) {
    print(`${JSON.stringify(JSON.parse(valueJson(jsonOf(manifest))), undefined, 2)}\n`);
    return EXIT.done;
  }
  const { status, finished, takenAt, durationMs, number, savepoint } = manifest;
  const { stateBytes } = factsOf(found), about = savepoint === undefined ? "" : ` (number ${number})`;
  print(`${labelOf(manifest)}${about}: ${status}${finished ? ", finished: all input had been read" : ""}\n`);
  print(`taken at ${timeText(takenAt)}, ${ageText(host.clock.now() - takenAt)}; `);
  print(`durable after ${tookText(durationMs)}; ${bytesText(stateBytes!)} of keyed state\n`);
  const parts: [readonly Column[], string[][]][] = [
    [SPLITS, Object.entries(manifest.sources).flatMap(sourceRows)],
    [OPERATORS, operatorRows(manifest)],
    [SINKS, Object.entries(manifest.committables).map(([id, prepared]) => [id, valueText(prepared)])],
  ];
  for (const [columns, rows] of parts) if (rows.length > 0) print(`\n${tableText(columns, rows)}`);
  return EXIT.done;
}

function sourceRows([id, { splits, complete }]: readonly [string, SourceSnapshot]): string[][] {
  const end = complete ? "all read" : "", all = Object.entries(splits);
  if (all.length === 0) return [[id, "", "", "", complete ? end : "no splits yet"]];
  return all.map(([split, { position, ended, eventTime: { current } }], i) => [
    i === 0 ? id : "",
    split,
    position === undefined ? "at its start" : valueText(position),
    watermarkText(current),
    ended ? "ended" : end,
  ]);
}

function watermarkText(watermark: number): string {
  if (watermark === Infinity) return "end of time";
  return Number.isFinite(watermark) ? isoTime(watermark) ?? String(watermark) : "none";
}

function operatorRows({ operators }: Manifest): string[][] {
  return Object.entries(operators).flatMap(([id, { section, snapshots }]) => {
    if (section === undefined) {
      const held = snapshots.filter((own) => own !== undefined).length;
      return held === 0 ? [] : [[id, "not keyed", "", "", "", ""]];
    }
    const size = [bytesText(sectionBytes(section)), String(section.runs.length)];
    const spaces = spacesOf(section);
    if (spaces.length === 0) return [[id, "", "0", "0", ...size]];
    return spaces.map(({ space, kind, tables, keys }, i) => [
      i === 0 ? id : "",
      kind === "queue" ? `${space} (queue)` : space,
      String(tables),
      String(keys),
      ...(i === 0 ? size : ["", ""]),
    ]);
  });
}

function jsonOf(manifest: Manifest): unknown {
  const { savepoint, number, pipeline, status, finished, takenAt, durationMs } = manifest;
  const { sources, operators, committables } = manifest;
  return {
    kind: savepoint === undefined ? "checkpoint" : "savepoint",
    pipeline,
    number,
    name: savepoint,
    status,
    finished,
    takenAt: isoTime(takenAt) ?? takenAt,
    durationMs: Math.round(durationMs * 1000) / 1000,
    sources: mapValues(
      sources,
      ({ complete, splits }) => ({ complete, splits: mapValues(splits, splitJson) }),
    ),
    operators: mapValues(operators, ({ section }) =>
      section === undefined ? {} : {
        stateBytes: sectionBytes(section),
        runs: section.runs.map(({ run }) => run),
        spaces: spacesOf(section),
      }),
    committables,
  };
}

function splitJson({ position, ended, eventTime: { current } }: SplitSnapshot): unknown {
  const watermark = Number.isFinite(current) ? isoTime(current) ?? current : plain(current);
  return { position, ended, watermark };
}

function mapValues<V>(values: Readonly<Record<string, V>>, by: (value: V) => unknown): Map<string, unknown> {
  return new Map(Object.entries(values).map(([name, value]) => [name, by(value)]));
}
