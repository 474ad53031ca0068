import type { Amounts, BucketState, Repository, UsageWindow } from "zae-limiter";
import { BUCKETS } from "./scenario.ts";
import { nowMs } from "./time-and-random.ts";

/** What the repository says about one bucket. */
export interface ReadBack {
  readonly entityId: string;
  readonly model: string;
  /** Tokens available by limit, read before `readAtMs`. */
  readonly available: Amounts;
  readonly readAtMs: number;
  readonly usage: readonly {
    readonly window: UsageWindow;
    readonly total: Amounts;
    readonly requests: number;
  }[];
}

const WINDOWS: readonly UsageWindow[] = ["hourly", "daily", "monthly"];

/** Reads everything that the checks compare with the call logs. */
export async function readBack(repository: Repository): Promise<readonly ReadBack[]> {
  const read: ReadBack[] = [];
  for (const { entityId, model } of BUCKETS) {
    const available = toAvailable(await repository.getBuckets(entityId, { resource: model }));
    const readAtMs = nowMs();
    const usage: ReadBack["usage"][number][] = [];
    for (const window of WINDOWS) {
      const { total, requests } = await repository.getUsageSummary({
        entityId,
        resource: model,
        window,
      });
      usage.push({ window, total, requests });
    }
    read.push({ entityId, model, available, readAtMs, usage });
  }
  return read;
}

/** Tokens available by limit. */
export function toAvailable(states: readonly BucketState[]): Amounts {
  return Object.fromEntries(states.map(({ limitName, available }) => [limitName, available]));
}
