// The scripts of `completion`, executed by the shells that they are for. Each test asks a real
// shell what it would offer after some words, and compares with the commands of the program.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsUnder, program, zaeLimiter } from "./command-line.ts";

type Shell = "bash" | "zsh" | "fish";

let folder: string;
const scripts = {} as Record<Shell, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-completion-"));
  for (const shell of ["bash", "zsh", "fish"] as const) {
    const { code, stdout } = await zaeLimiter(`completion ${shell}`);
    expect(code).toBe(0);
    scripts[shell] = join(folder, shell);
    writeFileSync(scripts[shell], stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * How each shell is started, and a function `offer` that prints what it offers after some words.
 * The functions of zsh's completion system work only while a line is edited; some stand in for them
 * and print what they are given.
 */
const SHELLS: Readonly<
  Record<Shell, { readonly args: readonly string[]; readonly offer: string }>
> = {
  bash: {
    args: ["--norc"],
    offer: `offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zae_limiter; printf '%s\\n' "\${COMPREPLY[@]}"; }`,
  },
  zsh: {
    args: ["-f"],
    offer: `_describe() {
          local entry; [[ $1 == -o ]] && shift
          for entry in "\${(@P)2}"; do [[ $entry == $PREFIX* ]] && print -r -- \${entry%%:*}; done
        }
        _files() { print -rl -- $PREFIX*(N) }
        compdef() { }
        offer() { words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _zae-limiter }`,
  },
  fish: {
    args: ["--no-config"],
    offer: `function offer; complete -C "$argv" | string split --fields 1 \\t; end`,
  },
};

/** What a shell offers after each of the lines; the last word of a line may be begun. */
function offers(
  name: Shell,
  lines: readonly (readonly string[])[],
): readonly (readonly string[])[] {
  const { args, offer } = SHELLS[name];
  const calls = lines.map(
    (words) => `offer zae-limiter ${words.map((word) => `'${word}'`).join(" ")}; echo ---`,
  );
  const text = [offer, `source '${scripts[name]}'`, ...calls].join("\n");
  const output = execFileSync(name, [...args, "-c", text], { encoding: "utf8" });
  return output
    .split("---\n")
    .slice(0, -1)
    .map((part) => [...new Set(part.split("\n").filter((word) => word !== ""))].toSorted());
}

describe.each(["bash", "zsh", "fish"] as const)("in %s", { timeout: 60_000 }, (name) => {
  const missing = spawnSync(name, ["-c", "true"]).error !== undefined;
  if (missing) console.warn(`${name} is not installed: its completion is NOT tested here.`);
  const offered = (...words: readonly string[]): readonly string[] => offers(name, [words])[0]!;

  it.skipIf(missing)("every command is followed by its verbs, or by its options", () => {
    const root = program();
    const all = commandsUnder(root);
    const verbs = offers(
      name,
      all.map(({ path }) => [...wordsOf(path), ""]),
    );
    const flags = offers(
      name,
      all.map(({ path }) => [...wordsOf(path), "-"]),
    );
    for (const [index, { path, command, commands }] of all.entries()) {
      if (commands.length > 0) expect(verbs[index], path).toEqual(verbsOf(command));
      const known = [...new Set([...flagsOf(command), ...flagsOf(root)])].toSorted();
      expect(flags[index], path).toEqual(known);
    }
  });

  it.skipIf(missing)("a word that is begun is completed", () => {
    expect(offered("entity", "cre")).toEqual(["create"]);
    expect(offered("entity", "create", "key-1", "--par")).toEqual(["--parent"]);
    expect(offered("completion", "")).toEqual(["bash", "fish", "zsh"]);
    expect(offered("entity", "xyz")).toEqual([]);
  });

  it.skipIf(missing)(
    "the value of an option is no command, and is completed where it is one of a few",
    () => {
      expect(offered("--namespace", "entity", "entity", "cre")).toEqual(["create"]);
      expect(offered("--namespace", "entity", "usa")).toEqual(["usage"]);
      expect(offered("usage", "list", "key-1", "--window", "")).toEqual([
        "daily",
        "hourly",
        "monthly",
      ]);
      expect(offered("usage", "list", "-w", "d")).toEqual(["daily"]);
      expect(offered("entity", "list", "--with-custom-limits", "")).toEqual([]);
    },
  );

  it.skipIf(missing)("the value of an option is a file where it names one, only there", () => {
    const file = join(folder, "limits.yaml");
    writeFileSync(file, "");
    const begun = join(folder, "lim");
    expect(offered("limits", "plan", "-f", begun)).toEqual([file]);
    expect(offered("limits", "apply", "--yes", "--file", begun)).toEqual([file]);
    // There it means --force and takes no value.
    expect(offered("lambda-export", "-f", "--inf")).toEqual(["--info"]);
    expect(offered("entity", "show", begun)).toEqual([]);
  });

  it.skipIf(missing)("an argument that is called like a command stays an argument", () => {
    expect(offered("entity", "show", "list", "--wi")).toEqual([]);
    expect(offered("bucket", "show", "usage", "--res")).toEqual(["--resource"]);
  });
});

it.skipIf(spawnSync("bash", ["-c", "true"]).error !== undefined)(
  "bash splits words at the equals sign, and the value is completed all the same",
  () => {
    const words = ["usage", "list", "--window", "="];
    expect(offers("bash", [[...words, "m"], words])).toEqual([
      ["monthly"],
      ["daily", "hourly", "monthly"],
    ]);
  },
);

function wordsOf(path: string): readonly string[] {
  return path.split(" ").filter(Boolean);
}

function verbsOf(command: Command): readonly string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((child) => child.name())
    .toSorted();
}

function flagsOf(command: Command): readonly string[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ short, long }) => [short, long].filter((spelling) => spelling != null));
}
