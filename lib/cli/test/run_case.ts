/**
 * Runs one test case: the workflow with scripted input in place of its sources and collectors in place of its sinks, on
 * virtual time.
 *
 * U1 Nothing outside is written to, and nothing is read that the case or, where it gives no input, the workflow does not name.
 * U2 Time moves only when everything waits for it.
 *
 * @module
 */
import { delay } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";
import { yieldToEventLoop } from "../../scheduling.ts";
import type { RunHandle } from "../../stream/handle.ts";
import { buildWorkflow } from "../../workflow/build/mod.ts";
import type { Connectors } from "../../workflow/registry.ts";
import type { InputRef, SourceSpec, TestCase, TestInput, WorkflowSpec } from "../../workflow/mod.ts";
import type { WorkflowFile } from "../documents.ts";
import type { Host } from "../host.ts";
import { type Collector, collector } from "./collector.ts";
import { type InputEnd, ownSource, scriptSource, type TestSource } from "./script_source.ts";
import { NEVER, SteppingClock } from "./stepping_clock.ts";
import { type CaseProblem, failedRun, judge } from "./verdict.ts";

/** What a case is run with. */
export interface CaseSetting {
  readonly host: Host;
  readonly connectors: Connectors;
  readonly workflow: WorkflowFile & { readonly spec: WorkflowSpec };
  /** Folder of the test document. */
  readonly folder: string;
}

/** Where the clock of a case starts whose records have no time. */
const START = Date.UTC(2026, 0, 1);
/** Turns of the event loop after which nothing more is going on by itself. */
const QUIET_TURNS = 20;
/** Real time, ms, that code outside the pipeline may take while nothing else happens. */
const PATIENCE = 10_000;
const LOOK_EVERY = 5;

/** Runs a case; an empty list means it is good. */
export async function runCase(test: TestCase, setting: CaseSetting): Promise<CaseProblem[]> {
  const { spec, folder } = setting.workflow, { connectors, host } = setting;
  const clock = new SteppingClock(startOf(test));
  const end: InputEnd = test.end ? "ends" : "stays open";
  const sources: TestSource[] = [];
  const collectors = new Map<string, Collector>();
  const collect = (id: string) => {
    const made = collector();
    collectors.set(id, made);
    return made.sink;
  };
  try {
    const env = await buildWorkflow(withoutOutside(spec, test), {
      connectors,
      loadCode: host.loadCode,
      folder,
      clock,
      replace: {
        source: (source) => {
          const made = sourceFor(source, test, end, setting);
          sources.push(made);
          return made;
        },
        sink: collect,
      },
      alsoRead: sideOutputs(test, spec),
    });
    const handle = env.withShutdownTimeout(NEVER).start();
    await untilOver(handle, { clock, sources, end, host });
  } catch (error) {
    return [failedRun(test, asError(error).message)];
  }
  return test.expect.flatMap((expectation) =>
    judge(expectation, collectors.get(expectation.name)?.rows ?? []) ?? []
  );
}

function startOf({ input }: TestCase): number {
  const times = input.flatMap(({ content }) =>
    "entries" in content
      ? content.entries.flatMap((entry) => entry.kind === "watermark" ? entry.time : entry.at ?? [])
      : []
  );
  return times[0] ?? START;
}

/** The workflow without the parts of which a case uses nothing: then it does not matter whether this build carries them. */
function withoutOutside(spec: WorkflowSpec, { input }: TestCase): WorkflowSpec {
  const isUsed = input.length === 0 ? /^(pipeline|sources?)\b/ : /^pipeline\b/;
  const { checkpointing: _checkpointing, restart: _restart, ...env } = spec.env; // a test is one run, from nothing
  return { ...spec, env, uncarried: spec.uncarried.filter(({ path }) => isUsed.test(path)) };
}

function sourceFor(
  spec: SourceSpec,
  test: TestCase,
  end: InputEnd,
  { connectors, workflow, folder }: CaseSetting,
): TestSource {
  if (test.input.length === 0) {
    return ownSource(connectors.source(spec, { folder: workflow.folder, workflow: workflow.spec.name }), end);
  }
  const input = test.input.find(({ source }) => source === undefined || source === spec.id);
  const content: TestInput["content"] = input?.content ?? { entries: [] };
  if ("entries" in content) return scriptSource(content.entries, spec, end);
  return ownSource(
    connectors.source(fileSpec(spec, content.file), { folder, workflow: workflow.spec.name }),
    end,
  );
}

/** A file in place of a source: read as the source's own files are, or else by what its name says. */
function fileSpec(spec: SourceSpec, path: string): SourceSpec {
  const { id, place, path: at, timestamp, watermark, hasEventTime, onError } = spec;
  const common = {
    id,
    place,
    path: at,
    watermark,
    hasEventTime,
    onError,
    ...(timestamp === undefined ? {} : { timestamp }),
  };
  if (spec.type === "file") return { ...common, type: "file", file: { ...spec.file, path, follow: false } };
  return {
    ...common,
    type: "file",
    file: {
      path,
      format: spec.type === "stdin" ? spec.stdin.format : /\.csv(\.|$)/i.test(path) ? "csv" : "ndjson",
      compression: "auto",
      follow: false,
      csv: spec.type === "stdin" ? spec.stdin.csv : { types: {}, delimiter: ",", nulls: [] },
      maxLineBytes: spec.type === "stdin" ? spec.stdin.maxLineBytes : 1 << 24,
      deserialize: spec.type === "kafka" && spec.kafka.deserialize !== "avro"
        ? spec.kafka.deserialize
        : "json",
    },
  };
}

/** Side outputs that the case expects something of. */
function sideOutputs({ expect }: TestCase, { sinks }: WorkflowSpec): InputRef[] {
  return expect.flatMap(({ name }) => {
    const [node, output] = name.split(".");
    return output === undefined || sinks.some(({ id }) => id === name) ? [] : [{ node: node!, output }];
  });
}

/** Lets the run go on, and time with it, until it is over. */
async function untilOver(
  handle: RunHandle,
  { clock, sources, end, host }: {
    readonly clock: SteppingClock;
    readonly sources: readonly TestSource[];
    readonly end: InputEnd;
    readonly host: Host;
  },
): Promise<void> {
  let isOver = false, isStopped = false, waitedSince: number | undefined;
  handle.done.catch(() => {}).finally(() => isOver = true);
  for (;;) {
    for (let turn = 0; turn < QUIET_TURNS && !isOver; turn++) await yieldToEventLoop();
    if (isOver) return await handle.done;
    const isHeldOpen = end === "stays open" && !isStopped;
    if (isHeldOpen && handle.status().phase === "running" && sources.every((source) => source.isRead())) {
      isStopped = true;
      handle.stop().catch(() => {}); // `done` is awaited above
    } else if (clock.step()) waitedSince = undefined;
    else {
      // Code of the workflow, or a file, is on its way: only real time brings it back.
      const now = host.clock.monotonic();
      waitedSince ??= now;
      if (now - waitedSince > PATIENCE) {
        handle.abort(new MailerError("stuck", `nothing has happened for ${PATIENCE / 1000} s`));
      }
      await delay(host.clock, LOOK_EVERY);
    }
  }
}
