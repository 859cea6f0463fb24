import assert from "node:assert/strict";
import { COMPONENTS } from "./components/mod.ts";
import { parsed } from "./kit_test.ts";
import { MailerError } from "../errors.ts";
import { problemText } from "./problem.ts";
import { workflowReference } from "./reference.ts";
import { template, templateKinds } from "./template.ts";
import { parseTests } from "./test_document.ts";
import { checkTestNames } from "./test_names.ts";

Deno.test("every starting document is right as it is", () => {
  const kinds = templateKinds();
  assert.equal(new Set(kinds.map(({ kind }) => kind)).size, COMPONENTS.length + 2);
  for (const { kind } of kinds) {
    if (kind === "test") continue;
    assert.deepEqual(parsed(template(kind)).problems.map(problemText), [], kind);
    assert.match(template(kind), /^ *#/m, kind);
  }
});

Deno.test("the starting tests are right, and fit the starting workflow", () => {
  const { tests, problems } = parseTests(template("test"), {
    file: "a.test.yaml",
    resolveSecret: () => undefined,
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(checkTestNames(tests!, parsed(template("workflow")).spec!), []);
});

Deno.test("an unknown kind is an error with what was probably meant, or with all there is", () => {
  const hint = (kind: string) => {
    try {
      return template(kind);
    } catch (error) {
      assert.ok(error instanceof MailerError && error.code === "unknown_kind");
      return error.hint;
    }
  };
  assert.equal(hint("windw"), 'did you mean "window"? mailer new lists all kinds');
  assert.equal(hint("kafka"), 'did you mean "source-kafka" or "sink-kafka"? mailer new lists all kinds');
  assert.match(hint("frobnicate")!, /^one of: workflow, test, source-kafka, source-file, stdin, /);
});

Deno.test("the reference page has every component, its fields and its example", () => {
  const page = workflowReference();
  for (const { kind, type, example, summary } of COMPONENTS) {
    const start = page.indexOf(`### ${kind} ${type}\n`);
    assert.ok(start !== -1, type);
    const section = page.slice(start, page.indexOf("\n##", start + 4) + 1 || undefined);
    assert.ok(section.includes(summary) && section.includes(example), type);
  }
  assert.match(page, /\| `retainCompleted` \| a whole number of at least 1 \| `3` \|/);
  assert.match(page, /`groupID`: needed when `parallel` is not `true`\./);
  assert.match(page, /\*\*type: session\*\* A window for each burst of records, closed by a gap\./);
  for (const line of page.split("\n")) {
    if (line.startsWith("|")) assert.equal(line.replaceAll("\\|", "").split("|").length, 6, line);
  }
});
