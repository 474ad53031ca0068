import {
  fileSpellings,
  flagsWithChoices,
  valueWords,
  type CommandNode,
  type CommandWord,
  type Flag,
  type Word,
} from "./command-tree.ts";

/** Completion for zsh, with what each word means. It can be sourced, or be a file of `fpath`. */
export function zshScript(tree: readonly CommandNode[]): string {
  const [program, ...commands] = tree;
  return `#compdef zae-limiter
# Completion of zae-limiter for zsh. Load it in ~/.zshrc, after compinit:
#   source <(zae-limiter completion zsh)
_zae-limiter() {
  local command= option= word
  local -a entries options globals
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $option ]]; then option=; continue; fi
    case "$command $word" in
      (${valueWords(tree).map(pattern).join("|")}) option=$word ;;
      (*' '-*) ;;
      (*)
        case "\${command:+$command }$word" in
          (${commands.map(({ path }) => quoted(path)).join("|")}) command="\${command:+$command }$word" ;;
        esac ;;
    esac
  done
  if [[ -n $option ]]; then
    case $option in
${flagsWithChoices(tree)
  .map((flag) => `      (${flag.spellings.join("|")}) entries=(${flag.choices.join(" ")}) ;;`)
  .join("\n")}
      (${fileSpellings(tree).join("|")}) _files; return ;;
    esac
    _describe 'value' entries
    return
  fi
  globals=(${flagEntries(program!.flags)})
  case $command in
${tree.map(caseOf).join("\n")}
  esac
  if [[ $PREFIX == -* || \${#entries} -eq 0 ]]; then
    _describe -o 'option' options
    _describe -o 'global option' globals
  else
    _describe 'command' entries
  fi
}
if [[ \${funcstack[1]} == _zae-limiter ]]; then
  _zae-limiter "$@"
else
  compdef _zae-limiter zae-limiter
fi
`;
}

function caseOf({ path, words, flags }: CommandNode): string {
  const options = path === "" ? "" : flagEntries(flags);
  return `    (${quoted(path)})
      entries=(${words.map(entry).join(" ")})
      options=(${options}) ;;`;
}

function flagEntries(flags: readonly Flag[]): string {
  return flags
    .flatMap(({ spellings, summary }) => spellings.map((text) => entry({ text, summary })))
    .join(" ");
}

function entry({ text, summary }: Word): string {
  return quoted(summary === "" ? text : `${text}:${summary}`);
}

function pattern({ path, spelling }: CommandWord): string {
  return path === undefined ? `*${quoted(` ${spelling}`)}` : quoted(`${path} ${spelling}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
