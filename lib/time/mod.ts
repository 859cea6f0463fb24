/**
 * Time of records: timestamp formats, time zones, the calendar.
 *
 * @module
 */
export { type CivilDate, civilDate, DAY, dayNumber, daysInMonth, isLeapYear } from "./civil.ts";
export { type TimestampOptions, type TimestampParser, timestampParser } from "./timestamp.ts";
export { type Zone, zoneOf } from "./zone.ts";
