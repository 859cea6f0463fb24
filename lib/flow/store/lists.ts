/**
 * Lists of executions, by time of creation.
 *
 * L1 A list's entries are written by the commits that change what they say. So a list never shows what was, nor lacks what is.
 * L2 An entry's place is the time its execution was made, which never changes. So pages neither repeat nor skip.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { behind, type Range } from "./cells.ts";
import type { Core } from "./core.ts";
import { attributePrefix } from "./heads.ts";
import * as keys from "./keys.ts";
import type { AttributeFilter, Executions, Index, Listed, Page, Query, Summary } from "./port.ts";

const LARGEST_PAGE = 1000;
/** Entries looked at for one page: one that few fit comes back early, with what was found so far. */
const MOST_LOOKED_AT = 5000;
const CHUNK = 200;

/** See {@link Index}. */
export class Lists implements Index {
  readonly #core: Core;
  readonly #executions: Executions;

  constructor(core: Core, executions: Executions) {
    this.#core = core;
    this.#executions = executions;
  }

  async list(query: Query): Promise<Page<Listed>> {
    const { limit = 50, order = "newest", cursor } = query;
    if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_PAGE) {
      throw new MailerError("invalid_query", `a page has 1 to ${LARGEST_PAGE} entries, not ${limit}`);
    }
    const prefix = prefixOf(query, this.#core.sealed), isReverse = order === "oldest";
    let range = rangeOf(prefix, query);
    if (cursor !== undefined) range = behindCursor(range, `${prefix}${cursor}`, isReverse);
    const items: Listed[] = [];
    for (let lookedAt = 0;;) {
      const cells = await this.#core.cells.list(range, Math.min(CHUNK, limit * 2), isReverse);
      const heads = await this.#executions.heads(cells.map(({ key }) => keys.lastPart(key)));
      for (const [i, head] of heads.entries()) {
        const { key } = cells[i]!;
        lookedAt++;
        if (head !== undefined && fits(head.summary, query)) {
          items.push({ execId: head.execId, seq: head.seq, summary: head.summary });
        }
        const isLast = i === heads.length - 1 && cells.length < Math.min(CHUNK, limit * 2);
        if (items.length === limit || lookedAt >= MOST_LOOKED_AT) {
          return isLast ? { items } : { items, cursor: key.slice(prefix.length) };
        }
      }
      if (cells.length < Math.min(CHUNK, limit * 2)) return { items };
      range = behindCursor(range, cells.at(-1)!.key, isReverse);
    }
  }
}

/** The list with the fewest entries that has all that fit, as far as one can tell. */
function prefixOf({ status, flow, attrs = [] }: Query, sealed: boolean): string {
  const equal = attrs.find(({ op }) => op === "=");
  if (equal !== undefined) return attributePrefix(equal.name, equal.value, sealed);
  if (status !== undefined && status !== "completed") return `i/s/${keys.textPart(status)}/`;
  if (flow !== undefined) return `i/f/${keys.textPart(flow)}/`;
  if (status !== undefined) return `i/s/${keys.textPart(status)}/`;
  return "i/t/";
}

/** From the newest to the oldest. */
function rangeOf(prefix: string, { from, to }: Query): Range {
  const all = keys.under(prefix);
  return {
    from: to === undefined ? all.from : `${prefix}${keys.reverseTimePart(Math.ceil(to) - 1)}/`,
    to: from === undefined ? all.to : `${prefix}${keys.reverseTimePart(Math.ceil(from))}0`,
  };
}

function behindCursor(range: Range, key: string, isReverse: boolean): Range {
  const isRight = /\/[0-9a-z]{11}\/[A-Za-z0-9_-]{1,128}$/.test(key);
  if (!isRight) {
    throw new MailerError("invalid_cursor", "the cursor is not one of this list", {
      hint: "take it from the page before, of the same query",
    });
  }
  if (isReverse) return { from: range.from, to: key < range.to ? key : range.to };
  const next = behind(key);
  return { from: next > range.from ? next : range.from, to: range.to };
}

function fits(summary: Summary, { status, flow, attrs = [], from, to }: Query): boolean {
  return (status === undefined || summary.status === status) &&
    (flow === undefined || summary.flow === flow) &&
    (from === undefined || summary.createdAt >= from) &&
    (to === undefined || summary.createdAt < to) &&
    attrs.every((filter) => holds(summary.attrs, filter));
}

function holds(attrs: Readonly<Record<string, string>>, { name, op, value }: AttributeFilter): boolean {
  if (!Object.hasOwn(attrs, name)) return false;
  const found = attrs[name]!, difference = compare(found, value);
  switch (op) {
    case "=":
      return found === value;
    case "!=":
      return found !== value;
    case "<":
      return difference < 0;
    case "<=":
      return difference <= 0;
    case ">":
      return difference > 0;
    case ">=":
      return difference >= 0;
    case "prefix":
      return found.startsWith(value);
  }
}

const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
const WHOLE = /^-?\d+$/;

function compare(a: string, b: string): number {
  if (WHOLE.test(a) && WHOLE.test(b)) {
    const x = BigInt(a), y = BigInt(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (NUMBER.test(a) && NUMBER.test(b)) return Number(a) - Number(b);
  return a < b ? -1 : a > b ? 1 : 0;
}
