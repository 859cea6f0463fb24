/**
 * The sums any right run must give, by workload and number of records.
 *
 * Computed by plain loops in another language; W-d and W-e have no `sum_sum`.
 *
 * @module
 */
import type { Workload } from "./data.ts";
import type { Sums } from "./tally.ts";

const EXPECTED: { readonly [W in Workload]: Readonly<Record<number, Sums>> } = {
  "W-a": {
    1000: { rows: 505, sum_id: 257_940, sum_fee: 32_750.53125 },
    20_000: { rows: 9901, sum_id: 99_113_457, sum_fee: 619_442.40625 },
    200_000: { rows: 100_100, sum_id: 10_011_119_015, sum_fee: 6_267_452.0625 },
    1_000_000: { rows: 500_130, sum_id: 250_191_770_330, sum_fee: 31_268_391.4375 },
    5_000_000: { rows: 2_500_237, sum_id: 6_250_454_974_474, sum_fee: 156_399_186.71875 },
  },
  "W-b": {
    1000: {
      rows: 1000,
      keys: 997,
      sum_running: 2_043_010,
      sum_final: 2_039_075,
      sum_final_weighted: 100_725_511_161,
    },
    20_000: {
      rows: 20_000,
      keys: 18_096,
      sum_running: 44_023_621,
      sum_final: 39_930_556,
      sum_final_weighted: 1_989_381_420_217,
    },
    200_000: {
      rows: 200_000,
      keys: 86_392,
      sum_running: 802_233_784,
      sum_final: 400_330_160,
      sum_final_weighted: 20_028_820_227_065,
    },
    1_000_000: {
      rows: 1_000_000,
      keys: 99_994,
      sum_running: 11_996_526_872,
      sum_final: 2_000_432_648,
      sum_final_weighted: 100_037_904_305_417,
    },
    5_000_000: {
      rows: 5_000_000,
      keys: 100_000,
      sum_running: 260_109_885_231,
      sum_final: 10_004_347_727,
      sum_final_weighted: 500_335_372_204_173,
    },
  },
  "W-c": {
    1000: {
      rows: 997,
      sum_count: 1000,
      sum_sum: 509_768.75,
      sum_count_by_key: 48_893_531,
      sum_count_by_window: 1000,
      sum_count_squared: 1006,
    },
    20_000: {
      rows: 18_096,
      sum_count: 20_000,
      sum_sum: 9_982_639,
      sum_count_by_key: 997_094_018,
      sum_count_by_window: 20_000,
      sum_count_squared: 24_076,
    },
    200_000: {
      rows: 86_392,
      sum_count: 200_000,
      sum_sum: 100_082_540,
      sum_count_by_key: 9_988_939_151,
      sum_count_by_window: 200_000,
      sum_count_squared: 601_316,
    },
    1_000_000: {
      rows: 352_559,
      sum_count: 1_000_000,
      sum_sum: 500_108_162,
      sum_count_by_key: 50_007_153_110,
      sum_count_by_window: 2_245_102,
      sum_count_squared: 3_744_474,
    },
    3_000_000: {
      rows: 963_210,
      sum_count: 3_000_000,
      sum_sum: 1_500_688_032,
      sum_count_by_key: 150_004_479_933,
      sum_count_by_window: 16_650_512,
      sum_count_squared: 11_916_006,
    },
  },
  "W-d": {
    1000: {
      rows: 4745,
      sum_count: 5000,
      sum_count_by_key: 25_517_655,
      sum_count_by_window: 15_000,
      sum_count_squared: 5540,
    },
    20_000: {
      rows: 43_065,
      sum_count: 100_000,
      sum_count_by_key: 501_720_090,
      sum_count_by_window: 300_000,
      sum_count_squared: 301_040,
    },
    200_000: {
      rows: 95_769,
      sum_count: 1_000_000,
      sum_count_by_key: 5_003_345_755,
      sum_count_by_window: 5_250_845,
      sum_count_squared: 14_298_128,
    },
    1_000_000: {
      rows: 295_740,
      sum_count: 5_000_000,
      sum_count_by_key: 24_998_515_550,
      sum_count_by_window: 76_249_810,
      sum_count_squared: 98_306_514,
    },
    2_000_000: {
      rows: 545_761,
      sum_count: 10_000_000,
      sum_count_by_key: 50_031_938_290,
      sum_count_by_window: 277_501_940,
      sum_count_squared: 203_299_162,
    },
  },
  "W-e": {
    1000: {
      rows: 949,
      sum_count: 1000,
      sum_count_by_key: 5_103_531,
      sum_count_squared: 1108,
      sum_span_ms: 15_315,
      sum_start_ms_minus_T0: 627_123,
    },
    20_000: {
      rows: 8620,
      sum_count: 20_000,
      sum_count_by_key: 100_344_018,
      sum_count_squared: 60_192,
      sum_span_ms: 13_684_530,
      sum_start_ms_minus_T0: 19_478_163,
    },
    200_000: {
      rows: 32_876,
      sum_count: 200_000,
      sum_count_by_key: 1_000_669_151,
      sum_count_squared: 2_121_710,
      sum_span_ms: 281_493_906,
      sum_start_ms_minus_T0: 698_974_443,
    },
    1_000_000: {
      rows: 141_177,
      sum_count: 1_000_000,
      sum_count_by_key: 4_999_703_110,
      sum_count_squared: 13_110_382,
      sum_span_ms: 1_469_078_802,
      sum_start_ms_minus_T0: 16_994_384_127,
    },
    2_000_000: {
      rows: 276_774,
      sum_count: 2_000_000,
      sum_count_by_key: 10_006_387_658,
      sum_count_squared: 26_919_230,
      sum_span_ms: 2_952_656_235,
      sum_start_ms_minus_T0: 67_904_039_565,
    },
  },
};

/** The sums of `records` records of a workload; undefined for a number of records that nobody computed. */
export function expectedSums(name: Workload, records: number): Sums | undefined {
  return EXPECTED[name][records];
}
