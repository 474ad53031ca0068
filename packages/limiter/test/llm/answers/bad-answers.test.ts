import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { MAX_BODY_BYTES } from "../../../src/llm/answers/body-reader.ts";
import { MAX_EVENT_BYTES } from "../../../src/llm/answers/bytes/event-splitter.ts";
import { MAX_HELD_BYTES } from "../../../src/llm/answers/bytes/withholding.ts";
import { cutAt, readAll, getReader, soFar, type Reading } from "./reading.ts";
import { BODIES, STREAMS, toText } from "./samples.ts";

const BAD_NUMBERS = ["-1", "1.5", '"7"', "1e999", "9007199254740992", "true", "{}", "[3]"];

/** Reads a stream in one piece. */
function readText(protocol: "chat" | "responses" | "messages", text: string): Reading {
  return readAll(getReader(protocol), [Buffer.from(text)]);
}

function chunkWithUsage(text: string, tokens: number): string {
  return `data: {"choices":[{"delta":{"content":"${text}"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":${tokens}}}\n\n`;
}

/** Finds where the event with the usage begins and ends. */
function usageIn(stream: string, usageEvent: string | undefined): [number, number] {
  const start = stream.indexOf(`data: ${usageEvent}`);
  return start === -1 ? [Infinity, Infinity] : [start, stream.indexOf("\n\n", start) + 2];
}

function sampleText(file: string): string {
  return toText([...STREAMS, ...BODIES].find((sample) => sample.file === file)!);
}

describe("a usage that cannot be believed", () => {
  it.each([
    ["chat-text.sse", "chat", '"prompt_tokens":1117'],
    ["chat-text.sse", "chat", '"completion_tokens":46'],
    ["chat-text.sse", "chat", '"cached_tokens":1024'],
    ["chat-text.sse", "chat", '"reasoning_tokens":8'],
    ["responses-text.sse", "responses", '"input_tokens":291'],
    ["responses-text.sse", "responses", '"output_tokens":73'],
    ["responses-text.sse", "responses", '"cache_write_tokens":100'],
  ] as const)("%s: %s %s", (file, protocol, number) => {
    const text = sampleText(file);
    const name = number.split(":")[0]!;
    for (const bad of BAD_NUMBERS) {
      const { read } = readText(protocol, text.replace(number, `${name}:${bad}`));
      expect(read, bad).toMatchObject({ hasUnreadableUsage: true, isComplete: true });
      expect(read.reported).toBeUndefined();
      expect(read.isReportFinal).toBe(false);
      expect(read.outputBytes).toBeGreaterThan(0);
    }
  });

  it("is one without the numbers that it must have, and one that is not an object", () => {
    for (const usage of ["{}", '{"prompt_tokens":1}', '{"completion_tokens":1}', "[]", '"x"', "5"])
      expect(
        readText("chat", `data: {"choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`).read,
      ).toMatchObject({ hasUnreadableUsage: true, isReportFinal: false, reported: undefined });
    for (const usage of ["null", "", undefined])
      expect(
        readText("chat", `data: {"choices":[]${usage ? `,"usage":${usage}` : ""}}\n\n`).read,
      ).toMatchObject({ hasUnreadableUsage: false, reported: undefined });
  });

  it("is forgotten when a good one follows, and ends the one before", () => {
    const good = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n';
    const bad = 'data: {"choices":[],"usage":{"prompt_tokens":-3}}\n\n';
    const done = "data: [DONE]\n\n";
    const one = readText("chat", bad + good + done).read;
    expect(one).toMatchObject({ hasUnreadableUsage: false, isReportFinal: true });
    const other = readText("chat", good + bad + done).read;
    expect(other).toMatchObject({ hasUnreadableUsage: true, isReportFinal: false });
  });

  it("messages: what the last report lacks is as in the first one, or unknown", () => {
    const text = sampleText("messages-tools.sse");
    for (const bad of BAD_NUMBERS) {
      const start = readText(
        "messages",
        text.replace('"input_tokens":472', `"input_tokens":${bad}`),
      );
      expect(start.read, bad).toMatchObject({ hasUnreadableUsage: true, isReportFinal: false });
      expect(start.read.reported).toBeUndefined();
      const end = readText(
        "messages",
        text.replace('"output_tokens":89', `"output_tokens":${bad}`),
      );
      expect(end.read, bad).toMatchObject({
        hasUnreadableUsage: true,
        isReportFinal: false,
        reported: { input: 472, cachedInput: 0, cacheWriteInput: 0 },
      });
    }
  });

  it.each(BODIES)("$file", ({ file, protocol }) => {
    const text = sampleText(file).replace(/"(prompt|input)_tokens": \d+/, '"$1_tokens": -1');
    const { read } = readAll(getReader(protocol, { isStream: false }), [Buffer.from(text)]);
    expect(read).toMatchObject({
      hasUnreadableUsage: true,
      isReportFinal: false,
      isComplete: true,
    });
  });
});

