/**
 * What a workflow promises, and what an exactly-once workflow has to have.
 *
 * G1 Exactly once is asked for by a Kafka source with `exactlyOnce` or by a `txnKafka` sink, and by nothing else.
 * G3 With checkpointing one sink at most commits in a transaction of its own.
 * G2 Every part that lacks is a problem of its own, at the key of the block that lacks it.
 *
 * @module
 */
import type { EnvBlock } from "./blocks.ts";
import type { Draft } from "./document.ts";
import type { DraftNode } from "./node.ts";
import { type Problems, TOP } from "./problem.ts";
import { keyPlaceAt, nodeAt } from "./reader.ts";
import type { Guarantee } from "./spec.ts";

/** Checks that an exactly-once workflow is whole. */
export function checkExactlyOnce(draft: Draft, problems: Problems): void {
  checkAtomic(draft, problems);
  if (!asksExactlyOnce(draft)) return;
  for (const source of draft.sources) checkSource(source, problems);
  for (const sink of draft.sinks) checkSink(sink, problems);
  const { root } = draft, env = nodeAt(root, ["env"]);
  if (env?.kind === "map" && nodeAt(env, ["checkpointing"]) !== undefined) return;
  const place = env?.kind === "map" ? keyPlaceAt(root, ["env"]) : TOP;
  const hint = "for example env: { checkpointing: { interval: 10s } }";
  problems.add(
    place,
    ["env", "checkpointing"],
    "missing",
    "exactly once needs checkpointing with an interval",
    hint,
  );
}

/** Two sinks that each commit in a transaction of their own cannot commit one checkpoint together. */
function checkAtomic({ root, sinks }: Draft, problems: Problems): void {
  if (nodeAt(root, ["env", "checkpointing"]) === undefined) return;
  const [first, ...others] = sinks.filter(({ component }) =>
    component?.kind === "sink" && component.commits === "atomic"
  );
  for (const { component, typePlace, path } of others) {
    const message =
      `${component!.type} commits in a transaction of its own, and so does ${first!.component!.type}: ` +
      "a crash between the two would leave one without the other";
    const hint = "one of them to a workflow; file sinks may stand beside it";
    problems.add(typePlace, [...path, "type"], "two_atomic_sinks", message, hint);
  }
}

function asksExactlyOnce({ sources, sinks }: Draft): boolean {
  return sources.some(isExactlyOnce) || sinks.some(({ component }) => component?.type === "txnKafka");
}

/** What a Kafka source says of `exactlyOnce`, whatever else may be wrong with it; a text not yet known counts as yes. */
function isExactlyOnce({ component, map }: DraftNode): boolean {
  if (component?.type !== "kafka") return false;
  const flag = nodeAt(map, ["kafka", "exactlyOnce"]);
  return flag?.kind === "scalar" && flag.value !== false && flag.value !== "false";
}

function checkSource(source: DraftNode, problems: Problems): void {
  const { component, map, path } = source;
  if (component?.kind !== "source" || component.replay === "always") return;
  if (component.replay === "never") {
    const message = `exactly once needs a source that can be read again, and ${component.type} cannot`;
    problems.add(
      source.typePlace,
      [...path, "type"],
      "not_replayable",
      message,
      "kafka, file, slice or generator",
    );
  } else if (!isExactlyOnce(source) && nodeAt(map, [component.type])?.kind === "map") {
    const blockPlace = keyPlaceAt(map, [component.type]);
    const field = [...path, component.type, "exactlyOnce"];
    const message = "exactly once needs exactlyOnce: true on the source as well";
    problems.add(blockPlace, field, "missing", message);
  }
}

function checkSink({ component, path, typePlace }: DraftNode, problems: Problems): void {
  if (component?.kind !== "sink" || component.commits !== "no") return;
  const message = `exactly once needs sinks that commit with a checkpoint, and ${component.type} does not`;
  problems.add(typePlace, [...path, "type"], "not_committing", message, "txnKafka, postgres or file");
}

/** What a valid workflow promises. */
export function guaranteeOf(draft: Draft, env: EnvBlock): Guarantee {
  if (env.checkpointing === undefined) return "at-most-once";
  if (draft.sources.some(({ component }) => component?.kind === "source" && component.replay === "never")) {
    return "at-most-once"; // what was read and not yet written is gone
  }
  const sources = draft.sources.every((node) => {
    const { component } = node;
    return component?.kind === "source" && (component.replay === "always" || isExactlyOnce(node));
  });
  const sinks = draft.sinks.every(({ component }) =>
    component?.kind === "sink" && component.commits !== "no"
  );
  return sources && sinks ? "exactly-once" : "at-least-once";
}
