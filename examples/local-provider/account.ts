/*
 * The limits of one account, as providers keep them: a bucket of requests and a bucket of tokens,
 * shared by all users of the account. If one of them is short, a request is refused and takes
 * nothing.
 */

export interface AccountOptions {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  /** Milliseconds that only go forward. */
  readonly now?: () => number;
}

interface Bucket {
  readonly perMinute: number;
  left: number;
}

export type AccountHeaders = Record<string, string>;

export class Account {
  readonly #now: () => number;
  readonly #requests: Bucket;
  readonly #tokens: Bucket;
  #filledAtMs: number;

  constructor({ requestsPerMinute, tokensPerMinute, now }: AccountOptions) {
    this.#now = now ?? (() => performance.now());
    this.#requests = { perMinute: requestsPerMinute, left: requestsPerMinute };
    this.#tokens = { perMinute: tokensPerMinute, left: tokensPerMinute };
    this.#filledAtMs = this.#now();
  }

  /** Takes a request and its tokens. Returns how long to wait if there are not enough. */
  take(tokens: number): number {
    this.#refill();
    const waitMs = Math.max(untilHas(this.#requests, 1), untilHas(this.#tokens, tokens));
    if (waitMs > 0) return waitMs;
    this.#requests.left -= 1;
    this.#tokens.left -= tokens;
    return 0;
  }

  /** Builds the rate limit headers of an answer. */
  headers(provider: "openai" | "anthropic", nowMs: number): AccountHeaders {
    this.#refill();
    const headers: AccountHeaders = {};
    for (const [name, bucket] of [
      ["requests", this.#requests],
      ["tokens", this.#tokens],
    ] as const) {
      const left = Math.max(0, Math.floor(bucket.left));
      const resetMs = untilHas(bucket, bucket.perMinute);
      const [said, reset] =
        provider === "openai"
          ? [(what: string) => `x-ratelimit-${what}-${name}`, `${Math.ceil(resetMs)}ms`]
          : [
              (what: string) => `anthropic-ratelimit-${name}-${what}`,
              new Date(nowMs + resetMs).toISOString(),
            ];
      headers[said("limit")] = String(bucket.perMinute);
      headers[said("remaining")] = String(left);
      headers[said("reset")] = reset;
    }
    return headers;
  }

  #refill(): void {
    const nowMs = this.#now();
    for (const bucket of [this.#requests, this.#tokens]) {
      const gained = ((nowMs - this.#filledAtMs) * bucket.perMinute) / 60_000;
      bucket.left = Math.min(bucket.perMinute, bucket.left + gained);
    }
    this.#filledAtMs = nowMs;
  }
}

/** Computes the milliseconds until a bucket holds that many; 0 if it does already. */
function untilHas({ perMinute, left }: Bucket, wanted: number): number {
  return Math.max(0, ((wanted - left) * 60_000) / perMinute);
}