describe("a report", () => {
  it("is not final while the model goes on, and not if it went on after it", () => {
    expect(readText("chat", chunkWithUsage("a", 1)).read).toMatchObject({
      isReportFinal: false,
      reported: { input: 9, output: 1 },
    });
    const more = 'data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\n\n';
    const done = "data: [DONE]\n\n";
    expect(readText("chat", chunkWithUsage("a", 1) + more + done).read.isReportFinal).toBe(false);
    expect(readText("chat", more + chunkWithUsage("", 1) + done).read.isReportFinal).toBe(true);
  });

  it("messages: of the beginning is about the prompt only", () => {
    const [start = ""] = sampleText("messages-text.sse").split("\n\n");
    expect(readText("messages", `${start}\n\n`).read).toEqual({
      outputBytes: 0,
      reported: { input: 12, cachedInput: 2048, cacheWriteInput: 300 },
      isReportFinal: false,
      isComplete: false,
      hasUnreadableUsage: false,
    });
    const stop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
    const { read } = readText("messages", `${start}\n\n${stop}`);
    expect(read).toMatchObject({ isComplete: true, isReportFinal: false });
  });
});

describe("a stream that is cut off", () => {
  it.each(STREAMS)("$file is read as far as it went, and all of it passes", (sample) => {
    const stream = Buffer.from(toText(sample)).toString("latin1");
    const [start, end] = usageIn(stream, sample.usageEvent);
    let outputBytes = 0;
    const fieldName = "event:".length; // less could be the beginning of anything
    for (let length = fieldName; length < stream.length; length += 1) {
      const reader = getReader(sample.protocol, { withholdsUsage: true });
      const { read, passed } = readAll(reader, [Buffer.from(stream.slice(0, length), "latin1")]);
      const isLeftOut = length >= end - "\n\n".length;
      const expected = isLeftOut
        ? stream.slice(0, start) + stream.slice(end, Math.max(length, end))
        : stream.slice(0, length);
      if (passed !== expected || !(read.outputBytes! >= outputBytes))
        expect.fail(`cut at ${length}: ${read.outputBytes} bytes were read, and passed: ${passed}`);
      outputBytes = read.outputBytes!;
    }
    expect(outputBytes).toBe(sample.read.outputBytes);
  });

  it("holds nothing after its end", () => {
    const reader = getReader("chat", { withholdsUsage: true });
    reader.read(Buffer.from(sampleText("chat-text.sse")));
    const more = Buffer.from('data: {"choices":[],"usage":{');
    expect(reader.read(more)).toBe(more);
  });

  it("counts its last event if only the blank line is missing", () => {
    const text = sampleText("chat-text.sse");
    const usage = text.indexOf("data: [DONE]");
    expect(readText("chat", text.slice(0, usage - 2)).read.isReportFinal).toBe(true);
    expect(readText("chat", text.slice(0, usage - 3)).read.isReportFinal).toBe(false);
    expect(readText("chat", text.trimEnd()).read.isComplete).toBe(true);
  });
});

describe("what is not an answer", () => {
  it("cannot be counted", () => {
    for (const text of [
      "<html>502 Bad Gateway</html>",
      '{"choices":[{"message":{"content":"a"}}]}',
      "data: {\n\n",
      "data: <html>\n\ndata: [DONE]\n\n",
    ])
      expect(readText("chat", text).read.outputBytes, text).toBeUndefined();
    for (const text of ["", "data", "[]", '"a"', "5", '{"a":', 'data: {"choices":[]}\n\n']) {
      const reader = getReader("chat", { isStream: false });
      const { read } = readAll(reader, [Buffer.from(text)]);
      expect(read, text).toMatchObject({ outputBytes: undefined, isComplete: false });
    }
  });

  it("does not change what is counted of the rest", () => {
    const text = 'data: {"choices":[{"delta":{"content":"word"}}]}\n\n';
    for (const events of [
      ["data: ping\n\n", text, text],
      [text, "data: {\n\n", text],
    ])
      expect(readText("chat", events.join("")).read.outputBytes).toBe(8);
  });

  it("is a response that is still being made", () => {
    for (const status of ["queued", "in_progress"]) {
      const body = Buffer.from(`{"status":"${status}","output":[],"usage":null}`);
      const { read } = readAll(getReader("responses", { isStream: false }), [body]);
      expect(read).toMatchObject({ outputBytes: undefined, reported: undefined });
    }
  });

  it("is passed over if it is not an object, or has other things where some are expected", () => {
    for (const protocol of ["chat", "responses", "messages"] as const)
      for (const data of ["5", "null", "[]", '"a"', "{}", '{"choices":{},"delta":5,"type":7}'])
        expect(readText(protocol, `data: ${data}\n\n`).read).toMatchObject({
          outputBytes: 0,
          reported: undefined,
        });
    const odd = '{"choices":[null,5,{"delta":[]},{"delta":{"content":5,"tool_calls":[null,{}]}}]}';
    expect(readText("chat", `data: ${odd}\n\n`).read.outputBytes).toBe(0);
  });

  it("passes if it is not bytes", () => {
    for (const isStream of [true, false]) {
      const reader = getReader("chat", { isStream });
      const chunk = "data: {}\n\n" as unknown as Uint8Array;
      expect(reader.read(chunk)).toBe(chunk);
      expect(reader.end()).toBeUndefined();
      expect(reader.outputBytes).toBeUndefined();
    }
  });

  it("is a body that reports an error, and one that is nested too deeply", () => {
    const failed = readAll(getReader("messages", { isStream: false }), [
      Buffer.from('{"type":"error","error":{"type":"api_error","message":""}}'),
    ]);
    expect(failed.read.isComplete).toBe(false);
    const deep = `{"content":[{"input":${"[".repeat(200_000)}${"]".repeat(200_000)}}]}`;
    const reader = getReader("messages", { isStream: false });
    expect(readAll(reader, [Buffer.from(deep)]).read.outputBytes).toBeUndefined();
  });
});

