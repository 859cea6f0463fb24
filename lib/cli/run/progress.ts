/**
 * What progress says: counts, rate, how far event time is, how old the last checkpoint is, and a bar with the time left where the
 * input has an end.
 *
 * @module
 */
import type { RunStatus } from "../../stream/handle.ts";
import { countText, spanText } from "./amounts.ts";

/** The rate is taken over at least this long, ms, so that it can be read. */
const RATE_OVER = 1000;
const BAR_WIDTH = 20;
/** Event time further behind than this is history: its date says more than its distance. */
const HISTORY = 86_400_000;
/** No time left is shown before this much time, ms, and this part of the input: it would jump about. */
const ETA_AFTER_MS = 1000;
const ETA_AFTER_PART = 0.005;

interface Sample {
  readonly at: number;
  readonly records: number;
}

/** Follows one run. */
export class Progress {
  readonly #startedAt: number;
  #samples: Sample[];

  /** @param now A monotonic time, ms, as in {@link Progress.line}. */
  constructor(now: number) {
    this.#startedAt = now;
    this.#samples = [{ at: now, records: 0 }];
  }

  /**
   * One line; undefined when the run is over.
   *
   * @param now Monotonic time, ms.
   * @param wallTime Time of day, ms since the epoch.
   */
  line(status: RunStatus, now: number, wallTime: number): string | undefined {
    const { name, phase, recordsIn, recordsOut, watermark, progress, checkpoints } = status;
    if (phase !== "starting" && phase !== "running" && phase !== "stopping") return undefined;
    if (phase === "starting") return `${name}: starting`;
    const parts = [
      `${countText(recordsIn)} read`,
      `${countText(recordsOut)} written`,
      `${countText(Math.round(this.#rate(now, recordsIn)))}/s`,
    ];
    if (watermark !== undefined) parts.push(`watermark ${watermarkText(watermark, wallTime)}`);
    const taken = checkpoints?.lastTakenAt;
    if (taken !== undefined) parts.push(`checkpoint ${spanText(Math.max(0, wallTime - taken))} ago`);
    if (phase === "stopping") parts.push("draining");
    else if (progress !== undefined && progress.total > 0) {
      parts.push(this.#bar(progress.done / progress.total, now));
    }
    return `${name}: ${parts.join(", ")}`;
  }

  #rate(now: number, records: number): number {
    const samples = this.#samples;
    samples.push({ at: now, records });
    while (samples.length > 2 && now - samples[1]!.at >= RATE_OVER) samples.shift();
    const { at, records: before } = samples[0]!;
    return now > at ? (records - before) * 1000 / (now - at) : 0;
  }

  #bar(part: number, now: number): string {
    const done = Math.min(Math.max(part, 0), 1);
    const filled = Math.round(done * BAR_WIDTH);
    const text = `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)} ${Math.floor(done * 100)}%`;
    const elapsed = now - this.#startedAt;
    if (elapsed < ETA_AFTER_MS || done < ETA_AFTER_PART || done === 1) return text;
    return `${text}, ${
      spanText(Math.ceil(elapsed * (1 - done) / done / 1000) * 1000).replace(".0 s", " s")
    } left`;
  }
}

/** The counts of a run that is not over as a line of JSON. */
export function progressJson(status: RunStatus): string | undefined {
  const { name, phase, recordsIn, recordsOut, watermark, progress, checkpoints } = status;
  if (phase !== "starting" && phase !== "running" && phase !== "stopping") return undefined;
  const known = { watermark, ...progress, lastCheckpointAt: checkpoints?.lastTakenAt };
  return JSON.stringify({
    event: "progress",
    workflow: name,
    phase,
    read: recordsIn,
    written: recordsOut,
    ...known,
  });
}

function watermarkText(watermark: number, wallTime: number): string {
  const behind = wallTime - watermark;
  if (behind < 0) return `${spanText(-behind)} ahead`;
  if (behind <= HISTORY) return `${spanText(behind)} behind`;
  const date = new Date(watermark);
  return Number.isNaN(date.getTime()) ? "before all dates" : date.toISOString().replace(/:\d\d\.\d+Z$/, "Z");
}
