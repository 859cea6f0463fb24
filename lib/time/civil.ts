/**
 * Days of the proleptic Gregorian calendar as numbers: day 0 is 1970-01-01. Any year a double holds exactly will do.
 *
 * @module
 */

/** Milliseconds of a day without a clock change. */
export const DAY = 86_400_000;

/** A date as people write it. */
export interface CivilDate {
  /** Year 0 is 1 BC. */
  readonly year: number;
  /** 1 … 12. */
  readonly month: number;
  /** 1 … 31. */
  readonly day: number;
}

// Years are counted from March, so that the leap day is the last of its year; 400 years are an era of 146,097 days.
const DAYS_OF_ERA = 146_097;
const MARCH_0000 = -719_468;

/** Number of a day. `day` may run over its month. */
export function dayNumber(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_OF_ERA + dayOfEra + MARCH_0000;
}

/** Date of a day's number. */
export function civilDate(number: number): CivilDate {
  const days = number - MARCH_0000;
  const era = Math.floor(days / DAYS_OF_ERA);
  const dayOfEra = days - era * DAYS_OF_ERA;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

/** Days of a month, 28 … 31. */
export function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Whether a year has a 29th of February. */
export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}
