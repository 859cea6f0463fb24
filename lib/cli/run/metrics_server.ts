/**
 * Serves metrics and health while workflows run.
 *
 * | path | answer |
 * |---|---|
 * | `/metrics` | Prometheus text of all pipelines |
 * | `/healthz` | 200 while the process answers |
 * | `/readyz` | 200 while every pipeline is running, else 503 with those that are not |
 *
 * @module
 */
import { asError, MailerError } from "../../errors.ts";
import { type Address, addressText } from "./address.ts";
import { mergeMetrics } from "./merge_metrics.ts";

/** What is served. */
export interface Observed {
  /** Prometheus text. */
  metrics(): Promise<string>;
  readonly name: string;
  /** Phase of the run; undefined before it was started. */
  phase(): string | undefined;
}

/** A server that listens. */
export interface MetricsServer {
  readonly url: string;
  /** Answers no more. */
  close(): Promise<void>;
}

/**
 * Listens at an address.
 *
 * @throws {MailerError} `cannot_listen`.
 */
export function serveMetrics(address: Address, pipelines: readonly Observed[]): MetricsServer {
  const abort = new AbortController();
  try {
    const server = Deno.serve(
      { ...address, signal: abort.signal, onListen() {} },
      (request) => answer(request, pipelines),
    );
    return {
      url: `http://${addressText({ hostname: address.hostname, port: server.addr.port })}`,
      close: async () => {
        abort.abort();
        await server.finished;
      },
    };
  } catch (cause) {
    throw new MailerError(
      "cannot_listen",
      `cannot serve metrics at ${addressText(address)}: ${asError(cause).message}`,
      {
        cause,
        hint: "choose another address, or port 0 for one that is free",
      },
    );
  }
}

async function answer(request: Request, pipelines: readonly Observed[]): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD") return plain("only GET\n", 405);
  switch (new URL(request.url).pathname) {
    case "/metrics": {
      const texts = await Promise.all(pipelines.map((pipeline) => pipeline.metrics()));
      return new Response(mergeMetrics(texts), {
        headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
      });
    }
    case "/healthz":
      return plain("ok\n", 200);
    case "/readyz": {
      const others = pipelines.filter((pipeline) => pipeline.phase() !== "running");
      if (others.length === 0) return plain("ready\n", 200);
      return plain(others.map((one) => `${one.name}: ${one.phase() ?? "not started"}\n`).join(""), 503);
    }
    default:
      return plain("try /metrics, /healthz or /readyz\n", 404);
  }
}

function plain(text: string, status: number): Response {
  return new Response(text, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
}
