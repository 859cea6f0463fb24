/**
 * `mailer txn`.
 *
 * @module
 */
import { formatDuration } from "../duration.ts";
import { asError, MailerError } from "../errors.ts";
import { silentLogger } from "../log.ts";
import { connectorTypes, type ListedTransaction, type TransactionDesk } from "../workflow/registry.ts";
import type { Command } from "./command.ts";
import { printProblems, readWorkflow } from "./documents.ts";
import { errorText } from "./error_text.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit_code.ts";

/** Lists or aborts transactions on the clusters that a workflow talks to. */
export const txn: Command = async ({ args, flags }, host) => {
  const [action, file, id, ...more] = args, isJson = flags.json === true;
  if (action !== "ls" && action !== "abort") {
    throw new MailerError("usage", `mailer txn has no "${action}"`, { hint: "it has ls and abort" });
  }
  if ((action === "abort") !== (id !== undefined) || more.length > 0) {
    const hint = "mailer txn ls FILE, mailer txn abort FILE ID";
    throw new MailerError("usage", action === "abort" ? "abort takes one ID" : `ls takes no "${id}"`, {
      hint,
    });
  }
  const { spec, problems, folder, mask } = await readWorkflow(file!, host);
  if (spec === undefined) {
    printProblems(problems, isJson ? "json" : "text", isJson ? host.stdout : host.stderr);
    return EXIT.usage;
  }
  const { clock } = host, print = (text: string): void => host.stdout.write(mask(`${text}\n`));
  let desks: readonly TransactionDesk[] = [];
  try {
    const connectors = await host.connectors(connectorTypes([spec]));
    desks = connectors.transactions?.(spec, { folder, workflow: spec.name, clock, logger: silentLogger }) ??
      [];
    if (desks.length === 0) {
      throw new MailerError("no_transactions", `workflow "${spec.name}" talks to no Kafka`);
    }
    if (action === "abort") return await abort(desks, id!, print);
    for (const desk of desks) {
      const listed = (await desk.list()).filter(({ isOpen, isOwn }) => isOpen || isOwn);
      for (const one of listed) {
        print(isJson ? JSON.stringify({ cluster: desk.cluster, ...one }) : line(one, clock.now()));
      }
      if (listed.length === 0 && !isJson) {
        print(`${desk.cluster}: no open transaction, and none of this workflow`);
      }
    }
    return EXIT.done;
  } catch (error) {
    host.stderr.write(errorText(error, { mask, detail: flags.debug === true ? "stack" : "message" }));
    return exitCodeOf(error);
  } finally {
    for (const desk of desks) await desk.close();
  }
};

async function abort(
  desks: readonly TransactionDesk[],
  id: string,
  print: (text: string) => void,
): Promise<ExitCode> {
  const failures: string[] = [];
  for (const desk of desks) {
    try {
      const found = (await desk.list()).find((one) => one.id === id);
      if (found === undefined) {
        failures.push(`${desk.cluster} has no transaction "${id}"`);
        continue;
      }
      if (!found.isOpen) failures.push(`"${id}" is not open on ${desk.cluster}: ${found.state}`);
      else {
        await desk.abort(id);
        print(`aborted: ${id} on ${desk.cluster}`);
        return EXIT.done;
      }
    } catch (error) {
      failures.push(`${desk.cluster}: ${asError(error).message}`);
    }
  }
  throw new MailerError("no_such_transaction", failures.join("; "), {
    hint: "mailer txn ls FILE lists them",
  });
}

function line({ id, state, isOwn, startedAt, timeoutMs, writesTo }: ListedTransaction, now: number): string {
  const parts = [state];
  if (startedAt !== undefined) {
    parts.push(`open for ${formatDuration(Math.max(0, Math.round(now - startedAt)))}`);
  }
  parts.push(`given up after ${formatDuration(timeoutMs)}`);
  if (writesTo.length > 0) parts.push(`writes to ${writesTo.join(", ")}`);
  return `${id}${isOwn ? " (of this workflow)" : ""}: ${parts.join(", ")}`;
}
