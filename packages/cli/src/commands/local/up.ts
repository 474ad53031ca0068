import { resolve } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { LocalError } from "../../exit.ts";
import { RunnerDisplay } from "../support/runner-display.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";
import { BACKGROUND_OPTION, startInBackground } from "./background.ts";
import { hintFor, resolveLocalPlace, type LocalPlace } from "./place.ts";
import { buildReport } from "./report.ts";
import { ENGINES, findEngine, type EngineChoice } from "./system/engine.ts";
import type { LocalState } from "./system/local-folder.ts";
import { runLocalSystem, type LocalOptions } from "./system/local-system.ts";

/** Adds `local up`. */
export function addUpCommand(noun: Command, session: Session): void {
  addVerb(noun, {
    usage: "up",
    summary:
      "Runs a DynamoDB engine on this machine, with a table and an aggregator, until it is " +
      "interrupted; with --detach in the background. If it runs already, says so and exits 0.",
    examples: ["local up", "local up --detach --data ./data"],
  })
    .option("--detach", "Run in the background, and return when everything is ready.")
    .addOption(
      new Option(
        "--data <folder>",
        "Keep the data in this folder. By default, it is in memory.",
      ).argParser(folderArgument),
    )
    .addOption(
      new Option("--port <number>", "The port on 127.0.0.1; 0 takes any that is free.")
        .argParser(portArgument)
        .default(DEFAULT_PORT),
    )
    .addOption(
      new Option("--engine <name>", "The engine. By default, the one that is installed.").choices(
        ENGINES,
      ),
    )
    .option(
      "--jar <path>",
      "The jar of DynamoDB Local, or its folder. By default, what ZAEL_LOCAL_JAR says.",
    )
    .addOption(new Option(BACKGROUND_OPTION, "Internal.").hideHelp())
    .action(async (given: UpOptions, command: Command) => up(given, command, session));
}

const DEFAULT_PORT = 8000;

interface UpOptions extends EngineChoice {
  readonly port: number;
  readonly detach?: boolean;
  readonly inBackground?: boolean;
  readonly data?: string;
}

async function up(given: UpOptions, command: Command, session: Session): Promise<void> {
  const place = resolveLocalPlace(command, session);
  const { stack, region, folder } = place;
  const options: LocalOptions = {
    stack,
    region,
    port: given.port,
    ...(given.data !== undefined && { data: resolve(given.data) }),
    ...(given.engine !== undefined && { engine: given.engine }),
    ...(given.jar !== undefined && { jar: resolve(given.jar) }),
  };
  const isPortGiven = command.getOptionValueSource("port") === "cli" && given.port !== 0;
  const sayRunning = (state: LocalState, isNew: boolean): void => {
    if (!isNew) checkSame(isPortGiven ? options : { ...options, port: 0 }, state);
    const screen = session.screen(command);
    screen.show(buildReport(state, folder), () =>
      readyText(state, { ...place, isNew, isForeground: given.detach !== true }),
    );
  };
  const found = folder.find();
  if (found.is === "alive" && found.state.phase === "running")
    return sayRunning(found.state, false);
  const { environment } = session;
  if (given.detach === true) {
    // Searched here too, so that this process reports what is missing.
    findEngine(options, environment.env);
    const { state, isNew } = await startInBackground(options, { folder, environment });
    return sayRunning(state, isNew);
  }
  const isQuiet = given.inBackground === true;
  const display = new RunnerDisplay(environment, session.screen(command));
  const other = await runLocalSystem(options, {
    folder,
    environment,
    onReady: (state) => isQuiet || sayRunning(state, true),
    onLine: (line) => isQuiet || display.say(line),
    onProgress: (progress) => isQuiet || display.show(progress),
  });
  if (other !== undefined && !isQuiet) sayRunning(other, false);
}

/** A system that runs with other options than the given ones is not the requested one. */
function checkSame(options: LocalOptions, { stack, data, engine, endpointUrl }: LocalState): void {
  const differences = [
    options.data !== undefined &&
      options.data !== data &&
      (data ? `data in ${data}` : "data in memory"),
    options.engine !== undefined && options.engine !== engine && `the engine ${engine}`,
    options.port !== 0 &&
      endpointUrl?.endsWith(`:${options.port}`) === false &&
      `the address ${endpointUrl}`,
  ].filter((difference) => difference !== false);
  if (differences.length === 0) return;
  throw new LocalError(
    `${stack} is running already, with ${differences.join(" and ")}. ` +
      `To end it first: zae-limiter local down${hintFor(stack)}`,
  );
}

interface Ready extends LocalPlace {
  readonly isNew: boolean;
  readonly isForeground: boolean;
}

function readyText(
  { endpointUrl, engine, data }: LocalState,
  { stack, isNew, isForeground }: Ready,
): string {
  const hint = hintFor(stack);
  const what = isNew ? "is ready" : "is running already";
  if (endpointUrl === undefined) return `${stack} is starting already.\n`;
  return [
    `${stack} ${what} at ${endpointUrl} (${engine}).`,
    data === undefined
      ? "Data is in memory, and gone when it ends; --data FOLDER keeps it."
      : `Data is in ${data}.`,
    `To use it in this shell: eval "$(zae-limiter local env${hint})"`,
    isForeground && isNew ? "To end it: Ctrl-C" : `To end it: zae-limiter local down${hint}`,
  ]
    .map((line) => `${line}\n`)
    .join("");
}

/** An empty text, as of a variable that is not set, would be the current folder. */
function folderArgument(text: string): string {
  if (text !== "") return text;
  throw new InvalidArgumentError("It must be the name of a folder.");
}

function portArgument(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}
