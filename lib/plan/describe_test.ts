import assert from "node:assert/strict";
import { boundedOutOfOrderness } from "../runtime/watermarks.ts";
import { createEnv } from "../stream/env.ts";
import { collectingSink, scriptedSource } from "../testing/mod.ts";

Deno.test("durations are shown as they are written: watermarks, and times among the settings", () => {
  const cases: readonly (readonly [string | number, string])[] = [
    ["2h", "bounded(2h)"],
    [7_200_000, "bounded(2h)"],
    ["90s", "bounded(1m30s)"],
    ["1.5s", "bounded(1.5s)"],
    [250, "bounded(250ms)"],
    [0, "bounded(0ms)"],
  ];
  for (const [bound, text] of cases) {
    const env = createEnv({ name: "times" });
    env.fromSource(scriptedSource<number>().source, { watermarks: boundedOutOfOrderness(bound) })
      .toSink(collectingSink<number>().sink);
    assert.equal(env.describe().nodes[0]!.config["watermarks"], text);
    assert.match(env.explain(), new RegExp(`watermarks ${text.replace(/[().]/g, "\\$&")}`));
  }
});
