/**
 * Metrics of one pipeline in the Prometheus format.
 *
 * The runtime counts in plain fields; they are read here when somebody asks, so a metric that nobody scrapes costs nothing. One
 * registry per environment: two pipelines in one process do not mix. Labels are ids from the pipeline and a closed list of
 * reasons, never a key, an offset or a value of the user's.
 *
 * @module
 */
import { type Collector, Counter, Gauge, Registry } from "./prometheus.ts";
import type { CheckpointStats } from "../checkpoint/coordinator.ts";
import type { SplitStatus } from "../runtime/counters.ts";
import type { Execution } from "../checkpoint/execution.ts";

/** The registry of a pipeline. */
export class PipelineMetrics {
  readonly registry: Registry = new Registry();

  /**
   * @param pipeline Name of the pipeline, a label of everything.
   * @param run The run the metrics speak of, if there is any.
   */
  constructor(pipeline: string, run: () => Execution | undefined) {
    this.registry.setDefaultLabels({ pipeline });
    const operators = () => run()?.instance?.operators ?? [];
    const stages = () => run()?.instance?.stages ?? [];
    const edges = () => run()?.instance?.edgeCounters ?? [];
    const splits = () => shown(run()?.instance?.splits ?? []);

    this.#counter("mailer_records_in_total", "Records an operator was given", ["operator", "type"], (set) => {
      for (const o of operators()) set({ operator: o.id, type: o.type }, o.recordsIn);
    });
    this.#counter(
      "mailer_records_out_total",
      "Records an operator handed on",
      ["operator", "type"],
      (set) => {
        for (const o of operators()) set({ operator: o.id, type: o.type }, o.recordsOut);
      },
    );
    this.#counter(
      "mailer_record_errors_total",
      "Records an operator could not handle",
      ["operator"],
      (set) => {
        for (const o of operators()) set({ operator: o.id }, o.errors);
      },
    );
    this.#counter(
      "mailer_dead_letters_total",
      "Records sent to the dead-letter sink",
      ["operator"],
      (set) => {
        for (const o of operators()) set({ operator: o.id }, o.deadLetters);
      },
    );
    this.#counter(
      "mailer_records_dropped_total",
      "Records left out on purpose",
      ["operator", "reason"],
      (set) => {
        for (const o of operators()) for (const [reason, n] of o.dropped) set({ operator: o.id, reason }, n);
      },
    );
    this.#gauge("mailer_state_entries", "Keys, or keys and windows, held in state", ["operator"], (set) => {
      for (const o of operators()) {
        if (o.gauges.length > 0) {
          set(
            { operator: o.id },
            o.gauges.reduce((sum, g) => sum + g.stateEntries, 0),
          );
        }
      }
    });
    this.#gauge("mailer_timers", "Timers that have not fired", ["operator"], (set) => {
      for (const o of operators()) {
        if (o.gauges.length > 0) set({ operator: o.id }, o.gauges.reduce((sum, g) => sum + g.timers, 0));
      }
    });
    this.#gauge("mailer_max_lateness_seconds", "Furthest a record was behind when it was too late", [
      "operator",
    ], (set) => {
      for (const o of operators()) {
        if (o.gauges.length > 0) {
          set(
            { operator: o.id },
            Math.max(...o.gauges.map((g) => g.maxLateness)) / 1000,
          );
        }
      }
    });
    this.#counter("mailer_records_late_total", "Records too late, dropped or sent to a side output", [
      "operator",
    ], (set) => {
      for (const o of operators()) {
        const late = o.gauges.reduce((sum, g) => sum + g.late, 0);
        if (late > 0) set({ operator: o.id }, late);
      }
    });
    for (const part of ["busy", "blocked", "idle"] as const) {
      const help = {
        busy: "Time at work",
        blocked: "Time waiting for room downstream",
        idle: "Time waiting for input",
      }[part];
      this.#counter(`mailer_${part}_seconds_total`, help, ["operator", "stage"], (set) => {
        const times = new Map(stages().map((stage) => [stage.stage, stage[part] / 1000]));
        for (const o of operators()) set({ operator: o.id, stage: o.stage }, times.get(o.stage) ?? 0);
      });
    }
    this.#gauge("mailer_edge_queued_records", "Records waiting in an edge", ["edge"], (set) => {
      for (const e of edges()) set({ edge: e.name }, e.queued());
    });
    this.#gauge("mailer_edge_capacity_records", "Records an edge holds", ["edge"], (set) => {
      for (const e of edges()) set({ edge: e.name }, e.capacity);
    });
    this.#counter(
      "mailer_edge_send_blocked_seconds_total",
      "Time writers waited for an edge",
      ["edge"],
      (set) => {
        for (const e of edges()) set({ edge: e.name }, e.sendBlockedMs / 1000);
      },
    );
    this.#gauge("mailer_split_offset", "Offset of the last record read", ["source", "split"], (set) => {
      for (const s of splits()) {
        if (s.offset !== undefined) set({ source: s.source, split: s.split }, s.offset);
      }
    });
    this.#gauge(
      "mailer_split_watermark_seconds",
      "Watermark of a split, epoch seconds",
      ["source", "split"],
      (set) => {
        for (const s of splits()) {
          if (Number.isFinite(s.watermark)) set({ source: s.source, split: s.split }, s.watermark / 1000);
        }
      },
    );
    this.#gauge("mailer_split_idle", "1 while a split is idle", ["source", "split"], (set) => {
      for (const s of splits()) set({ source: s.source, split: s.split }, s.idle ? 1 : 0);
    });
    this.#gauge("mailer_source_splits", "Splits of a source", ["source", "state"], (set) => {
      for (const { source, idle, ended } of run()?.instance?.splits ?? []) {
        set({ source, state: ended ? "ended" : idle ? "idle" : "open" }, 1);
      }
    });
    const lags = () => (run()?.instance?.sources ?? []).map(({ name, lag }) => [name, [...lag]] as const);
    this.#gauge(
      "mailer_source_lag_records",
      "Records that have not been read yet, up to the end, or to the first that is not certain yet",
      ["source", "to"],
      (set) => {
        for (const [source, splits] of lags()) {
          if (splits.length === 0) continue;
          set({ source, to: "end" }, splits.reduce((sum, { end }) => sum + end, 0));
          set({ source, to: "stable" }, splits.reduce((sum, { stable }) => sum + stable, 0));
        }
      },
    );
    this.#checkpoints(run);
    this.#gauge("mailer_pipeline_running", "1 while records flow", [], (set) => {
      set({}, run()?.phase === "running" || run()?.phase === "stopping" ? 1 : 0);
    });
  }

  #checkpoints(run: () => Execution | undefined): void {
    const gauge = (name: string, help: string, of: (stats: CheckpointStats) => number | undefined): void => {
      this.#gauge(name, help, [], (set) => {
        const stats = run()?.checkpoints, value = stats === undefined ? undefined : of(stats);
        if (value !== undefined) set({}, value);
      });
    };
    const count = (name: string, help: string, of: (stats: CheckpointStats) => number): void => {
      this.#counter(name, help, [], (set) => {
        const stats = run()?.checkpoints;
        if (stats !== undefined) set({}, of(stats));
      });
    };
    count("mailer_checkpoints_total", "Checkpoints that are complete", (stats) => stats.completed);
    count("mailer_checkpoint_failures_total", "Checkpoints that failed", (stats) => stats.failed);
    gauge(
      "mailer_checkpoint_duration_seconds",
      "From the barrier of the last checkpoint until it was durable",
      (stats) => stats.completed === 0 ? undefined : stats.lastDurationMs / 1000,
    );
    gauge(
      "mailer_checkpoint_blocked_seconds",
      "Longest time a stage stood still for the last checkpoint",
      (stats) => stats.completed === 0 ? undefined : stats.lastBlockedMs / 1000,
    );
    gauge(
      "mailer_checkpoint_bytes",
      "Keyed state that the last checkpoint names",
      (stats) => stats.completed === 0 ? undefined : stats.lastBytes,
    );
    gauge(
      "mailer_checkpoint_age_seconds",
      "Since the barrier of the last complete checkpoint",
      (stats) => stats.lastTakenAt === undefined ? undefined : (run()!.now - stats.lastTakenAt) / 1000,
    );
    this.#counter("mailer_restarts_total", "Failed runs that were followed by another", [], (set) => {
      set({}, run()?.restarts ?? 0);
    });
    this.#gauge("mailer_state_bytes", "Stored keyed state of an operator", ["operator"], (set) => {
      for (const [operator, bytes] of run()?.stateBytes ?? []) set({ operator }, bytes);
    });
  }

  /** All metrics in the Prometheus text format. */
  async text(): Promise<string> {
    return await this.registry.metrics();
  }

  #counter(name: string, help: string, labels: string[], collect: Collect): void {
    new Counter(this.#settings(name, help, labels, collect));
  }

  #gauge(name: string, help: string, labels: string[], collect: Collect): void {
    new Gauge(this.#settings(name, help, labels, collect));
  }

  /** A metric that is filled anew whenever it is asked for. */
  #settings(name: string, help: string, labels: string[], collect: Collect): MetricSettings {
    return {
      name,
      help,
      labelNames: labels,
      registers: [this.registry],
      collect(this: Collector) {
        this.reset();
        collect((values, value) => this.inc(values, value));
      },
    };
  }
}

/** Splits of a source that have metrics of their own; a glob may have thousands. */
const MOST_SPLITS = 10;

/** The first few splits of each source that have not ended, so that a source keeps within 40 series. */
function shown(splits: readonly SplitStatus[]): SplitStatus[] {
  const number = new Map<string, number>(), of = new Map<string, number>();
  for (const { source } of splits) of.set(source, (of.get(source) ?? 0) + 1);
  return splits.filter(({ source, ended }) => {
    if (of.get(source)! <= MOST_SPLITS) return true;
    if (ended) return false;
    const at = (number.get(source) ?? 0) + 1;
    number.set(source, at);
    return at <= MOST_SPLITS;
  });
}

interface MetricSettings {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
  readonly collect: (this: Collector) => void;
}

type Collect = (set: (labels: Record<string, string>, value: number) => void) => void;
