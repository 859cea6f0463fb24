import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { parsed, problemsOf, specOf } from "./kit_test.ts";
import { problemText } from "./problem.ts";
import { MASK, maskOf, Secrets } from "./secrets.ts";
import { parseWorkflow } from "./validate.ts";

const ENV = { A: "one", EMPTY: "", N: "7", YES: "true", D: "30s" };

function pathFor(written: string, env: Record<string, string> = ENV): string | undefined {
  const text = `name: t\nsource: { type: file, file: { path: ${
    JSON.stringify(written)
  } } }\nsink: { type: stdout }\n`;
  const [source] = specOf(text, { env }).sources;
  return source?.type === "file" ? source.file.path : undefined;
}

Deno.test("I1, I2: references in a text", () => {
  const table: [written: string, meant: string][] = [
    ["${A}.ndjson", "one.ndjson"],
    ["${A}${A}", "oneone"],
    ["x${EMPTY}y", "xy"],
    ["${NONE:-else}", "else"],
    ["${EMPTY:-else}", "else"],
    ["${A:-else}", "one"],
    ["x${NONE:-}", "x"],
    ["$${A}", "${A}"],
    ["$${A}${A}", "${A}one"],
    ["$A $ {A} $$", "$A $ {A} $$"],
    ["cost: 5$", "cost: 5$"],
  ];
  for (const [written, meant] of table) assert.equal(pathFor(written), meant, written);
});

Deno.test("Y4: references work in every text, also where a number, a duration or an expression is meant", () => {
  const spec = specOf(
    `name: "\${A}-x"
env: { bufferSize: "\${N}", shutdownTimeout: "\${D}", bufferBytes: "\${N}" }
source: { type: slice, records: [ { key: "\${A}", value: '{"a":"\${A}"}' } ] }
pipeline:
  - { id: f, type: filter, filter: { field: a, operator: equals, value: "\${N}" } }
  - { id: m, type: map, map: { expr: 'value.\${A}' } }
sink: { type: file, file: { path: "\${A}.ndjson", append: "\${YES}" } }
`,
    { env: ENV },
  );
  assert.equal(spec.name, "one-x");
  assert.equal(spec.env.bufferSize, 7);
  assert.equal(spec.env.bufferBytes, 7);
  assert.equal(spec.env.shutdownTimeout, 30_000);
  const [source] = spec.sources, [filter, map] = spec.operators, [sink] = spec.sinks;
  assert.deepEqual(source?.type === "slice" && source.records, [{ key: "one", value: '{"a":"one"}' }]);
  assert.equal(filter?.type === "filter" && filter.filter.value, "7");
  assert.equal(map?.type === "map" && map.map.expr, "value.one");
  assert.equal(sink?.type === "file" && sink.file.append, true);
});

Deno.test("I3: a name without value is a problem where it stands, and only that", () => {
  const text = `name: t
env: { shutdownTimeout: "\${NONE}", state: { backend: "\${NONE}" } }
source: { type: kafka, kafka: { brokers: ["\${NONE}"], topic: t, groupID: "\${NONE}" } }
pipeline:
  - { id: f, type: filter, filter: { where: "\${NONE} > 1" } }
  - { id: m, type: map, map: { expr: 'value.x' }, from: "\${NONE}" }
sink: { type: stdout }
`;
  assert.deepEqual(problemsOf(text), [
    "2 env.shutdownTimeout unset_variable",
    "2 env.state.backend unset_variable",
    "3 source.kafka.brokers[0] unset_variable",
    "3 source.kafka.groupID unset_variable",
    "5 pipeline[0].filter.where unset_variable",
    "6 pipeline[1].from unset_variable",
  ]);
  const names = parsed(text).problems.map(({ message }) => message);
  assert.ok(names.every((message) => message.includes("${NONE}")));
});

