/**
 * The functions of `reduce` and `aggregate` by name.
 *
 * @module
 */
import {
  type AggregateFunction,
  type Aggregates,
  aggregates,
  avg,
  collect,
  count,
  distinct,
  first,
  last,
  max,
  min,
  percentile,
  sum,
  topN,
} from "../../aggregate/mod.ts";
import type { AggregateFunction as FunctionBlock, ReduceBlock } from "../blocks.ts";

type AnyFunction = Aggregates<unknown>[string];

/** One object with a field for each function. */
export function functionsOf(
  blocks: readonly FunctionBlock[],
): AggregateFunction<unknown, unknown, object> {
  return aggregates<unknown, Aggregates<unknown>>(
    Object.fromEntries(blocks.map((block) => [block.as, functionOf(block)])),
  ) as AggregateFunction<unknown, unknown, object>;
}

/** The function of a `reduce` as the only one of an aggregate. */
export function reduceBlocks(block: ReduceBlock): readonly FunctionBlock[] {
  const { function: name, field, as } = block;
  return [name === "count" ? { as, function: name } : { as, function: name, field: field! }];
}

function functionOf(block: FunctionBlock): AnyFunction {
  switch (block.function) {
    case "count":
      return count();
    case "sum":
      return sum(block.field);
    case "avg":
      return avg(block.field);
    case "min":
      return min(block.field);
    case "max":
      return max(block.field);
    case "first":
      return first(block.field);
    case "last":
      return last(block.field);
    case "distinct":
      return distinct(block.field);
    case "percentile":
      return percentile(block.field, { p: block.p });
    case "topN":
      return topN({ n: block.n, by: block.by, order: block.order });
    case "collect":
      return collect({ limit: block.limit, ...(block.field === undefined ? {} : { field: block.field }) });
  }
}
