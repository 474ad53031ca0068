const LINE_END = /\r\n|\n|\r/;
/** Fields without data, and comments. */
const OTHER_LINE = /^(?::|(?:event|id|retry)(?::|$)|$)/;
const UTF_8 = new TextDecoder(); // leaves out a byte order mark

/** The data of an event. It may have none; undefined if this is no event at all. */
export function eventData(event: Uint8Array): string | undefined {
  const text = UTF_8.decode(event);
  if (text.startsWith("data: ") && text.indexOf("\n") === text.length - 2 && !text.includes("\r"))
    return text.slice(6, -2); // as providers write it
  let data: string | undefined;
  let hasOthers = false;
  for (const line of text.includes("\r") ? text.split(LINE_END) : text.split("\n")) {
    const value = dataIn(line);
    if (value !== undefined) data = data === undefined ? value : `${data}\n${value}`;
    else hasOthers ||= !OTHER_LINE.test(line);
  }
  return data ?? (hasOthers ? undefined : "");
}

function dataIn(line: string): string | undefined {
  if (!line.startsWith("data")) return undefined;
  if (line.length === 4) return "";
  if (line[4] !== ":") return undefined;
  return line.slice(line[5] === " " ? 6 : 5);
}
