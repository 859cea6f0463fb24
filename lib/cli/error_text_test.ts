import assert from "node:assert/strict";
import { MailerError, RecordError, ShutdownTimeoutError } from "../errors.ts";
import { maskOf } from "../workflow/mod.ts";
import { errorText } from "./error_text.ts";
import { exitCodeOf } from "./exit_code.ts";

const position = { source: "orders", split: "a.ndjson", offset: 7 };

Deno.test("an error is its message and its hint; a record's says where it is from", () => {
  const cause = new MailerError("no_field", "amount is missing", { hint: "ask has() first" });
  assert.equal(
    errorText(new RecordError("sum", position, cause)),
    'error: operator "sum": amount is missing (record from orders/a.ndjson at offset 7)\nhint: ask has() first\n',
  );
  assert.equal(errorText(new MailerError("x", "no luck"), { about: "copy" }), "error: copy: no luck\n");
  assert.equal(errorText("text"), "error: text\nhint: --debug shows where this comes from\n");
});

Deno.test("stack traces, with causes, come only when asked for", () => {
  const error = new MailerError("x", "outer", { cause: new Error("inner") });
  assert.equal(errorText(error).includes("inner"), false);
  const text = errorText(error, { detail: "stack" });
  assert.match(text, /MailerError: outer\n\s+at /);
  assert.match(text, /caused by Error: inner\n\s+at /);
});

Deno.test("secrets are hidden in messages, hints and stacks", () => {
  const error = new MailerError("x", "login hunter2secret", {
    hint: "not hunter2secret",
    cause: new Error("hunter2secret"),
  });
  assert.equal(
    errorText(error, { detail: "stack", mask: maskOf(["hunter2secret"]) }).includes("hunter2secret"),
    false,
  );
});

Deno.test("exit codes tell what kind of failure it was", () => {
  assert.equal(exitCodeOf(new Error("x")), 1);
  assert.equal(exitCodeOf(new MailerError("usage", "x")), 2);
  assert.equal(exitCodeOf(new ShutdownTimeoutError(["a"], 1)), 3);
  assert.equal(exitCodeOf(new MailerError("fenced", "x")), 4);
});
