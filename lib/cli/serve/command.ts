/**
 * `mailer serve`: an engine of flows that stays, and its HTTP interface.
 *
 * S1 Nothing is opened before every flow has been found valid.
 * S2 It says that it is ready when it is: from then on calls are answered.
 * S3 An interrupt drains: whoever waits is answered, decisions under way are made, partitions are given back. A second one ends the
 *    process at once, which loses nothing that was acknowledged.
 *
 * @module
 */
import { join } from "node:path";
import { asError, MailerError } from "../../errors.ts";
import type { Flow } from "../../flow/definition/mod.ts";
import { builtInWorkers } from "../../flow/engine/builtin.ts";
import { FlowEngine } from "../../flow/engine/mod.ts";
import { type FlowServer, serveFlows } from "../../flow/http/serve.ts";
import { openKvStore } from "../../flow/store/kv.ts";
import type { FlowStore } from "../../flow/store/port.ts";
import { stringifyJson } from "../../json.ts";
import type { Logger } from "../../log.ts";
import type { Command, Flags } from "../command.ts";
import { dataDirOf, printProblems } from "../documents.ts";
import { EXIT } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { lineLogger } from "../run/log.ts";
import { readFlows, readToken } from "./files.ts";

const DEFAULT_ADDRESS = { hostname: "127.0.0.1", port: 8088 };
/** Name of the database in the data folder. */
const DATABASE = "flows.db";

/** Path of the database of flows below a data folder. */
export function flowDatabase(dataDir: string): string {
  return join(dataDir, DATABASE);
}

/** Serves flows until it is interrupted. */
export const serve: Command = async ({ args, flags }, host) => {
  const { flows: paths = [], json, listen = DEFAULT_ADDRESS, tokenFile } = flags;
  const { flows, problems } = await readFlows([...paths, ...args], host.cwd);
  if (problems.length > 0) {
    printProblems(problems, json === true ? "json" : "text", json === true ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  const token = tokenFile === undefined ? undefined : await readToken(tokenFile, host.cwd);
  const logger = loggerOf(flags, host), { clock } = host;
  await using store = await openStore(flags, host);
  await using engine = new FlowEngine({ store, flows, clock, logger });
  const { log, http } = builtInWorkers({ logger });
  engine.worker("log", log);
  if (!hasOwnHttp(flows)) engine.worker("http", http);
  const interrupted = interrupts(host, flags);
  try {
    await engine.start();
    const server = serveFlows({
      engine,
      ...listen,
      clock,
      logger,
      ...(token === undefined ? {} : { token }),
    });
    tell(host, flags, `serving flows at ${server.url}`, {
      event: "ready",
      url: server.url,
      flows: flows.length,
    });
    await interrupted.first;
    await drain(server, engine);
  } finally {
    interrupted.forget();
  }
  return EXIT.done;
};

/** Whether a flow has tasks of the kind `http` that are not for the built-in worker: they have no settings for it. */
function hasOwnHttp(flows: readonly Flow[]): boolean {
  return flows.some(({ definition: { nodes } }) =>
    nodes.some((node) => "kind" in node && node.kind === "http" && node.with === undefined)
  );
}

/** The server first: whoever waits hears that it goes, and answers under way still find the engine. */
async function drain(server: FlowServer, engine: FlowEngine): Promise<void> {
  await server.drain();
  await engine.drain();
}

async function openStore(flags: Flags, host: Host): Promise<FlowStore> {
  const folder = dataDirOf(flags, host);
  try {
    await Deno.mkdir(folder, { recursive: true });
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) throw cause;
    throw new MailerError(
      "store_unavailable",
      `cannot make the folder ${folder}: ${asError(cause).message}`,
      {
        cause,
      },
    );
  }
  return await openKvStore({ path: flowDatabase(folder), clock: host.clock });
}

/** The first interrupt is a promise; the second one ends the process. */
function interrupts(host: Host, flags: Flags): { readonly first: Promise<void>; forget(): void } {
  const first = Promise.withResolvers<void>();
  let count = 0;
  const forget = host.onInterrupt(() => {
    if (++count > 1) host.exit(EXIT.interrupted);
    tell(host, flags, "draining; interrupt again to stop at once", { event: "draining" });
    first.resolve();
  });
  return { first: first.promise, forget };
}

function loggerOf({ logLevel = "info", json }: Flags, { clock, stderr }: Host): Logger {
  return lineLogger({
    workflow: "serve",
    level: logLevel,
    form: json === true ? "json" : "text",
    clock,
    mask: (text) => text,
    say: (line) => stderr.write(`${line}\n`),
  });
}

/** Says something on standard error, to people or to a program. */
function tell(
  { stderr }: Host,
  { json, quiet }: Flags,
  text: string,
  event: { readonly event: string; readonly [field: string]: unknown },
): void {
  if (quiet !== true) stderr.write(`${json === true ? stringifyJson(event) : text}\n`);
}
