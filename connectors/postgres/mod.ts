/**
 * Connector `postgres`: writes records to tables of PostgreSQL, with checkpoints exactly once. It needs `--allow-net` and
 * `--allow-env` (for the `PG…` variables the client looks at).
 *
 * @module
 */
export { postgresSink, type PostgresSinkOptions } from "./postgres_sink.ts";
