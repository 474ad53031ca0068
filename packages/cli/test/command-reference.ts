import type { Command, Option } from "commander";
import { program } from "./command-line.ts";

const SECTION = /(<!-- (global options|commands) -->\n)[^]*?(?=<!-- \/\2 -->)/g;

/** A command with more options shows how many it has. */
const MOST_OPTIONS = 10;

/** A page whose tables of options and commands are those of the commands' own help. */
export function withReference(page: string): string {
  const all = program();
  return page.replace(SECTION, (_, begin: string, name: string) => {
    const table = name === "commands" ? commandTable(all) : optionTable(all);
    return `${begin}${table.join("\n")}\n`;
  });
}

function optionTable(command: Command): readonly string[] {
  return [
    "| global option | meaning |",
    "|---|---|",
    ...listOptions(command).map(({ flags, description }) => `| \`${flags}\` | ${description} |`),
  ];
}

function commandTable(command: Command): readonly string[] {
  return [
    "| command | options | what it does |",
    "|---|---|---|",
    ...listLeaves(command, "").map(([name, leaf]) => {
      const options = listOptions(leaf).map(({ long, argChoices }) =>
        argChoices === undefined ? `\`${long}\`` : `\`${long}\` ${argChoices.join(", ")}`,
      );
      const shown =
        options.length > MOST_OPTIONS ? `${options.length} options` : options.join("; ");
      return `| \`${name}\` | ${shown} | ${leaf.description()} |`;
    }),
  ];
}

/** Every command that has none below it, as it is written with its arguments. */
function listLeaves(command: Command, path: string): readonly (readonly [string, Command])[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command).filter((child) => child.name() !== "help");
  return below.flatMap((child) => {
    const name = `${path} ${child.name()}`.trimStart();
    if (child.commands.length > 0) return listLeaves(child, name);
    const words = child.registeredArguments.map((argument) => help.argumentTerm(argument));
    const usage = child.usage().replace(/^\[options\] ?/, "");
    return [[`${name} ${usage === "" ? words.join(" ") : usage}`.trimEnd(), child]] as const;
  });
}

function listOptions(command: Command): readonly Option[] {
  const help = command.createHelp();
  return help.visibleOptions(command).filter(({ long }) => long !== "--help");
}
