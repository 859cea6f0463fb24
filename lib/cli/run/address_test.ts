import assert from "node:assert/strict";
import { addressText, parseAddress } from "./address.ts";

Deno.test("an address is HOST:PORT, with brackets around IPv6", () => {
  for (const text of ["127.0.0.1:9090", "localhost:0", "[::1]:65535", "my-host.example:80"]) {
    assert.equal(addressText(parseAddress(text)), text);
  }
  assert.deepEqual(parseAddress("[::]:1"), { hostname: "::", port: 1 });
});

Deno.test("what is no address is refused", () => {
  for (
    const text of [
      "",
      "9090",
      ":9090",
      "host",
      "host:",
      "host:x",
      "host:65536",
      "host:-1",
      "::1:80",
      "a b:1",
      "http://h:1",
      "[::1]",
      "h:1/",
    ]
  ) {
    assert.throws(() => parseAddress(text), { code: "usage" }, text);
  }
});
