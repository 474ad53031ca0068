import type { RecordFailure } from "zae-limiter/aggregator";

/** The most failures of a batch that get a line each: what fails together fails alike. */
const MAX_LINES = 10;

/** A line of JSON for each failure, and one for those that are too many. */
export function failureLines(failures: readonly RecordFailure[]): readonly string[] {
  const lines = failures.slice(0, MAX_LINES).map(failureLine);
  const rest = failures.length - lines.length;
  if (rest > 0) lines.push(line("ERROR", { message: `${rest} more records failed` }));
  return lines;
}

/** A line about records that are no changes of an item. */
export function skippedLine(count: number): string {
  return line("WARN", { message: `${count} records could not be read and were skipped` });
}

function failureLine({ sequenceNumber, error }: RecordFailure): string {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return line("ERROR", {
    message: error instanceof Error ? error.message : String(error),
    ...(typeof code === "string" && { code }),
    sequenceNumber,
  });
}

function line(level: "ERROR" | "WARN", fields: Readonly<Record<string, string>>): string {
  return JSON.stringify({ level, ...fields });
}
