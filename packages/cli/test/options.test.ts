import type { Option } from "commander";
import { describe, expect, it } from "vitest";
import { commandsUnder, program } from "./command-line.ts";

const commands = commandsUnder(program());
const options = commands.flatMap(({ command }) => command.options);

describe("options", () => {
  it("one letter has one meaning in all commands, but for -f", () => {
    expect(options.length).toBeGreaterThan(50);
    const meanings = new Map<string, Set<string>>();
    for (const { short, flags } of options)
      if (short !== undefined) meanings.set(short, (meanings.get(short) ?? new Set()).add(flags));
    // That is what the Python command line has; no command has two of them.
    const exception = ["-f", new Set(["-f, --file <file...>", "-f, --force", "-f, --follow"])];
    expect([...meanings].filter(([, flags]) => flags.size > 1)).toEqual([exception]);
    expect(meanings.get("-l")).toEqual(new Set(["-l, --limit <limit>"]));
    expect(meanings.get("-n")).toEqual(new Set(["-n, --stack <stack>"]));
  });

  it("no command hides an option of the program behind one of its own", () => {
    const [root, ...others] = commands;
    const reserved = new Set(root!.command.options.flatMap(spellings).filter(Boolean));
    expect(
      others.filter(({ command }) =>
        command.options.flatMap(spellings).some((spelling) => reserved.has(spelling)),
      ),
    ).toEqual([]);
  });

  it("an option takes a value in every command or in none", () => {
    const kinds = new Map<string, Set<boolean>>();
    for (const { long, required } of options.filter(({ hidden }) => !hidden))
      kinds.set(long!, (kinds.get(long!) ?? new Set()).add(required));
    expect([...kinds].filter(([, kind]) => kind.size > 1)).toEqual([]);
  });
});

function spellings({ short, long }: Option): readonly unknown[] {
  return [short, long];
}
