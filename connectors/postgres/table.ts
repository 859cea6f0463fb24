/**
 * The table a sink writes to, as it is looked up when a run opens.
 *
 * T1 What the table lacks is found before the first row: the table, a column, the index an upsert needs, a right.
 * T2 Types are the table's. Each column travels as an array of its own type; lists, which arrays cannot hold as elements, as texts.
 * T3 Times travel as `timestamptz` and the server makes `timestamp` and `date` of them, in UTC (`session.ts`).
 *
 * @module
 */
import { asError, MailerError } from "../../lib/errors.ts";
import { type Getter, getter, parsePath } from "../../lib/path.ts";
import type { Batch } from "../../lib/record.ts";
import { DatabaseError } from "./database_error.ts";
import { type Literal, literalOf } from "./literals.ts";
import type { Dedupe, Rows } from "./rows.ts";
import type { Session } from "./session.ts";

/** What is to be written where. */
export interface Target {
  /** `table` or `schema.table`. */
  readonly table: string;
  /** Field path and column, in order. */
  readonly mapping: readonly (readonly [path: string, column: string])[];
  /** Columns that make a row the same; undefined: rows are added. */
  readonly conflictColumns: readonly string[] | undefined;
  /** Columns that are replaced in a row that is there. */
  readonly updateColumns: readonly string[];
}

/** A column, and where its values are. */
interface Column {
  readonly name: string;
  readonly path: string;
  readonly get: Getter;
  readonly type: string;
  readonly literal: Literal;
  /** Type of the elements it travels as. */
  readonly wire: string;
  /** What the server makes of them; empty where that is nothing. */
  readonly cast: string;
}

interface FoundColumn {
  readonly name: string;
  /** As it is written in a cast. */
  readonly type: string;
  readonly base: string;
  readonly isList: boolean;
  readonly isGenerated: boolean;
  readonly isIdentity: boolean;
}

const FIND_TABLE = `select c.oid::text as oid, c.oid::regclass::text as name from pg_class c
where c.oid = to_regclass($1) and c.relkind in ('r', 'p', 'v', 'f')`;

const FIND_LIKE = `select format('%s.%s', n.nspname, c.relname) as name from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'f') and lower(c.relname) = lower($1) and n.nspname !~ '^pg_' limit 3`;

const FIND_COLUMNS = `select a.attname as name, format_type(a.atttypid, -1) as type,
  a.attgenerated <> '' as generated, a.attidentity = 'a' as identity,
  base.typcategory = 'A' as list, coalesce(element.typname, base.typname) as base
from pg_attribute a
cross join lateral (
  with recursive down as (
    select t.* from pg_type t where t.oid = a.atttypid
    union all select t.* from pg_type t join down on t.oid = down.typbasetype
  )
  select * from down where typtype <> 'd'
) base
left join pg_type element on base.typcategory = 'A' and element.oid = base.typelem
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum`;

/** A table that was looked up. */
export class Table {
  /** For people: as the server names it. */
  readonly name: string;
  /** Writes rows, given an array of each column. */
  readonly statement: string;
  /** How rows of one key are made one; undefined for plain inserts. */
  readonly dedupe: Dedupe | undefined;
  readonly #columns: readonly Column[];
  readonly #scratch: string[];

  private constructor(name: string, columns: readonly Column[], target: Target) {
    this.name = name;
    this.#columns = columns;
    this.#scratch = columns.map(() => "");
    this.statement = statementOf(columns, target);
    this.dedupe = dedupeOf(columns, target);
  }

  /**
   * T1.
   *
   * @throws {MailerError} `no_table`, `no_column`, `generated_column`, `no_unique_index`, `postgres_error`
   */
  static async lookUp(session: Session, target: Target): Promise<Table> {
    const { oid, name } = await findTable(session, target.table);
    const found = new Map<string, FoundColumn>();
    for (const row of (await session.query(FIND_COLUMNS, [oid])).rows) {
      found.set(String(row["name"]), {
        name: String(row["name"]),
        type: String(row["type"]),
        base: String(row["base"]),
        isList: row["list"] === true,
        isGenerated: row["generated"] === true,
        isIdentity: row["identity"] === true,
      });
    }
    const columns = target.mapping.map(([path, column]) => columnOf(name, path, column, found));
    const table = new Table(name, columns, target);
    await table.#check(session, target);
    return table;
  }

  /** Number of columns that are written. */
  get width(): number {
    return this.#columns.length;
  }

