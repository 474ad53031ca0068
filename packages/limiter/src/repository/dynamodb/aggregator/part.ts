import type { StreamRecord } from "./stream-record.ts";

/** A record that could not be processed, and why. */
export interface RecordFailure {
  /** The record's sequence number. */
  readonly sequenceNumber: string;
  /** What went wrong. */
  readonly error: unknown;
}

/** What became of a batch in one part of the aggregator. */
export interface PartReport {
  /** Records that must be delivered again, in any order; one may be there several times. */
  readonly failures: readonly RecordFailure[];
}

/** What a part reports when none of the records concerned it. */
export const NO_FAILURES: readonly RecordFailure[] = [];

/** The failures of records that failed together. */
export function failuresOf(
  records: readonly StreamRecord[],
  error: unknown,
): readonly RecordFailure[] {
  return records.map(({ sequenceNumber }) => ({ sequenceNumber, error }));
}
