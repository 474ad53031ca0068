/*
 * Turns a refusal into a response of the provider. If `fetch` threw it, the provider's SDK would
 * take it for a lost connection, repeat the call blindly, and hide the reason.
 */
import { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import { RateLimiterUnavailable, ValidationError, ZaeLimiterError } from "../../core/errors.ts";
import { refusalProblem } from "../../http/problem.ts";

/** The provider whose errors a response imitates. */
export type Provider = "openai" | "anthropic";

/** The content of a response, whatever its provider. */
interface Problem {
  readonly status: 400 | 429 | 503;
  readonly message: string;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * SDKs must not wait for longer: OpenAI's ignores a longer hint and asks again at once, and
 * Anthropic's would sleep for days.
 */
const LONGEST_WAIT_MS = 60_000;

const NO_RETRY = { "x-should-retry": "false" } as const;

/** The kinds of errors in the words of the providers. */
const TYPES = {
  openai: { 400: "invalid_request_error", 429: "rate_limit_error", 503: "server_error" },
  anthropic: { 400: "invalid_request_error", 429: "rate_limit_error", 503: "api_error" },
} as const;

/**
 * Builds the response that explains why a call was not made. Rethrows errors of the application.
 */
export function buildRefusalResponse(error: unknown, provider: Provider): Response {
  if (!(error instanceof ZaeLimiterError)) throw error;
  const problem = toProblem(error);
  const { status, headers } = problem;
  return Response.json(buildBody(problem, provider), {
    status,
    headers: { "cache-control": "no-store", ...headers },
  });
}

function toProblem(error: ZaeLimiterError): Problem {
  const { code } = error;
  if (error instanceof RateLimitExceeded)
    return {
      status: 429,
      message: refusalProblem(error).detail,
      code: "rate_limit_exceeded",
      headers: buildRetryFields(error.retryAfterSeconds),
    };
  if (error instanceof ValidationError)
    return { status: 400, message: error.message, code, headers: NO_RETRY };
  // Only the error of a limiter that was closed names no entity. No retry opens it again.
  if (error instanceof RateLimiterUnavailable && error.entityId === undefined)
    return { status: 503, message: error.message, code, headers: NO_RETRY };
  return {
    status: 503,
    // The error's message may name an entity, and applications pass on messages of providers.
    message: `The limits of this call cannot be checked, so it was not made (${code}).`,
    code,
    headers: error instanceof RateLimiterUnavailable ? {} : NO_RETRY,
  };
}

function buildRetryFields(retryAfterSeconds: number): Problem["headers"] {
  if (!Number.isFinite(retryAfterSeconds)) return NO_RETRY;
  const retryAfterMs = Math.round(retryAfterSeconds * 1000);
  return {
    "retry-after-ms": String(retryAfterMs),
    "retry-after": String(Math.ceil(retryAfterSeconds)),
    ...(retryAfterMs > LONGEST_WAIT_MS ? NO_RETRY : {}),
  };
}

function buildBody({ status, message, code }: Problem, provider: Provider): unknown {
  const type = TYPES[provider][status];
  return provider === "anthropic"
    ? { type: "error", error: { type, message }, request_id: null }
    : { error: { message, type, param: null, code } };
}
