import { Readable } from "node:stream";
import type { Command } from "commander";
import type { Repository } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import type { Environment } from "../src/environment.ts";
import { createProgram, run } from "../src/program.ts";

/** What one command line did. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a test may choose about a run. */
export interface Setup {
  readonly repository?: Repository;
  readonly open?: typeof openRepository;
  readonly env?: Readonly<Record<string, string>>;
  /** What a person types; undefined when standard input is not a terminal. */
  readonly typed?: string;
  readonly terminal?: boolean;
}

/** Runs a command line in this process. A given repository stays open from one call to the next. */
export async function zaeLimiter(
  line: string | readonly string[],
  setup: Setup = {},
): Promise<Outcome> {
  const { repository, env = {}, typed, terminal = false } = setup;
  let [stdout, stderr] = ["", ""];
  const stdin: Environment["stdin"] = Object.assign(Readable.from([typed ?? ""]), {
    isTTY: typed !== undefined,
  });
  const open = setup.open ?? (async () => repository!.namespace("default"));
  const argv = typeof line === "string" ? line.split(" ") : line;
  const code = await run(argv, {
    stdout: { write: (text) => (stdout += text), isTTY: terminal },
    stderr: { write: (text) => (stderr += text), isTTY: terminal },
    stdin,
    env: { ZAEL_REPOSITORY: "memory:", ...env },
    openRepository: open,
  });
  return { code, stdout, stderr };
}

/** Runs a command line with `--json` and parses what it prints. */
export async function jsonOf(line: string, setup: Setup): Promise<unknown> {
  const { code, stdout, stderr } = await zaeLimiter(`${line} --json`, setup);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}${stdout}`);
  return JSON.parse(stdout);
}

/** The names of all verbs, with their nouns: `entity create`. */
export function verbNames(): readonly string[] {
  const { stdout, stderr, stdin } = process;
  const environment = { stdout, stderr, stdin, env: {}, openRepository };
  return namesOf(createProgram(environment, { json: false, exitWith: () => undefined }));
}

function namesOf(command: Command, path: readonly string[] = []): readonly string[] {
  if (command.commands.length === 0) return [path.join(" ")];
  return command.commands.flatMap((child) => namesOf(child, [...path, child.name()]));
}
