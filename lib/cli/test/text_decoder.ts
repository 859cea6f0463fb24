/**
 * Decodes the `text` entries of a test as the workflow's source would.
 *
 * @module
 */
import {
  bytesFormat,
  checkedTextOptions,
  type CsvType,
  decodeColumns,
  type DecodedColumns,
  type Decoder,
  jsonFormat,
  stringFormat,
  type TextFormat,
  type TextOptions,
  textReader,
} from "../../format/mod.ts";
import type { CsvBlock, Encoding, SourceSpec } from "../../workflow/mod.ts";

/** Decodes the texts of one split, in order; undefined for one that is no record, such as a header or a blank line. */
export type DecodeText = (text: string) => DecodedColumns | undefined;

/** What decodes the texts of one split of a source. */
export function textDecoder(spec: SourceSpec): DecodeText {
  switch (spec.type) {
    case "file": {
      const { format, csv, maxLineBytes, deserialize } = spec.file;
      return lineDecoder(lineOptions(deserialize === "json" ? format : "lines", csv, maxLineBytes));
    }
    case "stdin":
      return lineDecoder(lineOptions(spec.stdin.format, spec.stdin.csv, spec.stdin.maxLineBytes));
    case "kafka":
      // Avro is no text: what stands in a test is the JSON of its value.
      return messageDecoder(decoderOf(spec.kafka.deserialize === "avro" ? "json" : spec.kafka.deserialize));
    case "slice":
    case "generator":
      return messageDecoder(decoderOf("json"));
  }
}

function lineOptions(
  format: TextFormat,
  { types, delimiter, nulls }: CsvBlock,
  maxLineBytes: number,
): TextOptions {
  if (format !== "csv") return { format, maxLineBytes };
  const typed = Object.entries(types).filter((entry): entry is [string, CsvType] => entry[1] !== "text");
  return { format, maxLineBytes, csv: { types: Object.fromEntries(typed), delimiter, nulls } };
}

function lineDecoder(options: TextOptions): DecodeText {
  const reader = textReader(checkedTextOptions(options));
  const encoder = new TextEncoder();
  return (text) => {
    reader.push(encoder.encode(`${text}\n`));
    return reader.next(Infinity);
  };
}

function messageDecoder(decoder: Decoder): DecodeText {
  let offset = 0;
  return (text) => decodeColumns(decoder, [text], offset++);
}

function decoderOf(encoding: Encoding): Decoder {
  switch (encoding) {
    case "json":
      return jsonFormat().decoder();
    case "string":
      return stringFormat().decoder();
    case "bytes":
      return bytesFormat().decoder();
  }
}
