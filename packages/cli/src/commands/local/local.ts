import { Option, type Command } from "commander";
import { EXIT, LocalError } from "../../exit.ts";
import type { Session } from "../support/session.ts";
import { addNoun, addVerb } from "../support/verb.ts";
import { addLogsCommand } from "./logs.ts";
import { hintFor, resolveLocalPlace } from "./place.ts";
import { buildReport, reportText, type LocalReport } from "./report.ts";
import {
  FORMATS,
  localVariables,
  variablesText,
  type Format,
} from "./system/environment-variables.ts";
import type { LocalFolder } from "./system/local-folder.ts";
import { addUpCommand } from "./up.ts";

/** Adds `local`, which runs the whole system on this machine. */
export function addLocalCommands(program: Command, session: Session): void {
  const noun = addNoun(
    program,
    "local",
    "Runs the whole system on this machine: a DynamoDB engine, a table and an aggregator.",
  );
  addUpCommand(noun, session);
  addDownCommand(noun, session);
  addStatusCommand(noun, session);
  addLogsCommand(noun, session);
  addEnvCommand(noun, session);
}

function addDownCommand(noun: Command, session: Session): void {
  addVerb(noun, {
    usage: "down",
    summary: "Ends the local system. What it has in a data folder stays.",
    examples: ["local down", "local down --stack my-other-stack"],
  }).action(async (_options: object, command: Command) => {
    const { stack, folder } = resolveLocalPlace(command, session);
    const ending = await folder.end();
    session.screen(command).show({ stack, ...ending }, () => {
      if (!ending.wasRunning) return `${stack} is not running.\n`;
      const data = ending.data === undefined ? "" : ` Its data is in ${ending.data}.`;
      return `Ended ${stack}.${data}\n`;
    });
  });
}

function addStatusCommand(noun: Command, session: Session): void {
  addVerb(noun, {
    usage: "status",
    summary:
      "Shows whether the local system runs, where, and how far its aggregator is. Exits 1 when it does not run.",
    examples: ["local status", "local status --json"],
  }).action(async (_options: object, command: Command) => {
    const { stack, folder } = resolveLocalPlace(command, session);
    const report = findReport(stack, folder);
    const screen = session.screen(command);
    screen.show(report, () => reportText(report, screen));
    if (!report.running) session.exitWith(EXIT.failed);
  });
}

function findReport(stack: string, folder: LocalFolder): LocalReport {
  const found = folder.find();
  const absent = { running: false, stack, log: folder.log };
  if (found.is === "absent") return absent;
  const { state } = found;
  const data = state.data === undefined ? {} : { data: state.data };
  if (found.is === "ended")
    return { ...absent, ...data, ...(state.reason !== undefined && { reason: state.reason }) };
  if (found.is === "dead")
    return {
      ...absent,
      ...data,
      reason: `Its supervisor, process ${state.owner.pid}, has died. local up and local down clear up.`,
    };
  return buildReport(state, folder);
}

function addEnvCommand(noun: Command, session: Session): void {
  addVerb(noun, {
    usage: "env",
    summary:
      "Prints the environment variables with which every command and program works on the local " +
      "system.",
    examples: ["local env", "local env --format powershell"],
  })
    .addOption(
      new Option("--format <format>", "For whom: a shell, direnv, PowerShell, or a program.")
        .choices(FORMATS)
        .default("eval"),
    )
    .action(async ({ format }: { readonly format: Format }, command: Command) => {
      const { stack, folder } = resolveLocalPlace(command, session);
      const found = folder.find();
      if (found.is !== "alive" || found.state.endpointUrl === undefined)
        throw new LocalError(
          `${stack} is not running. To start it: zae-limiter local up --detach${hintFor(stack)}`,
        );
      const { region, endpointUrl } = found.state;
      const variables = localVariables({ stack, region, endpointUrl });
      session.screen(command).show(variables, () => variablesText(variables, format));
    });
}
