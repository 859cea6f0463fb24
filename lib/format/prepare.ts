/**
 * Formats that have to ask somebody before they can write or read: for connectors that wait for them, and for those that cannot.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import type { Decoder, Encoder, Format, PrepareContext } from "./format.ts";

/** A format whose encoder is ready: every call of `encoder` gives the same one. */
export async function preparedFormat<T>(format: Format<T>, context: PrepareContext): Promise<Format<T>> {
  const encoder = format.encoder();
  if (encoder.prepare === undefined) return format;
  await encoder.prepare(context);
  return { name: format.name, decoder: () => format.decoder(), encoder: () => encoder };
}

/**
 * An encoder, for a connector that prepares none.
 *
 * @param where The connector, in the message.
 * @throws {MailerError} `format_not_supported` where the format has to be prepared.
 */
export function readyEncoder(format: Format, where: string): Encoder {
  const encoder = format.encoder();
  if (encoder.prepare === undefined) return encoder;
  throw notSupported(format, where);
}

/** A decoder, likewise. @throws {MailerError} `format_not_supported` */
export function readyDecoder<T>(format: Format<T>, where: string): Decoder<T> {
  const decoder = format.decoder();
  if (decoder.prepare === undefined) return decoder;
  throw notSupported(format, where);
}

function notSupported({ name }: Format, where: string): MailerError {
  return new MailerError(
    "format_not_supported",
    `the ${where} does not work with the format ${name}, which has to ask a registry first`,
    { lasting: true, hint: "use the format json, or another connector, such as Kafka" },
  );
}
