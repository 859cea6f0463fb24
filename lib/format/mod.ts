/**
 * Formats of records (json, string, bytes, csv), and readers that cut a stream of bytes into records.
 *
 * @module
 */
export type {
  Decoded,
  DecodedColumns,
  DecodeFailure,
  Decoder,
  Encoder,
  Format,
  Payload,
  PrepareContext,
} from "./format.ts";
export { decodeColumns } from "./format.ts";
export { encodeJson, jsonFormat } from "./json.ts";
export { stringFormat } from "./string.ts";
export { bytesFormat } from "./bytes.ts";
export { csvFormat, type CsvFormatOptions } from "./csv.ts";
export type { CsvOptions, CsvRow, CsvType } from "./csv_rows.ts";
export {
  type CheckedTextOptions,
  checkedTextOptions,
  type TextFormat,
  type TextOptions,
  type TextPosition,
  type TextRead,
  type TextReader,
  textReader,
} from "./text_reader.ts";
export { preparedFormat, readyDecoder, readyEncoder } from "./prepare.ts";
export { encodeBatch, lineLength, linesOf } from "./encode_batch.ts";
