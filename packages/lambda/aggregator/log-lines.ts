import type { RecordFailure } from "zae-limiter/aggregator";
import { errorFields, logLine } from "../runtime/log-line.ts";

/** The most failures of a batch that get a line each: what fails together fails alike. */
const MAX_LINES = 10;

/** A line of JSON for each failure, and one for those that are too many. */
export function failureLines(failures: readonly RecordFailure[]): readonly string[] {
  const lines = failures.slice(0, MAX_LINES).map(failureLine);
  const rest = failures.length - lines.length;
  if (rest > 0) lines.push(logLine("ERROR", { message: `${rest} more records failed` }));
  return lines;
}

/** A line about records that are not changes of an item. */
export function skippedLine(count: number): string {
  return logLine("WARN", { message: `${count} records could not be read and were skipped` });
}

function failureLine({ sequenceNumber, error }: RecordFailure): string {
  return logLine("ERROR", { ...errorFields(error), sequenceNumber });
}
