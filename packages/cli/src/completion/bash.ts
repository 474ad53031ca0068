import {
  fileSpellings,
  flagsWithChoices,
  valueWords,
  type CommandNode,
  type CommandWord,
} from "./command-tree.ts";

/**
 * Completion for bash. It reads the words before the cursor to find the command, as the program
 * does; bash splits words at `=` too, so that sign is passed over.
 */
export function bashScript(tree: readonly CommandNode[]): string {
  const [program, ...commands] = tree;
  const globals = spellingsOf(program!);
  return `# Completion of zae-limiter for bash. Load it in ~/.bashrc:
#   source <(zae-limiter completion bash)
_zae_limiter() {
  local current=\${COMP_WORDS[COMP_CWORD]} command= option= words= options= word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ $word == = ]]; then continue; fi
    if [[ -n $option ]]; then option=; continue; fi
    case "$command $word" in
      ${valueWords(tree).map(pattern).join("|")}) option=$word ;;
      *' '-*) ;;
      *)
        case "\${command:+$command }$word" in
          ${commands.map(({ path }) => quoted(path)).join("|")}) command="\${command:+$command }$word" ;;
        esac ;;
    esac
  done
  if [[ $current == = ]]; then current=; fi
  if [[ -n $option ]]; then
    case $option in
${flagsWithChoices(tree)
  .map((flag) => `      ${flag.spellings.join("|")}) words=${quoted(flag.choices.join(" "))} ;;`)
  .join("\n")}
      ${fileSpellings(tree).join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac
  else
    case $command in
${tree.map(caseOf).join("\n")}
    esac
    if [[ -z $words || $current == -* ]]; then words="$options ${globals}"; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _zae_limiter zae-limiter
`;
}

function caseOf(node: CommandNode): string {
  const words = node.words.map(({ text }) => text).join(" ");
  const options = node.path === "" ? "" : spellingsOf(node);
  return `      ${quoted(node.path)}) words=${quoted(words)} options=${quoted(options)} ;;`;
}

function spellingsOf({ flags }: CommandNode): string {
  return flags.flatMap(({ spellings }) => spellings).join(" ");
}

function pattern({ path, spelling }: CommandWord): string {
  return path === undefined ? `*${quoted(` ${spelling}`)}` : quoted(`${path} ${spelling}`);
}

function quoted(text: string): string {
  return `'${text}'`;
}
