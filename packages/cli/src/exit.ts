import { CommanderError } from "commander";
import {
  InvalidIdentifierError,
  InvalidNameError,
  NamespaceNotFoundError,
  ValidationError,
  ZaeLimiterError,
} from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import type { ApplyError, ManifestError } from "zae-limiter/manifest";
import type { Environment } from "./environment.ts";
import { coloursFor, type Colours } from "./output/colours.ts";
import { jsonText } from "./output/json.ts";
import { formatRemaining, problemsText } from "./output/plan.ts";
import { printable } from "./output/text.ts";

/** The exit codes of the program. Scripts rely on them. */
export const EXIT = { done: 0, failed: 1, wrongUsage: 2, refused: 3, differs: 3 } as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line is wrong; the message says how to write it. */
export class UsageError extends Error {
  readonly code = "ERR_CLI_USAGE";
}

/** The system on this machine cannot be started, found or ended; the message says what to do. */
export class LocalError extends Error {
  readonly code = "ERR_CLI_LOCAL";
}

/** The result of a command could not be written to standard output. */
export class OutputError extends Error {
  readonly code = "ERR_CLI_OUTPUT";
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
          error: {
            code: "ERR_CLI_USAGE",
            message: withoutCredentials(error.message.replace(/^error: /, "")),
          },
        }),
      );
    return EXIT.wrongUsage;
  }
  const message = toMessage(error);
  const colours = coloursFor(stderr, env);
  if (json) stderr.write(jsonText({ error: { code: toCode(error), message, ...toFacts(error) } }));
  // Problems name their files, so that editors and review bots find the lines.
  else if (isManifestError(error)) stderr.write(problemsText(error.problems));
  else
    stderr.write(`${colours.red("error:")} ${printable(message)}\n${formatLeft(error, colours)}`);
  return toExitCode(error);
}

/** The message of commander for a wrong command, which repeats arguments and may suggest others. */
export function usageErrorText(text: string): string {
  const lines = text.trimEnd().split(/\n(?=\(Did you mean )/);
  return `${lines.map((line) => printable(withoutCredentials(line))).join("\n")}\n`;
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
  "manifest",
]);

/** The exit code that an error stands for. */
export function toExitCode(error: unknown): ExitCode {
  if (
    error instanceof UsageError ||
    error instanceof InvalidIdentifierError ||
    error instanceof InvalidNameError
  )
    return EXIT.wrongUsage;
  if (error instanceof ValidationError && SYNTAX_FIELDS.has(error.field)) return EXIT.wrongUsage;
  return EXIT.failed;
}

const OWN_ERRORS = [UsageError, LocalError, OutputError, Cancelled] as const;

function toCode(error: unknown): string {
  if (error instanceof ZaeLimiterError || OWN_ERRORS.some((type) => error instanceof type))
    return (error as Error & { readonly code: string }).code;
  return "ERR_CLI_UNEXPECTED";
}

// Both errors are known by their codes: loading their classes would slow down every other verb.

function isManifestError(error: unknown): error is ManifestError {
  return toCode(error) === "ERR_LIMITER_MANIFEST";
}

function isApplyError(error: unknown): error is ApplyError {
  return toCode(error) === "ERR_LIMITER_APPLY";
}

/** The changes that a failed apply has left; without a cause it has not even started. */
function formatLeft(error: unknown, colours: Colours): string {
  const isPart = isApplyError(error) && error.cause !== undefined && error.left.length > 0;
  return isPart ? formatRemaining(error.left, colours) : "";
}

/** The details of an error for programs, besides its code and its message. */
function toFacts(error: unknown): object {
  if (isManifestError(error)) return { problems: error.problems };
  return isApplyError(error) ? { done: error.done, left: error.left } : {};
}

function toMessage(error: unknown): string {
  const message = withoutCredentials(error instanceof Error ? error.message : String(error));
  if (error instanceof NamespaceNotFoundError && !message.includes("zae-limiter namespace"))
    return `${message} To register it: zae-limiter namespace register ${error.namespaceName}`;
  return message;
}
