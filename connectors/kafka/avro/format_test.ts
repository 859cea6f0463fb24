/**
 * The format `avro` and its registry: V1 and V2 of `format.ts`, G1 to G3 of `registry.ts`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { MailerError } from "../../../lib/errors.ts";
import type { Decoded } from "../../../lib/format/mod.ts";
import { settle, VirtualClock } from "../../../lib/testing/virtual_clock.ts";
import { avroFormat, type AvroFormatOptions } from "./format.ts";
import { context, decoded, encoded, FakeRegistry, refused } from "./kit_test.ts";

const ORDER = { type: "record", name: "Order", fields: [{ name: "id", type: "long" }] };
const ORDER_TEXT = JSON.stringify(ORDER);

const formatAt = (registry: { readonly url: string }, options: Partial<AvroFormatOptions> = {}) =>
  avroFormat({ registry: { url: registry.url }, topic: "orders", ...options });

const codes = ({ failures }: Decoded) =>
  failures.map(({ index, error }) => [index, (error as MailerError).code]);

async function failing(work: Promise<unknown>): Promise<MailerError> {
  const error: unknown = await work.then(() => undefined, (error) => error);
  assert.ok(error instanceof MailerError, String(error));
  return error;
}

Deno.test("a zero, the id, and Avro; ids use all four bytes; each schema is asked for once", async () => {
  await using registry = new FakeRegistry(0x89abcdef);
  const format = formatAt(registry, { schema: ORDER });
  const payloads = await encoded(format, { id: 1 }, { id: 2n ** 62n });
  assert.deepEqual(payloads[0], Uint8Array.of(0, 0x89, 0xab, 0xcd, 0xef, 2));
  assert.deepEqual(registry.asked, ["POST /subjects/orders-value/versions"]);
  registry.asked.length = 0;
  const decoder = format.decoder(), into: Decoded = { values: [], failures: [] };
  await decoder.prepare!(payloads, context());
  assert.equal(decoder.prepare!(payloads, context()), undefined, "nothing is to be waited for");
  decoder.decode(payloads, into);
  assert.deepEqual(into, { values: [{ id: 1 }, { id: 2n ** 62n }], failures: [] });
  const other = format.decoder();
  assert.equal(other.prepare!(payloads, context()), undefined, "readers of one format share what they know");
  assert.deepEqual(registry.asked, ["GET /schemas/ids/2309737967"]);
});

Deno.test("the schema to write with: the newest, one that has to be there, one that is registered", async () => {
  await using registry = new FakeRegistry();
  registry.add("orders-value", { schema: '"int"' });
  registry.add("orders-value", { schema: '"string"' });
  assert.deepEqual(await encoded(formatAt(registry), "a"), [Uint8Array.of(0, 0, 0, 0, 2, 2, 97)]);
  const there = await encoded(formatAt(registry, { schema: '"int"', autoRegister: false }), 1);
  assert.deepEqual(there, [Uint8Array.of(0, 0, 0, 0, 1, 2)]);
  const absent = await failing(encoded(formatAt(registry, { schema: '"long"', autoRegister: false }), 1));
  assert.equal(absent.code, "avro_unknown_schema");
  assert.match(absent.message, /\/subjects\/orders-value: Schema not found/);
  assert.ok(absent.lasting);
  const subject = await failing(encoded(avroFormat({ registry, subject: "a/b" }), 1));
  assert.match(subject.message, /Subject 'a\/b' not found/);
  const nothing = await failing(encoded(avroFormat({ registry }), 1));
  assert.equal(nothing.code, "invalid_avro_options");
  const bad = await failing(encoded(formatAt(registry, { schema: '{"type":"recrod"}' }), 1));
  assert.equal(bad.code, "avro_schema");
  assert.ok(!registry.asked.some((asked) => asked.includes("recrod")));
});

Deno.test("V1: what is wrong with a record is that record's failure", async () => {
  await using registry = new FakeRegistry();
  const good = registry.add("s", { schema: ORDER_TEXT });
  const json = registry.add("s", { schema: "{}", schemaType: "JSON" });
  const odd = registry.add("s", { schema: '{"type":"strange"}' });
  const head = (id: number, ...rest: number[]) => Uint8Array.of(0, 0, 0, 0, id, ...rest);
  const found = await decoded(
    formatAt(registry),
    head(good, 2),
    Uint8Array.of(1, 0, 0, 0, good, 2),
    Uint8Array.of(0, 0, 0),
    new Uint8Array(0),
    "text",
    head(99, 2),
    head(json, 2),
    head(odd, 2),
    head(good),
    head(good, 4),
  );
  assert.deepEqual(found.values, [{ id: 1 }, { id: 2 }]);
  assert.deepEqual(codes(found), [
    [1, "not_avro"],
    [2, "not_avro"],
    [3, "not_avro"],
    [4, "not_avro"],
    [5, "avro_unknown_schema"],
    [6, "avro_schema_type"],
    [7, "avro_schema"],
    [8, "not_avro"],
  ]);
  assert.match(found.failures[4]!.error.message, /has no schema with id 99$/);
  assert.match(found.failures[5]!.error.message, /is of type JSON, not AVRO/);
  const readerSchema = { ...ORDER, fields: [{ name: "other", type: "int" }] };
  assert.deepEqual(codes(await decoded(formatAt(registry, { readerSchema }), head(good, 2))), [[
    0,
    "avro_not_readable",
  ]]);
});

Deno.test("V2: an id that was not known is asked for again after a while", async () => {
  await using registry = new FakeRegistry();
  const clock = new VirtualClock(), signal = new AbortController().signal;
  const decoder = formatAt(registry).decoder(), payloads = [Uint8Array.of(0, 0, 0, 0, 1, 2)];
  const attempt = async () => {
    await decoder.prepare!(payloads, { clock, signal });
    const into: Decoded = { values: [], failures: [] };
    decoder.decode(payloads, into);
    return into.values.length;
  };
  assert.equal(await attempt(), 0);
  registry.add("s", { schema: ORDER_TEXT });
  await clock.advance("9s");
  assert.equal(await attempt(), 0);
  assert.equal(registry.asked.length, 1);
  await clock.advance("1s");
  assert.equal(await attempt(), 1);
});

Deno.test("references: what a schema names is fetched, once each, in the order it is needed", async () => {
  await using registry = new FakeRegistry();
  const name = (of: string, field: string, type: string) =>
    JSON.stringify({ type: "record", name: of, fields: [{ name: field, type }] });
  registry.add("c", { schema: name("C", "n", "int") });
  const toC = [{ name: "C", subject: "c", version: 1 }];
  registry.add("b", { schema: name("B", "c", "C"), references: toC });
  const references = [...toC, { name: "B", subject: "b", version: 1 }];
  const id = registry.add("a", { schema: name("A", "b", "B"), references });
  const found = await decoded(formatAt(registry), Uint8Array.of(0, 0, 0, 0, id, 10));
  assert.deepEqual(found, { values: [{ b: { c: { n: 5 } } }], failures: [] });
  assert.deepEqual(
    await encoded(formatAt(registry, { subject: "a", topic: undefined! }), { b: { c: { n: 5 } } }),
    [
      Uint8Array.of(0, 0, 0, 0, id, 10),
    ],
  );
  assert.equal(registry.asked.filter((asked) => asked === "GET /subjects/c/versions/1").length, 2);
});

Deno.test("G2: who is not well is asked again until the timeout, by the clock", async () => {
  await using registry = new FakeRegistry();
  registry.add("s", { schema: ORDER_TEXT });
  const clock = new VirtualClock(), payloads = [Uint8Array.of(0, 0, 0, 0, 1, 2)];
  const prepare = (url: string, signal = new AbortController().signal) =>
    avroFormat({ registry: { url, timeout: "20s" } }).decoder().prepare!(payloads, { clock, signal })!;
  const answers = [new Response("", { status: 503 }), refused(500, 50002, "timeout"), refused(429, 0, "")];
  registry.instead = () => answers.shift();
  await turning(clock, prepare(registry.url));
  assert.equal(registry.asked.length, 4);

  registry.instead = () => new Response("", { status: 502 });
  const since = clock.now(), gone = await failing(turning(clock, prepare(registry.url)));
  assert.equal(gone.code, "schema_registry_unreachable");
  assert.match(gone.message, /it answers 502, for 20s$/);
  assert.ok(clock.now() - since > 10_000 && clock.now() - since <= 20_000);

  const nobody = Deno.listen({ port: 0, hostname: "127.0.0.1" }), { port } = nobody.addr;
  nobody.close();
  const refusedThere = await failing(turning(clock, prepare(`http://127.0.0.1:${port}`)));
  assert.equal(refusedThere.code, "schema_registry_unreachable");

  const given = new AbortController(), reason = new Error("given up");
  const pending = prepare(registry.url, given.signal);
  pending.catch(() => {});
  await settle();
  given.abort(reason);
  await assert.rejects(turning(clock, pending), reason);
});

Deno.test("G2: an answer that does not come is waited for ten seconds", async () => {
  await using registry = new FakeRegistry();
  registry.add("s", { schema: ORDER_TEXT });
  const clock = new VirtualClock(), silent = Promise.withResolvers<undefined>();
  let answered = 0;
  registry.instead = () => answered++ === 0 ? silent.promise : undefined;
  const decoder = formatAt(registry).decoder(), payloads = [Uint8Array.of(0, 0, 0, 0, 1, 2)];
  await turning(clock, decoder.prepare!(payloads, { clock, signal: new AbortController().signal })!);
  assert.equal(answered, 2);
  silent.resolve(undefined);
});

/** Lets time go on until it is over. */
async function turning<T>(clock: VirtualClock, pending: Promise<T>): Promise<T> {
  let isOver = false;
  pending.catch(() => {}).finally(() => isOver = true);
  while (!isOver) {
    // What is on its way in the real world comes first.
    for (let turn = 0; turn < 50 && !isOver; turn++) await settle();
    if (!isOver) await clock.advance(100);
  }
  return await pending;
}

