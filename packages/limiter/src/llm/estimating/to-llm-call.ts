import type { LlmCall } from "../tokens/llm-call.ts";
import { readRequest, type RequestPart } from "./request-text.ts";
import { MOST_TOKENS } from "./whole-tokens.ts";

/** Fields that an adapter knows, which override those of the body. */
export type KnownOfCall = {
  readonly [Name in "model" | "choices" | "maxOutputTokens" | "stream"]?: LlmCall[Name] | undefined;
};

/** Fields of a request whose texts the model reads. */
const CONTENT_FIELDS = "messages system instructions input prompt suffix values".split(" ");

/** Fields of a request that the model reads with their keys: tools and response formats. */
const JSON_FIELDS =
  "tools functions response_format responseFormat output_format output_config text".split(" ");

/** Names of the maximum of an answer. If several are set, the first one counts. */
const MAXIMUM_FIELDS = [
  "max_completion_tokens",
  "max_output_tokens",
  "max_tokens",
  "maxOutputTokens",
  "maxTokens",
];

/** No provider returns as many answers at once. */
const MOST_CHOICES = 1_000;

/**
 * Describes a call by its request: the body of a chat completion, completion, response,
 * embedding (with `maxOutputTokens: 0`) or message, the options of a call of the AI SDK, or the
 * parameters of LangChain with `toSentMessages`. Whatever the request is, this does not throw.
 */
export function toLlmCall(request: unknown, known: KnownOfCall = {}): LlmCall {
  const body = Object(request) as Readonly<Record<string, unknown>>;
  const parts = listParts(body);
  let textBytes = 0;
  let images = 0;
  readRequest(parts, {
    text: (text) => (textBytes += Buffer.byteLength(text)),
    file: () => (images += 1),
  });
  return {
    model: known.model ?? toModelName(body["model"]),
    textBytes,
    texts: () => readTexts(parts),
    images,
    choices: known.choices ?? countChoices(body),
    maxOutputTokens: known.maxOutputTokens ?? findMaximum(body),
    stream: known.stream ?? body["stream"] === true,
  };
}

function listParts(body: Readonly<Record<string, unknown>>): readonly RequestPart[] {
  return [
    ...CONTENT_FIELDS.map((name) => ({ value: body[name], isJson: false })),
    ...JSON_FIELDS.map((name) => ({ value: body[name], isJson: true })),
  ];
}

/** Only tokenizers need the texts, so they are read again instead of kept. */
function readTexts(parts: readonly RequestPart[]): readonly string[] {
  const texts: string[] = [];
  readRequest(parts, { text: (text) => texts.push(text), file: () => undefined });
  return texts;
}

function toModelName(model: unknown): string {
  return typeof model === "string" && model !== "" ? model : "unknown";
}

/** Completions answer each prompt of a list, and may make more answers than they show. */
function countChoices({ n, best_of, prompt }: Readonly<Record<string, unknown>>): number {
  const each = Math.max(1, ...[n, best_of].filter(isWhole));
  const prompts = Array.isArray(prompt) ? prompt.filter(isPrompt).length : 1;
  return Math.min(each * Math.max(1, prompts), MOST_CHOICES);
}

/** A list of numbers is one prompt, and so is a list of messages. */
function isPrompt(prompt: unknown): boolean {
  return typeof prompt === "string" || Array.isArray(prompt);
}

function findMaximum(body: Readonly<Record<string, unknown>>): number | undefined {
  for (const name of MAXIMUM_FIELDS) {
    const maximum = body[name];
    if (isWhole(maximum)) return Math.min(maximum, MOST_TOKENS);
  }
  return undefined;
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}