Deno.test("I3: names without value pass where that is asked for, unless the form of a block hangs on them", () => {
  const text = (type: string) =>
    `name: t
env: { shutdownTimeout: "\${NONE}", bufferSize: "\${NONE}" }
source: { type: file, file: { path: "\${NONE}" } }
pipeline:
  - { id: k, type: keyBy, keyBy: { field: a } }
  - { id: w, type: window, window: { type: ${type}, size: "\${NONE}", slide: 1m } }
  - { id: r, type: reduce, reduce: { function: count } }
sink: { type: stdout }
`;
  const spec = specOf(text("sliding"), { allowUnset: true });
  assert.equal(spec.sources[0]?.type === "file" && spec.sources[0].file.path, "${NONE}");
  assert.deepEqual(problemsOf(text('"${NONE}"'), { allowUnset: true }), [
    "6 pipeline[1].window.type unset_variable",
  ]);
});

Deno.test("a reference that is not closed or has no name is a problem", () => {
  for (const written of ["${", "${A", "${1A}", "${}", "${A-b}", "a ${ b", "${A B}"]) {
    const text = `name: t\nsource: { type: file, file: { path: ${
      JSON.stringify(written)
    } } }\nsink: { type: stdout }\n`;
    assert.deepEqual(problemsOf(text, { env: ENV }), ["2 source.file.path bad_reference"], written);
  }
});

Deno.test("secret fields give what is to be masked: the text, what came into it, and the password of a URL", () => {
  const text = `name: t
source:
  type: kafka
  kafka:
    brokers: [b:1]
    topic: t
    groupID: g
    sasl: { mechanism: plain, username: u, password: "\${PW}" }
pipeline:
  - { id: h, type: http, http: { url: "https://x/", headers: { authorization: "Bearer \${TOKEN}" } } }
sink:
  type: postgres
  postgres: { dsn: "postgres://me:p%40ss@host/db", table: t, mapping: { a: a } }
`;
  const { secrets, problems } = parsed(text, { env: { PW: "kafka-password", TOKEN: "tok-123" } });
  assert.deepEqual(problems, []);
  assert.deepEqual(
    [...secrets].toSorted(),
    ["Bearer tok-123", "kafka-password", "p%40ss", "p@ss", "postgres://me:p%40ss@host/db", "tok-123"],
  );
});

Deno.test("no problem shows a secret, whatever is wrong around it", () => {
  const secret = "hunter2secret";
  const env = { PW: secret };
  const inKafka = (sasl: string, more = "") =>
    `name: t
source: { type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g, sasl: ${sasl} } }
${more}
sink: { type: stdout }
`;
  const inDsn = (dsn: string, more = "") =>
    `name: t
source: { type: stdin }
${more}
sink: { type: postgres, postgres: { dsn: ${dsn}, table: t, mapping: { a: a } } }
`;
  const texts = [
    inKafka(`{ mechanism: ${secret}, username: u, password: ${secret} }`),
    inKafka(`{ mechanism: "\${PW}", username: u, password: "\${PW}" }`),
    inKafka(`{ mechanism: plain, username: u, password: [${secret}] }`),
    inKafka(`{ mechanism: plain, username: u, password: { a: ${secret} } }`),
    inKafka(`{ mechanism: plain, username: u, password: "\${PW}", ${secret}: 1 }`),
    inKafka(`${secret}`),
    inKafka(`{ mechanism: plain, username: u, pasword: ${secret} }`),
    inKafka(`{ mechanism: plain, username: u, password: "\${PW}\${" }`),
    inKafka(
      `{ mechanism: plain, username: u, password: "\${PW}" }`,
      `pipeline: [ { id: "\${PW}", type: "\${PW}" } ]`,
    ),
    inKafka(`{ mechanism: plain, username: u, password: "\${PW}" }`, `env: { shutdownTimeout: "\${PW}" }`),
    inKafka(
      `{ mechanism: plain, username: u, password: "\${PW}" }`,
      `pipeline: [ { id: a, type: filter, from: "\${PW}", filter: { where: 'value.\${PW} ++ "\${PW}"' } } ]`,
    ),
    inKafka(
      `{ mechanism: plain, username: u, password: "\${PW}" }`,
      `pipeline: [ { id: a, type: map, map: { expr: '\${PW}' } }, { id: b, type: dropFields, dropFields: { fields: ["\${PW}["] } } ]`,
    ),
    inKafka(
      `{ mechanism: plain, username: u, password: "\${PW}" }`,
      `pipeline: [ { id: a, type: timestamp, timestamp: { field: x, timezone: "\${PW}", format: "\${PW}" } } ]`,
    ),
    inKafka(`{ mechanism: plain, username: u, password: ${secret} }`, `${secret}: 1`),
    inDsn(`{ url: ${secret} }`),
    inDsn(`"postgres://me:${secret}@h/d"`, `${secret}: 1`),
    inDsn(`5, password: ${secret}`),
    inDsn(`''`, `env: ${secret}`),
    inDsn(`*${secret}`),
    inDsn(`@${secret}`),
    inDsn(`"postgres://me:${secret}@h/d`),
  ];
  for (const text of texts) {
    for (const file of ["t.yaml", "t.json"]) {
      const { problems } = parsed(text, { env, file });
      assert.ok(problems.length > 0, text);
      for (const problem of problems) {
        const shown = problemText(problem) + JSON.stringify(problem);
        assert.ok(!shown.includes(secret) || problem.path.includes(secret), `${text}\n${shown}`);
      }
    }
  }
});

