/*
 * What a hot bucket costs, through the public surface: requests and writes are counted behind the
 * client, by a proxy, and compared with what `getStatistics` tells.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  RateLimitExceeded,
  type AcquireRequest,
  type Lease,
} from "zae-limiter";
import type { DynamoOptions, DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine } from "../../support/engine.ts";
import { systemClock } from "../../../src/repository/system-clock.ts";
import { script, type Fault } from "../../support/fault-proxy.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { openTransport } from "../../support/transports.ts";

const CALLERS = 64;
const START_MS = Date.UTC(2030, 0, 1);

describeWithEngine("a hot bucket", (engine) => {
  const table = useProxiedTable(engine);
  let clock: ManualClock;
  let transport: HeldTransport;

  beforeEach(async () => {
    clock = new ManualClock(START_MS);
    transport = new HeldTransport(await openTransport("SDK's", table.proxy));
  });
  afterEach(() => transport.close());

  const open = async (
    limit: Limit,
    options: DynamoOptions = {},
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open("app", { clock, ...options });
    await repository.setSystemDefaults([limit]);
    return { limiter: new RateLimiter({ repository }), repository };
  };
  /** What the work sent, by operation, in the proxy's books. */
  const sentBy = async (
    work: () => Promise<unknown>,
  ): Promise<Readonly<Record<string, number>>> => {
    const before = table.proxy.seen.length;
    await work();
    const operations = table.proxy.seen.slice(before).map(({ operation }) => operation);
    return Object.fromEntries(
      [...new Set(operations)].map((name) => [
        name,
        operations.filter((other) => other === name).length,
      ]),
    );
  };
  const consumed = async (repository: DynamoRepository, entityId = "e"): Promise<number> => {
    await table.proxy.idle();
    const shards = await repository.getBuckets(entityId);
    return shards.reduce((sum, { totalConsumedMilli }) => sum + totalConsumedMilli, 0) / 1000;
  };

  describe("that many callers share", () => {
    it("costs at most 0.05 write units for each acquire, and every one of them is charged", async () => {
      const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
      await acquire(limiter);
      const rounds = 40;
      const caller = async (): Promise<void> => {
        for (let round = 0; round < rounds; round += 1) {
          await acquire(limiter);
          clock.set(clock.now() + 1);
        }
      };
      const before = repository.getStatistics();
      const sent = await sentBy(() => Promise.all(Array.from({ length: CALLERS }, caller)));
      const acquires = CALLERS * rounds;
      expect(Object.keys(sent)).toEqual(["UpdateItem"]);
      expect(sent["UpdateItem"]! / acquires).toBeLessThanOrEqual(0.05);
      const after = repository.getStatistics();
      expect(after.writes + after.failedConditions - before.writes - before.failedConditions).toBe(
        sent["UpdateItem"],
      );
      expect(after.requests - before.requests).toBe(sent["UpdateItem"]);
      expect(after.batchedOperations - before.batchedOperations).toBe(acquires);
      expect(
        (after.batchedOperations - before.batchedOperations) / (after.batches - before.batches),
      ).toBeGreaterThanOrEqual(20);
      expect(await consumed(repository)).toBe(acquires + 1);
    });

    it("costs no more when their calls are settled and rolled back in between", async () => {
      const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
      await acquire(limiter);
      const rounds = 20;
      const caller = async (_: unknown, index: number): Promise<void> => {
        for (let round = 0; round < rounds; round += 1) {
          const lease = await acquire(limiter, { consume: { rpm: 2 } });
          if (index % 2 === 0) lease.settle({ rpm: 3 });
          await (index % 2 === 0 ? lease.commit() : lease.rollback());
        }
      };
      const sent = await sentBy(() => Promise.all(Array.from({ length: CALLERS }, caller)));
      expect(sent["UpdateItem"]! / (2 * CALLERS * rounds)).toBeLessThanOrEqual(0.05);
      expect(await consumed(repository)).toBe((CALLERS / 2) * rounds * 3 + 1);
    });

    it("is a parent like any other: its children's calls ride on few writes", async () => {
      const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
      await repository.createEntity("parent");
      const children = Array.from({ length: CALLERS }, (_, index) => `child-${index}`);
      await Promise.all(
        children.map((child) =>
          repository.createEntity(child, { parentId: "parent", cascade: true }),
        ),
      );
      const round = async (): Promise<void> =>
        void (await Promise.all(children.map((entityId) => acquire(limiter, { entityId }))));
      await round();
      const before = table.proxy.seen.length;
      for (let rounds = 0; rounds < 4; rounds += 1) await round();
      const writes = table.proxy.seen
        .slice(before)
        .filter(({ input }) => JSON.stringify(input["Key"]).includes("#parent#"));
      expect(writes.length / (4 * CALLERS)).toBeLessThanOrEqual(0.05);
      expect(await consumed(repository, "parent")).toBe(5 * CALLERS);
    });
  });

  it("that nobody else uses answers in one round trip, each time", async () => {
    const { limiter, repository } = await open(Limit.perSecond("rpm", 1000));
    await acquire(limiter);
    for (const pauseMs of [0, 1, 999, 10_000]) {
      await clock.advance(pauseMs);
      expect(await sentBy(() => acquire(limiter))).toEqual({ UpdateItem: 1 });
    }
    expect(repository.getStatistics()).toMatchObject({
      writes: 5,
      batches: 5,
      batchedOperations: 5,
      failedConditions: 0,
      retries: 0,
    });
  });

  describe("that is exhausted", () => {
    it("refuses a thousand times within the waiting time without a request, and grants when it is over without a read", async () => {
      const { limiter, repository } = await open(Limit.perMinute("rpm", 60));
      await acquire(limiter, { consume: { rpm: 60 } });
      const sent = await sentBy(async () => {
        for (let refusals = 0; refusals < 1000; refusals += 1) {
          await refused(limiter);
          if (refusals === 499) await clock.advance(500);
        }
      });
      expect(sent).toEqual({});
      expect(repository.getStatistics().refusalsFromMemory).toBe(1000);
      expect(await waitOf(limiter)).toBe(0.5);
      await clock.advance(500);
      expect(await sentBy(() => acquire(limiter))).toEqual({ UpdateItem: 1 });
    });

    it("asks the table once in `refusalMemoryMs`, however long it takes", async () => {
      const { limiter, repository } = await open(Limit.perDay("rpm", 60));
      await acquire(limiter, { consume: { rpm: 60 } });
      const sent = await sentBy(async () => {
        for (let refusals = 0; refusals < 1000; refusals += 1) {
          await refused(limiter);
          await clock.advance(10);
        }
      });
      expect(sent).toEqual({ BatchGetItem: 9 });
      expect(repository.getStatistics().refusalsFromMemory).toBe(991);
    });

    it("asks before every refusal when it is told to", async () => {
      const { limiter } = await open(Limit.perDay("rpm", 60), { refusalMemoryMs: 0 });
      await acquire(limiter, { consume: { rpm: 60 } });
      expect(await sentBy(() => refused(limiter))).toEqual({ BatchGetItem: 1 });
      expect(await sentBy(() => refused(limiter))).toEqual({ BatchGetItem: 1 });
    });

    it.each<[string, (lease: Lease) => Promise<void>]>([
      ["a rollback", async (lease) => lease.rollback()],
      [
        "a settlement",
        async (lease) => {
          lease.settle({ rpm: 10 });
          await lease.commit();
        },
      ],
    ])("grants at once what %s of this process gave back, without a read", async (_, end) => {
      const { limiter } = await open(Limit.perDay("rpm", 60));
      const lease = await acquire(limiter, { consume: { rpm: 60 } });
      await refused(limiter);
      await end(lease);
      expect(await sentBy(() => acquire(limiter, { consume: { rpm: 50 } }))).toEqual({
        UpdateItem: 1,
      });
    });

    it("grants what another process gave back once what it knows is old enough, and never later", async () => {
      const { limiter } = await open(Limit.perDay("rpm", 60));
      const { limiter: other } = await open(Limit.perDay("rpm", 60));
      await acquire(limiter, { consume: { rpm: 1 } });
      const lease = await acquire(other, { consume: { rpm: 59 } });
      await refused(limiter);
      await clock.advance(999);
      await lease.rollback();
      await refused(limiter);
      await clock.advance(1);
      await acquire(limiter);
    });

    it("lets those who wait for it go at the computed time, with one write", async () => {
      const { limiter } = await open(Limit.perMinute("rpm", 60));
      await acquire(limiter, { consume: { rpm: 60 } });
      const waiting = acquire(limiter, { waitUpToMs: 60_000, consume: { rpm: 5 } });
      await turn();
      const sent = await sentBy(async () => {
        await clock.advance(5000);
        await waiting;
      });
      expect(sent).toEqual({ UpdateItem: 1 });
    });

    it("counts no refusal that it had to ask for", async () => {
      const { limiter, repository } = await open(Limit.perDay("rpm", 60));
      await acquire(limiter, { consume: { rpm: 60 } });
      await clock.advance(1000);
      await refused(limiter);
      expect(repository.getStatistics().refusalsFromMemory).toBe(0);
    });
  });

  describe("whose callers give up or lose answers", () => {
    const slow = Limit.perDay("rpm", 100_000);

    it("gives back what an aborted call was granted, and grants the others", async () => {
      const { limiter, repository } = await open(slow, { transport });
      await acquire(limiter);
      const before = transport.hold("UpdateItem");
      const first = acquire(limiter);
      await before.arrived;
      const giveUp = new AbortController();
      const aborted = acquire(limiter, {
        consume: { rpm: 10 },
        waitUpToMs: 1000,
        signal: giveUp.signal,
      });
      const others = [20, 30].map((rpm) => acquire(limiter, { consume: { rpm } }));
      await turn();
      const batch = transport.hold("UpdateItem");
      before.release();
      await batch.arrived;
      giveUp.abort(new Error("nobody waits any more"));
      batch.release();
      await expect(aborted).rejects.toThrow("nobody waits any more");
      await Promise.all([first, ...others]);
      expect(repository.getStatistics().batchedOperations).toBe(2 + 3 + 1);
      expect(await consumed(repository)).toBe(2 + 20 + 30);
    });

    it.each<Fault>(["lost-reply", "lost-request", "internal", "throttle", "conflict"])(
      "charges each member of a batch once: %s",
      async (fault) => {
        const { limiter, repository } = await open(slow, { clock: systemClock });
        await acquire(limiter);
        const lease = await acquire(limiter, { consume: { rpm: 500 } });
        table.proxy.decide = script("UpdateItem", [undefined, fault, fault]);
        const calls = Array.from({ length: CALLERS }, (_, index) =>
          acquire(limiter, { consume: { rpm: index } }),
        );
        await Promise.all([...calls, lease.rollback()]);
        expect(await consumed(repository)).toBe(1 + (CALLERS * (CALLERS - 1)) / 2);
      },
    );

    it.each<Fault>(["late-silence", "silence"])(
      "grants none of a batch whose answer never comes (%s), and goes on",
      async (fault) => {
        const { limiter, repository } = await open(slow, {
          clock: systemClock,
          requestTimeoutMs: 300,
          maxAttempts: 2,
        });
        await acquire(limiter);
        table.proxy.decide = script("UpdateItem", [{ delayMs: 50 }, fault, fault]);
        const first = acquire(limiter);
        const batch = Promise.allSettled(
          [10, 20, 30].map((rpm) => acquire(limiter, { consume: { rpm } })),
        );
        await first;
        const next = acquire(limiter, { consume: { rpm: 100 } });
        expect(
          (await batch).map(
            (outcome) =>
              outcome.status === "rejected" && outcome.reason instanceof RateLimiterUnavailable,
          ),
        ).toEqual([true, true, true]);
        await next;
        // What was not granted may stay charged, once.
        expect(await consumed(repository)).toBe(2 + 100 + (fault === "late-silence" ? 60 : 0));
      },
    );
  });
});

async function acquire(limiter: RateLimiter, more: Partial<AcquireRequest> = {}): Promise<Lease> {
  return limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 }, ...more });
}

async function refused(limiter: RateLimiter): Promise<void> {
  await expect(acquire(limiter)).rejects.toThrow(RateLimitExceeded);
}

async function waitOf(limiter: RateLimiter): Promise<number> {
  const verdict = await limiter.tryAcquire({ entityId: "e", resource: "r", consume: { rpm: 1 } });
  return verdict.granted ? 0 : verdict.refusal.retryAfterSeconds;
}

/** Lets everything run that waits for nothing. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
