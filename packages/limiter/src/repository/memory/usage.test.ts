import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { USAGE_WINDOWS } from "../../core/usage.ts";
import type { UsageRange } from "../store.ts";
import { MemoryUsage } from "./usage.ts";

const ONE_CALL = { requests: 1, isCascaded: false };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function buildRange(range: Partial<UsageRange>): UsageRange {
  return {
    entityId: undefined,
    resource: undefined,
    window: "hourly",
    startMs: undefined,
    endMs: undefined,
    ...range,
  };
}

it("keeps no meter of an entity whose windows have all expired", () => {
  const clock = new ManualClock();
  const usage = new MemoryUsage({ nowMs: () => clock.now(), retentionDays: () => 3 });
  for (let index = 0; index < 50; index += 1)
    usage.record(usage.meter(`key-${index}`, "gpt-4"), { rpm: 1 }, ONE_CALL, clock.now());
  expect(usage.size).toBe(50);
  clock.set(clock.now() + 40 * DAY_MS);
  const busy = usage.meter("busy", "gpt-4");
  for (let hour = 0; hour < 200; hour += 1) {
    clock.set(clock.now() + HOUR_MS);
    usage.record(busy, { rpm: 1 }, ONE_CALL, clock.now());
  }
  // The open meter, four days of hours, five days and two months at most.
  expect(usage.size).toBeLessThanOrEqual(1 + 4 * 24 + 5 + 2);
  const page = { limit: 10, after: undefined };
  for (const window of USAGE_WINDOWS)
    expect(usage.rows(buildRange({ entityId: "key-7", window }), page).items).toEqual([]);
});

it("keeps counting for a bucket whose meter was dropped while it was idle", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perDay("rpd", 1_000_000)], { usageRetentionDays: 1 });
  const limiter = new RateLimiter({ repository });
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 5 } };
  await limiter.acquire(call, () => {});
  await clock.advance(40 * DAY_MS);
  expect(
    (await repository.getUsageSummary({ entityId: "key-1", window: "monthly" })).snapshotCount,
  ).toBe(0);
  for (let count = 0; count < 3; count += 1) await limiter.acquire(call, () => {});
  const summary = await repository.getUsageSummary({ entityId: "key-1", window: "monthly" });
  expect([summary.total, summary.requests]).toEqual([{ rpd: 15 }, 3]);
});

it("keeps an hour whose own calls and give-backs by cascade add up to nothing", () => {
  const clock = new ManualClock(Date.UTC(2026, 2, 1));
  const usage = new MemoryUsage({ nowMs: () => clock.now(), retentionDays: () => 3 });
  const meter = usage.meter("project", "gpt-4");
  usage.record(meter, {}, ONE_CALL, clock.now());
  usage.record(meter, {}, { requests: -1, isCascaded: true }, clock.now());
  const { items } = usage.rows(buildRange({ window: "hourly" }), { limit: 10, after: undefined });
  expect(items).toMatchObject([{ requests: 0, cascadedRequests: -1 }]);
});
