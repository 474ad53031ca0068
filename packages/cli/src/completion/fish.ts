import { valueWords, type CommandNode, type CommandWord, type Flag } from "./command-tree.ts";

/** Completion for fish, with what each word means. */
export function fishScript(tree: readonly CommandNode[]): string {
  const [program, ...commands] = tree;
  return `# Completion of zae-limiter for fish. Load it in ~/.config/fish/config.fish:
#   zae-limiter completion fish | source
function __zae_limiter_at
    set -l command
    set -l option
    set -l tokens (commandline -opc)
    for word in $tokens[2..-1]
        if test -n "$option"
            set option
            continue
        end
        switch "$command $word"
            case ${valueWords(tree).map(pattern).join(" ")}
                set option $word
            case '* -*'
            case '*'
                switch "$command $word"
                    case ${commands.map(({ path }) => quoted(` ${path}`)).join(" ")}
                        set command "$command $word"
                end
        end
    end
    test "$command" = "$argv[1]"
end
complete -c zae-limiter -f
${program!.flags.map((flag) => `complete -c zae-limiter ${flagText(flag)}`).join("\n")}
${tree.map(linesOf).join("\n")}
`;
}

function linesOf({ path, words, flags }: CommandNode): string {
  const at = `complete -c zae-limiter -n ${quoted(`__zae_limiter_at '${path && ` ${path}`}'`)}`;
  const lines = words.map(({ text, summary }) => `${at} -a ${text}${described(summary)}`);
  const own = path === "" ? [] : flags.map((flag) => `${at} ${flagText(flag)}`);
  return [...lines, ...own].join("\n");
}

/**
 * An option that takes a value is exclusive (`-x`): what follows it is its value, and no file
 * unless it takes one (`-r -F`).
 */
function flagText({ spellings, summary, takesValue, takesFile, choices }: Flag): string {
  const names = spellings.map((spelling) =>
    spelling.replace(/^--/, "-l ").replace(/^-(\w)$/, "-s $1"),
  );
  const value = takesFile ? " -r -F" : takesValue ? " -x" : "";
  const values = choices.length === 0 ? "" : ` -a ${quoted(choices.join(" "))}`;
  return `${names.join(" ")}${value}${values}${described(summary)}`;
}

function described(summary: string): string {
  return summary === "" ? "" : ` -d ${quoted(summary)}`;
}

function pattern({ path, spelling }: CommandWord): string {
  return quoted(path === undefined ? `* ${spelling}` : ` ${path} ${spelling}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