  /**
   * Adds the row of a record.
   *
   * @throws {MailerError} `invalid_value`, `not_an_object`; then nothing was added.
   */
  add(rows: Rows, batch: Batch, index: number): void {
    const value = batch.values[index];
    if (typeof value !== "object" || value === null) {
      throw new MailerError("not_an_object", `table "${this.name}": the record is no object with fields`);
    }
    for (let i = 0; i < this.#columns.length; i++) {
      const column = this.#columns[i]!;
      try {
        this.#scratch[i] = column.literal(column.get(value));
      } catch (error) {
        throw new MailerError(
          "invalid_value",
          `column "${column.name}" (${column.type}) of table "${this.name}", field "${column.path}": ${
            asError(error).message
          }`,
          { cause: error },
        );
      }
    }
    rows.add(this.#scratch, batch, index);
  }

  /** Lets the server plan the statement: finds a missing index or right, and writes nothing. */
  async #check(session: Session, { conflictColumns = [] }: Target): Promise<void> {
    const empty = this.statement.replace(/\$\d+::/g, "'{}'::");
    try {
      await session.query(`explain ${empty}`);
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.state !== "42P10") throw error;
      const list = conflictColumns.map(ident).join(", ");
      throw new MailerError(
        "no_unique_index",
        `table "${this.name}" has no unique index on (${list}), which mode upsert needs`,
        { cause: error, lasting: true, hint: `create unique index on ${this.name} (${list})` },
      );
    }
  }
}

async function findTable(session: Session, table: string): Promise<{ oid: string; name: string }> {
  const { rows: [row] } = await session.query(FIND_TABLE, [qualified(table)]);
  if (row !== undefined) return { oid: String(row["oid"]), name: String(row["name"]) };
  const like = await session.query(FIND_LIKE, [table.split(".").at(-1)!]);
  const names = like.rows.map(({ name }) => `"${name}"`).join(", ");
  throw new MailerError("no_table", `there is no table "${table}" in the database`, {
    lasting: true,
    hint: names === ""
      ? "create it, or correct table or dsn"
      : `there is ${names}: names count with their case, and other schemas than those of search_path are named`,
  });
}

function columnOf(
  table: string,
  path: string,
  name: string,
  columns: ReadonlyMap<string, FoundColumn>,
): Column {
  const found = columns.get(name);
  if (found === undefined) {
    throw new MailerError("no_column", `table "${table}" has no column "${name}"`, {
      lasting: true,
      hint: `it has: ${[...columns.keys()].join(", ")}`,
    });
  }
  if (found.isGenerated || found.isIdentity) {
    const how = found.isGenerated ? "is generated" : "is an identity that is always generated";
    throw new MailerError("generated_column", `column "${name}" of table "${table}" ${how}`, {
      lasting: true,
      hint: "leave it out of the mapping: the server fills it",
    });
  }
  const { type, base, isList } = found;
  const isTime = !isList && (base === "timestamp" || base === "date");
  return {
    name,
    path,
    get: getter(parsePath(path)),
    type,
    literal: literalOf({ base, isList }),
    wire: isList ? "text" : isTime ? "timestamp with time zone" : type,
    cast: isList ? `::${type}` : "",
  };
}

function statementOf(columns: readonly Column[], target: Target): string {
  const { table, conflictColumns, updateColumns } = target;
  const names = columns.map(({ name }) => ident(name)).join(", ");
  const arrays = columns.map(({ wire }, i) => `$${i + 1}::${wire}[]`).join(", ");
  const values = columns.map(({ name, cast }) => `r.${ident(name)}${cast}`).join(", ");
  const insert = `insert into ${qualified(table)} (${names}) select ${values} ` +
    `from unnest(${arrays}) as r(${names})`;
  if (conflictColumns === undefined) return insert;
  const sets = updateColumns.map((column) => `${ident(column)} = excluded.${ident(column)}`).join(", ");
  const conflict = `${insert} on conflict (${conflictColumns.map(ident).join(", ")})`;
  return sets === "" ? `${conflict} do nothing` : `${conflict} do update set ${sets}`;
}

function dedupeOf(columns: readonly Column[], target: Target): Dedupe | undefined {
  const { conflictColumns, updateColumns } = target;
  if (conflictColumns === undefined) return undefined;
  const replaced = new Set(updateColumns);
  return {
    keys: conflictColumns.map((key) => columns.findIndex(({ name }) => name === key)),
    firsts: new Set(columns.flatMap(({ name }, i) => replaced.has(name) ? [] : [i])),
  };
}

/** A name in quotes. */
export function ident(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** `table` or `schema.table`, in quotes. */
export function qualified(table: string): string {
  return table.split(".").map(ident).join(".");
}
