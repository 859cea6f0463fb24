/**
 * The actions of `mailer flow` that work on a store.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import {
  type BulkAction,
  type ExecutionView,
  type FlowClient,
  type NewSignal,
} from "../../flow/client/mod.ts";
import { checkToken, newId } from "../../flow/client/commands.ts";
import { flowDocument } from "../../flow/definition/mod.ts";
import type { AttributeFilter, Query } from "../../flow/store/port.ts";
import { stringifyJson } from "../../json.ts";
import type { Command } from "../command.ts";
import { printProblems } from "../documents.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { readFlow } from "./documents.ts";
import { countOption, durationOption, jsonOption, objectOption, timeOption, withClient } from "./open.ts";
import type { FlowFlags } from "./options.ts";
import {
  eventText,
  executionText,
  failureText,
  listedCells,
  pretty,
  rowsText,
  timeText,
  writeJson,
} from "./text.ts";

/** One call. */
interface Call {
  readonly args: readonly string[];
  readonly flags: FlowFlags;
  readonly host: Host;
  readonly isJson: boolean;
  /** Prints a result: as JSON, or as text where that is what is asked for. */
  print(result: unknown, text: () => string): void;
}

type Verb = (call: Call) => Promise<ExitCode | void>;

/** The action with a name. */
export function verb(name: string): Command {
  const act = VERBS[name]!;
  return async ({ args, flags }, host) => {
    const isJson = flags.json === true;
    const print = (result: unknown, text: () => string): void =>
      isJson ? writeJson(host.stdout, result) : host.stdout.write(text());
    return await act({ args, flags, host, isJson, print }) ?? EXIT.done;
  };
}

/** Works with a client that changes an execution. */
async function changing<T>(
  { flags, host }: Call,
  ids: readonly string[] | "all",
  work: (client: FlowClient) => Promise<T>,
): Promise<T> {
  if (ids !== "all") { for (const id of ids) checkToken(id, "id of an execution"); }
  return await withClient(flags, host, { changes: ids }, work);
}

async function reading<T>({ flags, host }: Call, work: (client: FlowClient) => Promise<T>): Promise<T> {
  return await withClient(flags, host, {}, work);
}

