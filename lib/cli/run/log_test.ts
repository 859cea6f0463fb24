import assert from "node:assert/strict";
import type { LogLevel } from "../../log.ts";
import { VirtualClock } from "../../testing/mod.ts";
import { maskOf } from "../../workflow/mod.ts";
import { lineLogger } from "./log.ts";

function logged(
  form: "text" | "json",
  level: LogLevel = "info",
): { lines: string[]; logger: ReturnType<typeof lineLogger> } {
  const lines: string[] = [];
  const clock = new VirtualClock(Date.UTC(2026, 2, 1)), mask = maskOf(["hunter2secret"]);
  return {
    lines,
    logger: lineLogger({ workflow: "copy", level, form, clock, mask, say: (line) => lines.push(line) }),
  };
}

Deno.test("an event is a line of key=value pairs, quoted where needed", () => {
  const { lines, logger } = logged("text");
  logger.log("warn", "sink failed, trying again", { sink: "out", attempt: 2, error: new Error("a\nb") });
  assert.deepEqual(lines, [
    'time=2026-03-01T00:00:00.000Z level=warn workflow=copy msg="sink failed, trying again" sink=out attempt=2 error="a\\nb"',
  ]);
});

Deno.test("the same as JSON", () => {
  const { lines, logger } = logged("json");
  logger.log("info", "hello", { n: 1, big: 2n ** 60n });
  assert.equal(
    lines[0],
    '{"time":"2026-03-01T00:00:00.000Z","level":"info","workflow":"copy","msg":"hello","n":1,"big":1152921504606846976}',
  );
});

Deno.test("events below the level are left out", () => {
  const { lines, logger } = logged("text", "warn");
  for (const level of ["debug", "info", "warn", "error"] as const) logger.log(level, "x");
  assert.deepEqual(lines.map((line) => /level=(\w+)/.exec(line)![1]), ["warn", "error"]);
});

Deno.test("secrets are hidden in messages and in fields of any shape", () => {
  for (const form of ["text", "json"] as const) {
    const { lines, logger } = logged(form);
    logger.log("error", "login hunter2secret", {
      url: "x:hunter2secret@y",
      error: new Error("hunter2secret"),
      deep: { a: ["hunter2secret"] },
    });
    assert.equal(lines[0]!.includes("hunter2secret"), false, lines[0]);
    assert.equal(lines[0]!.split("***").length, 5);
  }
});
