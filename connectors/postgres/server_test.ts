import assert from "node:assert/strict";
import { parseDsn } from "./server.ts";

Deno.test("connection URLs are read with everything they may have", () => {
  assert.deepEqual(
    parseDsn("postgres://us%40er:p%3Ass@db.example:6543/my%20db?sslmode=require&options=-c%20a%3Db"),
    {
      name: "db.example:6543/my db",
      addresses: [{ host: "db.example", port: 6543 }],
      user: "us@er",
      password: "p:ss",
      database: "my db",
      encryption: "require",
      authority: undefined,
      applicationName: "mailer",
      settings: "-c a=b",
    },
  );
  const { user, password, database, ...rest } = parseDsn("postgresql://");
  assert.deepEqual([user, password, database], [undefined, undefined, undefined]);
  assert.deepEqual(rest, {
    name: "localhost:5432",
    addresses: [{ host: "localhost", port: 5432 }],
    encryption: "disable",
    authority: undefined,
    applicationName: "mailer",
    settings: undefined,
  });
});

Deno.test("connection URLs: several hosts, addresses of version 6, sockets", () => {
  const addresses = (dsn: string) => parseDsn(dsn).addresses;
  assert.deepEqual(addresses("postgres://u:a:b@h1,h2:1,[::1]:7/d"), [
    { host: "h1", port: 5432 },
    { host: "h2", port: 1 },
    { host: "::1", port: 7 },
  ]);
  assert.equal(parseDsn("postgres://u:a:b@h/d").password, "a:b");
  assert.deepEqual(addresses("postgres://%2Fvar%2Frun/d"), [{ path: "/var/run/.s.PGSQL.5432" }]);
  assert.deepEqual(addresses("postgres:///d?host=/tmp"), [{ path: "/tmp/.s.PGSQL.5432" }]);
});

Deno.test("a connection URL that is none: what is wrong, and nothing of it", () => {
  const cases: [string, RegExp][] = [
    ["hunter2secret", /no such URL/],
    ["mysql://u:hunter2secret@h/d", /no such URL/],
    ["postgres://u:hunter2secret@h:port/d", /host is a name/],
    ["postgres://u:hunter2secret@h:99999/d", /port is a number/],
    ["postgres://u:hunter2%secret@h/d", /% in it/],
    ["postgres://u:hunter2secret@h/d?sslmode=hunter2secret", /sslmode is one of: disable/],
    ["postgres://u:hunter2secret@h/d?pool=hunter2secret", /parameter "pool" is not known/],
  ];
  for (const [dsn, message] of cases) {
    assert.throws(() => parseDsn(dsn), (error: Error & { code: string }) => {
      assert.equal(error.code, "invalid_dsn");
      assert.match(error.message, message);
      assert.doesNotMatch(Deno.inspect(error, { depth: 9, showHidden: true }), /hunter2secret/);
      return true;
    });
  }
});
