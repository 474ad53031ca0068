import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout } from "node:timers/promises";
import type { Account } from "./account.ts";
import { CHAT_COMPLETIONS } from "./chat-completions.ts";
import { EMBEDDINGS } from "./embeddings.ts";
import { MESSAGES } from "./messages.ts";
import { eventText, type Answer, type Protocol } from "./protocol.ts";
import {
  maxTokens,
  questionTokens,
  buildToolCall,
  toolResults,
  type ProviderRequest,
} from "./request.ts";
import { RESPONSES } from "./responses.ts";
import { SLOW_WORDS, readWishes, type Wishes } from "./wishes.ts";

export type Reply = ServerResponse;

/** State that the provider keeps between requests. */
interface Kept {
  readonly attempts: Map<string, number>;
  readonly account: Account | undefined;
  /** Called with what an answer uses. */
  addUse(model: string, usage: Answer["used"]): void;
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  "chat/completions": CHAT_COMPLETIONS,
  responses: RESPONSES,
  embeddings: EMBEDDINGS,
  messages: MESSAGES,
};

const MODELS = ["gpt-5", "gpt-4.1-mini", "text-embedding-3-small", "claude-haiku-4-5"];

/** The tokens of an answer: its words. */
export function answerTokens(answer: string): number {
  return answer === "" ? 0 : answer.split(" ").length;
}

/** Answers a request as its headers ask. Throws if they ask for something unknown. */
export async function respond(request: ProviderRequest, reply: Reply, kept: Kept): Promise<void> {
  const path = new URL(request.path, "http://localhost").pathname.replace(/^(\/v1)?\//, "");
  const protocol = PROTOCOLS[path];
  if (path === "models") return sendJson(reply, 200, modelList());
  if (protocol === undefined)
    return sendJson(reply, 404, CHAT_COMPLETIONS.error(404, `There is no ${request.path}.`));

  const wishes = readWishes(request, kept.attempts);
  for (const [name, value] of Object.entries(wishes.headers)) reply.setHeader(name, value);
  const answer = buildAnswer(request, wishes, protocol);
  if (wishes.fault === "hang") return;
  if (wishes.fault === "no-answer") return void reply.destroy();
  const refused = takeOrRefuse(request, wishes, answer, protocol, reply, kept);
  if (refused !== undefined)
    return sendJson(reply, refused.status, protocol.error(refused.status, refused.message));

  kept.addUse(request.body.model, answer.used);
  if (request.body.stream === true && protocol.events !== undefined)
    return stream(protocol, answer, wishes, reply);
  return sendWhole(protocol.whole(answer), wishes, reply);
}

function buildAnswer(request: ProviderRequest, wishes: Wishes, protocol: Protocol): Answer {
  const { body } = request;
  const input = questionTokens(body);
  const usage = wishes.fault === "no-usage" ? null : wishes.usage;
  const steps = toolResults(body);
  const toolCall = steps < wishes.toolCalls ? buildToolCall(body, steps + 1) : undefined;
  const words = wishes.answer.split(/(?<= )/);
  const isCutShort = toolCall === undefined && words.length > maxTokens(body);
  if (isCutShort) words.length = maxTokens(body);
  const text = words.join("");
  const said = toolCall === undefined ? text : JSON.stringify(toolCall.arguments);
  const output = protocol === EMBEDDINGS ? 0 : answerTokens(said.trimEnd()) * (body.n ?? 1);
  const pieces = groupWords(words, wishes.chunkWords);
  return { request, text, pieces, toolCall, isCutShort, used: { input, output }, usage };
}

function groupWords(words: readonly string[], size: number): readonly string[] {
  if (size <= 1) return words;
  const pieces: string[] = [];
  for (let at = 0; at < words.length; at += size) pieces.push(words.slice(at, at + size).join(""));
  return pieces;
}

/**
 * Takes from the account, or returns the error to answer a request with. Sets the rate limit
 * headers.
 */
function takeOrRefuse(
  request: ProviderRequest,
  { fault }: Wishes,
  { used }: Answer,
  { provider }: Protocol,
  reply: Reply,
  { account }: Kept,
): { readonly status: number; readonly message: string } | undefined {
  if (typeof request.body.model !== "string")
    return { status: 400, message: "You must provide a model." };
  if (typeof fault === "number") return { status: fault, message: "As the request wished." };
  if (account === undefined) return undefined;
  const waitMs = account.take(used.input + used.output);
  const headers = account.headers(provider, Date.now());
  for (const [name, value] of Object.entries(headers)) reply.setHeader(name, value);
  if (waitMs === 0) return undefined;
  reply.setHeader("retry-after-ms", String(Math.ceil(waitMs)));
  reply.setHeader("retry-after", String(Math.ceil(waitMs / 1000)));
  return { status: 429, message: "Rate limit reached." };
}

function sendWhole(body: object, { fault }: Wishes, reply: Reply): void {
  if (fault !== "cut" && fault !== "cut-before" && fault !== "slow")
    return sendJson(reply, 200, body);
  const text = JSON.stringify(body);
  const length = String(Buffer.byteLength(text));
  reply.writeHead(200, { "content-type": "application/json", "content-length": length });
  if (fault === "cut-before") return sendThenDestroy(reply);
  reply.write(text.slice(0, text.length / 2), () => {
    if (fault === "cut") reply.destroy();
  });
}

async function stream(
  protocol: Protocol,
  answer: Answer,
  { fault, chunkDelayMs }: Wishes,
  reply: Reply,
): Promise<void> {
  reply.writeHead(200, { "content-type": "text/event-stream" });
  if (fault === "cut-before") return sendThenDestroy(reply);
  const gone = new AbortController();
  reply.once("close", () => gone.abort());
  const breaksAfter = piecesBefore(fault, answer);
  let pieces = 0;
  for (const event of protocol.events!(answer)) {
    if (event.isPiece === true) {
      if (pieces === breaksAfter) break;
      if (pieces > 0 && chunkDelayMs > 0) await setTimeout(chunkDelayMs);
      pieces += 1;
    }
    if (reply.destroyed) return;
    if (!reply.write(eventText(event))) await once(reply, "drain", { signal: gone.signal });
  }
  if (fault === "slow") return; // the rest never comes
  if (fault === "error-event") reply.write(eventText(protocol.errorEvent("It broke down.")));
  if (fault === "cut") reply.write("", () => reply.destroy());
  else reply.end();
}

/** How many pieces come before a stream breaks. */
function piecesBefore(fault: Wishes["fault"], { pieces, toolCall }: Answer): number {
  const half = toolCall === undefined ? Math.ceil(pieces.length / 2) : 1;
  if (fault === "slow") return SLOW_WORDS;
  return fault === "cut" || fault === "end-early" || fault === "error-event" ? half : Infinity;
}

/** Sends the headers, and closes the connection when they are out. */
function sendThenDestroy(reply: Reply): void {
  reply.flushHeaders();
  reply.socket?.end(() => reply.destroy());
}

function sendJson(reply: Reply, status: number, body: object): void {
  reply.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function modelList(): object {
  const data = MODELS.map((id) => ({ id, object: "model", created: 0, owned_by: "local" }));
  return { object: "list", data };
}