Deno.test("G2, G3: a refusal is final, and shows no secret", async () => {
  await using registry = new FakeRegistry();
  const url = registry.url, password = "sesame-sesame";
  const login: string[] = [];
  const cases: [Response, string, RegExp][] = [
    [
      refused(401, 40101, "User cannot be authenticated"),
      "schema_registry_not_authorised",
      /cannot be authenticated/,
    ],
    [new Response("<html>", { status: 403 }), "schema_registry_not_authorised", /it answers 403/],
    [
      refused(409, 409, "reader field missing default"),
      "avro_incompatible",
      /not compatible.*missing default/,
    ],
    [refused(422, 42201, "Input schema is invalid"), "avro_schema", /Input schema is invalid/],
    [new Response("not found", { status: 404 }), "schema_registry", /it answers 404/],
    [new Response("<html>", { status: 200 }), "schema_registry", /no JSON/],
    [Response.json({ id: "7" }), "schema_registry", /no id/],
  ];
  for (const [answer, code, message] of cases) {
    registry.instead = (request) => {
      login.push(request.headers.get("authorization") ?? "");
      return answer;
    };
    const format = avroFormat({ registry: { url, username: "ann", password }, topic: "t", schema: ORDER });
    const error = await failing(encoded(format, { id: 1 }));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.ok(!`${error.message}${error.hint}`.includes(password));
  }
  assert.equal(login.length, cases.length);
  assert.ok(login.every((header) => header === `Basic ${btoa(`ann:${password}`)}`));
  registry.instead = (request) => {
    login.push(request.headers.get("authorization")!);
    return undefined;
  };
  await encoded(avroFormat({ registry: { url, token: "t0k" }, topic: "t", schema: ORDER }), { id: 1 });
  assert.equal(login.at(-1), "Bearer t0k");
});

