/**
 * `mailer savepoint`.
 *
 * @module
 */
import { labelOf } from "../../checkpoint/manifest.ts";
import { MailerError } from "../../errors.ts";
import type { Command } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import { list } from "./list.ts";
import { actionOf, nothingKept, type Opened, withCheckpoints } from "./open.ts";
import { ageText, removedText } from "./text.ts";

const ACTIONS = ["ls", "create", "rm"] as const;

/** Lists, creates or removes savepoints. */
export const savepoint: Command = async ({ args, flags }, host) => {
  const [given, file, ...names] = args;
  const action = actionOf(given!, ACTIONS, "savepoint");
  const hasWrongCount = action === "ls"
    ? names.length > 0
    : action === "create"
    ? names.length !== 1
    : names.length === 0;
  if (hasWrongCount) {
    const takes = { ls: "no names", create: "one name", rm: "the names of savepoints" }[action];
    throw new MailerError("usage", `${action} takes ${takes}`, {
      hint: "mailer savepoint --help shows how it is called",
    });
  }
  return await withCheckpoints(file!, flags, host, (opened) => {
    switch (action) {
      case "ls":
        return list(opened, ({ kind }) => kind === "savepoint");
      case "create":
        return create(opened, names[0]!);
      case "rm":
        return remove(opened, names);
    }
  });
};

async function create(opened: Opened, name: string): Promise<ExitCode> {
  const { checkpoints, flags, host, print, say } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const { savepoint: { number, takenAt }, passedOver } = await checkpoints.createSavepoint(name);
  for (const { found, why } of passedOver) say(`passed over ${labelOf(found)}: ${why}`);
  print(
    flags.json === true
      ? `${JSON.stringify({ created: name, number })}\n`
      : `created savepoint "${name}" of checkpoint ${number}, taken ${ageText(host.clock.now() - takenAt)}\n`,
  );
  return EXIT.done;
}

async function remove(opened: Opened, names: readonly string[]): Promise<ExitCode> {
  const { checkpoints, flags, print } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const { runs } = await checkpoints.removeSavepoints(names);
  print(
    flags.json === true
      ? `${JSON.stringify({ removed: names, runs })}\n`
      : removedText(names.map((name) => `savepoint "${name}"`), runs),
  );
  return EXIT.done;
}
