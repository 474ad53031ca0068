import { afterEach, beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import type { DynamoOptions, DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { systemClock } from "../../../src/repository/system-clock.ts";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script, type Fault } from "../../support/fault-proxy.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { openTransport } from "../../support/transports.ts";

const CALLERS = 64;
const START_MS = Date.UTC(2030, 0, 1);

describeWithEngine("a write that many calls share", (engine) => {
  const table = useProxiedTable(engine);
  let transport: HeldTransport;

  beforeEach(async () => {
    transport = new HeldTransport(await openTransport("SDK's", table.proxy));
  });
  afterEach(() => transport.close());

  const open = async (
    options: DynamoOptions,
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open("app", options);
    await repository.setSystemDefaults([Limit.perDay("rpm", 100_000)]);
    const limiter = new RateLimiter({ repository });
    await take(limiter, { rpm: 1 });
    return { limiter, repository };
  };

  it("an aborted call gives back what it was granted, and the others are granted", async () => {
    const { limiter, repository } = await open({ transport, clock: new ManualClock(START_MS) });
    const before = transport.hold("UpdateItem");
    const first = limiter.acquire(call({ rpm: 1 }));
    await before.arrived;
    const giveUp = new AbortController();
    const aborted = limiter.acquire({
      ...call({ rpm: 10 }),
      waitUpToMs: 1000,
      signal: giveUp.signal,
    });
    const others = [20, 30].map((rpm) => limiter.acquire(call({ rpm })));
    // Lets everything run that waits for nothing.
    await new Promise((resolve) => setImmediate(resolve));
    const batch = transport.hold("UpdateItem");
    before.release();
    await batch.arrived;
    giveUp.abort(new Error("given up"));
    batch.release();
    await expect(aborted).rejects.toThrow("given up");
    await Promise.all([first, ...others]);
    expect(repository.getStatistics().batchedOperations).toBe(2 + 3 + 1);
    expect(await table.consumed(repository)).toBe(2 + 20 + 30);
  });

  it.each<Fault>(["lost-reply", "lost-request", "internal", "throttle", "conflict"])(
    "each call is charged once when it suffers %s",
    async (fault) => {
      const { limiter, repository } = await open({ clock: systemClock });
      const lease = await limiter.acquire(call({ rpm: 500 }));
      table.proxy.decide = script("UpdateItem", [undefined, fault, fault]);
      const calls = Array.from({ length: CALLERS }, (_, index) =>
        limiter.acquire(call({ rpm: index })),
      );
      await Promise.all([...calls, lease.rollback()]);
      expect(await table.consumed(repository)).toBe(1 + (CALLERS * (CALLERS - 1)) / 2);
    },
  );

  it.each<Fault>(["late-silence", "silence"])(
    "no call is granted when no answer ever comes (%s), and the next one is served",
    async (fault) => {
      const { limiter, repository } = await open({
        clock: systemClock,
        requestTimeoutMs: 300,
        maxAttempts: 2,
      });
      table.proxy.decide = script("UpdateItem", [{ delayMs: 50 }, fault, fault]);
      const first = limiter.acquire(call({ rpm: 1 }));
      const batch = Promise.allSettled([10, 20, 30].map((rpm) => limiter.acquire(call({ rpm }))));
      await first;
      const next = limiter.acquire(call({ rpm: 100 }));
      expect(
        (await batch).map(
          (outcome) =>
            outcome.status === "rejected" && outcome.reason instanceof RateLimiterUnavailable,
        ),
      ).toEqual([true, true, true]);
      await next;
      // What was applied and not granted went back with the next one.
      expect(await table.consumed(repository)).toBe(2 + 100);
    },
  );
});
