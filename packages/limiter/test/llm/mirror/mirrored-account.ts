import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { Mirror, type UpstreamMirror } from "../../../src/llm/upstream/upstream-mirror.ts";

/** A tenth of a minute's worth flows back in six seconds: 1000 tokens, 10 requests. */
export const LIMITS = [Limit.perMinute("rpm", 100), Limit.perMinute("tpm", 10_000)];

/** An entity called "account" on a repository whose operations are counted, and may fail. */
export class MirroredAccount {
  readonly clock = new ManualClock();
  readonly repository: Repository;
  readonly operations: string[] = [];
  limiter: RateLimiter;
  findFault: (operation: string) => Fault | undefined = () => undefined;

  constructor() {
    const inner = new MemoryRepository({ clock: this.clock });
    this.repository = faultyRepository(inner, (operation) => {
      this.operations.push(operation);
      return this.findFault(operation);
    });
    this.limiter = new RateLimiter({ repository: this.repository });
  }

  static async create(): Promise<MirroredAccount> {
    const account = new MirroredAccount();
    await account.repository.setLimits("account", LIMITS);
    account.operations.length = 0;
    return account;
  }

  mirror(options: Partial<UpstreamMirror> = {}): Mirror {
    return new Mirror(this.limiter, { entityId: "account", ...options }, (model) => model);
  }

  left(resource = "gpt-5"): Promise<Record<string, number>> {
    return this.limiter.available("account", resource);
  }

  get reads(): number {
    return this.operations.filter((operation) => operation === "read").length;
  }

  get takes(): number {
    return this.operations.filter((name) => name === "consume" || name === "charge").length;
  }
}

/** Headers of OpenAI, for an account with these limits. */
export function openai(
  tokens: number | string,
  requests: number | string = 100,
): Record<string, string> {
  return {
    "x-ratelimit-limit-requests": "100",
    "x-ratelimit-remaining-requests": String(requests),
    "x-ratelimit-limit-tokens": "10000",
    "x-ratelimit-remaining-tokens": String(tokens),
  };
}
