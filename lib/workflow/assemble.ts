/**
 * From a draft without problems to a spec.
 *
 * @module
 */
import type { RetryBlock, WatermarkBlock } from "./blocks.ts";
import { defaultOf } from "./read_field.ts";
import { SOURCE_FIELDS } from "./components/mod.ts";
import type { Draft } from "./document.ts";
import { guaranteeOf } from "./guarantee.ts";
import type { DraftNode } from "./node.ts";
import { flowInto, type Flows } from "./ordering.ts";
import { pathText } from "./problem.ts";
import { childOf, nodeAt, type ReadContext } from "./reader.ts";
import type {
  DlqSpec,
  FailurePolicy,
  InputRef,
  NodeSpec,
  OperatorSpec,
  SinkSpec,
  SourceSpec,
  Uncarried,
  WorkflowSpec,
} from "./spec.ts";
import type { Wired, Wiring } from "./wiring.ts";

/** What a spec is made of. */
export interface Parts {
  readonly file: string;
  readonly draft: Draft;
  readonly wiring: Wiring;
  readonly flows: Flows;
  readonly context: ReadContext;
  readonly idOf: (list: string, index: number) => string | undefined;
}

/** The spec of a document that has no problems. */
export function assemble({ file, draft, wiring, flows, context, idOf }: Parts): WorkflowSpec {
  const env = draft.env!;
  const uncarried: Uncarried[] = context.uncarried.map(({ place, path, what }) => ({
    ...place,
    path: pathText(path),
    label: pathText(path, idOf),
    what,
  }));
  return {
    name: draft.name!,
    file,
    env,
    sources: wiring.sources.map(sourceSpec),
    operators: wiring.operators.map((node) => operatorSpec(node, flows)),
    sinks: wiring.sinks.map(sinkSpec),
    dlq: draft.dlq && dlqSpec(draft.dlq),
    guarantee: guaranteeOf(draft, env),
    uncarried: uncarried.toSorted((a, b) => a.line - b.line || a.column - b.column),
  };
}

function nodeSpec(draft: DraftNode, id: string): NodeSpec {
  return { id, place: draft.place, path: pathText(draft.path) };
}

// The block of each node was read by the description of its type, which is typed by the block: the casts below say
// that once, for what the compiler cannot follow from `type` to its block.

function sourceSpec({ draft, id }: Wired): SourceSpec {
  const { fields, block, component, map } = draft;
  const type = component!.type, { watermark: inner, ...rest } = block ?? {};
  const written = nodeAt(map, ["kafka", "watermark"]) ?? childOf(map, "watermark");
  const watermark = (inner ?? fields.watermark ?? defaultWatermark()) as WatermarkBlock;
  return {
    ...nodeSpec(draft, id),
    type,
    ...(fields.timestamp === undefined ? {} : { timestamp: fields.timestamp }),
    watermark,
    hasEventTime: written !== undefined || fields.timestamp !== undefined,
    onError: fields.onError,
    ...(component!.block === undefined ? { records: fields.records } : { [type]: rest }),
  } as SourceSpec;
}

/** What holds without a `watermark` block is what holds with an empty one. */
function defaultWatermark(): unknown {
  return defaultOf({ ...SOURCE_FIELDS.watermark!, default: {} });
}

const RETRY: RetryBlock = { attempts: 3, delay: 1000 };

function failurePolicy({ fields, block }: DraftNode): { onError: FailurePolicy; retry?: RetryBlock } {
  const asked = (block?.onError ?? fields.onError) as FailurePolicy | "retry";
  const retry = fields.retry as RetryBlock | undefined;
  if (asked === "retry") return { onError: "fail", retry: retry ?? RETRY };
  return { onError: asked, ...(retry === undefined ? {} : { retry }) };
}

function inputsOf({ inputs }: Wired): readonly InputRef[] {
  return inputs.map(({ node, output }) => ({ node: node.id, ...(output === undefined ? {} : { output }) }));
}

function operatorSpec(node: Wired, flows: Flows): OperatorSpec {
  const { draft, id } = node, type = draft.component!.type;
  const { label, parallelism, ...block } = draft.block!;
  const flow = flows.get(node)!, into = flowInto(node, flows);
  return {
    ...nodeSpec(draft, id),
    type,
    from: inputsOf(node),
    ...(label === undefined ? {} : { label }),
    ...failurePolicy(draft),
    parallelism: draft.map.entries.some(({ key }) => key === "parallelism")
      ? draft.fields.parallelism
      : parallelism ?? 1,
    ...(flow.keyedBy === undefined ? {} : { keyedBy: flow.keyedBy.id }),
    windowed: into.windowed,
    [type]: block,
  } as OperatorSpec;
}

function sinkSpec(node: Wired): SinkSpec {
  const { draft, id } = node, type = draft.component!.type;
  const { onError: _inBlock, ...block } = draft.block ?? {};
  return {
    ...nodeSpec(draft, id),
    type,
    from: inputsOf(node),
    ...failurePolicy(draft),
    [type]: block,
  } as SinkSpec;
}

function dlqSpec(draft: DraftNode): DlqSpec {
  const type = draft.component!.type;
  return { ...nodeSpec(draft, draft.id ?? "dlq"), type, [type]: draft.block } as DlqSpec;
}
