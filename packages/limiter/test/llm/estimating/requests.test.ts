/*
 * Requests as the clients' own types and the clients themselves make them. Exactly the texts that
 * the model reads are found, and each file once.
 */
import type Anthropic from "@anthropic-ai/sdk";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { generateText, jsonSchema, Output, tool, type ModelMessage } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import type OpenAI from "openai";
import { expect, it } from "vitest";
import { toSentMessages } from "../../../src/llm/estimating/langchain-messages.ts";
import { toLlmCall } from "../../../src/llm/estimating/to-llm-call.ts";

const BASE64 = "QUJD".repeat(100);
const DATA_URL = `data:image/png;base64,${BASE64}`;
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const SCHEMA_TEXTS = ["type", "object", "properties", "city", "type", "string", "required", "city"];

it("chat completions", () => {
  expectFound(
    {
      model: "gpt-5",
      n: 2,
      max_completion_tokens: 50,
      metadata: { trace: "not read" },
      user: "not read",
      messages: [
        { role: "system", content: "Be short." },
        {
          role: "user",
          name: "ann",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: DATA_URL, detail: "high" } },
            { type: "image_url", image_url: { url: "https://example.test/a.png" } },
            { type: "input_audio", input_audio: { data: BASE64, format: "wav" } },
            { type: "file", file: { file_data: BASE64, filename: "a.pdf" } },
            { type: "file", file: { file_id: "file-1" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          refusal: null,
          audio: null,
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "weather", arguments: '{"city":"Rome"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "sunny" }] },
      ],
      tools: [{ type: "function", function: { name: "weather", parameters: SCHEMA } }],
      response_format: { type: "json_object" },
    } satisfies OpenAI.ChatCompletionCreateParams,
    ["Be short.", "ann", "What is this?", "weather", '{"city":"Rome"}', "sunny"],
    5,
    ["type", "function", "function", "name", "weather", "parameters", ...SCHEMA_TEXTS],
    ["type", "json_object"],
  );
});

it("completions", () => {
  expectFound(
    {
      model: "davinci",
      prompt: ["one", "two"],
      suffix: "end",
    } satisfies OpenAI.CompletionCreateParams,
    ["one", "two", "end"],
    0,
  );
});

it("embeddings", () => {
  expectFound(
    { model: "small", input: ["one", "two"], user: "no" } satisfies OpenAI.EmbeddingCreateParams,
    ["one", "two"],
    0,
  );
});

it("responses", () => {
  expectFound(
    {
      model: "gpt-5",
      instructions: "Be short.",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: DATA_URL, detail: "auto" },
            { type: "input_image", file_id: "file-1", detail: "auto" },
            { type: "input_file", file_data: BASE64, filename: "a.pdf" },
            { type: "input_file", file_url: "https://example.test/a.pdf" },
          ],
        },
        {
          type: "reasoning",
          id: "rs_1",
          summary: [{ type: "summary_text", text: "Thinking." }],
          encrypted_content: BASE64,
        },
        { type: "function_call", call_id: "c", name: "weather", arguments: '{"city":"Rome"}' },
        { type: "function_call_output", call_id: "c", output: "sunny" },
        {
          type: "computer_call_output",
          call_id: "c",
          output: { type: "computer_screenshot", image_url: DATA_URL },
        },
        { type: "image_generation_call", id: "i", result: BASE64, status: "completed" },
        {
          type: "message",
          id: "m",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Rome.", annotations: [] }],
        },
      ],
      tools: [{ type: "function", name: "weather", parameters: SCHEMA, strict: true }],
      text: { format: { type: "text" } },
    } satisfies OpenAI.Responses.ResponseCreateParams,
    ["Be short.", "What is this?", "Thinking.", "weather", '{"city":"Rome"}', "sunny", "Rome."],
    6,
    ["type", "function", "name", "weather", "parameters", ...SCHEMA_TEXTS, "strict", "true"],
    ["format", "type", "text"],
  );
  expectFound({ model: "gpt-5", input: "Hello" }, ["Hello"], 0);
});

it("messages", () => {
  expectFound(
    {
      model: "claude",
      max_tokens: 100,
      system: [{ type: "text", text: "Be short.", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "Hello" },
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: BASE64 } },
            { type: "image", source: { type: "url", url: "https://example.test/a.png" } },
            {
              type: "document",
              title: "Title",
              source: { type: "base64", media_type: "application/pdf", data: BASE64 },
            },
            {
              type: "document",
              source: { type: "text", media_type: "text/plain", data: "A plain document." },
            },
            {
              type: "document",
              source: { type: "content", content: [{ type: "text", text: "A part." }] },
            },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: BASE64 },
            { type: "tool_use", id: "t", name: "find", input: { id: "key", type: "user", top: 5 } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t",
              content: [
                { type: "text", text: "found" },
                {
                  type: "image",
                  source: { type: "base64", media_type: "image/png", data: BASE64 },
                },
              ],
            },
          ],
        },
      ],
      tools: [{ name: "find", description: "Finds.", input_schema: { type: "object" } }],
    } satisfies Anthropic.MessageCreateParams,
    ["Be short.", "Hello", "Title", "A plain document.", "A part.", "Hm.", "find", "found"],
    4,
    ["id", "key", "type", "user", "top", "5"],
    ["name", "find", "description", "Finds.", "input_schema", "type", "object"],
  );
});

