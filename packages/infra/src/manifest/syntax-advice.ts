import type { ErrorCode } from "yaml";

const NO_TAGS = "Leave the tag out: a manifest has none.";
const COLON = "Write `key: value`, with a space after the colon.";

/** What to do about an error of the parser, by its code. */
const BY_CODE: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "Write the alias alone, without an anchor or a tag.",
  BAD_ALIAS: "Write a name after `&` or `*`, without a colon at its end.",
  BAD_COLLECTION_TYPE: NO_TAGS,
  BAD_DIRECTIVE: "Leave the line that begins with `%` out.",
  BAD_DQ_ESCAPE: "Write `\\\\` for a backslash, or the text in single quotes.",
  BAD_INDENT: "Indent all entries of a map by the same number of spaces, more than its key.",
  BAD_PROP_ORDER: "Write the anchor right before the value.",
  BAD_SCALAR_START: "Write the value in quotes.",
  BLOCK_AS_IMPLICIT_KEY: "Begin a new line after the first colon, or write the value in quotes.",
  BLOCK_IN_FLOW: "Close the bracket before it, or write everything in the brackets with brackets.",
  DUPLICATE_KEY: "Keep one of them.",
  IMPOSSIBLE: "Compare the line with those around it.",
  KEY_OVER_1024_CHARS: "Shorten the key.",
  MISSING_CHAR: COLON,
  MULTILINE_IMPLICIT_KEY: COLON,
  MULTIPLE_ANCHORS: "Keep one of them.",
  MULTIPLE_DOCS: "Put each of them into a file of its own.",
  MULTIPLE_TAGS: NO_TAGS,
  NON_STRING_KEY: "Write a name before the colon, without brackets.",
  RESOURCE_EXHAUSTION: "A manifest has at most seven levels.",
  TAB_AS_INDENT: "Indent with spaces.",
  TAG_RESOLVE_FAILED: NO_TAGS,
  UNEXPECTED_TOKEN: "Remove it, or write the whole value in quotes.",
};

/** Errors that share a code with others, by what the parser says. */
const BY_MESSAGE: readonly (readonly [RegExp, string])[] = [
  [/^Missing closing/, "Write the quote that ends the text."],
  [/^Flow .* end with a/, "Close the bracket, or indent what is in it."],
  [/^Missing ,/, "Write a comma between the entries, and a space after each colon."],
  [/^Comments must/, "Write a space before `#`."],
  [/^(?:Block collection cannot|Missing directives-end)/, "Begin a new line after `---`."],
  [/^Sequence item without/, "Write `- ` before each entry of a list."],
];

/** What to do about an error of the parser. */
export function syntaxAdvice(code: ErrorCode, message: string): string {
  return BY_MESSAGE.find(([begins]) => begins.test(message))?.[1] ?? BY_CODE[code];
}