const VERBS: Readonly<Record<string, Verb>> = {
  register,
  flows: async (call) => {
    const flows = await reading(call, (client) => client.flows());
    call.print(
      flows,
      () =>
        rowsText(
          ["FLOW", "VERSION", ""],
          flows.map(({ name, hash, latest }) => [name, hash, latest ? "newest" : ""]),
        ),
    );
  },
  flow: async (call) => {
    const { definition } = await reading(call, (client) => client.flow(call.args[0]!, call.flags.version));
    call.print(flowDocument(definition), () => pretty(flowDocument(definition)));
  },
  start,
  signal: async (call) => {
    const { args: [id, name], flags: { payload, id: signalId }, host } = call;
    const value = payload === undefined ? undefined : await jsonOption(payload, "--payload", host);
    const sent = await changing(call, [id!], (client) => client.signal(id!, name!, value, named(signalId)));
    call.print(sent, () => `${sent.changed === false ? "it came before" : "sent"}\n`);
  },
  resume: async (call) => {
    const { args: [id, node], flags: { value, key, id: commandId }, host } = call;
    const answer = value === undefined ? undefined : await jsonOption(value, "--value", host);
    const options = { ...named(commandId), ...(key === undefined ? {} : { key }) };
    const sent = await changing(call, [id!], (client) => client.resume(id!, node!, answer, options));
    call.print(sent, () => "resumed\n");
  },
  update: async (call) => {
    const { args: [id], flags: { writes = "{}", id: updateId }, host } = call;
    const given = await objectOption(writes, "--writes", host);
    const execution = await changing(call, [id!], (client) => client.update(id!, given, named(updateId)));
    call.print(execution, () => executionText(execution));
  },
  cancel: async (call) => {
    const { args: [id], flags: { reason } } = call;
    const sent = await changing(call, [id!], (client) => client.cancel(id!, reason));
    call.print(sent, () => sent.changed === false ? "it had ended\n" : "cancelled\n");
  },
  pause: async (call) => {
    const { args: [id], flags: { reason } } = call;
    const sent = await changing(call, [id!], (client) => client.pause(id!, reason));
    call.print(sent, () => sent.changed === false ? "it was paused already\n" : "paused\n");
  },
  unpause: async (call) => {
    const { args: [id] } = call;
    const sent = await changing(call, [id!], (client) => client.unpause(id!));
    call.print(sent, () => sent.changed === false ? "it was not paused\n" : "goes on\n");
  },
  get: async (call) => {
    const { args: [id], flags: { seq } } = call;
    const at = seq === undefined ? undefined : countOption(seq, "--seq");
    const execution = await reading(
      call,
      (client) => at === undefined ? client.get(id!) : client.stateAt(id!, at),
    );
    call.print(execution, () => executionText(execution));
  },
  history,
  watch: async (call) => {
    const { args: [id], flags: { from }, host, isJson } = call, stop = new AbortController();
    const quiet = host.onInterrupt(() => stop.abort(new MailerError("interrupted", "interrupted")));
    const options = {
      signal: stop.signal,
      ...(from === undefined ? {} : { from: countOption(from, "--from") }),
    };
    try {
      await reading(call, async (client) => {
        for await (const event of client.watch(id!, options)) {
          if (isJson) writeJson(host.stdout, event);
          else host.stdout.write(eventText(event));
        }
      });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      quiet();
    }
  },
  wait: async (call) =>
    await ended(call, await reading(call, (client) => waited(call, client, call.args[0]!))),
  fork: async (call) => {
    const { args: [id, seq], flags, host } = call, { id: fork = newId(), writes } = flags;
    const edits = writes === undefined ? {} : { writes: await objectOption(writes, "--writes", host) };
    const at = countOption(seq!, "SEQ");
    const forked = await changing(call, [fork], (client) => client.fork(id!, at, { id: fork, ...edits }));
    call.print(forked, () => `${forked.id}\n`);
  },
  rerun: async (call) => {
    const { args: [id, node], flags, host } = call, { id: fork = newId(), writes } = flags;
    const edits = writes === undefined ? {} : { writes: await objectOption(writes, "--writes", host) };
    const forked = await changing(call, [fork], (client) => client.rerun(id!, node!, { id: fork, ...edits }));
    call.print(forked, () => `${forked.id}\n`);
  },
  migrate,
  list,
  bulk,
  archive: async (call) => {
    const { args: [id] } = call, sent = await changing(call, [id!], (client) => client.archive(id!));
    call.print(sent, () => sent.changed === false ? "it was archived already\n" : "archived\n");
  },
  delete: async (call) => {
    const { args: [id] } = call, sent = await changing(call, [id!], (client) => client.delete(id!));
    call.print(sent, () => "deleted\n");
  },
  dlq: async (call) => {
    const { limit, cursor } = call.flags;
    const page = await reading(call, (client) =>
      client.deadLetters({
        ...(limit === undefined ? {} : { limit: countOption(limit, "--limit") }),
        ...(cursor === undefined ? {} : { cursor }),
      }));
    call.print(
      page,
      () =>
        rowsText(
          ["LETTER", "TIME", "KIND", "ABOUT", "REASON"],
          page.items.map(({ id, time, kind, key, reason }) => [id, timeText(time), kind, key, reason]),
        ),
    );
    more(call, page.cursor);
  },
  redrive: async (call) => {
    const done = await reading(call, (client) => client.redrive(call.args[0]!));
    call.print(done, () => `sent again, to ${done.execution}\n`);
  },
};

function named(id: string | undefined): { readonly id?: string } {
  return id === undefined ? {} : { id };
}

/** Says how to go on with a list. */
function more({ isJson, host }: Call, cursor: string | undefined): void {
  if (cursor !== undefined && !isJson) host.stderr.write(`there is more: --cursor ${cursor}\n`);
}

