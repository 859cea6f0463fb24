/**
 * Flows in workflows: from the block of a document to the sink.
 *
 * @module
 */
import type { Sink } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import type { FlowEngine } from "../../lib/flow/engine/mod.ts";
import type { FlowSinkBlock } from "../../lib/workflow/blocks.ts";
import { expressionOf } from "../../lib/workflow/build/expression.ts";
import { flowSink } from "./flow_sink.ts";

/**
 * The sink of a document.
 *
 * @param sinkId Id of the sink, for errors.
 * @param engine Engine of this process, where there is one.
 * @throws {MailerError} `no_flow_engine` where the document names no server and there is no engine here.
 */
export function flowSinkOf(block: FlowSinkBlock, sinkId: string, engine: FlowEngine | undefined): Sink {
  const { name, version, id, input, url, token, concurrency } = block;
  if (url === undefined && engine === undefined) {
    throw new MailerError("no_flow_engine", `sink "${sinkId}": flows do not run in this process`, {
      hint: "give the `url` of a server that runs them",
    });
  }
  return flowSink({
    flow: name,
    concurrency,
    ...(url === undefined ? { engine } : { url, ...(token === undefined || token === "" ? {} : { token }) }),
    ...(version === undefined ? {} : { version }),
    ...(id === undefined ? {} : { id: expressionOf(id, "windowed") }),
    ...(input === undefined ? {} : { input: expressionOf(input, "windowed") }),
  });
}
