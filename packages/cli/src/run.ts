import { CommanderError } from "commander";
import {
  InvalidIdentifierError,
  InvalidNameError,
  NamespaceNotFoundError,
  ValidationError,
  ZaeLimiterError,
} from "zae-limiter";
import type { Environment } from "./environment.ts";
import { Cancelled, EXIT, UsageError, type ExitCode } from "./exit.ts";
import { coloursFor } from "./output/colours.ts";
import { jsonText } from "./output/json.ts";
import { createProgram } from "./program.ts";

/** Runs one command line and answers its exit code. Never throws. */
export async function run(argv: readonly string[], environment: Environment): Promise<ExitCode> {
  // Asked before parsing, because parsing itself may fail.
  const json = argv.includes("--json");
  const ending: { exitCode: ExitCode } = { exitCode: EXIT.done };
  try {
    await createProgram(environment, {
      json,
      exitWith: (code) => (ending.exitCode = code),
    }).parseAsync(argv, { from: "user" });
    return ending.exitCode;
  } catch (error) {
    return report(error, json, environment);
  }
}

function report(error: unknown, json: boolean, { stderr, env }: Environment): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.done;
    // Commander has already told people, help included; programs are told here.
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

/**
 * Input fields whose faults can be seen without looking into the repository: the command was
 * written wrongly.
 */
const FIELDS_OF_FORM: ReadonlySet<string> = new Set([
  "url",
  "cursor",
  "limit",
  "window",
  "start",
  "end",
  "namespaceId",
  "metadata",
]);

function exitCodeOf(error: unknown): ExitCode {
  if (
    error instanceof UsageError ||
    error instanceof InvalidIdentifierError ||
    error instanceof InvalidNameError
  )
    return EXIT.wrongUsage;
  if (error instanceof ValidationError && FIELDS_OF_FORM.has(error.field)) return EXIT.wrongUsage;
  return EXIT.failed;
}

function codeOf(error: unknown): string {
  if (error instanceof ZaeLimiterError || error instanceof UsageError || error instanceof Cancelled)
    return error.code;
  return "ERR_CLI_UNEXPECTED";
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof NamespaceNotFoundError && !message.includes("zae-limiter namespace"))
    return `${message} Register: zae-limiter namespace register ${error.namespaceName}`;
  if (error instanceof ValidationError && error.value !== "")
    return `${message} (got '${error.value}')`;
  return message;
}
