/**
 * What goes wrong with a server, and what that means for the rows under way.
 *
 * D1 `transient`: the same may go well in a moment. `row`: it lies in one of the rows that were sent. `lasting`: neither.
 * D2 A `lost` session is of no use any more; what became of a COMMIT under way is not known.
 * D3 No message, hint or cause has the password: nothing of a connection URL but server, database and user comes into one.
 *
 * @module
 */
import { asError, MailerError } from "../../lib/errors.ts";

/** D1. */
export type DatabaseErrorKind = "transient" | "row" | "lasting";

/** An error that the server, or the way to it, gave. */
export class DatabaseError extends MailerError {
  /** What may be done about it. */
  readonly kind: DatabaseErrorKind;
  /** D2. */
  readonly isLost: boolean;
  /** The server's five characters; undefined where it has said nothing. */
  readonly state: string | undefined;

  /** Its code is for policies and dead letters, its state for people who know Postgres. */
  constructor(
    code: string,
    message: string,
    options: {
      readonly kind: DatabaseErrorKind;
      readonly isLost?: boolean;
      readonly state?: string;
      readonly hint?: string;
      readonly cause?: unknown;
    },
  ) {
    const { kind, isLost = false, state, hint, cause } = options;
    // Of statements that are not understood or not allowed, and of logins.
    const lasting = kind === "lasting" && /^(?:28|3D|42)/.test(state ?? "");
    super(code, message, { cause, lasting, ...(hint === undefined ? {} : { hint }) });
    this.kind = kind;
    this.isLost = isLost;
    this.state = state;
  }
}

/** Whether it lies in one of the rows that were sent. */
export function isOfRow(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.kind === "row";
}

/** Whether the same may go well in a moment. */
export function isTransient(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.kind === "transient";
}

/** Whether the session is gone. */
export function isLost(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.isLost;
}

/** Whether the transaction is to be begun anew: it was in a deadlock, or ran against another one. */
export function isRolledBack(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && (error.state?.startsWith("40") ?? false);
}

/** The connection is gone, or was not there. */
export function connectionLost(server: string, cause: unknown): DatabaseError {
  return new DatabaseError("postgres_connection", `postgres at ${server}: ${asError(cause).message}`, {
    kind: "transient",
    isLost: true,
    cause,
    hint: "see that the server runs and can be reached from here",
  });
}

/** No answer in time. @param ms How long it was given. */
export function timedOut(server: string, what: string, ms: number): DatabaseError {
  return new DatabaseError("postgres_timeout", `postgres at ${server}: ${what} took longer than ${ms} ms`, {
    kind: "transient",
    isLost: true,
    hint: "a lock or the network holds it up; or raise queryTimeout",
  });
}

/** What the server's own errors have. */
interface ServerError extends Error {
  readonly code: string;
  readonly severity: string;
  readonly detail?: string;
  readonly hint?: string;
}

function isServerError(error: unknown): error is ServerError {
  return error instanceof Error && "severity" in error && "code" in error && typeof error.code === "string";
}

/** Anything the client throws. What Deno refuses stays as it is. */
export function databaseError(server: string, thrown: unknown): Error {
  if (thrown instanceof MailerError || thrown instanceof Deno.errors.NotCapable) return thrown;
  if (!isServerError(thrown)) return connectionLost(server, thrown);
  const { code: state, message, detail } = thrown, kind = kindOf(state);
  const hint = HINTS[state] ?? thrown.hint;
  return new DatabaseError(
    codeFor(state, kind),
    `postgres at ${server}: ${message}${detail === undefined ? "" : ` (${detail})`} [${state}]`,
    { kind, isLost: isEndOfSession(state), state, cause: thrown, ...(hint === undefined ? {} : { hint }) },
  );
}

const HINTS: Readonly<Record<string, string>> = {
  "28P01": "check the user and the password in dsn",
  "28000": "check the user in dsn, and what pg_hba.conf of the server allows",
  "3D000": "check the name of the database in dsn, or create it",
  "42501": "grant the user of dsn what is missing",
  "42P01": "the table was there when the run began: put it back",
  "53100": "make room on the disk of the server",
  "53300": "raise max_connections of the server, or use fewer connections",
};

/** The session ends with these. */
function isEndOfSession(state: string): boolean {
  return state.startsWith("08") || /^57P0[1-5]$/.test(state) || state === "25P03";
}

const TRANSIENT: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "55006", "57014"]);
const OF_ROW: ReadonlySet<string> = new Set(["21000", "44000", "54000", "P0001"]);

function kindOf(state: string): DatabaseErrorKind {
  const group = state.slice(0, 2);
  if (isEndOfSession(state) || group === "53" || TRANSIENT.has(state)) return "transient";
  return group === "22" || group === "23" || OF_ROW.has(state) ? "row" : "lasting";
}

function codeFor(state: string, kind: DatabaseErrorKind): string {
  if (state.startsWith("23") || state === "44000") return "constraint_violation";
  if (kind === "row") return state.startsWith("22") ? "invalid_value" : "row_refused";
  if (isEndOfSession(state)) return "postgres_connection";
  return state === "57014" ? "postgres_timeout" : "postgres_error";
}
