import { Limit, RateLimiter, type RateLimiterOptions, type Repository } from "zae-limiter";
import type { Estimate, Estimator, LlmCall, MeteredRecord } from "zae-limiter/llm";
import { METERING } from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import type { AnswerReader } from "../../src/llm/answers/answer-reader.ts";
import { Meter } from "../../src/llm/meter.ts";
import type { MeteredOptions } from "../../src/llm/options.ts";
import type { TokenUsage } from "../../src/llm/tokens/token-usage.ts";

/** A call without special fields. */
export const CALL: LlmCall = {
  model: "gpt-5",
  textBytes: 400,
  texts: () => ["x".repeat(400)],
  images: 0,
  choices: 1,
  maxOutputTokens: undefined,
  stream: false,
};

/** Builds an estimator with the same estimate for every call. */
export function fixedEstimate(input: number, output: number): Estimator {
  return { estimate: (): Estimate => ({ input, output }) };
}

/** A meter on a repository in memory, with limits of 100 requests and 10 000 tokens. */
export class MeteredSetting {
  readonly clock = new ManualClock();
  readonly repository = new MemoryRepository({ clock: this.clock });
  readonly records: MeteredRecord[] = [];
  limiter = new RateLimiter({ repository: this.repository });

  static async create(): Promise<MeteredSetting> {
    const setting = new MeteredSetting();
    await setting.repository.setSystemDefaults([
      Limit.perMinute("rpm", 100),
      Limit.perMinute("tpm", 10_000),
    ]);
    return setting;
  }

  /** The same limits and balances, through another repository. */
  through(repository: Repository, options: Omit<RateLimiterOptions, "repository"> = {}): void {
    this.limiter = new RateLimiter({ ...options, repository });
  }

  meter(options: Partial<MeteredOptions<string>> = {}): Meter<string> {
    return new Meter<string>(
      {
        limiter: this.limiter,
        entity: "key-1",
        metering: METERING.openai,
        estimator: fixedEstimate(100, 50),
        onSettled: (record) => this.records.push(record),
        ...options,
      },
      "limitFetch",
    );
  }

  /** The charge so far. No time passes, so nothing refills. */
  async charged(entityId = "key-1", resource = "gpt-5"): Promise<Record<string, number>> {
    const { rpm, tpm } = await this.limiter.available(entityId, resource);
    return { rpm: 100 - rpm!, tpm: 10_000 - tpm! };
  }
}

/** A part of an answer: text, and the report of the provider. */
export interface Part {
  readonly bytes?: number;
  readonly reported?: Partial<TokenUsage>;
  readonly isReportFinal?: boolean;
  readonly isComplete?: boolean;
  readonly hasUnreadableUsage?: boolean;
}

/** Reads parts. */
export class PartReader implements AnswerReader<Part> {
  outputBytes: number | undefined = 0;
  reported: Partial<TokenUsage> | undefined = undefined;
  isReportFinal = false;
  isComplete = false;
  hasUnreadableUsage = false;

  read(part: Part): Part {
    this.outputBytes! += part.bytes ?? 0;
    if (part.reported !== undefined) this.reported = part.reported;
    this.isReportFinal ||= part.isReportFinal === true;
    this.isComplete ||= part.isComplete === true;
    this.hasUnreadableUsage ||= part.hasUnreadableUsage === true;
    return part;
  }

  end(): undefined {
    return undefined;
  }
}
