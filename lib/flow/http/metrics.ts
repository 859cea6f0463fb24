/**
 * What an engine has done, in the Prometheus format.
 *
 * @module
 */
import { type Collector, Counter, Gauge, Registry } from "../../observe/prometheus.ts";
import type { FlowEngine } from "../engine/mod.ts";

/** Prometheus text of an engine; everything is read when somebody asks. */
export class EngineMetrics {
  readonly #registry: Registry = new Registry();

  /** @param waiting How many calls wait. */
  constructor(engine: FlowEngine, waiting: () => number) {
    const { counters } = engine;
    this.#counter("mailer_flow_commands_total", "Commands that were decided", () => counters.commands);
    this.#counter("mailer_flow_decisions_total", "Decisions that were stored", () => counters.decisions);
    this.#counter("mailer_flow_events_total", "Events of those", () => counters.events);
    this.#counter(
      "mailer_flow_conflicts_total",
      "Decisions made again because somebody else had written",
      () => counters.conflicts,
    );
    this.#counter("mailer_flow_dead_letters_total", "Commands and jobs given up", () => counters.deadLetters);
    this.#counter("mailer_flow_jobs_total", "Attempts handed to a worker", () => counters.jobs);
    this.#counter(
      "mailer_flow_cache_hits_total",
      "Attempts answered by a result from before",
      () => counters.cacheHits,
    );
    this.#counter("mailer_flow_continued_total", "Histories begun anew", () => counters.continued);
    this.#counter("mailer_flow_archived_total", "Executions archived", () => counters.archived);
    this.#counter("mailer_flow_deleted_total", "Executions deleted", () => counters.deleted);
    this.#counter("mailer_flow_quarantined_total", "Executions parked", () => counters.quarantined);
    this.#counter("mailer_flow_timers_total", "Timers that were taken up", () => counters.timers);
    this.#counter(
      "mailer_flow_timer_lateness_seconds_total",
      "How much later than due timers were taken up, in all",
      () => counters.timerLateMs / 1000,
    );
    const stats = (): ReturnType<typeof engine.core.store.stats> => engine.core.store.stats();
    this.#counter("mailer_flow_store_commits_total", "Atomic operations of the store", () => stats().commits);
    this.#counter(
      "mailer_flow_store_units_total",
      "Writes of any kind, which share those operations",
      () => stats().units,
    );
    this.#counter(
      "mailer_flow_store_busy_total",
      "Tries that found the store busy with another process",
      () => stats().busy,
    );
    this.#gauge("mailer_flow_partitions", "Partitions this process owns", () => engine.owned.length);
    this.#gauge("mailer_flow_waiting_calls", "Calls that wait", waiting);
  }

  /** The text. */
  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  #counter(name: string, help: string, read: () => number): void {
    const registers = [this.#registry];
    new Counter({ name, help, registers, collect: collector(read) });
  }

  #gauge(name: string, help: string, read: () => number): void {
    const registers = [this.#registry];
    new Gauge({ name, help, registers, collect: collector(read) });
  }
}

function collector(read: () => number): (this: Collector) => void {
  return function () {
    this.reset();
    this.inc({}, read());
  };
}
