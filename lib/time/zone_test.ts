import assert from "node:assert/strict";
import fc from "fast-check";
import { zoneOf } from "./zone.ts";

const ZONES = [
  "UTC",
  "+05:30",
  "America/New_York",
  "Europe/Berlin",
  "Asia/Kolkata",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "America/Sao_Paulo",
  "Africa/Cairo",
  "Pacific/Apia",
  "America/St_Johns",
  "Asia/Manila",
  "Africa/Monrovia",
  "Africa/Casablanca",
];
const anyZone = fc.constantFrom(...ZONES);
const FIRST = Date.UTC(1840, 0, 1), LAST = Date.UTC(2110, 0, 1);

/** Instants, every other one within two days of a clock change. */
function instants(zone: string): fc.Arbitrary<number> {
  const near = fc.tuple(
    fc.integer({ min: FIRST, max: LAST }),
    fc.integer({ min: -48 * 3_600_000, max: 48 * 3_600_000 }),
  )
    .map(([instant, by]) => {
      const change = temporal(instant, zone).getTimeZoneTransition("next") ??
        temporal(instant, zone).getTimeZoneTransition("previous");
      return change === null || change === undefined ? instant : change.epochMilliseconds + by;
    });
  return fc.oneof(
    fc.integer({ min: FIRST, max: LAST }),
    near,
    near.map((t) => Math.round(t / 1_800_000) * 1_800_000 + 0),
  );
}
const zonedInstant = anyZone.chain((zone) => fc.tuple(fc.constant(zone), instants(zone)));

function temporal(instant: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone);
}

Deno.test("Z1: offsets agree with Temporal, in any order of asking", () => {
  const zones = new Map(ZONES.map((id) => [id, zoneOf(id)]));
  fc.assert(
    fc.property(zonedInstant, ([id, instant]) => {
      const zone = zones.get(id)!;
      assert.equal(zone.offsetAt(instant), temporal(instant, id).offsetNanoseconds / 1e6);
      assert.ok(zone.unchangedSince(instant) <= instant && instant < zone.unchangedUntil(instant));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("Z1: offsets agree with Temporal a millisecond before and at every change of a century", () => {
  for (const id of ZONES) {
    const zone = zoneOf(id);
    let at = temporal(Date.UTC(1970, 0, 1), id);
    for (
      let next = at.getTimeZoneTransition("next");
      next && next.year < 2070;
      next = at.getTimeZoneTransition("next")
    ) {
      const change = next.epochMilliseconds;
      for (const instant of [change, change - 1]) {
        assert.equal(
          zone.offsetAt(instant),
          temporal(instant, id).offsetNanoseconds / 1e6,
          `${id} ${instant}`,
        );
      }
      assert.notEqual(zone.offsetAt(change), zone.offsetAt(change - 1), `${id} ${change}`);
      at = next;
    }
  }
});

Deno.test("Z2: the instant of a local time is Temporal's compatible one", () => {
  fc.assert(
    fc.property(zonedInstant, ([id, local]) => {
      const plain = Temporal.Instant.fromEpochMilliseconds(local).toZonedDateTimeISO("UTC").toPlainDateTime();
      assert.equal(zoneOf(id).instantOf(local), plain.toZonedDateTime(id).epochMilliseconds);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("the first instant of a midnight is Temporal's start of the day", () => {
  fc.assert(
    fc.property(zonedInstant, ([id, instant]) => {
      const date = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO("UTC").toPlainDate();
      const midnight = Math.floor(instant / 86_400_000) * 86_400_000;
      assert.equal(zoneOf(id).firstInstantOf(midnight), date.toZonedDateTime(id).epochMilliseconds);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("a zone holds at both ends of time", () => {
  for (const id of ZONES) {
    const zone = zoneOf(id);
    for (const instant of [8.64e15, -8.64e15]) {
      assert.equal(zone.offsetAt(instant), temporal(instant, id).offsetNanoseconds / 1e6);
      assert.equal(zone.instantOf(instant + zone.offsetAt(instant)), instant);
    }
  }
});

Deno.test("a walk through centuries keeps answering right", () => {
  const zone = zoneOf("Europe/Berlin");
  for (let year = 1970; year < 2500; year++) {
    assert.equal(zone.offsetAt(Date.UTC(year, 6, 1)), year < 1980 ? 3_600_000 : 7_200_000, String(year));
    assert.equal(zone.offsetAt(Date.UTC(year, 0, 1)), 3_600_000, String(year));
  }
});

Deno.test("an unknown zone is an error that names it", () => {
  for (const id of ["Nope/Zone", "", "local", "Z"]) {
    assert.throws(() => zoneOf(id), { code: "unknown_timezone", message: new RegExp(`"${id}"`) });
  }
  assert.equal(zoneOf("america/new_york").id, "America/New_York");
  assert.equal(zoneOf("UTC").fixedOffset, 0);
  assert.equal(zoneOf("+05:30").fixedOffset, 19_800_000);
  assert.equal(zoneOf("Europe/Berlin").fixedOffset, undefined);
});
