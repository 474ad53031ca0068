import { isUtf8 } from "node:buffer";
import { types } from "node:util";
import { isRecord } from "../../core/amounts.ts";
import type { ProtocolName } from "../answers/build-answer-reader.ts";
import { findDeployment, findProtocol } from "./llm-path.ts";

/** A request to a model, as `limitFetch` and `limitMiddleware` pass it to `entity`. */
export interface LlmRequest {
  /** Where the request goes. */
  readonly url: URL;
  /** Its headers. */
  readonly headers: Headers;
  /** The model; "unknown" if the body cannot be read. */
  readonly model: string;
}

/** The body of a request, as far as it could be read. */
export interface SentBody {
  /** The text of the body; undefined if it cannot be read without consuming it. */
  readonly text: string | undefined;
  /** The parsed text, if it is a JSON object. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
}

/** The arguments of `fetch`. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0];

/** The model that a request without a model is charged to. */
const UNKNOWN_MODEL = "unknown";

/** A request as it was given to `fetch`. Nothing of it is consumed or changed. */
export class SentRequest {
  readonly url: URL;
  readonly protocol: ProtocolName | undefined;
  readonly #request: Request | undefined;
  readonly #init: RequestInit;
  #headers: Headers | undefined;
  #body: SentBody | undefined;

  constructor(url: URL, request: Request | undefined, init: RequestInit) {
    this.#request = request;
    this.#init = init;
    this.url = url;
    const method = init.method ?? request?.method ?? "GET";
    this.protocol = findProtocol(method.toUpperCase(), url.pathname);
  }

  /** The signal that aborts the request. */
  get signal(): AbortSignal | undefined {
    const { signal } = this.#init;
    return (signal === undefined ? this.#request?.signal : signal) ?? undefined;
  }

  /** A copy, so that the request cannot be changed. It is made only if it is needed. */
  get headers(): Headers {
    this.#headers ??= new Headers(this.#init.headers ?? this.#request?.headers);
    return this.#headers;
  }

  /** The body of the options. That of a `Request` can be read only once, so `fetch` reads it. */
  get body(): SentBody {
    this.#body ??= readBody(this.#init.body);
    return this.#body;
  }

  get hasBody(): boolean {
    return (this.#init.body ?? this.#request?.body ?? null) !== null;
  }

  get model(): string {
    const model = this.body.json?.["model"];
    if (typeof model === "string" && model !== "") return model;
    return findDeployment(this.url.pathname) ?? UNKNOWN_MODEL;
  }

  /** The provider whose errors a refusal imitates. */
  get provider(): "openai" | "anthropic" {
    const isAnthropic = this.protocol === "messages" || this.headers.has("anthropic-version");
    return isAnthropic ? "anthropic" : "openai";
  }
}

/** Parses the arguments of `fetch`; undefined for an invalid URL, which `fetch` will refuse. */
export function parseSentRequest(
  input: FetchInput,
  init?: RequestInit | null,
): SentRequest | undefined {
  const request = isRequest(input) ? input : undefined;
  const address = request?.url ?? (input as string | URL).toString();
  if (!URL.canParse(address)) return undefined;
  return new SentRequest(new URL(address), request, init ?? {});
}

/** Builds what `entity` receives. The headers are copied on first access. */
export function toLlmRequest(sent: SentRequest): LlmRequest {
  return {
    url: sent.url,
    model: sent.model,
    get headers() {
      return sent.headers;
    },
  };
}

/** Reads a body, unless that would consume it. */
export function readBody(body: unknown): SentBody {
  const text = toText(body);
  return { text, json: text === undefined ? undefined : parseJson(text) };
}

function toText(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  if (types.isAnyArrayBuffer(body)) return decodeText(Buffer.from(body));
  if (ArrayBuffer.isView(body))
    return decodeText(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return undefined;
}

/** Undefined for bytes that are not UTF-8, which would change if they were encoded again. */
function decodeText(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString() : undefined;
}

function parseJson(text: string): SentBody["json"] {
  try {
    const json: unknown = JSON.parse(text);
    return isRecord(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

/** Accepts a `Request` of another implementation too, such as undici's package. */
function isRequest(input: FetchInput): input is Request {
  return typeof input === "object" && !(input instanceof URL) && "url" in input;
}
