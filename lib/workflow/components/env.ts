/**
 * The `env` of a workflow: how it runs.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import { type Field, types } from "../field_type.ts";

/** Periodic checkpoints. */
const CHECKPOINTING: Field<blocks.CheckpointingBlock> = {
  type: types.block<blocks.CheckpointingBlock>({
    interval: {
      type: types.duration(1),
      summary: "Time between checkpoints",
      required: true,
      example: "30s",
    },
    dir: { type: types.text(), summary: "Folder of state and checkpoints; --data-dir unless given" },
    retainCompleted: {
      type: types.int({ min: 1 }),
      summary: "Completed checkpoints that are kept",
      default: 3,
    },
  }),
  summary: "Periodic checkpoints; none without the block",
};

/** `env`. */
export const ENV: Field<blocks.EnvBlock> = {
  type: types.looseBlock<blocks.EnvBlock>({
    bufferSize: {
      type: types.int({ min: 0, max: 1_000_000 }),
      summary: "Records an edge holds before it blocks; 0 means 1024",
      default: 1024,
    },
    bufferBytes: { type: types.size(), summary: "Bytes an edge holds before it blocks", example: "16MiB" },
    shutdownTimeout: {
      type: types.duration(),
      summary: "How long a stop may take to drain what is under way",
      default: "30s",
    },
    checkpointing: CHECKPOINTING,
    state: {
      type: types.block<blocks.StateBlock>({
        backend: {
          type: types.oneOfWith(["memory", "kv", "sqlite"], { same: { pebble: "kv" } }),
          summary: "Where keyed state is; pebble means kv",
          required: true,
          example: "memory",
        },
        dir: { type: types.text(), summary: "Folder of state and checkpoints; --data-dir unless given" },
      }),
      summary: "Where keyed state is; in memory without the block",
    },
    restart: {
      type: types.block<blocks.RestartBlock>({
        attempts: {
          type: types.int({ min: 1 }),
          summary: "Restarts in a row; without end unless given",
          example: 10,
        },
        delay: {
          type: types.duration(1),
          summary: "Wait before the first restart, doubled each time",
          default: "1s",
        },
        maxDelay: { type: types.duration(1), summary: "Longest wait", default: "1m" },
      }, {
        check({ delay, maxDelay }, report) {
          if ((delay as number) > (maxDelay as number)) {
            report(["delay"], "bad_value", "delay is longer than maxDelay");
          }
        },
      }),
      summary: "Start again after a failure; never without the block",
    },
  }, { finish: (env) => ({ ...env, bufferSize: env.bufferSize === 0 ? 1024 : env.bufferSize }) }),
  summary: "How the workflow runs",
  default: {},
};