Deno.test("not even a secret too short to be masked is quoted", () => {
  const text = `name: t
source: { type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g, sasl: { mechanism: plain, username: u, password: 123 } } }
sink: { type: stdout }
`;
  assert.deepEqual(parsed(text).problems.map(({ message, hint }) => [message, hint]), [
    ["expected a text, found a number", undefined],
  ]);
});

Deno.test("I5: a name that may not be read is a problem of its text, with the remedy", () => {
  const resolveSecret = (name: string) => {
    if (name === "A") {
      throw new MailerError("not_permitted", "env access is not permitted", { hint: "allow it" });
    }
    return "x";
  };
  const text =
    `name: "\${B}"\nsource: { type: stdin }\nsink: { type: file, file: { path: "\${A:-o.ndjson}" } }\n`;
  for (const allowUnset of [false, true]) {
    const { spec, problems } = parseWorkflow(text, { file: "flow.yaml", resolveSecret, allowUnset });
    assert.equal(spec, undefined);
    assert.deepEqual(
      problems.map(({ line, path, code, message, hint }) => [line, path, code, message, hint]),
      [
        [3, "sink.file.path", "not_permitted", "${A}: env access is not permitted", "allow it"],
      ],
    );
  }
  assert.throws(() =>
    parseWorkflow(text, {
      file: "flow.yaml",
      resolveSecret() {
        throw new TypeError("a defect");
      },
    }), TypeError);
});

Deno.test("rules do not judge by a value that is not known yet", () => {
  const text = `name: t
source: { type: stdin }
sink: { type: postgres, postgres: { dsn: x, table: t, mapping: { a: a }, mode: "\${NONE}", conflictColumns: [a] } }
`;
  assert.deepEqual(problemsOf(text, { allowUnset: true }), []);
});

Deno.test("masking hides longer secrets first, and short ones only where they stand alone", () => {
  const mask = maskOf(["pass", "password", "ab", "$x.", ""]);
  assert.equal(
    mask("password pass ab cab (ab) $x. $xy"),
    `${MASK} ${MASK} ${MASK} cab (${MASK}) ${MASK} $xy`,
  );
  const secrets = new Secrets();
  secrets.add("redis://:p:q@host");
  assert.deepEqual(secrets.list(), ["redis://:p:q@host", "p:q"]);
});
