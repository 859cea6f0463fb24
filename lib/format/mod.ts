/**
 * Formats of records: json, string, bytes, csv; and readers that cut files into records.
 *
 * @module
 */
export type { Decoded, DecodedColumns, DecodeFailure, Decoder, Encoder, Format, Payload } from "./format.ts";
export { decodeColumns } from "./format.ts";
export { encodeJson, jsonFormat } from "./json.ts";
