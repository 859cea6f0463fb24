/**
 * Program: `deno run -A bench/postgres.ts [--rows N] [--batch N] [--json]`.
 *
 * How fast the Postgres sink writes, to a server of its own on the same machine that does wait for its disk. Rows of five columns
 * (bigint key, text, bigint, numeric, timestamptz) come in batches of 1,024 records, in the order of a key that is scattered. *new*:
 * upserts into an empty table; *there*: the same keys again with other values; *insert*: into a table without a key. *plain* writes as
 * rows come, *exactly once* in transactions of 100,000 rows with their checkpoint.
 *
 * CPU time of the client is that of this process, with making the records and the sink's own work; that of the server is of all its
 * processes.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { postgresSink, type PostgresSinkOptions } from "../connectors/postgres/mod.ts";
import { systemClock } from "../lib/clock.ts";
import type { SinkContext } from "../lib/connector.ts";
import { silentLogger } from "../lib/log.ts";
import { batchOf } from "../lib/testing/sink_contract.ts";
import { type Postgres, postgresService } from "../tests/services/mod.ts";
import { measure } from "./measure.ts";
import { type Column, print, printHead, printRow, rounded } from "./print.ts";
import { circumstances } from "./process.ts";

/** What writing a table cost. */
export interface PostgresCost {
  readonly what: string;
  readonly rows: number;
  readonly rowsPerSecond: number;
  /** Seconds a million rows. */
  readonly clientCpu: number;
  /** Seconds a million rows. */
  readonly serverCpu: number;
  readonly peakMiB: number;
}

interface Job {
  readonly what: string;
  readonly mode: "insert" | "upsert";
  readonly exactlyOnce: boolean;
  readonly isThere: boolean;
}

const JOBS: readonly Job[] = [
  { what: "upsert new, plain", mode: "upsert", exactlyOnce: false, isThere: false },
  { what: "upsert there, plain", mode: "upsert", exactlyOnce: false, isThere: true },
  { what: "upsert new, exactly once", mode: "upsert", exactlyOnce: true, isThere: false },
  { what: "upsert there, exactly once", mode: "upsert", exactlyOnce: true, isThere: true },
  { what: "insert, plain", mode: "insert", exactlyOnce: false, isThere: false },
  { what: "insert, exactly once", mode: "insert", exactlyOnce: true, isThere: false },
];
const RECORDS = 1024;
const ROWS_A_CHECKPOINT = 100_000;
/** Odd, so multiplying by it modulo a power of two visits each number once. */
const SCATTER = 0x9e3779b1;

/** Measures all jobs, `rows` rows each, a power of two. */
export async function benchPostgres(rows: number, batchSize: number): Promise<PostgresCost[]> {
  await using postgres = await postgresService({ own: true, settings: { fsync: "on", max_wal_size: "4GB" } });
  const costs: PostgresCost[] = [];
  for (const job of JOBS) costs.push(await run(postgres, job, rows, batchSize));
  return costs;
}

async function run(postgres: Postgres, job: Job, rows: number, batchSize: number): Promise<PostgresCost> {
  const { what, mode, exactlyOnce, isThere } = job, key = mode === "upsert" ? "primary key" : "";
  if (!isThere) {
    await postgres.execute(
      `drop table if exists t; create table t (id bigint ${key}, name text, n bigint, amount numeric, at timestamptz); checkpoint`,
    );
  }
  const options: PostgresSinkOptions = {
    dsn: postgres.url,
    table: "t",
    mapping: { id: "id", name: "name", n: "n", amount: "amount", at: "at" },
    batchSize,
    ...(mode === "upsert" ? { mode, conflictColumns: ["id"] } : {}),
  };
  const postmaster = await postmasterOf(postgres), before = cpuOf(postmaster);
  const { cost } = await measure(() => write(options, exactlyOnce, rows, isThere ? 1 : 0));
  await postgres.rows("select 1 as one"); // by then the process that served the sink is counted with its parent
  const serverSeconds = cpuOf(postmaster) - before;
  const [found] = await postgres.rows("select count(*)::int as count from t");
  if (found!["count"] !== rows) throw new Error(`${what}: ${found!["count"]} rows, expected ${rows}`);
  return {
    what,
    rows,
    rowsPerSecond: rounded(rows / cost.wallSeconds),
    clientCpu: rounded(cost.cpuSeconds / rows * 1e6),
    serverCpu: rounded(serverSeconds / rows * 1e6),
    peakMiB: Math.round(cost.peakMiB),
  };
}

