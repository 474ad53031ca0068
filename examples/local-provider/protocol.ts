import type { ProviderRequest, ToolCall } from "./request.ts";

/** Tokens of one answer. */
export interface Usage {
  readonly input: number;
  readonly output: number;
}

/** The answer to send, in any protocol. */
export interface Answer {
  readonly request: ProviderRequest;
  readonly text: string;
  /** The text in the pieces of a stream. */
  readonly pieces: readonly string[];
  /** Instead of the text. */
  readonly toolCall: ToolCall | undefined;
  /** Whether the request's maximum ended it. */
  readonly isCutShort: boolean;
  readonly used: Usage;
  /** What is reported instead of what was used; null to report nothing. */
  readonly usage: unknown;
}

/** An event of a stream. */
export interface StreamEvent {
  readonly name?: string;
  readonly data: object | string;
  /** Whether it carries a piece of the answer. */
  readonly isPiece?: boolean;
}

/** The protocol of one API. */
export interface Protocol {
  readonly provider: "openai" | "anthropic";
  /** The answer in one piece. */
  whole(answer: Answer): object;
  /** The answer as a stream; undefined if there are no streams. */
  events: ((answer: Answer) => Iterable<StreamEvent>) | undefined;
  /** The body of an answer with an error's status. */
  error(status: number, message: string): object;
  /** The event with which a stream reports a failure. */
  errorEvent(message: string): StreamEvent;
}

/** An event as it is sent. */
export function eventText({ name, data }: StreamEvent): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

/** The types that both providers give to their errors. */
export function errorType(status: number): string {
  const types: Readonly<Record<number, string>> = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
  };
  return types[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/** The pieces in which the arguments of a tool are streamed. */
export function argumentPieces({ arguments: given }: ToolCall): readonly [string, string] {
  const text = JSON.stringify(given);
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)];
}
