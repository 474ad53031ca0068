import { Limit, RateLimiter, type AcquireRequest } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { MeteredTransport } from "../../support/metered-transport.ts";
import { openTransport } from "../../support/transports.ts";

/** A manual clock that counts its sleepers. */
class CountingClock extends ManualClock {
  sleeps = 0;

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps += 1;
    return super.sleep(ms, signal);
  }
}

/** Everything that an entity has. */
const request = (entityId: string): AcquireRequest => ({
  entityId,
  resource: "r",
  consume: { tokens: 10 },
});

const WAITING = 100;
const GIVE_BACKS = 20;

describeWithEngine("what waiting calls cost", (engine) => {
  it("100 waiting entities cost nothing when another entity gives back, and each is served once it is its turn", async () => {
    const { endpointUrl } = engine();
    const inner = await openTransport("SDK's", { endpointUrl });
    const transport = new MeteredTransport(inner, { measureCapacity: true });
    const clock = new CountingClock();
    const options = { transport, clock, stack: freshTableName(), stream: false } as const;
    const repository = await DynamoRepository.open("app", { ...options, provisioning: "table" });
    await repository.setSystemDefaults([Limit.perHour("tokens", 10)]);
    const limiter = new RateLimiter({ repository });
    const entities = Array.from({ length: WAITING }, (_, index) => `e-${index}`);
    const leases = await Promise.all(entities.map((id) => limiter.acquire(request(id))));
    const waiting = entities.map((id) =>
      limiter.acquire({ ...request(id), waitUpToMs: 2 * 3_600_000 }),
    );
    while (clock.sleeps < WAITING) await new Promise((resolve) => setImmediate(resolve));
    await (await limiter.acquire(request("other"))).rollback();
    // What is known of the waiting entities becomes too old to refuse them again without a read.
    await clock.advance(2000);

    transport.reset();
    const { refusalsFromMemory } = repository.getStatistics();
    for (let count = 0; count < GIVE_BACKS; count += 1)
      await (await limiter.acquire(request("other"))).rollback();
    await clock.advance(0);
    const { byOperation, read } = transport.counts();
    expect(byOperation).toEqual({ UpdateItem: 2 * GIVE_BACKS });
    expect(read.table).toBe(0);
    expect(repository.getStatistics().refusalsFromMemory).toBe(refusalsFromMemory);

    for (const lease of leases) await lease.rollback();
    await Promise.all(waiting);
    await repository.close();
    inner.close();
  });
});