it("calls of the AI SDK, as it makes them", async () => {
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({
      content: [{ type: "text", text: '{"city":"Rome"}' }],
      finishReason: { unified: "stop", raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    }),
  });
  const messages: ModelMessage[] = [
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image", image: new Uint8Array(1000) },
        { type: "image", image: BASE64, mediaType: "image/png" },
        { type: "file", data: Buffer.from("%PDF"), mediaType: "application/pdf", filename: "a" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Thinking." },
        { type: "tool-call", toolCallId: "c", toolName: "weather", input: { city: "Rome" } },
      ],
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "c",
          toolName: "weather",
          output: { type: "json", value: { role: "sunny", degrees: 20 } },
        },
        {
          type: "tool-result",
          toolCallId: "d",
          toolName: "look",
          output: {
            type: "content",
            value: [
              { type: "text", text: "A picture." },
              { type: "image-data", data: BASE64, mediaType: "image/png" },
            ],
          },
        },
      ],
    },
  ];
  await generateText({
    model,
    system: "Be short.",
    maxOutputTokens: 77,
    messages,
    tools: { weather: tool({ description: "Tells.", inputSchema: jsonSchema(SCHEMA as never) }) },
    output: Output.object({ schema: jsonSchema(SCHEMA as never) }),
  });
  const [params] = model.doGenerateCalls;
  expect(toLlmCall(params, { model: model.modelId }).maxOutputTokens).toBe(77);
  expectFound(
    params,
    ["Be short.", "What is this?", "Thinking.", "weather", "city", "Rome", "weather"],
    4,
    ["role", "sunny", "degrees", "20", "look", "A picture."],
    ["type", "function", "name", "weather", "description", "Tells.", "inputSchema"],
    [...SCHEMA_TEXTS, "type", "json", "schema", ...SCHEMA_TEXTS],
  );
});

it("a file that is a text, as AI SDK 7 has it", () => {
  const file = { type: "file", mediaType: "text/plain", data: { type: "text", text: "inline" } };
  const image = { type: "file", mediaType: "image/png", data: { type: "data", data: BASE64 } };
  const url = { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("a:b") } };
  expectFound({ prompt: [{ role: "user", content: [file, image, url] }] }, ["inline"], 2);
});

it("texts to embed of the AI SDK", () => {
  expectFound({ values: ["one", "two"], headers: { a: "b" } }, ["one", "two"], 0);
});

it("messages of LangChain", () => {
  const messages = [
    [
      new SystemMessage("Be short."),
      new HumanMessage({
        id: "m",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: DATA_URL } },
          { type: "image", source_type: "base64", data: BASE64, mime_type: "image/png" },
        ],
      }),
      new AIMessage({
        content: "Let me see.",
        tool_calls: [{ id: "c", name: "weather", args: { city: "Rome" } }],
        additional_kwargs: {
          tool_calls: [
            { id: "c", type: "function", function: { name: "weather", arguments: "{}" } },
          ],
        },
        response_metadata: { model_name: "gpt-5" },
      }),
      new ToolMessage({ tool_call_id: "c", content: "sunny", artifact: { huge: "not sent" } }),
      new AIMessage({
        content: [{ type: "tool_use", id: "d", name: "look", input: { at: "it" } }],
        tool_calls: [{ id: "d", name: "look", args: { at: "it" } }],
      }),
    ],
  ];
  expectFound(
    { model: "gpt-5", messages: toSentMessages(messages) },
    ["Be short.", "What is this?", "Let me see.", "weather", "city", "Rome", "sunny"],
    2,
    ["look", "at", "it"],
  );
});

it.each([[undefined], ["text"], [[null, 5, "Hello", [{}]]]])(
  "what is not a list of messages of LangChain: %o",
  (messages) => {
    const call = toLlmCall({ messages: toSentMessages(messages) });
    expect(call.images).toBe(0);
  },
);

/** The texts may come in any order. */
function expectFound(
  request: unknown,
  content: readonly string[],
  images: number,
  ...json: readonly (readonly string[])[]
): void {
  const call = toLlmCall(request);
  const texts = [...call.texts()];
  expect(texts.toSorted()).toEqual([...content, ...json.flat()].toSorted());
  expect(call.textBytes).toBe(Buffer.byteLength(texts.join("")));
  expect(call.images).toBe(images);
}
