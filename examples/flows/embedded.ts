/**
 * What the examples share: an engine in this process, on a store in memory. A program that is to survive its end opens
 * `openKvStore({ path })` instead; nothing else changes.
 */
import {
  type Flow,
  FlowClient,
  FlowEngine,
  type FlowStore,
  type Handler,
  openMemoryStore,
  parseFlow,
} from "@mailer/core/flow";

/** A flow of a file beside this one. */
export async function flowFile(name: string): Promise<Flow> {
  const { flow, problems } = parseFlow(await Deno.readTextFile(new URL(name, import.meta.url)), {
    file: name,
  });
  if (flow === undefined) throw new Error(problems.map(({ message }) => message).join("\n"));
  return flow;
}

/** An engine with flows and workers, until it is disposed of. */
export class Embedded implements AsyncDisposable {
  private constructor(
    readonly store: FlowStore,
    readonly engine: FlowEngine,
    readonly client: FlowClient,
  ) {}

  static async start(flows: readonly Flow[], workers: Readonly<Record<string, Handler>>): Promise<Embedded> {
    const store = await openMemoryStore(), engine = new FlowEngine({ store, flows });
    for (const [kind, handler] of Object.entries(workers)) engine.worker(kind, handler);
    await engine.start();
    return new Embedded(store, engine, new FlowClient({ store, engine }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.drain();
    await this.store[Symbol.asyncDispose]();
  }
}
