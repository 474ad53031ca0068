import { Command } from "commander";
import { VERSION } from "zae-limiter";
import { addAcquireCommand } from "./commands/acquire.ts";
import { addAuditCommands } from "./commands/audit.ts";
import { addAvailableCommand } from "./commands/available.ts";
import { addBucketCommands } from "./commands/bucket.ts";
import { addCapacityCommand } from "./commands/capacity.ts";
import { addDemoCommand } from "./commands/demo.ts";
import { addEntityCommands } from "./commands/entity.ts";
import { addEntityLimitCommands } from "./commands/entity-limits.ts";
import { addNamespaceCommands } from "./commands/namespace.ts";
import { addResourceCommands } from "./commands/resource.ts";
import { addSystemCommands } from "./commands/system.ts";
import { addUsageCommands } from "./commands/usage.ts";
import type { Environment } from "./environment.ts";
import type { ExitCode } from "./exit.ts";
import { Runner } from "./commands/support/session.ts";

/** What a run decides before any command is known. */
export interface RunOptions {
  readonly json: boolean;
  readonly exitWith: (code: ExitCode) => void;
}

/** The whole command line: global options and every verb. */
export function createProgram(environment: Environment, { json, exitWith }: RunOptions): Command {
  const { stdout, stderr } = environment;
  const program = new Command("zae-limiter");
  // Before any verb is added: verbs inherit these settings when they are made.
  program.exitOverride().configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => (json ? undefined : stderr.write(text)),
    getOutHelpWidth: () => stdout.columns ?? 100,
    getErrHelpWidth: () => stderr.columns ?? 100,
  });
  program.configureHelp({ showGlobalOptions: true });
  program
    .description("Limits, entities, usage and audit of a zae-limiter repository.")
    .version(VERSION)
    .option(
      "--repository <url>",
      "where the data is, such as sqlite:./limits.db (default: $ZAEL_REPOSITORY)",
    )
    .option("-n, --name <stack>", "short for a DynamoDB URL: the name of its stack")
    .option("--region <region>", "short for a DynamoDB URL: its region")
    .option("--endpoint-url <url>", "short for a DynamoDB URL: another address than AWS's")
    .option(
      "-N, --namespace <name>",
      "the namespace to work in (default: $ZAEL_NAMESPACE, or 'default')",
    )
    .option("--json", "print JSON for programs instead of tables for people")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (acquire).\n\nExample:\n  $ zae-limiter --repository sqlite:./limits.db system set-defaults -l rpm:100 -l tpm:10000/min:15000",
    );
  const runner = new Runner(environment, exitWith);
  addEntityLimitCommands(addEntityCommands(program, runner), runner);
  addResourceCommands(program, runner);
  addSystemCommands(program, runner);
  addNamespaceCommands(program, runner);
  addUsageCommands(program, runner);
  addAuditCommands(program, runner);
  addBucketCommands(program, runner);
  addCapacityCommand(program, runner);
  addAvailableCommand(program, runner);
  addAcquireCommand(program, runner);
  addDemoCommand(program, runner);
  return program;
}
