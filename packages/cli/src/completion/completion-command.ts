import { Argument, type Command } from "commander";
import { bashScript } from "./bash.ts";
import { commandTree, type CommandNode } from "./command-tree.ts";
import { fishScript } from "./fish.ts";
import { zshScript } from "./zsh.ts";
import type { Session } from "../commands/support/session.ts";
import { addVerb } from "../commands/support/verb.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } satisfies Readonly<
  Record<string, (tree: readonly CommandNode[]) => string>
>;

/** Adds `completion`, which prints a script that completes commands and options in a shell. */
export function addCompletionCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "completion",
    summary: "Prints a script that completes commands and options in your shell.",
    examples: [
      "completion bash > ~/.zae-limiter.bash",
      "completion zsh > ~/.zfunc/_zae-limiter",
      "completion fish > ~/.config/fish/completions/zae-limiter.fish",
    ],
  })
    .addArgument(new Argument("<shell>", "The shell.").choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => {
      session.environment.stdout.write(SCRIPTS[shell](commandTree(program)));
    });
}
