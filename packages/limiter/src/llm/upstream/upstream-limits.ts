/** One limit of a provider, as its headers tell it. */
export interface UpstreamLimit {
  /** How much it holds. */
  readonly limit: number | undefined;
  /** How much is left. */
  readonly remaining: number | undefined;
  /** Milliseconds until it is full again. */
  readonly fullAfterMs: number | undefined;
}

/** The limits of a provider, as the headers of one answer tell them. */
export interface UpstreamLimits {
  /** Requests. */
  readonly requests?: UpstreamLimit;
  /** Tokens of all kinds. */
  readonly tokens?: UpstreamLimit;
  /** Tokens of prompts. */
  readonly inputTokens?: UpstreamLimit;
  /** Tokens of answers. */
  readonly outputTokens?: UpstreamLimit;
  /** Milliseconds until a call may be repeated. */
  readonly retryAfterMs?: number;
}

/**
 * Reads `x-ratelimit-*`, `anthropic-ratelimit-*`, `retry-after-ms` and `retry-after`; undefined if
 * there is none of them.
 * @example const seen = readUpstreamLimits(response.headers, Date.now());
 */
export function readUpstreamLimits(
  _headers: Headers | Readonly<Record<string, string>>,
  _nowMs: number,
): UpstreamLimits | undefined {
  return undefined; // to be built
}
