/*
 * Tools that the AI SDK runs between the steps of a loop, or while an answer streams, may call
 * models of their own. They are not part of the call that asked for them.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { forgetWarnings } from "../../src/warnings/warn-once.ts";
import { isMeteredAlready, runMetered } from "../../src/llm/nested-calls.ts";

let server: Server;
let baseURL: string;
/** What asked whether it is inside of a metered call, and what it was told. */
let asked: [string, boolean][];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += String(chunk)));
    request.on("end", () => {
      const { stream, messages } = JSON.parse(body) as {
        readonly stream?: boolean;
        readonly messages: readonly { readonly role: string }[];
      };
      const isLast = messages.at(-1)!.role === "tool";
      response.setHeader("content-type", stream ? "text/event-stream" : "application/json");
      response.end(stream ? getStreamed(isLast) : JSON.stringify(answer("message", isLast)));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  asked = [];
  forgetWarnings();
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  return () => {
    vi.restoreAllMocks();
    forgetWarnings();
  };
});

const CALL = { index: 0, id: "1", type: "function", function: { name: "look", arguments: "{}" } };

/** Asks for a tool first, and then says something. */
function answer(field: "message" | "delta", isLast: boolean): object {
  const said = isLast
    ? { role: "assistant", content: "Done" }
    : { role: "assistant", content: null, tool_calls: [CALL] };
  const finish_reason = isLast ? "stop" : "tool_calls";
  return { id: "x", choices: [{ index: 0, [field]: said, finish_reason }] };
}

function getStreamed(isLast: boolean): string {
  return `data: ${JSON.stringify(answer("delta", isLast))}\n\ndata: [DONE]\n\n`;
}

/** A model with a middleware that meters, over a fetch that would meter too. */
function model(): Parameters<typeof generateText>[0]["model"] {
  const openai = createOpenAI({
    baseURL,
    apiKey: "k",
    fetch: (input, init) => {
      asked.push(["fetch", isMeteredAlready()]);
      return fetch(input, init);
    },
  });
  return wrapLanguageModel({
    model: openai.chat("gpt-5"),
    middleware: {
      specificationVersion: "v3",
      wrapGenerate: ({ doGenerate }) => {
        asked.push(["step", isMeteredAlready()]);
        return runMetered(doGenerate);
      },
      wrapStream: ({ doStream }) => {
        asked.push(["step", isMeteredAlready()]);
        return runMetered(doStream);
      },
    },
  });
}

const tools = {
  look: tool({
    inputSchema: jsonSchema<object>({ type: "object", properties: {} }),
    execute: async () => {
      asked.push(["tool", isMeteredAlready()]);
      return "nothing";
    },
  }),
};

const LOOP = { prompt: "Look", tools, stopWhen: stepCountIs(3), maxRetries: 0 };

const LOOPED: [string, boolean][] = [
  ["step", false],
  ["fetch", true],
  ["tool", false],
  ["step", false],
  ["fetch", true],
];

it("generateText: each step and each tool is a call of its own, and fetch is part of its step", async () => {
  expect((await generateText({ model: model(), ...LOOP })).text).toBe("Done");
  expect(asked).toEqual(LOOPED);
});

it("streamText: the same, with a tool that runs while the answer streams", async () => {
  expect(await streamText({ model: model(), ...LOOP }).text).toBe("Done");
  expect(asked).toEqual(LOOPED);
});
