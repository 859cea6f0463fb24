import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal } from "../json.ts";
import { timestampParser } from "./timestamp.ts";

const at = Date.parse;

Deno.test("auto reads RFC 3339 and epoch milliseconds", () => {
  const parse = timestampParser();
  const cases: [unknown, number][] = [
    ["2026-03-01T10:00:05Z", at("2026-03-01T10:00:05Z")],
    ["2026-03-01t10:00:05z", at("2026-03-01T10:00:05Z")],
    ["2026-03-01 10:00:05Z", at("2026-03-01T10:00:05Z")],
    ["2026-03-01T10:00:05", at("2026-03-01T10:00:05Z")],
    ["2026-03-01T10:00:05.1Z", at("2026-03-01T10:00:05.100Z")],
    ["2026-03-01T10:00:05.123999999Z", at("2026-03-01T10:00:05.123Z")],
    ["1969-12-31T23:59:59.9999Z", -1],
    ["2026-03-01T10:00:05+05:30", at("2026-03-01T04:30:05Z")],
    ["2026-03-01T10:00:05.5-00:00", at("2026-03-01T10:00:05.500Z")],
    ["2024-02-29T00:00:00Z", at("2024-02-29T00:00:00Z")],
    ["0000-01-01T00:00:00Z", at("0000-01-01T00:00:00Z")],
    ["-000001-12-31T23:59:59Z", at("-000001-12-31T23:59:59Z")],
    ["+275760-09-13T00:00:00Z", 8.64e15],
    ["-271821-04-20T00:00:00Z", -8.64e15],
    ["2016-12-31T23:59:60Z", at("2016-12-31T23:59:59.999Z")],
    ["2017-01-01T08:59:60.25+09:00", at("2016-12-31T23:59:59.999Z")],
    ["1772442000328", 1772442000328],
    ["-5", -5],
    ["12.7", 12],
    [1772442000328, 1772442000328],
    [1772442000328.9, 1772442000328],
    [-0.5, -1],
    [1e-9, 0],
    [0, 0],
    [1772442000328n, 1772442000328],
    [new Decimal("1772442000328.99999999999999"), 1772442000328],
    [new Decimal("-0.00000000000000000001"), -1],
  ];
  for (const [value, expected] of cases) assert.equal(parse(value), expected, String(value));
});

Deno.test("auto refuses what is no timestamp, naming it", () => {
  const parse = timestampParser();
  const refused = [
    "",
    " ",
    "yesterday",
    "2026-03-01",
    "2026-03-01T10:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-03-00T00:00:00Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T10:60:00Z",
    "2026-03-01T10:00:60Z",
    "2026-03-01T10:00:61Z",
    "2026-03-01T10:00:05.Z",
    "2026-03-01T10:00:05,5Z",
    "2026-03-01T10:00:05+0530",
    "2026-03-01T10:00:05+24:00",
    "2026-03-01T10:00:05+05:60",
    "2026-03-01T10:00:05Zx",
    "2026-03-01T10:00:05 Z",
    "2026/03/01T10:00:05Z",
    "20٢6-03-01T10:00:05Z",
    "-000000-01-01T00:00:00Z",
    "+275760-09-13T00:00:00.001Z",
    "1e3",
    "0x10",
    NaN,
    Infinity,
    8.64e15 + 2,
    1e300,
    10n ** 30n,
    null,
    undefined,
    true,
    {},
    [],
  ];
  for (const value of refused) {
    assert.throws(() => parse(value), { code: "bad_timestamp", message: /auto/ }, String(value));
  }
  assert.throws(() => parse("yesterday"), /"yesterday" is not a timestamp of format auto/);
});

Deno.test("every instant reads back from its ISO text, and from that text in any zone", () => {
  const parse = timestampParser();
  fc.assert(fc.property(fc.integer({ min: -8.64e15, max: 8.64e15 }), (instant) => {
    assert.equal(parse(new Date(instant).toISOString()), instant);
  }));
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4e12 }),
      fc.constantFrom("Asia/Kolkata", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"),
      (instant, timezone) => {
        const text = Temporal.Instant.fromEpochMilliseconds(instant).toString({ timeZone: timezone });
        assert.equal(parse(text), instant, text);
      },
    ),
  );
});

Deno.test("a date is read exactly when it exists", () => {
  const parse = timestampParser({ format: "rfc3339" });
  for (let month = 0; month <= 13; month++) {
    for (let day = 0; day <= 32; day++) {
      const text = `2023-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}T00:00:00Z`;
      const date = new Date(Date.UTC(2023, month - 1, day));
      const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && month > 0;
      if (exists) assert.equal(parse(text), date.getTime());
      else assert.throws(() => parse(text), { code: "bad_timestamp" });
    }
  }
});

