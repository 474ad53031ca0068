/** A line of JSON for the log. */
export function logLine(
  level: "ERROR" | "WARN" | "INFO",
  fields: Readonly<Record<string, string>>,
): string {
  return JSON.stringify({ level, ...fields });
}

/**
 * The fields of a log line about something that was thrown: its message, and its code if it has
 * one.
 */
export function errorFields(error: unknown): {
  readonly message: string;
  readonly code?: string;
} {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return {
    message: error instanceof Error ? error.message : String(error),
    ...(typeof code === "string" && { code }),
  };
}

/** Prints one line. Lambda would put fields of its own around what console.log prints. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
