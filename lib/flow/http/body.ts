/**
 * Bodies of calls: JSON in UTF-8, of bounded size and depth.
 *
 * B1 Nothing else is read: neither another content type, which a page of another site could send without asking, nor what is larger
 *    or nested deeper than allowed.
 * B2 No digit is lost: integers beyond 2^53 come and go as they were written.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import { type Fields, isObject } from "../fold/fields.ts";

/** Most bytes of a body. */
export const LARGEST_BODY = 4 * 1024 * 1024;
/** Deepest nesting of a body: what is deeper could not be written out again. */
export const DEEPEST_BODY = 500;

/**
 * The object a body holds; an empty body is an empty object.
 *
 * @throws {MailerError} `wrong_content_type`; `too_large`; `not_json`; `too_deep`; `invalid_argument`.
 */
export async function readBody(request: Request): Promise<Fields> {
  const type = request.headers.get("content-type");
  if (type === null || !/^application\/json(\s*;\s*charset="?utf-8"?)?\s*$/i.test(type)) {
    throw new MailerError("wrong_content_type", `a body is application/json, not ${JSON.stringify(type)}`, {
      hint: "send the header content-type: application/json",
    });
  }
  const text = decoded(await bytesOf(request));
  if (text.trim() === "") return {};
  checkDepth(text);
  const value = parseJson(text);
  if (isObject(value)) return value;
  throw new MailerError("invalid_argument", "the body is no JSON object");
}

async function bytesOf(request: Request): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > LARGEST_BODY) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > LARGEST_BODY) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new MailerError("not_json", "the body is not UTF-8 text", { cause });
  }
}

/** Looks at brackets outside of texts only: whether it is JSON at all is found out later. */
function checkDepth(text: string): void {
  let depth = 0, isText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === 92) at++; // a backslash takes the next character with it
      else if (code === 34) isText = false;
    } else if (code === 34) isText = true;
    else if (code === 91 || code === 123) {
      if (++depth > DEEPEST_BODY) {
        throw new MailerError("too_deep", `the body is nested deeper than ${DEEPEST_BODY}`);
      }
    } else if (code === 93 || code === 125) depth--;
  }
}

function tooLarge(): MailerError {
  return new MailerError("too_large", `a body has at most ${LARGEST_BODY} bytes`, {
    hint: "store what it holds elsewhere, and name it here",
  });
}
