import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";

const CALL = { entityId: "e", resource: "r", consume: { rpm: 1 } };
const [FEW, MANY] = [10_000, 40_000];

/** Between 4, for work that grows with the takes, and 16, for work that grows with their square. */
const MOST = 8;

/** Attempts: a collection of garbage, or a busy machine, can spoil one. */
const ATTEMPTS = 3;

it.each([
  ["memory", "one by one"],
  ["memory", "all at once"],
  ["sqlite", "one by one"],
] as const)(
  "four times as many takes of a lease need about four times the CPU (%s, %s)",
  { timeout: 60_000 },
  async (backend, order) => {
    const measure = (count: number): Promise<number> =>
      cpuOfTakes(backend, count, order === "one by one" ? 1 : count);
    const ratios: number[] = [];
    do {
      const few = await measure(FEW);
      ratios.push((await measure(MANY)) / few);
    } while (ratios.at(-1)! >= MOST && ratios.length < ATTEMPTS);
    expect(Math.min(...ratios)).toBeLessThan(MOST);
  },
);

/** Measures the CPU in microseconds of many takes of one lease, and of giving all of them back. */
async function cpuOfTakes(
  backend: "memory" | "sqlite",
  count: number,
  atOnce: number,
): Promise<number> {
  await using repository =
    backend === "memory" ? new MemoryRepository() : await SqliteRepository.open(":memory:");
  await repository.setSystemDefaults([Limit.perDay("rpm", 1_000_000)]);
  const lease = await new RateLimiter({ repository }).acquire(CALL);
  const before = process.cpuUsage();
  for (let taken = 0; taken < count; taken += atOnce)
    await Promise.all(Array.from({ length: atOnce }, () => lease.consume({ rpm: 1 })));
  expect(lease.consumed).toEqual({ rpm: count + 1 });
  await lease.rollback();
  const { user, system } = process.cpuUsage(before);
  const [bucket] = await repository.getBuckets("e");
  expect(bucket!.totalConsumedMilli).toBe(0);
  return user + system;
}
