import { Command, Option } from "commander";
import { VERSION } from "zae-limiter";
import { addAcquireCommand } from "./commands/acquire.ts";
import { addAggregateCommand } from "./commands/aggregate.ts";
import { addAuditCommands } from "./commands/audit.ts";
import { addAvailableCommand } from "./commands/available.ts";
import { addBucketCommands } from "./commands/bucket.ts";
import { addCapacityCommand } from "./commands/capacity.ts";
import { addEntityLimitCommands } from "./commands/entity-limits.ts";
import { addEntityCommands } from "./commands/entity.ts";
import { addCfnTemplateCommand } from "./commands/infrastructure/cfn-template.ts";
import { addCheckCommand } from "./commands/infrastructure/check.ts";
import { addDeleteCommand } from "./commands/infrastructure/delete.ts";
import { addDeployCommand } from "./commands/infrastructure/deploy.ts";
import { addLambdaExportCommand } from "./commands/infrastructure/lambda-export.ts";
import { addListCommand } from "./commands/infrastructure/list.ts";
import { addUpgradeCommand } from "./commands/infrastructure/upgrade.ts";
import { addVersionCommand } from "./commands/infrastructure/version.ts";
import { addLimitsCommands } from "./commands/limits/limits.ts";
import { addLocalCommands } from "./commands/local/local.ts";
import { addLoadTestCommands } from "./commands/loadtest.ts";
import { addNamespaceCommands } from "./commands/namespace.ts";
import { addResourceCommands } from "./commands/resource.ts";
import { addStatusCommand } from "./commands/status.ts";
import { Session } from "./commands/support/session.ts";
import { addSystemCommands } from "./commands/system.ts";
import { addUsageCommands } from "./commands/usage.ts";
import type { Environment } from "./environment.ts";
import {
  EXIT,
  OutputError,
  UsageError,
  reportError,
  usageErrorText,
  type ExitCode,
} from "./exit.ts";

/** Runs one command line and returns its exit code. Never throws. */
export async function run(argv: readonly string[], environment: Environment): Promise<ExitCode> {
  // Read before parsing, because parsing itself may fail.
  const json = argv.includes("--json");
  let exitCode: ExitCode = EXIT.done;
  try {
    const program = createProgram(environment, { json, exitWith: (code) => (exitCode = code) });
    // The program without arguments is not an error, so it shows its help and exits 0.
    await program.parseAsync(argv.length === 0 ? ["--help"] : argv, { from: "user" });
    return exitCode;
  } catch (error) {
    return reportError(error, json, environment);
  }
}

/** Reports that standard output could not be written, and returns its exit code. */
export function reportUnwritten(
  cause: Error,
  argv: readonly string[],
  environment: Environment,
): ExitCode {
  const error = new OutputError(
    `The output could not be written: ${cause.message}. The changes of the command remain.`,
  );
  return reportError(error, argv.includes("--json"), environment);
}

/** The inputs of a run before any command is parsed. */
export interface RunOptions {
  readonly json: boolean;
  readonly exitWith: (code: ExitCode) => void;
}

/** The whole command line: the global options and every verb. */
export function createProgram(environment: Environment, { json, exitWith }: RunOptions): Command {
  const { stdout, stderr } = environment;
  const program = new Command("zae-limiter");
  // This must come before any verb is added, because verbs inherit the settings on creation.
  program.exitOverride().configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => (json ? undefined : stderr.write(text)),
    outputError: (text, write) => write(usageErrorText(text)),
    getOutHelpWidth: () => stdout.columns ?? 100,
    getErrHelpWidth: () => stderr.columns ?? 100,
  });
  program.configureHelp({ showGlobalOptions: true });
  program
    .description("Manages the limits, entities, usage and audit of a zae-limiter repository.")
    .version(VERSION, "-V, --version", "Print the version.")
    .helpOption("-h, --help", "Show the help of a command.")
    .helpCommand("help [command]", "Shows the help of a command.")
    .option(
      "--repository <url>",
      "Where the data is, such as sqlite:./limits.db. By default, what ZAEL_REPOSITORY says.",
    )
    .option("-n, --stack <stack>", "The stack of a DynamoDB table, instead of --repository.")
    .option("--region <region>", "The region of a DynamoDB table, instead of --repository.")
    .option("--endpoint-url <url>", "An endpoint of DynamoDB other than that of AWS.")
    .option(
      "-N, --namespace <name>",
      "The namespace to work in. By default, what ZAEL_NAMESPACE says, or 'default'.",
    )
    .option("--json", "Print JSON for programs instead of tables for people.")
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (acquire) or changes pending (limits plan,
limits diff).

Example:
  $ zae-limiter --repository sqlite:./limits.db system set-defaults rpm:100 tpm:10000/min:15000`,
    );
  const session = new Session(environment, exitWith);
  addEntityLimitCommands(addEntityCommands(program, session), session);
  addResourceCommands(program, session);
  addSystemCommands(program, session);
  addLimitsCommands(program, session);
  addNamespaceCommands(program, session);
  addUsageCommands(program, session);
  addAuditCommands(program, session);
  addBucketCommands(program, session);
  addCapacityCommand(program, session);
  addAvailableCommand(program, session);
  addAcquireCommand(program, session);
  addAggregateCommand(program, session);
  addStatusCommand(program, session);
  addLoadTestCommands(program, session);
  addDeployCommand(program, session);
  addDeleteCommand(program, session);
  addCfnTemplateCommand(program, session);
  addLambdaExportCommand(program, session);
  addListCommand(program, session);
  addVersionCommand(program, session);
  addCheckCommand(program, session);
  addUpgradeCommand(program, session);
  addLocalCommands(program, session);
  for (const verb of program.commands) addNameAlias(verb);
  return program.hook("preAction", (_, verb) => readNameAlias(program, verb));
}

/** `--name` says the same as `--stack`, as in the Python zae-limiter, where a verb has none. */
function addNameAlias(command: Command): void {
  for (const verb of command.commands) addNameAlias(verb);
  const isFree = command.commands.length === 0 && !command.options.some(isNameOption);
  if (isFree) command.addOption(new Option("--name <stack>", "The same as --stack.").hideHelp());
}

function readNameAlias(program: Command, verb: Command): void {
  const isAlias = verb.options.some((option) => isNameOption(option) && option.hidden);
  const name = isAlias ? verb.getOptionValue("name") : undefined;
  if (name === undefined) return;
  const { stack } = program.opts<{ readonly stack?: string }>();
  if (stack !== undefined && stack !== name)
    throw new UsageError(`Two stacks were given, ${stack} and ${name}. Pass one.`);
  program.setOptionValueWithSource("stack", name, "cli");
}

function isNameOption({ long }: Option): boolean {
  return long === "--name";
}