Deno.test("options that make no sense are refused at once", () => {
  const url = "http://localhost:8081";
  const cases: [AvroFormatOptions, RegExp][] = [
    [{ registry: { url: "localhost" } }, /is none/],
    [{ registry: { url: "ftp://localhost" } }, /begins with http/],
    [{ registry: { url: "http://ann:secret@localhost" } }, /has a login in it/],
    [{ registry: { url, username: "ann" } }, /go together/],
    [{ registry: { url, username: "ann", password: "p", token: "t" } }, /not both/],
    [{ registry: { url }, subject: "s", topic: "t" }, /not both/],
  ];
  for (const [options, message] of cases) {
    assert.throws(() => avroFormat(options), (error: MailerError) => {
      assert.equal(error.code, "invalid_avro_options");
      assert.match(error.message, message);
      assert.ok(!error.message.includes("secret"));
      return true;
    });
  }
});

Deno.test("what was not prepared says so", () => {
  const format = avroFormat({ registry: { url: "http://localhost:1" }, topic: "t" });
  assert.throws(() => format.encoder().encode(1), { code: "format_not_supported" });
  const into: Decoded = { values: [], failures: [] };
  format.decoder().decode([Uint8Array.of(0, 0, 0, 0, 1, 2)], into);
  assert.deepEqual(codes(into), [[0, "avro_unknown_schema"]]);
});
