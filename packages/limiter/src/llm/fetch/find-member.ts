/** A range of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the value of a member in the text of a JSON object, which must be valid. Among several of
 * one name it is the last, as for `JSON.parse`. It does not recurse, so any depth works, while
 * `JSON.stringify` throws at some thousand levels, and rounds long numbers.
 */
export function findMember(text: string, name: string): Span | undefined {
  let found: Span | undefined;
  let depth = 0;
  let key = "";
  let start: number | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') {
      const end = findEndOfString(text, at);
      if (depth === 1 && start === undefined) key = text.slice(at, end);
      at = end - 1;
    } else if (char === ":" && depth === 1) start = at + 1;
    else if ((char === "," || char === "}") && depth === 1) {
      if (start !== undefined && JSON.parse(key) === name) found = { start, end: at };
      start = undefined;
    }
    if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }
  return found;
}

function findEndOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}
