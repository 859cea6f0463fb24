/**
 * A workflow whose sink starts flows: by the engine of the process, by a server; what is wrong is said before it runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { codeOf } from "../../lib/errors.ts";
import { flowOf, nodes, Scene } from "../../lib/flow/engine/kit_test.ts";
import { inScene } from "../../lib/flow/http/kit_test.ts";
import type { FlowClient } from "../../lib/flow/client/mod.ts";
import { buildWorkflow } from "../../lib/workflow/build/mod.ts";
import { parseWorkflow } from "../../lib/workflow/mod.ts";
import { connectorsFor, type Surroundings } from "../registry.ts";

const FLOW = nodes("order", "id: w, type: await, signal: go, timeout: 1000h");

async function run(block: string, surroundings: Surroundings = {}): Promise<void> {
  const text = `name: orders
source:
  id: orders
  type: slice
  records:
    - { value: { order: o-1, amount: 10 } }
    - { value: { order: o-2, amount: 5 } }
    - { value: { order: o-1, amount: 10 } }
sink:
  id: start
  type: flow
  flow: ${block}
`;
  const { spec: workflow, problems } = parseWorkflow(text, {
    file: "orders.yaml",
    resolveSecret: () => undefined,
  });
  assert.deepEqual(problems.map(({ message }) => message), []);
  assert.deepEqual(workflow!.uncarried, []);
  const connectors = await connectorsFor(new Set(["slice", "flow"]), surroundings);
  const loadCode = () => Promise.reject(new Error("there is no code"));
  await (await buildWorkflow(workflow!, { connectors, loadCode, folder: "." })).execute();
}

async function inputs(client: FlowClient): Promise<Record<string, unknown>> {
  const { items } = await client.list();
  const all = await Promise.all(items.map(async ({ id }) => [id, (await client.get(id)).input] as const));
  return Object.fromEntries(all.sort(([a], [b]) => a < b ? -1 : 1));
}

Deno.test("the engine of the process runs what the sink starts, once however often it runs", async () => {
  await using scene = await Scene.open({ flows: [FLOW] });
  for (let n = 0; n < 2; n++) {
    await run("{ name: order, id: value.order, input: '{\"cents\": value.amount * 100}' }", {
      engine: scene.engine,
    });
  }
  assert.deepEqual(await inputs(scene.client), { "o-1": { cents: 1000 }, "o-2": { cents: 500 } });
});

Deno.test("a server runs what the sink starts; without an id each record is one execution", async () => {
  const token = "token-token-token";
  await inScene({ flows: [flowOf(FLOW)], token }, async ({ client, server: { url } }) => {
    for (let n = 0; n < 2; n++) await run(`{ name: order, url: "${url}", token: ${token} }`);
    const found = Object.entries(await inputs(client));
    assert.equal(found.length, 3);
    for (const [id] of found) assert.match(id, /^order-r/);
  });
});

Deno.test("a sink that names no server, where no engine is", async () => {
  await assert.rejects(run("{ name: order }"), (error) => codeOf(error) === "no_flow_engine");
});
