/**
 * `mailer flow`: its actions by name. What one needs is loaded when it is called.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { nearest } from "../../expr/mod.ts";
import type { Command } from "../command.ts";

const ACTIONS: Readonly<Record<string, () => Promise<Command>>> = {
  validate: async () => (await import("./validate.ts")).validate,
  test: async () => (await import("./test.ts")).test,
};

/** Everything about flows. */
export const flow: Command = async ({ args: [action, ...args], flags }, host) => {
  const load = Object.hasOwn(ACTIONS, action!) ? ACTIONS[action!] : undefined;
  if (load === undefined) {
    const near = nearest(action!, Object.keys(ACTIONS));
    throw new MailerError("usage", `mailer flow has no "${action}"`, {
      hint: near === undefined ? `it has ${Object.keys(ACTIONS).join(", ")}` : `did you mean "${near}"?`,
    });
  }
  return await (await load())({ args, flags }, host);
};
