/**
 * `mailer version`.
 *
 * @module
 */
import project from "../../deno.json" with { type: "json" };
import type { Command } from "./command.ts";
import { EXIT } from "./exit_code.ts";

/** The versions of Mailer and of what it runs on. */
export const version: Command = ({ flags }, host) => {
  const { deno, v8 } = Deno.version;
  const versions = { mailer: project.version, deno, v8 };
  host.stdout.write(
    flags.json === true
      ? `${JSON.stringify(versions)}\n`
      : `mailer ${versions.mailer} (deno ${deno}, v8 ${v8})\n`,
  );
  return EXIT.done;
};
