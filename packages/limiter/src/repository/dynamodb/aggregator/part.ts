import { RateLimiterUnavailable } from "../../../core/errors.ts";
import type { Clock } from "../../system-clock.ts";
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
export function toFailures(
  records: readonly StreamRecord[],
  error: unknown,
): readonly RecordFailure[] {
  return records.map(({ sequenceNumber }) => ({ sequenceNumber, error }));
}

/** Throws when no further work may start; a part calls it before each piece of work. */
export type TimeCheck = () => void;

/** For batches that may take as long as they need. */
export const UNLIMITED: TimeCheck = () => {};

/** Limits the work on a batch to a time from now on. */
export function limitTime(ms: number, clock: Clock): TimeCheck {
  const endMs = clock.now() + ms;
  return () => {
    if (clock.now() >= endMs)
      throw new RateLimiterUnavailable(
        "There was no time left to process the record: it must be delivered again.",
      );
  };
}
