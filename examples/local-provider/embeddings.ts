/* OpenAI's embeddings: the same small vector for every text. */
import { openaiError } from "./openai-error.ts";
import type { Protocol } from "./protocol.ts";

const VECTOR = [0.25, -0.5, 0.75, 1];

export const EMBEDDINGS: Protocol = {
  provider: "openai",
  whole: ({ request: { body }, usage, used }) => ({
    object: "list",
    model: body.model,
    data: [body.input].flat().map((_text, index) => ({
      object: "embedding",
      index,
      embedding: body.encoding_format === "base64" ? base64(VECTOR) : VECTOR,
    })),
    ...(usage === null
      ? {}
      : { usage: usage ?? { prompt_tokens: used.input, total_tokens: used.input } }),
  }),
  events: undefined,
  error: openaiError,
  errorEvent: (message) => ({ data: openaiError(500, message) }),
};

function base64(numbers: readonly number[]): string {
  return Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
}