async function write(
  options: PostgresSinkOptions,
  exactlyOnce: boolean,
  rows: number,
  round: number,
): Promise<void> {
  const context: SinkContext = {
    id: "bench",
    clock: systemClock,
    logger: silentLogger,
    signal: new AbortController().signal,
    reject(_batch, _index, error) {
      throw error;
    },
    ...(exactlyOnce ? { checkpoints: { restored: undefined, interval: 10_000 } } : {}),
  };
  const writer = await postgresSink(options).open(context);
  let checkpoint = 0;
  for (let at = 0; at < rows; at += RECORDS) {
    await writer.write(batchOf(records(at, Math.min(rows, at + RECORDS), rows, round)));
    if (!exactlyOnce || Math.floor((at + RECORDS) / ROWS_A_CHECKPOINT) === checkpoint) continue;
    await writer.commit!(await writer.prepare!(++checkpoint));
  }
  if (exactlyOnce) await writer.commit!(await writer.prepare!(++checkpoint));
  else await writer.flush();
  await writer.close("done");
}

function records(from: number, to: number, rows: number, round: number): unknown[] {
  const made: unknown[] = [];
  for (let i = from; i < to; i++) {
    const id = (Math.imul(i, SCATTER) >>> 0) & (rows - 1);
    made.push({
      id,
      name: `customer-${id}`,
      n: i + round,
      amount: (i % 10_000) / 100 + round,
      at: 1.7e12 + i,
    });
  }
  return made;
}

async function postmasterOf(postgres: Postgres): Promise<number> {
  const [row] = await postgres.rows("select pid from pg_stat_activity where backend_type = 'checkpointer'");
  return Number(statOf(Number(row!["pid"]))[1]);
}

/** CPU time of a server: its first process, what it had, and those that live. Seconds. */
function cpuOf(postmaster: number): number {
  let ticks = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = statOf(Number(name));
    if (Number(name) === postmaster) ticks += sum(stat.slice(11, 15));
    else if (Number(stat[1]) === postmaster) ticks += sum(stat.slice(11, 13));
  }
  return ticks / 100;
}

/** What the system says of a process behind its name: state, parent and so on. */
function statOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
  } catch {
    return []; // it has ended meanwhile
  }
}

function sum(numbers: readonly string[]): number {
  return numbers.reduce((total, text) => total + Number(text), 0);
}

const COLUMNS: readonly Column[] = [
  ["", 28],
  ["rows/s", 9],
  ["client CPU s/M", 15],
  ["server CPU s/M", 15],
  ["peak MiB", 9],
];

if (import.meta.main) {
  const { values } = parseArgs({
    options: { rows: { type: "string" }, batch: { type: "string" }, json: { type: "boolean" } },
  });
  const rows = 2 ** Math.round(Math.log2(Number(values.rows ?? 2 ** 18)));
  const costs = await benchPostgres(rows, Number(values.batch ?? 1000));
  if (values.json === true) print(JSON.stringify({ circumstances: await circumstances(), costs }));
  else {
    print(await circumstances());
    printHead(COLUMNS);
    for (const { what, rowsPerSecond, clientCpu, serverCpu, peakMiB } of costs) {
      printRow(COLUMNS, [what, rowsPerSecond, clientCpu, serverCpu, peakMiB].map(String));
    }
  }
}
