import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEventData } from "./event-data.ts";
import { EventSplitter, MAX_EVENT_BYTES } from "./event-splitter.ts";

const MEBIBYTE = 1024 * 1024;

/** The data of each event in chunks; "too large" where one was skipped. */
function eventsIn(chunks: Iterable<Uint8Array>): (string | undefined)[] {
  const splitter = new EventSplitter();
  const events: (string | undefined)[] = [];
  for (const chunk of chunks) {
    splitter.begin(chunk);
    while (splitter.nextEnd() !== -1) {
      const { event } = splitter;
      events.push(event === undefined ? "too large" : parseEventData(event));
    }
    chunk.fill(0); // the next consumer of the chunk may do that
  }
  return events;
}

function toBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

describe("an event", () => {
  it.each([
    ["one line", "data: a\n\n", ["a"]],
    ["no space", "data:a\n\n", ["a"]],
    ["one of two spaces", "data:  a\n\n", [" a"]],
    ["a field without a colon", "data\n\n", [""]],
    ["several lines of data", "data: a\ndata:\ndata: b\n\n", ["a\n\nb"]],
    ["a name, an id and a pause", "event: x\nid: 1\nretry: 5\ndata: a\n\n", ["a"]],
    ["a name that comes after", "data: a\nevent: x\n\n", ["a"]],
    ["a comment", ": hi\n\n:\n\ndata: a\n: hi\n\n", ["", "", "a"]],
    ["an empty line too many", "data: a\n\n\ndata: b\n\n", ["a", "", "b"]],
    ["CR LF", "data: a\r\ndata: b\r\n\r\n", ["a\nb"]],
    ["CR", "data: a\rdata: b\r\r", ["a\nb"]],
    ["mixed line ends", "data: a\r\ndata: b\n\rdata: c\r\n\ndata: d\n\r\n", ["a\nb", "c", "d"]],
    ["a byte order mark", "\uFEFFdata: a\n\n", ["a"]],
    ["a name like data", "database: a\ndata: b\n\n", ["b"]],
    ["no event at all", "<html>\n</html>\n\n", [undefined]],
    ["no end", "data: a\n\ndata: b\n", ["a"]],
    ["CR in a line of data", "data: a\rb\n\n", ["a"]],
  ])("has %s", (_, text, data) => {
    const bytes = toBytes(text);
    expect(eventsIn([bytes.slice()])).toEqual(data);
    expect(eventsIn([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(data);
  });

  it("may be long, and is not copied again with every piece of it", () => {
    const data = "é".repeat(MEBIBYTE);
    const bytes = toBytes(`data: ${data}\n\n`);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 100) }, (_, index) =>
      bytes.slice(100 * index, 100 * index + 100),
    );
    expect(eventsIn(pieces)).toEqual([data]);
  });

  it.each([1, 16])("is skipped if it is too large, in chunks of %s MiB", (mebibytes) => {
    const rest = MAX_EVENT_BYTES - toBytes("data: \n\n").length;
    const stream = toBytes(
      `data: a\n\ndata: ${"x".repeat(rest)}\n\ndata: ${"x".repeat(rest + 1)}\n\ndata: b\n\n`,
    );
    const size = mebibytes * MEBIBYTE;
    const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
      stream.slice(index * size, (index + 1) * size),
    );
    const lengths = eventsIn(chunks).map((data) => (data!.length > 9 ? data!.length : data));
    expect(lengths).toEqual(["a", rest, "too large", "b"]);
  });
});

describe("any text", () => {
  const pieces = fc.constantFrom(..."\n|\r|\r\n|data|data: |data:|:|event: x|a|é|🎉|{}".split("|"));
  const texts = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(""));

  it("is split as by the standard's rules, however it is cut", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
        const bytes = toBytes(text);
        const places = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
        const chunks = [0, ...places].map((start, index) =>
          bytes.slice(start, places[index] ?? bytes.length),
        );
        const data = eventsIn(chunks).map((each) => each ?? "");
        expect(data.filter((each) => each !== "")).toEqual(eventsByTheStandard(text));
      }),
      { numRuns: 2000 },
    );
  });
});

/** Data of the events of a whole text. Those without data are left out. */
function eventsByTheStandard(text: string): string[] {
  const events: string[] = [];
  let data: string[] = [];
  const lines = text.split(/\r\n|\r|\n/).slice(0, -1); // the last line does not end
  for (const line of lines) {
    const [, field = line, value = ""] = /^([^:]*): ?(.*)$/su.exec(line) ?? [];
    if (field === "data") data.push(value);
    if (line !== "") continue;
    if (data.join("\n") !== "") events.push(data.join("\n"));
    data = [];
  }
  return events;
}
