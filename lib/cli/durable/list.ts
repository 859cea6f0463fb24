/**
 * The list of savepoints and checkpoints.
 *
 * @module
 */
import { type CheckpointFacts, factsOf } from "../../checkpoint/inspect.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import { nothingToSay, type Opened } from "./open.ts";
import {
  ageText,
  bytesText,
  type Column,
  countedText,
  isoTime,
  tableText,
  timeText,
  tookText,
} from "./text.ts";

const COLUMNS: readonly Column[] = [
  { title: "number", align: "right" },
  { title: "savepoint" },
  { title: "status" },
  { title: "taken at" },
  { title: "age", align: "right" },
  { title: "state", align: "right" },
  { title: "took", align: "right" },
  { title: "" },
];

/** Lists what there is of some kind. */
export async function list(
  opened: Opened,
  isMeant: (facts: CheckpointFacts) => boolean,
): Promise<ExitCode> {
  const { checkpoints, flags, host, place, print, say, spec } = opened;
  const all = (await checkpoints?.list() ?? []).map(factsOf), facts = all.filter(isMeant);
  if (flags.json === true) {
    for (const one of facts) print(`${JSON.stringify(jsonOf(one))}\n`);
    return EXIT.done;
  }
  if (all.length === 0) return nothingToSay(opened);
  if (facts.length === 0) {
    print(`workflow "${spec.name}" has no savepoints in ${place}\n`);
    say("hint: mailer savepoint create FILE NAME makes one of the newest checkpoint");
    return EXIT.done;
  }
  const savepoints = facts.filter(({ kind }) => kind === "savepoint").length;
  const counts = [[savepoints, "savepoint"], [facts.length - savepoints, "checkpoint"]] as const;
  const head = counts.filter(([count]) => count > 0).map(([count, noun]) => countedText(count, noun));
  print(`${spec.name}: ${head.join(" and ")} in ${place}\n\n`);
  print(tableText(COLUMNS, facts.map((one) => rowOf(one, host.clock.now()))));
  return EXIT.done;
}

function rowOf(facts: CheckpointFacts, now: number): string[] {
  const { number, name, status, finished, takenAt, stateBytes, durationMs, damage } = facts;
  return [
    number === undefined ? "" : String(number),
    name ?? "",
    finished ? `${status}, finished` : status,
    takenAt === undefined ? "" : timeText(takenAt),
    takenAt === undefined ? "" : ageText(now - takenAt),
    stateBytes === undefined ? "" : bytesText(stateBytes),
    durationMs === undefined ? "" : tookText(durationMs),
    damage ?? "",
  ];
}

/** A line of `--json`: times in ISO 8601, what is not known left out. */
function jsonOf(facts: CheckpointFacts): unknown {
  const { takenAt, durationMs, ...rest } = facts;
  return {
    ...rest,
    ...(takenAt === undefined ? {} : { takenAt: isoTime(takenAt) ?? takenAt }),
    ...(durationMs === undefined ? {} : { durationMs: Math.round(durationMs * 1000) / 1000 }),
  };
}
