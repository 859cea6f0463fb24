/**
 * Which operator runs which window.
 *
 * @module
 */
import type { Operator, OperatorContext } from "../../runtime/operator.ts";
import type { WindowAssigner } from "../../window/assigner.ts";
import { bufferedFold } from "../fold.ts";
import { CountWindowOperator } from "./count.ts";
import { FixedWindowOperator } from "./fixed.ts";
import { GlobalWindowOperator } from "./global.ts";
import { SessionWindowOperator } from "./session.ts";
import { SlidingWindowOperator } from "./sliding.ts";
import type { WindowSettings } from "./settings.ts";

export { oneRow, type WindowRows, type WindowSettings, type WindowTrigger } from "./settings.ts";

/** The running operator for an assigner. */
export function windowOperator(
  assigner: WindowAssigner,
  settings: WindowSettings,
  context: OperatorContext,
): Operator {
  const mergeable = settings.fold.merge !== undefined;
  const merging: WindowSettings = mergeable
    ? settings
    : { ...settings, fold: bufferedFold(settings.fold, context.failed) };
  switch (assigner.kind) {
    case "panes":
      return assigner.single || !mergeable || settings.trigger !== undefined
        ? new FixedWindowOperator(assigner, settings, context)
        : new SlidingWindowOperator(assigner, settings, context);
    case "session":
      return new SessionWindowOperator(assigner, merging, context);
    case "count":
      return new CountWindowOperator(assigner, assigner.slide < assigner.size ? merging : settings, context);
    case "global":
      return new GlobalWindowOperator(settings, context);
  }
}
