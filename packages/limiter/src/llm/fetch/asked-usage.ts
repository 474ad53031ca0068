/*
 * OpenAI's streams of chat completions report their usage only if the request asks for it. Other
 * servers of the same protocol may not know that option. Such a server gets the original request
 * again, and is not asked any more.
 */
import { BoundedMap } from "../../core/bounded-map.ts";
import { isRecord } from "../../core/amounts.ts";
import { findMember } from "./find-member.ts";
import type { SentBody, SentRequest } from "./parse-sent-request.ts";

/** A response, and whether the limiter asked for the usage in it. */
export interface Asked {
  readonly response: Response;
  readonly isAsked: boolean;
}

type Fetch = typeof globalThis.fetch;
type FetchArguments = Parameters<Fetch>;

const INCLUDE_USAGE = '"include_usage":true';
const QUESTION = `"stream_options":{${INCLUDE_USAGE}}`;

/** A client talks to few of them. The oldest is dropped. */
const MAX_ORIGINS = 100;

/** Statuses with which servers refuse unknown options. */
const REFUSING_STATUSES: ReadonlySet<number> = new Set([400, 422]);

/** Sends requests, and may ask streams of chat completions for their usage. */
export class AskingFetch {
  readonly #fetch: Fetch;
  readonly #asks: boolean;
  /** Origins that do not know the question. */
  readonly #unasked = new BoundedMap<string, true>(MAX_ORIGINS);

  constructor(fetch: Fetch, usage: "ask" | "leave") {
    this.#fetch = fetch;
    this.#asks = usage === "ask";
  }

  async send(sent: SentRequest, [input, init]: FetchArguments): Promise<Asked> {
    const fetch = this.#fetch; // called without `this`, which platforms refuse
    const { origin } = sent.url;
    const isAskable = this.#asks && sent.protocol === "chat";
    const text = isAskable && !this.#unasked.has(origin) ? addQuestion(sent.body) : undefined;
    if (text === undefined) return { response: await fetch(input, init), isAsked: false };
    const response = await fetch(input, { ...init, ...buildChanges(sent, init, text) });
    if (!(await isQuestionRefused(response))) return { response, isAsked: true };
    await response.body?.cancel();
    const repeated = await fetch(input, init);
    // If it fails again, the option was not the reason: servers quote requests that they refuse.
    if (repeated.ok) this.#unasked.set(origin, true);
    return { response: repeated, isAsked: false };
  }
}

/**
 * Adds a request for usage to a body. Undefined if the body is not that of a stream, or if the
 * caller has decided whether the usage is reported.
 */
export function addQuestion({ text, json }: SentBody): string | undefined {
  if (text === undefined || json?.["stream"] !== true) return undefined;
  // The rest of the text stays unchanged, including numbers that JavaScript would round.
  if (!("stream_options" in json)) return text.replace("{", `{${QUESTION},`);
  const options = json["stream_options"] ?? {};
  if (!isRecord(options) || "include_usage" in options) return undefined;
  const { start, end } = findMember(text, "stream_options")!;
  const others =
    Object.keys(options).length === 0 ? "}" : `,${text.slice(start, end).trim().slice(1)}`;
  return `${text.slice(0, start)}{${INCLUDE_USAGE}${others}${text.slice(end)}`;
}

/** Builds the changed options for a body with another text. */
function buildChanges({ headers }: SentRequest, init: RequestInit | undefined, text: string) {
  const body = typeof init?.body === "string" ? text : Buffer.from(text);
  if (!headers.has("content-length")) return { body };
  const others = new Headers(headers);
  others.delete("content-length");
  return { body, headers: others };
}

/** Whether a server refuses a request because of the question. The response can still be read. */
async function isQuestionRefused(response: Response): Promise<boolean> {
  if (!REFUSING_STATUSES.has(response.status)) return false;
  try {
    return (await response.clone().text()).includes("stream_options");
  } catch {
    return false; // the body broke, and its reader will see how
  }
}
