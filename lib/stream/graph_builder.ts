/**
 * Collects the nodes of a pipeline as it is described, and gives them their ids.
 *
 * @module
 */
import type { GraphNode, NodeOutput, OperatorNode } from "../plan/graph.ts";
import type { OnError, RetryPolicy } from "../runtime/failure.ts";
import type { OperatorFactory } from "../runtime/operator.ts";
import { type Duration, parseDuration } from "../duration.ts";

/** Settings any operator takes. */
export interface OperatorOptions {
  /** @ignore Whether values reach code of the user's. Workflows say no where nothing can change a value. */
  readonly userCode?: boolean;
  /** Unique id: names the operator in metrics, errors and state. Default: its kind and number. */
  readonly id?: string;
  /** What becomes of a record it cannot handle. Default `fail`: the run ends. */
  readonly onError?: OnError;
}

/** How often a failing call is made again. */
export interface RetryOptions {
  /** Calls in all. Default 3. */
  readonly attempts?: number;
  /** Wait before each further one. Default 1 s. */
  readonly delay?: Duration;
}

/** An operator to be added. */
export interface OperatorSpec {
  readonly type: string;
  readonly inputs: readonly NodeOutput[];
  readonly create: OperatorFactory;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly ownRows?: boolean;
  readonly keyed?: boolean;
  /** Default true: the operator hands values to code of the user's. */
  readonly userCode?: boolean;
  readonly sideOutputs?: Record<string, "passed" | "own">;
}

/** The nodes of one pipeline. */
export class GraphBuilder {
  readonly nodes: GraphNode[] = [];
  readonly #numbers = new Map<string, number>();

  /** `type`, then `type-2`, `type-3`, … */
  newId(type: string): string {
    const number = (this.#numbers.get(type) ?? 0) + 1;
    this.#numbers.set(type, number);
    return number === 1 ? type : `${type}-${number}`;
  }

  add<N extends GraphNode>(node: N): N {
    this.nodes.push(node);
    return node;
  }

  operator(spec: OperatorSpec, options: OperatorOptions = {}): OperatorNode {
    return this.add<OperatorNode>({
      kind: "operator",
      id: options.id ?? this.newId(spec.type),
      type: spec.type,
      inputs: spec.inputs,
      onError: options.onError ?? "fail",
      config: spec.config ?? {},
      create: spec.create,
      ownRows: spec.ownRows ?? false,
      userCode: options.userCode ?? spec.userCode ?? true,
      keyed: spec.keyed ?? false,
      sideOutputs: spec.sideOutputs ?? {},
      parallelism: 1,
    });
  }

  /** One input as it is, several through a union. */
  union(inputs: readonly NodeOutput[], id?: string): NodeOutput {
    if (inputs.length === 1) return inputs[0]!;
    const node = this.add<GraphNode>({
      kind: "union",
      id: id ?? this.newId("union"),
      type: "union",
      inputs,
      onError: "fail",
      config: {},
    });
    return { node, output: undefined };
  }
}

/** A retry policy as the runtime takes it. */
export function retryPolicy(options: RetryOptions): RetryPolicy {
  return { attempts: options.attempts ?? 3, delay: parseDuration(options.delay ?? 1000) };
}
