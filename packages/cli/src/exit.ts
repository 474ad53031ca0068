/** How the program ends: what scripts rely on. */
export const EXIT = { done: 0, failed: 1, wrongUsage: 2, refused: 3 } as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command cannot be run as it was written; the message says how to write it. */
export class UsageError extends Error {
  readonly code = "ERR_CLI_USAGE";
}

/** The person at the terminal said no. */
export class Cancelled extends Error {
  readonly code = "ERR_CLI_CANCELLED";
}
