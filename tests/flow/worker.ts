/** The worker of the contract suite in TypeScript: see `lib/flow/http/worker_contract.ts` for what it does. */
import { delay, systemClock } from "../../lib/clock.ts";
import { done, type Handler, interrupt, PermanentError } from "../../lib/flow/engine/mod.ts";
import { HttpWorker } from "../../lib/flow/http/worker.ts";

const input = (context: { readonly input: unknown }): Record<string, unknown> =>
  context.input as Record<string, unknown>;

const handlers: Record<string, Handler> = {
  "contract-output": ({ context }) => {
    const { a, b, big } = input(context) as { a: number; b: number; big: unknown };
    return { sum: a + b, big };
  },
  "contract-writes": () =>
    done({ output: { ok: true }, writes: { log: ["w"] }, next: "chosen", usage: { tokens: 7 } }),
  "contract-retry": ({ attempt }) => {
    if (attempt < 3) throw new Error("not yet");
    return { attempt };
  },
  "contract-permanent": () => {
    throw new PermanentError("no");
  },
  "contract-crash": ({ attempt }) => {
    if (attempt === 1) (undefined as unknown as { crash(): void }).crash();
    return { attempt };
  },
  "contract-interrupt": ({ context }) => {
    if (!Object.hasOwn(context, "resume")) interrupt({ ask: "ok?" });
    return { answer: context.resume, asked: (context.interrupt as { ask: string }).ask };
  },
  "contract-item": ({ context }) => {
    const item = (context as unknown as { item: number }).item;
    return { square: item * item, index: (context as unknown as { index: number }).index };
  },
  "contract-large": ({ context }) => ({ text: input(context)["text"] }),
  "contract-slow": async ({ context, attempt, deliveries, signal }) => {
    await delay(systemClock, input(context)["ms"] as number, signal);
    return { attempt, deliveries };
  },
};

new HttpWorker({
  url: Deno.env.get("MAILER_URL")!,
  token: Deno.env.get("MAILER_TOKEN")!,
  leaseMs: Number(Deno.env.get("MAILER_LEASE_MS")),
  handlers,
}).start();
