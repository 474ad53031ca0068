// Tests of code that uses a limiter. Time stands still until the test moves it, so nothing sleeps.
import assert from "node:assert/strict";
import { test } from "node:test"; // or: import { test } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock } from "zae-limiter/testing";

// The code under test. It gets its limiter from outside.
async function handle(
  limiter: RateLimiter,
  key: string,
): Promise<{ status: number; wait?: string }> {
  const verdict = await limiter.tryAcquire({
    entityId: key,
    resource: "search",
    consume: { rpm: 1 },
  });
  if (!verdict.granted) return { status: 429, wait: verdict.refusal.retryAfterHeader ?? "never" };
  await verdict.lease.commit();
  return { status: 200 };
}

test("the second call in a minute gets 429, and the right time to retry", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
  const limiter = new RateLimiter({ repository });

  assert.deepEqual(await handle(limiter, "key-ann"), { status: 200 });
  assert.deepEqual(await handle(limiter, "key-ann"), { status: 429, wait: "60" });
  await clock.advance(59_999);
  assert.deepEqual(await handle(limiter, "key-ann"), { status: 429, wait: "1" });
  await clock.advance(1);
  assert.deepEqual(await handle(limiter, "key-ann"), { status: 200 });
});

test("a limiter that always refuses", async () => {
  const repository = new MemoryRepository({ clock: new ManualClock() }); // never earns anything
  await repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
  const limiter = new RateLimiter({ repository });
  const request = { entityId: "key-ann", resource: "search", consume: { rpm: 1 } };
  await limiter.acquire(request, (lease) => lease.settle({ rpm: 1_000_000 })); // deep in debt

  assert.equal((await handle(limiter, "key-ann")).status, 429);
});

test("a limiter whose store is down", async () => {
  const repository = faultyRepository(new MemoryRepository(), () => "error-before");
  const limiter = new RateLimiter({ repository });
  await assert.rejects(handle(limiter, "key-ann"), { code: "ERR_LIMITER_UNAVAILABLE" });
});
