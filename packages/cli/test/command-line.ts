import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { InfrastructureError, type Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import type { runAggregator } from "zae-limiter/aggregator";
import type { Environment, InterruptOptions } from "../src/environment.ts";
import { createProgram, run } from "../src/program.ts";

/** The outcome of one command line. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a run. */
export interface Setup {
  readonly repository?: Repository;
  readonly open?: typeof openRepository;
  readonly env?: Readonly<Record<string, string>>;
  /** The typed input; undefined when standard input is not a terminal. */
  readonly typed?: string | AsyncIterable<string>;
  /** Standard input when it is not a terminal. */
  readonly piped?: string | Uint8Array;
  readonly terminal?: boolean;
  readonly nowMs?: () => number;
  readonly nodeNotice?: string;
  /** By default, there is no table. */
  readonly runAggregator?: typeof runAggregator;
  /** Receives everything that is printed, in order. */
  readonly onOutput?: (text: string) => void;
  /** Receives the function that interrupts the program. */
  readonly onListening?: (interrupt: () => void, options?: InterruptOptions) => void;
}

/** Runs a command line in this process. A given repository stays open from one call to the next. */
export async function zaeLimiter(
  line: string | readonly string[],
  setup: Setup = {},
): Promise<Outcome> {
  const { repository, env = {}, typed, piped = "", terminal = false } = setup;
  const printed = { stdout: "", stderr: "" };
  const output = (name: keyof typeof printed): Environment["stdout"] => ({
    write: (text) => {
      printed[name] += text;
      setup.onOutput?.(text);
    },
    isTTY: terminal,
  });
  const stdin: Environment["stdin"] = Object.assign(toReadable(typed ?? piped), {
    isTTY: typed !== undefined,
  });
  const open = setup.open ?? (async () => repository!.namespace("default"));
  const argv = typeof line === "string" ? line.split(" ") : line;
  const code = await run(argv, {
    nodeVersion: process.version,
    nowMs: setup.nowMs ?? (() => Date.now()),
    nodeNotice: () => setup.nodeNotice,
    stdout: output("stdout"),
    stderr: output("stderr"),
    stdin,
    // No command of a test reaches the local system of the developer.
    env: { ZAEL_REPOSITORY: "memory:", ZAEL_LOCAL_FOLDER: join(process.execPath, "none"), ...env },
    openRepository: open,
    runAggregator: setup.runAggregator ?? noTable,
    onInterrupt: (listener, options) => {
      setup.onListening?.(listener, options);
      return () => {};
    },
  });
  return { code, ...printed };
}

function toReadable(source: string | Uint8Array | AsyncIterable<string>): Readable {
  const isWhole = typeof source === "string" || source instanceof Uint8Array;
  return Readable.from(isWhole ? [source] : source);
}

async function noTable(): Promise<never> {
  throw new InfrastructureError("ERR_LIMITER_INFRASTRUCTURE_NOT_FOUND", "There is no table.");
}

/** Runs a command line with `--json` and parses what it prints. */
export async function readJson(line: string, setup: Setup): Promise<unknown> {
  const { code, stdout, stderr } = await zaeLimiter(`${line} --json`, setup);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}${stdout}`);
  return JSON.parse(stdout);
}

/** The whole command line, not run. */
export function program(): Command {
  const { stdout, stderr, stdin, version: nodeVersion } = process;
  const unused = {
    nowMs: () => 0,
    nodeNotice: () => undefined,
    runAggregator: noTable,
    onInterrupt: () => () => {},
  };
  return createProgram(
    { stdout, stderr, stdin, env: {}, nodeVersion, openRepository, ...unused },
    { json: false, exitWith: () => undefined },
  );
}

/** The names of all verbs, with their nouns: `entity create`. */
export function verbNames(): readonly string[] {
  return commandsUnder(program())
    .filter(({ commands }) => commands.length === 0)
    .map(({ path }) => path);
}

/** Files that examples name, as they are on this machine. */
const EXAMPLE_FILES: ReadonlyMap<string, string> = new Map(
  ["limits/", "limits.yaml"].map((name) => [
    name,
    fileURLToPath(new URL(`fixtures/${name}`, import.meta.url)),
  ]),
);

/** The examples in the help of a verb, each as its words; the files that they name exist. */
export async function listExamples(verb: string): Promise<readonly (readonly string[])[]> {
  const { stdout } = await zaeLimiter(`${verb} --help`);
  return [...stdout.matchAll(/^ {2}\$ zae-limiter (.*)$/gm)].map(([, example]) =>
    [...example!.replace(/ (?:&&|>) .*/, "").matchAll(/'([^']*)'|(\S+)/g)].map(
      ([, quoted, bare]) => quoted ?? EXAMPLE_FILES.get(bare!) ?? bare!,
    ),
  );
}

/** A command and its path, such as `entity create`; the program itself has an empty one. */
export interface PlacedCommand {
  readonly path: string;
  readonly commands: readonly Command[];
  readonly command: Command;
}

/** A command and all those under it. */
export function commandsUnder(command: Command, path = ""): readonly PlacedCommand[] {
  const { commands } = command;
  return [
    { path, command, commands },
    ...commands.flatMap((child) => commandsUnder(child, `${path} ${child.name()}`.trim())),
  ];
}
