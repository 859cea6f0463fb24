/**
 * `mailer flow run`: one execution, carried out by this process.
 *
 * @module
 */
import { resolve } from "node:path";
import { MailerError } from "../../errors.ts";
import { FlowClient, FlowClientError } from "../../flow/client/mod.ts";
import { newId } from "../../flow/client/commands.ts";
import type { Flow } from "../../flow/definition/mod.ts";
import { builtInWorkers } from "../../flow/engine/builtin.ts";
import { FlowEngine, type Handler } from "../../flow/engine/mod.ts";
import { openMemoryStore } from "../../flow/store/memory.ts";
import { stringifyJson } from "../../json.ts";
import type { Logger } from "../../log.ts";
import type { Command } from "../command.ts";
import { printProblems } from "../documents.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { lineLogger } from "../run/log.ts";
import { readFlow } from "./documents.ts";
import { durationOption, objectOption, openStoreOf } from "./open.ts";
import type { FlowFlags } from "./options.ts";
import { failureText, waitingLines } from "./text.ts";

/** How long a task lies idle whose process was killed, ms: whoever begins again waits for that. */
const LEASE_MS = 5000;

/** Runs an execution to its end. */
export const run: Command = async ({ args: [file], flags }, host) => {
  const own: FlowFlags = flags, { with: others = [], workers: module, input, timeout } = own;
  const read = await Promise.all([file!, ...others].map((path) => readFlow(path, host.cwd)));
  const problems = read.flatMap((one) => one.problems), isJson = flags.json === true;
  if (problems.length > 0) {
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  const flows = read.map(({ flow }) => flow!), [flow] = flows as [Flow];
  const logger = lineLogger({
    workflow: flow.name,
    level: flags.logLevel ?? "info",
    form: isJson ? "json" : "text",
    clock: host.clock,
    mask: (text) => text,
    say: (line) => host.stderr.write(`${line}\n`),
  });
  const workers = {
    ...builtIn(flows, logger),
    ...module === undefined ? {} : await loadWorkers(module, host),
  };
  checkComplete(flows, workers);
  const given = input === undefined ? {} : await objectOption(input, "--input", host);
  const timeoutMs = timeout === undefined ? undefined : durationOption(timeout, "--timeout");
  return await carryOut(host, own, { flows, workers, input: given, timeoutMs, logger });
};

interface Task {
  readonly flows: readonly Flow[];
  readonly workers: Readonly<Record<string, Handler>>;
  readonly input: unknown;
  readonly timeoutMs: number | undefined;
  readonly logger: Logger;
}

async function carryOut(
  host: Host,
  flags: FlowFlags,
  { flows, workers, input, timeoutMs, logger }: Task,
): Promise<ExitCode> {
  const { clock } = host, { id = newId() } = flags;
  const isKept = flags.dataDir !== undefined;
  await using store = isKept ? await openStoreOf(flags, host, true) : await openMemoryStore({ clock });
  await using engine = new FlowEngine({ store, clock, logger, flows, drainMs: isKept ? 5000 : 100 });
  for (const [kind, handler] of Object.entries(workers)) engine.worker(kind, handler, { leaseMs: LEASE_MS });
  await engine.start();
  const client = new FlowClient({ store, engine, clock }), stop = new AbortController();
  let interrupts = 0;
  const quiet = host.onInterrupt(() => {
    if (++interrupts > 1) host.exit(EXIT.interrupted);
    stop.abort(
      new MailerError("interrupted", `interrupted: execution "${id}" has not ended`, {
        hint: isKept ? `go on with --id ${id}` : "with --data-dir it can be gone on with",
      }),
    );
  });
  try {
    await client.start(flows[0]!.name, input, { id });
    const wait = { signal: stop.signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    const { status, output, failure, cancelReason } = await client.wait(id, wait);
    if (status === "completed") {
      host.stdout.write(`${stringifyJson(output)}\n`);
      return EXIT.done;
    }
    const why = failure === undefined ? cancelReason : failureText(failure);
    host.stderr.write(`${status}${why === undefined ? "" : `: ${why}`}\n`);
    return EXIT.failed;
  } catch (error) {
    if (error instanceof FlowClientError && error.code === "wait_timed_out") {
      const { waiting } = await client.get(id), waits = waitingLines(waiting);
      if (!isKept) await client.cancel(id, "timeout");
      throw new MailerError("timed_out", `execution "${id}" has not ended within ${flags.timeout}`, {
        cause: error,
        hint: waits.length === 0 ? "it is under way" : `it waits for ${waits.slice(0, 5).join("; ")}`,
      });
    }
    throw error;
  } finally {
    quiet();
  }
}

/** The built-in kinds that nodes are set up for. */
function builtIn(flows: readonly Flow[], logger: Logger): Record<string, Handler> {
  const { http, log } = builtInWorkers({ logger });
  const isSetUp = works(flows).every(({ kind, isSetUp }) => kind !== "http" || isSetUp);
  return isSetUp ? { http, log } : { log };
}

interface Work {
  readonly flow: string;
  readonly node: string;
  readonly kind: string;
  readonly isSetUp: boolean;
}

/** What workers are to do. */
function works(flows: readonly Flow[]): Work[] {
  return flows.flatMap(({ name: flow, definition: { nodes } }) =>
    nodes.flatMap((node) => {
      const kind = "kind" in node ? node.kind : undefined;
      if (kind === undefined) return [];
      return [{ flow, node: node.id, kind, isSetUp: "with" in node && node.with !== undefined }];
    })
  );
}

async function loadWorkers(module: string, host: Host): Promise<Record<string, Handler>> {
  const path = /^[a-z][a-z+.-]+:/i.test(module) ? module : resolve(host.cwd, module);
  const workers = await host.loadCode({ module: path, name: "workers" }, { folder: host.cwd });
  if (typeof workers === "object" && workers !== null) {
    const odd = Object.entries(workers).find(([, handler]) => typeof handler !== "function");
    if (odd === undefined) return workers as Record<string, Handler>;
    throw new MailerError("usage", `${module}: the worker "${odd[0]}" is no function`);
  }
  throw new MailerError("usage", `${module}: "workers" is no object`, {
    hint: "write: export const workers = { kind: (job) => ({ … }) }",
  });
}

/** Refuses what could only fail on its way. */
function checkComplete(flows: readonly Flow[], workers: Readonly<Record<string, Handler>>): void {
  const missing = works(flows).filter(({ kind }) => !Object.hasOwn(workers, kind));
  const kinds = [...new Set(missing.map(({ kind }) => kind))].sort();
  if (kinds.length > 0) {
    const where = missing.map(({ flow, node, kind }) => `${kind} (${flow}, node ${node})`);
    const isEmit = kinds.includes("emit")
      ? "; emit needs streams in the same process, or a worker that stands in"
      : "";
    throw new MailerError(
      "missing_worker",
      `nobody does the work of the kind ${[...new Set(where)].join(", ")}`,
      {
        hint: `export workers for ${kinds.join(", ")} from a module, and name it with --workers${isEmit}`,
      },
    );
  }
  const names = flows.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new MailerError("usage", `two files hold a flow "${twice}"`);
  for (const { name, definition: { nodes } } of flows) {
    for (const node of nodes) {
      const child = "flow" in node ? node.flow : undefined;
      if (child === undefined || names.includes(child)) continue;
      throw new MailerError("missing_flow", `the flow "${child}" is not given: ${name}, node ${node.id}`, {
        hint: "name its file with --with",
      });
    }
  }
}
