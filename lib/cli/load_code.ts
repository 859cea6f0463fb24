/**
 * Finds the code that a document's `ref` names.
 *
 * C1 Code the program carries comes first, under the ref as it is written.
 * C2 A compiled binary runs only what it carries, and says what that is.
 *
 * @module
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { asError, MailerError } from "../errors.ts";
import type { CodeRef } from "../workflow/blocks.ts";
import type { LoadCode } from "../workflow/registry.ts";
import { didYouMean } from "../workflow/suggest.ts";

/** What code can be found. */
export interface CodeSources {
  /** Code by `name` or `./module.ts#name`. */
  readonly carried: Readonly<Record<string, unknown>>;
  /** Whether the program is a compiled binary, which can load no modules. */
  readonly isStandalone: boolean;
}

/** Makes the function that finds code. */
export function codeLoader({ carried, isStandalone }: CodeSources): LoadCode {
  const names = Object.keys(carried);
  return async (ref, { folder }) => {
    const { module, name } = ref;
    const written = refText(ref);
    if (Object.hasOwn(carried, written)) return carried[written];
    if (module === undefined) {
      throw new MailerError("unknown_ref", `no code is registered under the name "${name}"`, {
        hint: didYouMean(name, names) ?? `name a module: ref: ./my_code.ts#${name}`,
      });
    }
    if (isStandalone) {
      throw new MailerError("ref_not_carried", `this binary does not carry the code "${written}"`, {
        hint: names.length === 0
          ? "it carries none: run the workflow with deno, or compile a binary that registers it"
          : `it carries: ${names.join(", ")}`,
      });
    }
    return exportOf(await load(module, written, folder), name, written);
  };
}

/** A ref as it stands in a document. */
function refText({ module, name }: CodeRef): string {
  return module === undefined ? name : `${module}#${name}`;
}

async function load(module: string, written: string, folder: string): Promise<Record<string, unknown>> {
  const isPath = /^(\.{0,2}\/|[A-Za-z]:[\\/])/.test(module);
  const url = isPath ? pathToFileURL(resolve(folder, module)).href : module;
  try {
    return await import(url);
  } catch (cause) {
    throw new MailerError("ref_failed", `cannot load the code "${written}": ${asError(cause).message}`, {
      cause,
    });
  }
}

function exportOf(loaded: Record<string, unknown>, name: string, written: string): unknown {
  if (Object.hasOwn(loaded, name)) return loaded[name];
  const names = Object.keys(loaded);
  throw new MailerError("unknown_ref", `the module of "${written}" does not export "${name}"`, {
    hint: didYouMean(name, names) ?? "export it by that name",
  });
}
