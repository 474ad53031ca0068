const LINE_END = /\r\n|\n|\r/;
/** Fields without data, and comments. */
const OTHER_FIELD = /^(?:event|id|retry|):/;
const UTF_8 = new TextDecoder(); // leaves out a byte order mark

/** Parses the data of an event: "" if it has none, undefined if this is not an event. */
export function parseEventData(event: Uint8Array): string | undefined {
  const text = UTF_8.decode(event);
  return parseUsualData(text) ?? joinDataLines(text.split(LINE_END));
}

/**
 * The fast path, for events as providers write them: a line of data, perhaps after one with its
 * name.
 */
function parseUsualData(text: string): string | undefined {
  const lineStart = text.startsWith("event: ") ? text.indexOf("\n") + 1 : 0;
  if (!text.startsWith("data: ", lineStart)) return undefined;
  const lineEnd = text.indexOf("\n", lineStart);
  if (lineEnd !== text.length - 2 || text.includes("\r")) return undefined;
  return text.slice(lineStart + 6, lineEnd);
}

function joinDataLines(lines: readonly string[]): string | undefined {
  const data = lines.map(parseDataLine).filter((value) => value !== undefined);
  const isEvent =
    data.length > 0 ||
    lines.some((line) => OTHER_FIELD.test(line)) ||
    lines.every((line) => line === "");
  return isEvent ? data.join("\n") : undefined;
}

function parseDataLine(line: string): string | undefined {
  if (line === "data") return "";
  if (!line.startsWith("data:")) return undefined;
  return line.slice(line[5] === " " ? 6 : 5);
}
