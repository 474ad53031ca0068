import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { UpstreamLimits } from "./upstream-limits.ts";

/** The provider's account as an entity. Learning only ever takes: nothing is credited. */
export interface UpstreamMirror {
  /** The account: a parent of the keys, or an entity of its own, with the provider's limits. */
  readonly entityId: string;
  /** The resource of a model. @default the resource of the call */
  readonly resource?: (model: string) => string;
  /** The names of the account's limits. @default { requests: "rpm", tokens: "tpm", inputTokens: "itpm", outputTokens: "otpm" } */
  readonly limits?: {
    readonly requests?: string;
    readonly tokens?: string;
    readonly inputTokens?: string;
    readonly outputTokens?: string;
  };
  /** The longest that a 429 pauses the account. @default 60000 */
  readonly maxPauseMs?: number;
  /**
   * Called with what a provider said of its limits, such as to compare them with the stored ones.
   * @example limitFetch({ ...metered, upstream: { entityId: "openai", onMirror: (seen) => log(seen) } });
   */
  readonly onMirror?: (seen: UpstreamLimits, model: string) => void;
}

/** Keeps an account in step with its provider. */
export class Mirror {
  constructor(
    _limiter: RateLimiter,
    _options: UpstreamMirror,
    _resource: (model: string) => string,
  ) {
    // to be built
  }

  /** Reads the headers of an answer. Resolves when what follows from them is written. */
  async saw(
    _headers: Headers | Readonly<Record<string, string>>,
    _status: number,
    _model: string,
  ): Promise<void> {}
}
