import type { Argument, Command, Option } from "commander";

/** A word that can be completed, and what it means. */
export interface Word {
  readonly text: string;
  readonly summary: string;
}

/** An option as it can be completed. */
export interface Flag {
  /** All its spellings, such as `-w` and `--window`. */
  readonly spellings: readonly string[];
  readonly summary: string;
  readonly takesValue: boolean;
  /** Whether the value is the name of a file or a folder. */
  readonly takesFile: boolean;
  /** The values that it can have; empty when any text will do. */
  readonly choices: readonly string[];
}

/** One command and what may follow it. */
export interface CommandNode {
  /** Its name with those of its parents: `entity create`. Empty for the program itself. */
  readonly path: string;
  /** The commands below it, or the values of its first argument. */
  readonly words: readonly Word[];
  /** Its own options. Those of the program itself may follow every command. */
  readonly flags: readonly Flag[];
}

/** The program itself first, then every command that its help shows. */
export function commandTree(program: Command): readonly CommandNode[] {
  return nodesOf(program, "");
}

function nodesOf(command: Command, path: string): readonly CommandNode[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const commands = children.map((child) => ({
    text: child.name(),
    summary: firstSentence(child.description()),
  }));
  const node: CommandNode = {
    path,
    words: [...commands, ...choicesOf(command.registeredArguments[0])],
    flags: help.visibleOptions(command).map(flagOf),
  };
  return [
    node,
    ...children.flatMap((child) => nodesOf(child, `${path} ${child.name()}`.trimStart())),
  ];
}

function flagOf(option: Option): Flag {
  return {
    spellings: [option.short, option.long].filter((spelling) => spelling != null),
    summary: firstSentence(option.description),
    takesValue: option.required || option.optional,
    takesFile: /<(?:file|folder)(?:\.\.\.)?>/.test(option.flags),
    choices: option.argChoices ?? [],
  };
}

function choicesOf(argument: Argument | undefined): readonly Word[] {
  return (argument?.argChoices ?? []).map((text) => ({ text, summary: "" }));
}

/** A completion is one line, so the rest of a longer description is left out. */
function firstSentence(text: string): string {
  return text.replace(/(?<=\.) [^]*$/, "");
}

/**
 * The options that take a value, as patterns of a command and a word: the word after one of them is
 * no command. A spelling that takes none elsewhere is bound to its commands.
 */
export function valueWords(tree: readonly CommandNode[]): readonly CommandWord[] {
  const bare = new Set(
    tree.flatMap(({ flags }) => flags.filter(({ takesValue }) => !takesValue)).flatMap(spellingsOf),
  );
  const words = tree.flatMap(({ path, flags }) =>
    flags
      .flatMap(valueSpellingsOf)
      .map((spelling) => (bare.has(spelling) ? { path, spelling } : { spelling })),
  );
  return [...new Map(words.map((word) => [JSON.stringify(word), word])).values()];
}

/** A word after a command; after any command if none is named. */
export interface CommandWord {
  readonly path?: string;
  readonly spelling: string;
}

function spellingsOf({ spellings }: Flag): readonly string[] {
  return spellings;
}

function valueSpellingsOf({ takesValue, spellings }: Flag): readonly string[] {
  return takesValue ? spellings : [];
}

/** The options with a fixed set of values, each once. */
export function flagsWithChoices(tree: readonly CommandNode[]): readonly Flag[] {
  const flags = tree.flatMap((node) => node.flags).filter(({ choices }) => choices.length > 0);
  return [...new Map(flags.map((flag) => [flag.spellings.join(), flag])).values()];
}

/** The spellings of all options whose value is a file or a folder, each once. */
export function fileSpellings(tree: readonly CommandNode[]): readonly string[] {
  const flags = tree.flatMap((node) => node.flags).filter(({ takesFile }) => takesFile);
  return [...new Set(flags.flatMap(spellingsOf))];
}
