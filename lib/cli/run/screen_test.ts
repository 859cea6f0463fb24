import assert from "node:assert/strict";
import { keptOutput } from "../kit_test.ts";
import { Screen } from "./screen.ts";

/** What a terminal shows of a text: as much of its control sequences as the screen uses. */
function shown(text: string): string[] {
  const lines = [""];
  let row = 0, column = 0;
  // deno-lint-ignore no-control-regex -- they are what is looked for
  for (const [part, up] of text.matchAll(/\x1b\[(\d+)A|\x1b\[J|[^]/g)) {
    if (up !== undefined) row -= Number(up);
    else if (part === "\x1b[J") {
      lines.length = row + 1;
      lines[row] = lines[row]!.slice(0, column);
    } else if (part === "\r") column = 0;
    else if (part === "\n") [row, column] = [row + 1, 0];
    else {
      lines[row] = (lines[row] ?? "").slice(0, column) + part + (lines[row] ?? "").slice(column + 1);
      column++;
    }
    lines[row] ??= "";
  }
  return lines;
}

Deno.test("S1: lines that stay go above those that are redrawn", () => {
  const output = keptOutput("terminal"), screen = new Screen(output);
  screen.redraw(["a 1", "b 1"]);
  screen.say("hello\n");
  screen.redraw(["a 2, longer", "b 2"]);
  screen.say("two\nlines");
  assert.deepEqual(shown(output.text), ["hello", "two", "lines", "a 2, longer", "b 2"]);
});

Deno.test("S2: nothing is left of redrawn lines, nor of a ^C that the terminal echoed", () => {
  const output = keptOutput("terminal"), screen = new Screen(output);
  screen.redraw(["a 1", "b 1"]);
  output.write("^C");
  screen.redraw(["a 2"]);
  screen.clear();
  assert.deepEqual(shown(output.text), [""]);
  screen.redraw([]);
  output.write("^C");
  screen.say("bye");
  assert.deepEqual(shown(output.text), ["bye", ""]);
});

Deno.test("redrawn lines are cut to the width, lines that stay are not", () => {
  const output = keptOutput("terminal", 24), screen = new Screen(output);
  screen.redraw(["x".repeat(30)]);
  screen.say("y".repeat(30));
  assert.deepEqual(shown(output.text), ["y".repeat(30), `${"x".repeat(22)}…`]);
});

Deno.test("without a terminal there are no control sequences", () => {
  const output = keptOutput(), screen = new Screen(output);
  screen.say("a");
  screen.clear();
  screen.say("b\n");
  assert.equal(output.text, "a\nb\n");
});
