import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toLlmCall } from "./to-llm-call.ts";

describe("the fields of a body", () => {
  it.each<[Record<string, unknown>, number | undefined]>([
    [{}, undefined],
    [{ max_tokens: 100 }, 100],
    [{ max_completion_tokens: 200, max_tokens: 100 }, 200],
    [{ max_output_tokens: 300 }, 300],
    [{ maxOutputTokens: 400 }, 400],
    [{ max_completion_tokens: null, max_tokens: 100 }, 100],
    [{ max_tokens: 0 }, 0],
    [{ max_tokens: -1 }, undefined],
    [{ max_tokens: 1.5 }, undefined],
    [{ max_tokens: "100" }, undefined],
    [{ max_tokens: 1e300 }, 1e9],
  ])("the maximum of %o is %s", (body, most) => {
    expect(toLlmCall(body).maxOutputTokens).toBe(most);
  });

  it.each<[Record<string, unknown>, number]>([
    [{}, 1],
    [{ n: 3 }, 3],
    [{ n: null }, 1],
    [{ n: 0 }, 1],
    [{ n: -2 }, 1],
    [{ n: "3" }, 1],
    [{ n: 1e12 }, 1000],
    [{ n: 2, best_of: 5 }, 5],
    [{ prompt: "one" }, 1],
    [{ prompt: ["one", "two"], n: 3 }, 6],
    [{ prompt: [1, 2, 3] }, 1],
    [
      {
        prompt: [
          [1, 2],
          [3, 4],
        ],
      },
      2,
    ],
    [{ prompt: [{ role: "user", content: "one" }, { role: "user" }] }, 1],
  ])("the choices of %o are %s", (body, choices) => {
    expect(toLlmCall(body).choices).toBe(choices);
  });

  it("the model and whether it streams", () => {
    expect(toLlmCall({ model: "gpt-5", stream: true })).toMatchObject({
      model: "gpt-5",
      stream: true,
    });
    expect(toLlmCall({ model: "", stream: "true" })).toMatchObject({
      model: "unknown",
      stream: false,
    });
    expect(toLlmCall({ model: 5 }).model).toBe("unknown");
  });

  it("what an adapter knows wins", () => {
    const known = { model: "claude", choices: 2, maxOutputTokens: 0, stream: true };
    expect(toLlmCall({ model: "gpt-5", n: 4, max_tokens: 5 }, known)).toMatchObject(known);
  });
});

describe("tokens instead of texts", () => {
  it("are four bytes each", () => {
    expect(toLlmCall({ input: [11, 12, 13] })).toMatchObject({ textBytes: 12, images: 0 });
    expect(toLlmCall({ input: [[11, 12], [13], []] }).textBytes).toBe(12);
    expect(toLlmCall({ prompt: [1, 2] }).textBytes).toBe(8);
  });
});

describe("bodies that no client sends", () => {
  it.each([
    undefined,
    null,
    "text",
    5,
    true,
    [],
    ["text"],
    {},
    { messages: null },
    { messages: 5 },
    { messages: [null, undefined, 5n, Symbol("a"), () => "text"] },
    { messages: [{ content: 5 }, { content: { text: { text: null } } }] },
    { system: [{ source: null, data: undefined, image_url: null, type: 5 }] },
    { tools: [{ value: undefined, made: () => "text" }] },
  ])("%o holds no text", (body) => {
    const { images, texts, textBytes } = toLlmCall(body);
    expect({ images, textBytes }).toEqual({ images: 0, textBytes: toBytes(texts()) });
    expect([...texts()].filter((text) => text === "text")).toEqual([]);
  });

  it("are read a thousand levels deep, and may be deeper", () => {
    let deep: unknown = "the end";
    for (let depth = 0; depth < 1000; depth += 1) deep = [deep];
    expect(toLlmCall({ messages: deep, tools: deep }).textBytes).toBe(14);
    for (let depth = 0; depth < 50_000; depth += 1) deep = [deep];
    expect(toLlmCall({ messages: deep, tools: deep }).textBytes).toBe(0);
  });

  it("may be circles", () => {
    const message: Record<string, unknown> = { role: "user", content: "once" };
    message["again"] = message;
    const tool: unknown[] = ["once"];
    tool.push([tool]);
    expect([...toLlmCall({ messages: [message], tools: tool }).texts()]).toEqual(["once", "once"]);
  });

  it("count an object as often as they hold it", () => {
    const message = { role: "user", content: [{ type: "text", text: "twice" }] };
    expect([...toLlmCall({ messages: [message, message] }).texts()]).toEqual(["twice", "twice"]);
  });

  it("may stand for more than any memory holds", () => {
    let twice: unknown = "";
    for (let depth = 0; depth < 60; depth += 1) twice = [twice, twice];
    expect(toLlmCall({ messages: twice }).textBytes).toBe(0);
  });
});

const UNUSUAL = { withTypedArray: true, withDate: true, withMap: true, withNullPrototype: true };

it("whatever a request holds: nothing throws, and the bytes are those of the texts", () => {
  const names = fc.oneof(
    fc.constantFrom("role", "type", "content", "text", "input", "tools", "data", "source", "value"),
    fc.constantFrom("image_url", "file", "arguments", "name", "__proto__", "toString", "then"),
    fc.string(),
  );
  const types = fc.constantFrom("text", "image", "json", "document", "tool_use", "content");
  const { anything } = fc.letrec((tie) => ({
    anything: fc.oneof(
      { depthSize: "small" },
      fc.anything({ ...UNUSUAL, maxDepth: 1 }),
      types,
      fc.string({ unit: "binary" }),
      fc.array(tie("anything"), { maxLength: 4 }),
      fc.dictionary(names, tie("anything"), { maxKeys: 4 }),
    ),
  }));
  const fields = fc.constantFrom("messages", "prompt", "input", "system", "tools", "text", "n");
  fc.assert(
    fc.property(fc.dictionary(fields, anything), (body) => {
      const call = toLlmCall(body);
      expect(call.textBytes).toBe(toBytes(call.texts()));
      expect(call.images).toBeGreaterThanOrEqual(0);
      expect(call.choices).toBeGreaterThanOrEqual(1);
    }),
    { numRuns: 100 },
  );
});

it("text counts its bytes of UTF-8, also where half a character is missing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (content) => {
      const { textBytes } = toLlmCall({ messages: [{ role: "user", content }] });
      expect(textBytes).toBe(new TextEncoder().encode(content).length);
    }),
  );
});

function toBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return bytes;
}
