import { Command, Option } from "commander";
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
  return parent
    .command(usage)
    .description(summary)
    .addHelpText("after", `\n${title}:\n${lines.join("\n")}`);
}

/** `--limit` of the verbs that set limits. */
export function limitsOption(): Option {
  return new Option("-l, --limit <limit>", `a limit, written ${LIMIT_GRAMMAR}; repeat for more`)
    .argParser(limitArgument)
    .makeOptionMandatory();
}

/** `--yes` of the verbs that destroy. */
export function yesOption(): Option {
  return new Option("-y, --yes", "do not ask for confirmation");
}

/** `--limit` of lists: the most items to show. */
export function listLimitOption(): Option {
  return new Option("-l, --limit <number>", "show at most this many")
    .argParser(countArgument)
    .default(100);
}

/** `--cursor` of lists. */
export function cursorOption(): Option {
  return new Option("--cursor <cursor>", "continue where an earlier list ended");
}