Deno.test("rfc3339 takes no numbers", () => {
  const parse = timestampParser({ format: "rfc3339" });
  for (const value of [1772442000328, "1772442000328", 5n]) {
    assert.throws(() => parse(value), { code: "bad_timestamp" });
  }
});

Deno.test("epoch seconds keep their milliseconds", () => {
  const parse = timestampParser({ format: "epochSeconds" });
  const cases: [unknown, number][] = [
    [1772442000, 1772442000000],
    ["1772442000", 1772442000000],
    [1772442000.123, 1772442000123],
    ["1772442000.1239", 1772442000123],
    [1.005, 1005],
    [-1.0005, -1001],
    [-1.5, -1500],
    ["1.", 1000],
    [new Decimal("1772442000.12345678901234567"), 1772442000123],
    [1772442000n, 1772442000000],
  ];
  for (const [value, expected] of cases) assert.equal(parse(value), expected, String(value));
  assert.throws(() => parse("2026-03-01T10:00:05Z"), { code: "bad_timestamp", message: /epochSeconds/ });
  assert.throws(() => parse(8.64e12 + 1), { code: "bad_timestamp" });
  fc.assert(fc.property(fc.integer({ min: -4e12, max: 4e12 }), (ms) => {
    assert.equal(parse(ms / 1000), ms);
  }));
});

Deno.test("patterns read what they say", () => {
  const cases: [string, string, string][] = [
    ["yyyy-MM-dd HH:mm:ss", "2026-03-01 10:00:05", "2026-03-01T10:00:05Z"],
    ["yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-03-01T10:00:05.250+05:30", "2026-03-01T04:30:05.250Z"],
    ["yyyy-MM-dd'T'HH:mm:ssXXX", "2026-03-01T10:00:05Z", "2026-03-01T10:00:05Z"],
    ["yyyyMMddHHmmss", "20260301100005", "2026-03-01T10:00:05Z"],
    ["yyyyMMddHHmmssSSS", "20260301100005007", "2026-03-01T10:00:05.007Z"],
    ["dd/MMM/yyyy:HH:mm:ss xx", "01/Mar/2026:10:00:05 -0500", "2026-03-01T15:00:05Z"],
    ["dd/MMM/yyyy:HH:mm:ss Z", "01/mar/2026:10:00:05 +0000", "2026-03-01T10:00:05Z"],
    ["EEE, d MMM yyyy HH:mm:ss", "Sun, 1 Mar 2026 10:00:05", "2026-03-01T10:00:05Z"],
    ["EEEE, MMMM d, yyyy h:mm a", "Sunday, March 1, 2026 10:00 PM", "2026-03-01T22:00:00Z"],
    ["d.M.yy", "1.3.26", "2026-03-01T00:00:00Z"],
    ["d.M.yy", "31.12.69", "1969-12-31T00:00:00Z"],
    ["M/d/yyyy hh:mm:ss a", "3/1/2026 12:00:05 am", "2026-03-01T00:00:05Z"],
    ["M/d/yyyy hh:mm a", "3/1/2026 12:30 PM", "2026-03-01T12:30:00Z"],
    ["yyyy-DDD", "2024-366", "2024-12-31T00:00:00Z"],
    ["yyyy-MM-dd kk:mm", "2026-03-01 24:10", "2026-03-01T00:10:00Z"],
    ["yyyy-MM", "2026-03", "2026-03-01T00:00:00Z"],
    ["y-MM-dd", "12026-03-01", "+012026-03-01T00:00:00Z"],
    ["yyyy-MM-dd HH 'o''clock'", "2026-03-01 10 o'clock", "2026-03-01T10:00:00Z"],
    ["yyyy-MM-dd HH:mm:ss.SSSSSS", "2026-03-01 10:00:05.123999", "2026-03-01T10:00:05.123Z"],
    ["yyyy-MM-dd HH:mm:ss VV", "2026-07-01 10:00:05 Europe/Berlin", "2026-07-01T08:00:05Z"],
    ["yyyy-MM-dd HH:mm X", "2026-03-01 10:00 +05", "2026-03-01T05:00:00Z"],
    ["yyyy-MM-dd HH:mm X", "2026-03-01 10:00 -0330", "2026-03-01T13:30:00Z"],
  ];
  for (const [format, text, expected] of cases) {
    assert.equal(timestampParser({ format })(text), at(expected), text);
  }
  assert.equal(timestampParser({ format: "yyyyMMdd" })(20260301), at("2026-03-01T00:00:00Z"));
});

