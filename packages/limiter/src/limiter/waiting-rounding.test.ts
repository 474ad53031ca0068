import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

// 2007 / 1000 * 1000 is more than 2007, and 1001 / 1000 * 1000 is less than 1001.
it.each([1001, 2007])(
  "grants a call that may wait exactly as long as it has to (%i ms)",
  async (ms) => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    const call = {
      entityId: "e",
      resource: "r",
      limits: [
        Limit.custom({ name: "tokens", capacity: ms, refillAmount: 1000, refillPeriodSeconds: 1 }),
      ],
    };
    await (await limiter.acquire({ ...call, consume: { tokens: ms } })).commit();
    const waiting = limiter.tryAcquire({ ...call, consume: { tokens: ms }, waitUpToMs: ms });
    await clock.advance(ms);
    expect((await waiting).granted).toBe(true);
  },
);
