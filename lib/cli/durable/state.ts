/**
 * `mailer state`.
 *
 * @module
 */
import { reasonToPassOver } from "../../checkpoint/recovery.ts";
import { labelOf, sectionBytes } from "../../checkpoint/manifest.ts";
import { type HeldState, spacesOf, stateOf, stateOfKey } from "../../checkpoint/inspect_state.ts";
import { asError, codeOf, MailerError } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import type { Command } from "../command.ts";
import { EXIT, type ExitCode } from "../exit_code.ts";
import { nothingKept, type Opened, withCheckpoints } from "./open.ts";
import { ageText, bytesText, type Column, isoTime, tableText, valueJson } from "./text.ts";

const SPACES: readonly Column[] = [
  { title: "space" },
  { title: "tables", align: "right" },
  { title: "keys", align: "right" },
];

/** Shows what a checkpoint holds of a key, or which keys an operator has. */
export const state: Command = async ({ args, flags }, host) => {
  const [file, operator, key] = args;
  return await withCheckpoints(file!, flags, host, async (opened) => {
    try {
      return await (key === undefined ? spaces(opened, operator!) : ofKey(opened, operator!, key));
    } catch (error) {
      if (reasonToPassOver(error) === undefined) throw error;
      throw new MailerError(codeOf(error), asError(error).message, {
        cause: error,
        hint: "--at NUMBER looks into another checkpoint; mailer checkpoints verify says which are whole",
      });
    }
  });
};

async function spaces(opened: Opened, operator: string): Promise<ExitCode> {
  const { checkpoints, flags, host, print } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const manifest = await checkpoints.manifest(flags.at);
  const { section } = stateOf(manifest, operator), facts = spacesOf(section);
  if (flags.json === true) {
    for (const one of facts) print(`${JSON.stringify(one)}\n`);
    return EXIT.done;
  }
  const age = ageText(host.clock.now() - manifest.takenAt);
  print(
    `${operator}: ${bytesText(sectionBytes(section))} of state in ${labelOf(manifest)}, taken ${age}\n\n`,
  );
  print(tableText(
    SPACES,
    facts.map(({ space, kind, tables, keys }) => [
      kind === "queue" ? `${space} (queue)` : space,
      String(tables),
      String(keys),
    ]),
  ));
  return EXIT.done;
}

async function ofKey(opened: Opened, operator: string, text: string): Promise<ExitCode> {
  const { checkpoints, flags, host, print, say } = opened;
  if (checkpoints === undefined) throw nothingKept(opened);
  const manifest = await checkpoints.manifest(flags.at), own = stateOf(manifest, operator);
  const key = keyOf(text), held = await stateOfKey(operator, own, key, checkpoints.pages);
  for (const one of held) print(heldJson(one));
  if (flags.json === true) return EXIT.done;
  const taken = `${labelOf(manifest)}, taken ${ageText(host.clock.now() - manifest.takenAt)}`;
  if (held.length > 0) say(`from ${taken}`);
  else {
    say(`${taken}, holds nothing of key ${valueJson(key)}`);
    if (typeof key !== "string") say(`hint: it was read as JSON; the text is '${JSON.stringify(text)}'`);
  }
  return EXIT.done;
}

/** A key is JSON; what is not JSON is a text. */
function keyOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (codeOf(error) !== "not_json") throw error;
    return text;
  }
}

function heldJson({ space, order, value, expires }: HeldState): string {
  const time = expires === undefined ? {} : { expires: isoTime(expires) ?? expires };
  return `${valueJson({ space, order, value, ...time })}\n`;
}