Deno.test("a text that does not fit its pattern is refused whole", () => {
  const cases: [string, unknown][] = [
    ["yyyy-MM-dd", "2026-3-1"],
    ["yyyy-MM-dd", "2026-02-30"],
    ["yyyy-MM-dd", "2026-03-01 "],
    ["yyyy-MM-dd", "26-03-01"],
    ["yyyy-MM-dd HH:mm:ss", "2026-03-01 10:00"],
    ["yyyy-MM-dd HH:mm:ss", "2026-03-01 24:00:00"],
    ["yyyy-MM-dd HH:mm:ss", "2026-03-01T10:00:00"],
    ["EEE d MMM yyyy", "Mon 1 Mar 2026"],
    ["d MMM yyyy", "1 Mrz 2026"],
    ["yyyy-DDD", "2023-366"],
    ["yyyy-MM-dd h a", "2026-03-01 13 pm"],
    ["yyyy-MM-dd h a", "2026-03-01 0 pm"],
    ["yyyy-MM-dd VV", "2026-03-01 Nope/Zone"],
    ["yyyy-MM-dd XXX", "2026-03-01 +0530"],
    ["yyyy-MM-dd xxx", "2026-03-01 Z"],
    ["yyyy.SSS", "2026.5"],
    ["yyyyMMdd", 20260301.5],
    ["yyyyMMdd", true],
    ["yyyyMMdd", null],
  ];
  for (const [format, value] of cases) {
    assert.throws(() => timestampParser({ format })(value), { code: "bad_timestamp" }, `${format} ${value}`);
  }
});

Deno.test("a pattern that cannot be meant is refused before anything is read", () => {
  const cases: [string, RegExp][] = [
    ["YYYY-MM-dd", /Y.* position 1/],
    ["yyyy-MM-DD", /day of the year/],
    ["yyyy-mm-dd HH:mm", /minute stands twice/],
    ["yyyy-mm-dd", /no month/],
    ["yyyy-MM-ddTHH:mm", /T at position 11/],
    ["HH:mm", /no year/],
    ["epochMilis", /position 1/],
    ["yyyy-MM-dd'T", /position 11 is not closed/],
    ["yyyy-MM-dd hh:mm", /need each other/],
    ["yyyy-MM-dd HH:mm a", /need each other/],
    ["yyyy-MM-dd z", /z at position 12/],
    ["yyyy-MMMMM", /MMMMM/],
    ["", /no year/],
  ];
  for (const [format, message] of cases) {
    assert.throws(() => timestampParser({ format }), { code: "invalid_timestamp_format", message }, format);
  }
  assert.throws(() => timestampParser({ timezone: "Mars/Base" }), { code: "unknown_timezone" });
});

Deno.test("Z4: local times at a clock change are read as Temporal's compatible ones, half-hour zones too", () => {
  const cases: [string, string, string][] = [
    ["America/New_York", "2026-03-08 02:30:00", "2026-03-08T03:30:00-04:00"], // skipped
    ["America/New_York", "2026-11-01 01:30:00", "2026-11-01T01:30:00-04:00"], // twice: the first
    ["America/New_York", "2026-03-08 09:00:00", "2026-03-08T09:00:00-04:00"],
    ["Asia/Kolkata", "2026-03-08 09:00:00", "2026-03-08T09:00:00+05:30"],
    ["Australia/Lord_Howe", "2026-10-04 02:15:00", "2026-10-04T02:45:00+11:00"],
    ["Pacific/Apia", "2011-12-30 12:00:00", "2011-12-31T12:00:00+14:00"],
  ];
  for (const [timezone, text, expected] of cases) {
    for (const format of ["auto", "rfc3339", "yyyy-MM-dd HH:mm:ss"]) {
      assert.equal(
        timestampParser({ format, timezone })(text),
        at(expected),
        `${timezone} ${text} ${format}`,
      );
    }
  }
});

Deno.test("Z7: without a zone local times are UTC, whatever the machine's zone is", () => {
  const before = Deno.env.get("TZ");
  try {
    for (const machine of ["America/New_York", "Asia/Kolkata"]) {
      Deno.env.set("TZ", machine);
      assert.notEqual(new Date(0).getTimezoneOffset(), 0, "the machine's zone has changed");
      assert.equal(timestampParser()("2026-03-01T10:00:05"), 1772359205000);
      assert.equal(timestampParser({ format: "yyyy-MM-dd" })("2026-03-01"), 1772323200000);
    }
  } finally {
    if (before === undefined) Deno.env.delete("TZ");
    else Deno.env.set("TZ", before);
  }
});
