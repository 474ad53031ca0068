import { setImmediate as nextTurn } from "node:timers/promises";
import { RateLimitExceeded } from "zae-limiter";
import { describe, expect, it, onTestFinished } from "vitest";
import { answerReaderFor } from "../../../src/llm/answers/answer-reader-for.ts";
import { heldAnswer } from "../../support/held-answer.ts";
import { listening } from "../../support/listening.ts";
import { Setting, toText } from "./setting.ts";

type Protocol = "chat" | "responses" | "messages";

/** The events of an answer whose text comes in these pieces, with a usage of 90 and 12 tokens. */
const EVENTS: Record<Protocol, (pieces: readonly string[]) => readonly string[]> = {
  chat: (pieces) => [
    ...pieces.map((content) => data({ choices: [{ index: 0, delta: { content } }] })),
    data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    data({ choices: [], usage: { prompt_tokens: 90, completion_tokens: 12, total_tokens: 102 } }),
    "data: [DONE]\n\n",
  ],
  responses: (pieces) => [
    ...pieces.map((delta) => data({ type: "response.output_text.delta", delta })),
    data({
      type: "response.completed",
      response: { usage: { input_tokens: 90, output_tokens: 12, total_tokens: 102 } },
    }),
  ],
  messages: (pieces) => [
    data({
      type: "message_start",
      message: { usage: { input_tokens: 90, output_tokens: 1 } },
    }),
    ...pieces.map((text) =>
      data({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
    ),
    data({ type: "message_delta", delta: {}, usage: { output_tokens: 12 } }),
    data({ type: "message_stop" }),
  ],
};

function data(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** An answer of these events, one write each, that the server keeps open until it is left. */
async function answer(setting: Setting, protocol: Protocol, events: readonly string[]) {
  const left = heldAnswer<void>();
  const server = await listening(async (_request, response) => {
    response.once("close", () => left.resolve());
    response.setHeader("content-type", "text/event-stream");
    for (const event of events) {
      response.write(event);
      await nextTurn();
    }
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { body, headers } = await fetch(server.url);
  const contentType = headers.get("content-type");
  const expected = { protocol, isStream: true, contentType, withholdsUsage: false };
  const stream = await setting.watch(body!, undefined, answerReaderFor(expected));
  return { stream, left: left.promise };
}

/** Reads this text, and then leaves as clients do: by cancelling. */
async function readUntil(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    if (toText(chunks) === text) break;
  }
}

describe.each(Object.keys(EVENTS) as Protocol[])("an answer by the protocol of %s", (protocol) => {
  it("is complete at its last event, although its reader then cancels", async () => {
    const setting = await Setting.create("memory");
    const events = EVENTS[protocol](["Hello", ", ", "world"]);
    const { stream, left } = await answer(setting, protocol, events);
    await readUntil(stream, events.join(""));
    await left;
    expect(setting.records).toMatchObject([{ end: "complete", source: "reported" }]);
    expect(await setting.left()).toBe(1000 - 102);
  });

  it("that is left before is counted", async () => {
    const setting = await Setting.create("memory");
    const all = EVENTS[protocol](["x".repeat(400)]);
    const events = all.slice(0, all.findIndex((event) => event.includes("xx")) + 1);
    const { stream, left } = await answer(setting, protocol, events);
    await readUntil(stream, events.join(""));
    await left;
    const input = protocol === "messages" ? 90 : 100;
    expect(setting.records).toMatchObject([{ end: "abandoned", usage: { input, output: 100 } }]);
    expect(await setting.left()).toBe(1000 - input - 100);
  });

  it("is stopped where the budget ends", async () => {
    const setting = await Setting.create("memory", { overrun: "stop" });
    const events = EVENTS[protocol](Array.from({ length: 500 }, () => "x".repeat(40)));
    const { stream, left } = await answer(setting, protocol, events);
    let text = "";
    const reading = async (): Promise<void> => {
      for await (const chunk of stream) text += toText([chunk]);
    };
    await expect(reading()).rejects.toBeInstanceOf(RateLimitExceeded);
    await left;
    const delivered = (text.match(/x{40}/g)?.length ?? 0) * 10;
    const [used, rest] = [(await setting.used())!, (await setting.left())!];
    expect([used + rest, rest >= 0]).toEqual([1000, true]);
    expect(delivered).toBeGreaterThan(700);
    expect(delivered).toBeLessThanOrEqual(used - 100 + 256);
    expect(setting.records).toMatchObject([{ end: "stopped" }]);
  });
});

it("an answer whose usage was reported is complete, although its last event is missing", async () => {
  const setting = await Setting.create("memory");
  const events = EVENTS.chat(["Hello"]).slice(0, -1);
  const { stream, left } = await answer(setting, "chat", events);
  await readUntil(stream, events.join(""));
  await left;
  expect(setting.records).toMatchObject([{ end: "complete", source: "reported" }]);
  expect(await setting.left()).toBe(1000 - 102);
});
