import { Command, Option } from "commander";
import type { Limit } from "zae-limiter";
import { UsageError } from "../../exit.ts";
import { countArgument, limitArgument, LIMIT_GRAMMAR } from "./arguments.ts";

/** The name, the summary and the examples of one verb. */
export interface Verb {
  /** The name and its arguments: `show <entity>`. */
  readonly usage: string;
  readonly summary: string;
  /** Command lines without the program's name. Every verb has at least one. */
  readonly examples: readonly string[];
}

/** Adds a noun that groups verbs. */
export function addNoun(program: Command, name: string, summary: string): Command {
  return program.command(name).description(summary);
}

/** Adds a verb with its examples. */
export function addVerb(parent: Command, { usage, summary, examples }: Verb): Command {
  const title = examples.length === 1 ? "Example" : "Examples";
  const lines = examples.map((example) => `  $ zae-limiter ${example}`);
  const command = parent
    .command(usage)
    .description(summary)
    .addHelpText("after", `\n${title}:\n${lines.join("\n")}`);
  for (const argument of command.registeredArguments)
    argument.description = ARGUMENTS[argument.name()] ?? "";
  return command;
}

/** Descriptions of the arguments of verbs, by their names. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  entity: "The id of the entity.",
  resource: "The resource.",
  "limit-name": "The name of the limit.",
  name: "The name of the namespace.",
  id: "The id of the namespace.",
  scenario: "A scenario of `loadtest list`.",
  folder: "The folder of the ledgers.",
};

/** The limits of the verbs that set them: plain arguments, `--limit`, or both. */
export function takeLimits(command: Command): Command {
  return command
    .argument("[limits...]", `The limits, each written ${LIMIT_GRAMMAR}.`, limitArgument)
    .addOption(
      new Option("-l, --limit <limit>", "A limit, as an option. Repeat it for more.").argParser(
        limitArgument,
      ),
    );
}

/** The limits of a command line, given in either way. */
export function collectLimits(
  listed: readonly Limit[],
  { limit = [] }: { readonly limit?: readonly Limit[] | undefined },
): readonly Limit[] {
  const limits = [...listed, ...limit];
  const names = limits.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`${twice} is given twice.`);
  if (limits.length > 0) return limits;
  throw new UsageError(
    `No limit was given. Pass limits as arguments or with --limit, each written ${LIMIT_GRAMMAR}.`,
  );
}

/**
 * The entity of the verbs that can do without one: an argument. `--entity-id` does the same, for
 * scripts that use it.
 */
export function takeEntity(command: Command, purpose: string): Command {
  return command
    .argument("[entity]", purpose)
    .addOption(new Option("-e, --entity-id <entity>", purpose).hideHelp());
}

/** The entity that a command line names in either way. */
export function chooseEntity(
  named: string | undefined,
  { entityId }: { readonly entityId?: string },
): string | undefined {
  if (named !== undefined && entityId !== undefined && named !== entityId)
    throw new UsageError(`Two entities were given, ${named} and ${entityId}. Pass one.`);
  return named ?? entityId;
}

/** `--yes` of the verbs that destroy. */
export function yesOption(): Option {
  return new Option("-y, --yes", "Do not ask for confirmation.");
}

/**
 * `--wait` of the verbs about stacks, which is the default; only `--no-wait` is shown.
 */
export function waitOption(): Option {
  return new Option("--wait", "Wait until AWS is done.").hideHelp();
}

/** `--limit` of lists: the most items to show. It has no short form, because `-l` is a limit. */
export function listLimitOption(): Option {
  return new Option("--limit <number>", "Show at most this many items.")
    .argParser(countArgument)
    .default(100);
}

/** `--cursor` of lists. */
export function cursorOption(): Option {
  return new Option("--cursor <cursor>", "Continue where an earlier list ended.");
}
