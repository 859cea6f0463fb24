/**
 * What a key holds in session windows: its youngest session, mostly the only one, and with it the older ones. It is plain data,
 * changed in place.
 *
 * @module
 */
import type { Cell } from "../../state/log/mod.ts";

/** A session of a key. */
export interface Session {
  start: number;
  end: number;
  acc: unknown;
  /** Its end has passed, and its row has been given. */
  closed: boolean;
  /** Records since the last row, where a trigger counts them; else not 0. */
  fresh: number;
  /** Of the youngest session of a key: the others, the oldest first. */
  older: readonly Session[];
}

/** The sessions of a key that are not forgotten. They do not overlap. */
export type SessionCell = Cell<Session>;

/** No older sessions. */
export const NO_SESSIONS: readonly Session[] = Object.freeze([]);

/** The sessions of a key, the oldest first. */
export function sessionsOf({ value }: SessionCell): Session[] {
  return value.older.length === 0 ? [value] : [...value.older, value];
}

/** Makes a key have these sessions: at least one, none overlaps another. The cell has been touched. */
export function setSessions(cell: SessionCell, sessions: readonly Session[]): void {
  const older = sessions.toSorted((a, b) => a.start - b.start), youngest = older.pop()!;
  for (const session of older) session.older = NO_SESSIONS;
  youngest.older = older.length === 0 ? NO_SESSIONS : older;
  cell.value = youngest;
}

/** Whether a session is still there: neither forgotten nor merged into another. */
export function hasSession({ gone, value }: SessionCell, session: Session): boolean {
  return !gone && (value === session || value.older.includes(session));
}
