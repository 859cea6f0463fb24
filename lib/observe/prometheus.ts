/**
 * The one door to the Prometheus client.
 *
 * @module
 */
import client from "prom-client";

/** A set of metrics that is scraped together. */
export type Registry = client.Registry;
/** Makes registries. */
export const Registry: typeof client.Registry = client.Registry;
/** Makes counters. */
export const Counter: typeof client.Counter = client.Counter;
/** Makes gauges. */
export const Gauge: typeof client.Gauge = client.Gauge;

/** A metric while it is being collected. */
export interface Collector {
  reset(): void;
  inc(labels: Record<string, string>, value: number): void;
}
