/**
 * Windows.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import {
  type AnyFields,
  type Field,
  type FieldType,
  type Report,
  types,
  type Variant,
} from "../field_type.ts";
import { LABEL } from "./common.ts";

const TRIGGER: Field<blocks.TriggerBlock> = {
  type: types.block<blocks.TriggerBlock>({
    early: {
      type: types.duration(1),
      summary: "A row of what is there so far, so often in processing time",
      example: "10s",
    },
    every: {
      type: types.int({ min: 1 }),
      summary: "A row of what is there so far after so many records",
      example: 100,
    },
  }, { rules: [{ kind: "oneOf", groups: [{ required: ["early"] }, { required: ["every"] }] }] }),
  summary: "Rows before the window closes",
};

const TIME: AnyFields = {
  time: {
    type: types.oneOf("event", "processing"),
    summary: "Which time the window is of",
    default: "event",
  },
  allowedLateness: {
    type: types.duration(),
    summary: "How long after its end a window takes records, each giving the whole row again",
    default: "0s",
    example: "1m",
  },
  timezone: {
    type: types.timezone(),
    summary: "IANA zone of days, weeks and months, and of the times in rows; never the machine's",
    default: "UTC",
    example: "America/New_York",
  },
  trigger: TRIGGER,
  idleTimeout: {
    type: types.duration(1),
    summary: "Accepted from the older format; in event time it fires nothing early",
  },
  label: LABEL,
};

const SIZE: Field<blocks.WindowLength> = {
  type: types.windowLength(),
  summary: "Length: a duration, or 1d, 1w, 1mo for calendar units of the zone",
  required: true,
  example: "5m",
};
const OFFSET: Field<number> = {
  type: types.signedDuration(),
  summary: "Shift of the windows' starts; local wall time with calendar units",
  default: "0s",
};

const WINDOWS: Readonly<Record<string, Variant>> = {
  tumbling: { summary: "Windows one behind the other", fields: { size: SIZE, offset: OFFSET, ...TIME } },
  sliding: {
    summary: "Overlapping windows, a new one every slide",
    fields: {
      size: SIZE,
      slide: {
        type: types.windowLength(),
        summary: "Distance between starts, at most the size",
        required: true,
        example: "1m",
      },
      offset: OFFSET,
      ...TIME,
    },
  },
  session: {
    summary: "A window for each burst of records, closed by a gap",
    fields: {
      gap: {
        type: types.duration(1),
        summary: "Inactivity that ends a session",
        required: true,
        example: "30m",
      },
      ...TIME,
    },
  },
  count: {
    summary: "Windows of a number of records",
    fields: {
      size: { type: types.int({ min: 1 }), summary: "Records in a window", required: true, example: 100 },
      slide: {
        type: types.int({ min: 1 }),
        summary: "A row over the last size records every so many",
        example: 10,
      },
      label: LABEL,
    },
  },
  global: {
    summary: "One window that closes at the end of the input",
    fields: { trigger: TRIGGER, label: LABEL },
  },
};

/** A window as a block, for the operator and for joins. */
export const WINDOW: FieldType<blocks.WindowBlock> = types.variants<blocks.WindowBlock>(
  "type",
  "Kind of window",
  {},
  WINDOWS,
  { check: checkWindow },
);

function checkWindow(window: Readonly<Record<string, unknown>>, report: Report): void {
  const { type, size, slide } = window as { type: string; size: unknown; slide: unknown };
  if (slide === undefined) return;
  if (type === "count") {
    if ((slide as number) > (size as number)) report(["slide"], "bad_value", "slide is larger than size");
    return;
  }
  const [length, step] = [size as blocks.WindowLength, slide as blocks.WindowLength];
  if (length.kind !== step.kind) {
    const message = "size and slide are both calendar units or both durations";
    report(["slide"], "bad_value", message, "24h is a duration, 1d is a day of the zone");
  } else if (spanOf(step) > spanOf(length)) report(["slide"], "bad_value", "slide is larger than size");
}

const DAYS = { day: 1, week: 7, month: 28 } as const;

/** The shortest time a length can last, in its own scale. */
function spanOf(length: blocks.WindowLength): number {
  return length.kind === "fixed" ? length.ms : length.count * DAYS[length.unit];
}

/** Groups the records of a key by time or number. */
export const window: OperatorComponent = {
  kind: "operator",
  type: "window",
  summary:
    "Groups the records of each key; reduce, aggregate, topN or process behind it gives rows. Records too late go to its output late.",
  carried: true,
  needsKey: true,
  example: `id: per-minute
type: window
window: { type: tumbling, size: 1m }
`,
  block: WINDOW,
  sideOutputs: () => ["late"],
};
