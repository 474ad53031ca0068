import { describe, expect, it } from "vitest";
import { buildAnswerReader } from "./build-answer-reader.ts";
import { BodyReader } from "./body-reader.ts";
import { EventStreamReader } from "./event-stream-reader.ts";

describe("the reader of an answer", () => {
  it.each([
    ["text/event-stream", EventStreamReader, EventStreamReader],
    ["Text/Event-Stream; charset=utf-8", EventStreamReader, EventStreamReader],
    ["application/json", BodyReader, BodyReader],
    ["application/vnd.x+json; charset=utf-8", BodyReader, BodyReader],
    ["text/plain; profile=json", BodyReader, EventStreamReader],
    ["", BodyReader, EventStreamReader],
    [null, BodyReader, EventStreamReader],
  ])("%s", (contentType, plain, stream) => {
    const getReader = (isStream: boolean): unknown =>
      buildAnswerReader({ protocol: "chat", contentType, isStream, withholdsUsage: false });
    expect(getReader(false)).toBeInstanceOf(plain);
    expect(getReader(true)).toBeInstanceOf(stream);
  });
});
