/**
 * `mailer checkpoints`.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Command } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import { factsOf, type Verdict } from "../../checkpoint/inspect.ts";
import { labelOf } from "../../checkpoint/manifest.ts";
import type { FoundManifest } from "../../checkpoint/manifest.ts";
import { list } from "./list.ts";
import { actionOf, nothingKept, nothingToSay, type Opened, withCheckpoints } from "./open.ts";
import { show } from "./show.ts";
import { countedText, removedText } from "./text.ts";

const ACTIONS = ["ls", "show", "verify", "rm"] as const;

/** Lists, shows, verifies or removes checkpoints. */
export const checkpoints: Command = async ({ args, flags }, host) => {
  const [given, file, ...which] = args;
  const action = actionOf(given!, ACTIONS, "checkpoints");
  checkArguments(action, which);
  return await withCheckpoints(file!, flags, host, (opened) => {
    switch (action) {
      case "ls":
        return list(opened, () => true);
      case "show":
        return show(opened, which[0]!);
      case "verify":
        return verify(opened, which);
      case "rm":
        return remove(opened, which.map(Number));
    }
  });
};

function checkArguments(action: typeof ACTIONS[number], which: readonly string[]): void {
  const usage = (message: string, hint: string): MailerError => new MailerError("usage", message, { hint });
  if (action === "ls" && which.length > 0) {
    throw usage(`ls takes no ${which[0]}`, `mailer checkpoints show FILE ${which[0]} shows one`);
  }
  if (action === "show" && which.length !== 1) {
    throw usage(
      "show takes the number of a checkpoint, or the name of a savepoint",
      "mailer checkpoints ls FILE lists them",
    );
  }
  if (action !== "rm") return;
  if (which.length === 0) {
    throw usage("rm takes the numbers of checkpoints", "mailer checkpoints ls FILE lists them");
  }
  const name = which.find((one) => !/^\d+$/.test(one));
  if (name !== undefined) {
    throw usage(
      `rm takes the numbers of checkpoints, not "${name}"`,
      `mailer savepoint rm FILE ${name} removes a savepoint`,
    );
  }
}

async function verify(opened: Opened, which: readonly string[]): Promise<ExitCode> {
  const { checkpoints, flags, print } = opened;
  if (checkpoints === undefined) {
    if (which.length > 0) throw nothingKept(opened);
    return nothingToSay(opened);
  }
  const all: FoundManifest[] = which.length === 0 ? await checkpoints.list() : [];
  for (const one of which) all.push(await checkpoints.find(one));
  if (all.length === 0) return nothingToSay(opened);
  let isDamaged = false;
  for (const found of all) {
    const verdict = await checkpoints.verify(found);
    isDamaged ||= verdict.damage.length > 0;
    print(flags.json === true ? verdictJson(verdict) : verdictText(verdict));
  }
  return isDamaged ? EXIT.failed : EXIT.done;
}

function verdictText({ found, damage, runs, pages }: Verdict): string {
  const size = `${countedText(pages, "page")} in ${countedText(runs, "run")}`;
  if (damage.length === 0) return `${labelOf(found)}: OK${pages === 0 ? "" : `, ${size}`}\n`;
  return `${labelOf(found)}: damaged\n${damage.map((one) => `  ${one}\n`).join("")}`;
}

function verdictJson({ found, damage, runs, pages }: Verdict): string {
  const { kind, number, name } = factsOf(found);
  return `${JSON.stringify({ kind, number, name, ok: damage.length === 0, runs, pages, damage })}\n`;
}

async function remove(opened: Opened, numbers: readonly number[]): Promise<ExitCode> {
  const { checkpoints, flags, print } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const { runs } = await checkpoints.removeCheckpoints(numbers, flags.force === true);
  print(
    flags.json === true
      ? `${JSON.stringify({ removed: numbers, runs })}\n`
      : removedText(numbers.map((number) => `checkpoint ${number}`), runs),
  );
  return EXIT.done;
}
