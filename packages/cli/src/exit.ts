import { CommanderError } from "commander";
import {
  InvalidIdentifierError,
  InvalidNameError,
  NamespaceNotFoundError,
  ValidationError,
  ZaeLimiterError,
} from "zae-limiter";
import type { Environment } from "./environment.ts";
import { coloursFor } from "./output/colours.ts";
import { jsonText } from "./output/json.ts";

/** The exit codes of the program. Scripts rely on them. */
export const EXIT = { done: 0, failed: 1, wrongUsage: 2, refused: 3 } as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command cannot be run as it was written; the message says how to write it. */
export class UsageError extends Error {
  readonly code = "ERR_CLI_USAGE";
}

/** The system on this machine cannot be started, found or ended; the message says what to do. */
export class LocalError extends Error {
  readonly code = "ERR_CLI_LOCAL";
}

/** The person at the terminal answered no. */
export class Cancelled extends Error {
  readonly code = "ERR_CLI_CANCELLED";
}

/** Writes an error to standard error, as text or as JSON, and returns its exit code. */
export function reportError(error: unknown, json: boolean, { stderr, env }: Environment): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.done;
    // Commander has already written its message and the help for people; only JSON is missing.
    if (json)
      stderr.write(
        jsonText({
          error: { code: "ERR_CLI_USAGE", message: error.message.replace(/^error: /, "") },
        }),
      );
    return EXIT.wrongUsage;
  }
  const message = messageOf(error);
  const { red } = coloursFor(stderr, env);
  stderr.write(
    json ? jsonText({ error: { code: codeOf(error), message } }) : `${red("error:")} ${message}\n`,
  );
  return exitCodeOf(error);
}

/** Input fields that are checked without the repository, so an error means wrong usage. */
const SYNTAX_FIELDS: ReadonlySet<string> = new Set([
  "url",
  "stack",
  "region",
  "endpointUrl",
  "account",
  "into",
  "cursor",
  "limit",
  "window",
  "start",
  "end",
  "namespaceId",
  "metadata",
  "archive",
]);

/** The exit code that an error stands for. */
export function exitCodeOf(error: unknown): ExitCode {
  if (
    error instanceof UsageError ||
    error instanceof InvalidIdentifierError ||
    error instanceof InvalidNameError
  )
    return EXIT.wrongUsage;
  if (error instanceof ValidationError && SYNTAX_FIELDS.has(error.field)) return EXIT.wrongUsage;
  return EXIT.failed;
}

const OWN_ERRORS = [UsageError, LocalError, Cancelled] as const;

function codeOf(error: unknown): string {
  if (error instanceof ZaeLimiterError || OWN_ERRORS.some((type) => error instanceof type))
    return (error as Error & { readonly code: string }).code;
  return "ERR_CLI_UNEXPECTED";
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NamespaceNotFoundError && !message.includes("zae-limiter namespace"))
    return `${message} To register it: zae-limiter namespace register ${error.namespaceName}`;
  return message;
}