async function register({ args, flags, host, isJson, print }: Call): Promise<ExitCode> {
  const read = await Promise.all(args.map((file) => readFlow(file, host.cwd)));
  const problems = read.flatMap((one) => one.problems);
  if (problems.length > 0) {
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  const registered = await withClient(flags, host, { create: true }, async (client) => {
    const done = [];
    for (const { flow } of read) done.push(await client.register(flow!));
    return done;
  });
  print(registered, () => registered.map(({ name, hash }) => `registered ${name}@${hash}\n`).join(""));
  return EXIT.done;
}

async function start(call: Call): Promise<ExitCode> {
  const { args: [flow], flags, host, print } = call, { id = newId(), input, version, traceparent } = flags;
  const { startAt, deadline, signal = [] } = flags;
  const given = input === undefined ? {} : await objectOption(input, "--input", host);
  const options = {
    id,
    ...(version === undefined ? {} : { version }),
    ...(startAt === undefined ? {} : { startAt: timeOption(startAt, "--start-at", host) }),
    ...(deadline === undefined ? {} : { deadline: timeOption(deadline, "--deadline", host) }),
    ...(traceparent === undefined ? {} : { traceparent }),
    signals: await Promise.all(signal.map((text) => signalOf(text, host))),
    joinExisting: flags.new !== true,
  };
  return await changing(call, [id], async (client) => {
    const started = await client.start(flow!, given, options);
    if (flags.wait === true) return await ended(call, await waited(call, client, id));
    print(started, () => `${started.id}${started.joined ? " (it was there already)" : ""}\n`);
    return EXIT.done;
  });
}

async function signalOf(text: string, host: Host): Promise<NewSignal> {
  const at = text.indexOf("=");
  if (at < 0) return { name: text };
  return { name: text.slice(0, at), payload: await jsonOption(text.slice(at + 1), "--signal", host) };
}

/** Waits for the end of an execution. */
async function waited(
  { flags: { timeout }, host }: Call,
  client: FlowClient,
  id: string,
): Promise<ExecutionView> {
  const stop = new AbortController();
  const quiet = host.onInterrupt(() => stop.abort(new MailerError("interrupted", "interrupted: it goes on")));
  try {
    return await client.wait(id, {
      signal: stop.signal,
      ...(timeout === undefined ? {} : { timeoutMs: durationOption(timeout, "--timeout") }),
    });
  } finally {
    quiet();
  }
}

/** Prints how an execution ended. */
function ended({ host, isJson }: Call, execution: ExecutionView): Promise<ExitCode> {
  const { status, output, failure, cancelReason } = execution;
  if (isJson) writeJson(host.stdout, execution);
  if (status === "completed") {
    if (!isJson) host.stdout.write(`${stringifyJson(output)}\n`);
    return Promise.resolve(EXIT.done);
  }
  const why = failure === undefined ? cancelReason : failureText(failure);
  host.stderr.write(`${status}${why === undefined ? "" : `: ${why}`}\n`);
  return Promise.resolve(EXIT.failed);
}

async function history(call: Call): Promise<void> {
  const { args: [id], flags: { from, limit, node }, host, isJson } = call;
  if (node !== undefined) {
    const outputs = await reading(call, (client) => client.outputHistory(id!, node));
    call.print(
      outputs,
      () =>
        outputs.map(({ seq, output }) => `${String(seq).padStart(5)}  ${stringifyJson(output)}\n`).join(""),
    );
    return;
  }
  const events = await reading(call, (client) =>
    client.history(id!, {
      ...(from === undefined ? {} : { from: countOption(from, "--from") }),
      ...(limit === undefined ? {} : { limit: countOption(limit, "--limit") }),
    }));
  for (const event of events) {
    if (isJson) writeJson(host.stdout, event);
    else host.stdout.write(eventText(event));
  }
}

async function migrate(call: Call): Promise<ExitCode> {
  const { args: [id], flags: { version, nodes, dryRun }, host } = call;
  const names = nodes === undefined ? {} : { nodes: namesOf(await objectOption(nodes, "--nodes", host)) };
  const options = { ...(version === undefined ? {} : { version }), ...names, dryRun: dryRun === true };
  const found = await changing(call, [id!], (client) => client.migrate(id!, options));
  call.print(found, () => {
    if (found.migrated) return `goes on with ${found.to}\n`;
    return found.problems.length === 0
      ? `nothing keeps it from going on with ${found.to}\n`
      : found.problems.map((problem) => `${problem}\n`).join("");
  });
  return found.problems.length === 0 ? EXIT.done : EXIT.failed;
}

function namesOf(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const odd = Object.values(given).some((name) => typeof name !== "string");
  if (odd) throw new MailerError("usage", `--nodes takes names of nodes, such as '{"old": "new"}'`);
  return given as Record<string, string>;
}

async function list(call: Call): Promise<void> {
  const { order = "newest", limit, cursor } = call.flags;
  if (order !== "newest" && order !== "oldest") {
    throw new MailerError("usage", "--order takes newest or oldest");
  }
  const page = await reading(call, (client) =>
    client.list({
      ...queryOf(call),
      order,
      ...(limit === undefined ? {} : { limit: countOption(limit, "--limit") }),
      ...(cursor === undefined ? {} : { cursor }),
    }));
  const titles = ["EXECUTION", "FLOW", "STATUS", "STARTED", "ATTRIBUTES", "WHY"];
  call.print(page, () => rowsText(titles, page.items.map(listedCells)));
  more(call, page.cursor);
}

function queryOf({ flags: { status, flow, attr = [], from, to }, host }: Call): Query {
  return {
    ...(status === undefined ? {} : { status }),
    ...(flow === undefined ? {} : { flow }),
    ...(attr.length === 0 ? {} : { attrs: attr.map(filterOf) }),
    ...(from === undefined ? {} : { from: timeOption(from, "--from", host, true) }),
    ...(to === undefined ? {} : { to: timeOption(to, "--to", host, true) }),
  };
}

function filterOf(text: string): AttributeFilter {
  const [, name, op, value] = /^([A-Za-z0-9_-]+)(<=|>=|!=|\^=|=|<|>)(.*)$/s.exec(text) ?? [];
  if (name === undefined) {
    throw new MailerError("usage", `--attr ${text}: expected a name, one of = != < <= > >= ^=, and a value`);
  }
  return { name, op: op === "^=" ? "prefix" : op as AttributeFilter["op"], value: value! };
}

async function bulk(call: Call): Promise<ExitCode> {
  const { flags: { dryRun, all, limit }, host } = call, action = await bulkAction(call);
  const result = await changing(call, "all", (client) =>
    client.bulk(queryOf(call), action, {
      dryRun: dryRun === true,
      all: all === true,
      ...(limit === undefined ? {} : { limit: countOption(limit, "--limit") }),
    }));
  const { matched, done, skipped, failed, failures } = result;
  call.print(
    result,
    () =>
      `${matched} fit: ${
        dryRun === true ? `${done} to be done` : `${done} done`
      }, ${skipped} skipped, ${failed} failed\n`,
  );
  for (const { id, message } of call.isJson ? [] : failures) host.stderr.write(`${id}: ${message}\n`);
  return failed === 0 ? EXIT.done : EXIT.failed;
}

async function bulkAction({ args: [what, name], flags, host }: Call): Promise<BulkAction> {
  const { reason, payload, node, id } = flags;
  if (what !== "signal" && name !== undefined) throw new MailerError("usage", `bulk ${what} takes no name`);
  switch (what) {
    case "cancel":
      return { do: what, ...(reason === undefined ? {} : { reason }) };
    case "archive":
    case "delete":
      return { do: what };
    case "rerun":
      if (node === undefined) throw new MailerError("usage", "bulk rerun needs --node");
      return { do: what, node };
    case "signal":
      if (name === undefined) throw new MailerError("usage", "bulk signal needs the name of a signal");
      return {
        do: what,
        name,
        ...(payload === undefined ? {} : { payload: await jsonOption(payload, "--payload", host) }),
        ...(id === undefined ? {} : { id }),
      };
    default:
      throw new MailerError("usage", `bulk does not know "${what}"`, {
        hint: "it does cancel, signal, rerun, archive and delete",
      });
  }
}
