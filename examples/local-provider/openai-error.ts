import { errorType } from "./protocol.ts";

/** The body of OpenAI's errors. */
export function openaiError(status: number, message: string): object {
  const code = status === 429 ? "rate_limit_exceeded" : null;
  return { error: { message, type: errorType(status), param: null, code } };
}
