/**
 * `mailer flow`: its actions by name. What one needs is loaded when it is called.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { nearest } from "../../expr/mod.ts";
import type { Command, Flags } from "../command.ts";
import { type Action, FLOW_ACTIONS, FLOW_OPTIONS, type FlowFlags } from "./options.ts";

const LOADED: Readonly<Record<string, () => Promise<Command>>> = {
  new: async () => (await import("./pages.ts")).newFlow,
  validate: async () => (await import("./validate.ts")).validate,
  test: async () => (await import("./test.ts")).test,
  schema: async () => (await import("./pages.ts")).schema,
  reference: async () => (await import("./pages.ts")).reference,
  run: async () => (await import("./run.ts")).run,
};

/** Everything about flows. */
export const flow: Command = async ({ args: [name, ...args], flags }, host) => {
  const action = Object.hasOwn(FLOW_ACTIONS, name!) ? FLOW_ACTIONS[name!] : undefined;
  if (action === undefined) {
    const names = Object.keys(FLOW_ACTIONS), near = nearest(name!, names);
    throw new MailerError("usage", `mailer flow has no "${name}"`, {
      hint: near === undefined ? `it has ${names.join(", ")}` : `did you mean "${near}"?`,
    });
  }
  checkCall(name!, action, args, flags);
  const load = LOADED[name!] ?? (async () => (await import("./verbs.ts")).verb(name!));
  try {
    return await (await load())({ args, flags }, host);
  } catch (error) {
    // Whoever typed the call can mend it.
    if (!(error instanceof MailerError) || error.code !== "invalid_argument") throw error;
    const { message, hint } = error;
    throw new MailerError("usage", message, { cause: error, ...(hint === undefined ? {} : { hint }) });
  }
};

/** Refuses a call that asks for more, or less, than the action takes. */
function checkCall(
  name: string,
  { usage, args: [least, most], flags: own }: Action,
  args: readonly string[],
  flags: Flags,
): void {
  const call = `mailer flow ${name} ${usage}`.trimEnd();
  if (args.length < least || args.length > most) {
    const given = args.length === 0 ? "nothing" : args.map((arg) => JSON.stringify(arg)).join(" ");
    throw new MailerError("usage", `mailer flow ${name} was given ${given}`, {
      hint: `it is called as ${call}`,
    });
  }
  const known: readonly string[] = ["json", "debug", ...own];
  const odd = (Object.keys(flags) as (keyof FlowFlags)[]).find((flag) => !known.includes(flag));
  if (odd === undefined) return;
  const taken = own.map(flagText);
  throw new MailerError("usage", `mailer flow ${name} takes no ${flagText(odd)}`, {
    hint: taken.length === 0 ? "it takes no options but --json" : `it takes ${taken.join(", ")}`,
  });
}

/** `--data-dir` for `dataDir`. */
function flagText(name: string): string {
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return FLOW_OPTIONS.find(({ flags }) => flags.split(" ")[0] === flag)?.flags.split(" ")[0] ?? flag;
}
