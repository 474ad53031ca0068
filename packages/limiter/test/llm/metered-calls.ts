import { Limit, RateLimiter } from "zae-limiter";
import {
  METERING,
  simpleEstimator,
  type MeteredOptions,
  type MeteredRecord,
} from "zae-limiter/llm";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";

/** The capacity of each limit. Nothing refills while the clock stands still. */
export const FULL = { rpm: 100, tpm: 10_000, itpm: 10_000, otpm: 10_000 };

/** The output that is reserved for each call. */
export const RESERVED_OUTPUT = 100;

/**
 * A limiter on a clock that stands still, options for it, and the records of the calls. It is for
 * tests of adapters, which may run under another Node with the built package, so it imports nothing
 * else. `metered-setting.ts` is for tests of the meter itself.
 */
export async function meteredCalls<C = unknown>(changes: Partial<MeteredOptions<C>> = {}) {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults(
    Object.entries(FULL).map(([name, capacity]) => Limit.perMinute(name, capacity)),
  );
  const limiter = new RateLimiter({ repository });
  const records: MeteredRecord[] = [];
  const options: MeteredOptions<C> = {
    limiter,
    entity: "key-1",
    metering: METERING.openai,
    estimator: simpleEstimator({ output: RESERVED_OUTPUT }),
    onSettled: (record) => void records.push(record),
    ...changes,
  };
  /** The charge of each limit of a model, without full ones. */
  const taken = async (resource: string): Promise<Record<string, number>> => {
    const left = await limiter.available("key-1", resource);
    const used = Object.entries(FULL).map(([name, full]) => [name, full - (left[name] ?? full)]);
    return Object.fromEntries(used.filter(([, amount]) => amount !== 0));
  };
  /** Takes tokens for another call. */
  const use = (resource: string, amounts: Record<string, number>): Promise<void> =>
    limiter.charge({ entityId: "key-1", resource, amounts });
  return { clock, repository, limiter, options, records, taken, use };
}

export type MeteredCalls = Awaited<ReturnType<typeof meteredCalls>>;

/** Summarizes a call: its end, where the usage is from, and its tokens. */
export function summarize({ end, source, usage }: MeteredRecord): string {
  return `${end} ${source} ${usage.input}+${usage.output}`;
}