describe("an answer that is too large", () => {
  it("passes, and is read on where the large event ends", () => {
    const chunks = [
      Buffer.from('data: {"choices":[{"delta":{"content":"'),
      Buffer.alloc(MAX_EVENT_BYTES, "x"),
      Buffer.from(`"}}]}\n\n${sampleText("chat-text.sse")}`),
    ];
    const reader = getReader("chat");
    for (const chunk of chunks) expect(reader.read(chunk)).toBe(chunk);
    expect(soFar(reader)).toEqual(readText("chat", sampleText("chat-text.sse")).read);
  });

  it("is not counted either if it ends there", () => {
    const reader = getReader("chat");
    reader.read(Buffer.alloc(MAX_EVENT_BYTES + 1, "x"));
    reader.end();
    expect(reader.outputBytes).toBeUndefined();
  });

  it("is held no longer than a report may be, and passes wholly then", () => {
    const finish = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
    const usage = '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"x":"';
    const rest = MAX_HELD_BYTES - `data: ${usage}"}\n\n`.length;
    for (const [length, isLeftOut] of [
      [rest, true],
      [rest + 1, false],
    ] as const) {
      const long = `data: ${usage}${"x".repeat(length)}"}\n\n`;
      const stream = Buffer.from(`${finish}${long}data: [DONE]\n\n`);
      const expected = isLeftOut ? `${finish}data: [DONE]\n\n` : stream.toString();
      for (const places of [[], [100], [100, 200, 40_000], [100, stream.length - 20]]) {
        const reader = getReader("chat", { withholdsUsage: true });
        const { read, passed } = readAll(reader, cutAt(stream, places));
        expect(passed === expected, `${length} at ${places.join()}`).toBe(true);
        expect(read).toMatchObject({ isComplete: true, isReportFinal: true });
      }
    }
  });

  it("is not read if it is a body", () => {
    const reader = getReader("embeddings", { isStream: false });
    const chunk = Buffer.from(" ".repeat(MAX_BODY_BYTES / 16));
    reader.read(Buffer.from(sampleText("embeddings.json")));
    for (let count = 0; count < 16; count += 1) expect(reader.read(chunk)).toBe(chunk);
    reader.end();
    expect(soFar(reader)).toMatchObject({ outputBytes: undefined, reported: undefined });
  });
});

describe("any bytes", () => {
  const protocols = fc.constantFrom("chat", "responses", "messages", "embeddings" as const);

  it("are read without an error, and pass", () => {
    fc.assert(
      fc.property(
        protocols,
        fc.boolean(),
        fc.array(fc.uint8Array()),
        (protocol, isStream, chunks) => {
          const reader = getReader(protocol, { isStream, withholdsUsage: true });
          const { passed } = readAll(reader, chunks);
          expect(passed).toBe(Buffer.concat(chunks).toString("latin1"));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("are JSON of any shape, in events and bodies", () => {
    const names = fc.constantFrom(
      ..."choices delta message content usage text type output response error".split(" "),
      ..."prompt_tokens completion_tokens input_tokens output_tokens tool_calls".split(" "),
    );
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom(null, true, 0, -1, 7, "", "é", "message_start", "response.completed"),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(names, tie("value"), { maxKeys: 4 }),
      ),
    })).value;
    fc.assert(
      fc.property(protocols, fc.boolean(), values, (protocol, isStream, value) => {
        const json = JSON.stringify(value);
        const text = isStream ? `data: ${json}\n\n` : json;
        const reader = getReader(protocol, { isStream, withholdsUsage: true });
        expect(readAll(reader, [Buffer.from(text)]).passed).toBe(
          Buffer.from(text).toString("latin1"),
        );
      }),
      { numRuns: 2000 },
    );
  });
});

it("parses each event once", () => {
  const parse = vi.spyOn(JSON, "parse");
  try {
    for (const { file, protocol } of STREAMS) {
      const text = sampleText(file);
      const events = text.match(/^data: \{/gm)!.length;
      parse.mockClear();
      readAll(getReader(protocol, { withholdsUsage: true }), [Buffer.from(text)]);
      expect(parse).toHaveBeenCalledTimes(events);
    }
  } finally {
    parse.mockRestore();
  }
});
