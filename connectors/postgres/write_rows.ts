/**
 * Writes rows so that those the server refuses are found and the others written.
 *
 * B1 A statement that is refused because of a row has written nothing. Its rows are tried again in two halves, and so on, until those
 *    that are refused stand alone. Rows stay in their order.
 * B2 Whatever else goes wrong ends it; what had been done by then stays done.
 *
 * @module
 */
import { type DatabaseError, isOfRow } from "./database_error.ts";
import type { Rows } from "./rows.ts";

/**
 * @param attempt Writes the rows from one number to another, all or none.
 * @param refused Called with the number of a row that the server refuses.
 */
export async function writeRows(
  rows: Rows,
  attempt: (from: number, to: number) => Promise<void>,
  refused: (row: number, error: DatabaseError) => void,
): Promise<void> {
  const part = async (from: number, to: number): Promise<void> => {
    try {
      await attempt(from, to);
    } catch (error) {
      if (!isOfRow(error)) throw error;
      if (to - from > 1) {
        const middle = (from + to) >> 1;
        await part(from, middle);
        return await part(middle, to);
      }
      refused(from, error);
    }
    rows.done = to;
  };
  if (rows.left > 0) await part(rows.done, rows.length);
}
