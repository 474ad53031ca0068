import { beforeAll, expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import type { ConfigKey } from "../../src/core/policy.ts";
import { LARGEST_TICK_MS } from "../../src/repository/dynamodb/tick.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import type { StoredConfig } from "../../src/repository/store.ts";
import type { Clock } from "../../src/repository/system-clock.ts";
import { bucketProcess, type BucketProcess } from "./bucket-process.ts";
import { connectToNewTable } from "./connect.ts";
import { describeWithEngine } from "./engine.ts";
import { HeldTransport } from "./held-transport.ts";

const PROCESSES = 2;
/** Of each process. */
const ACQUIRES = 50;

/** Earns more than is taken, so it is full again with every new millisecond, and every write by a newer time must refill it. */
const limits = [Limit.custom({ name: "rpm", capacity: 1000, refillAmount: 2000, refillPeriodSeconds: 1 })];
const config = ({ level }: ConfigKey): StoredConfig => ({ limits: level === "system" ? limits : undefined });

/** Time passes with every request, a millisecond each, and with pauses: what is counted does not depend on how fast the machine is. */
class RequestClock implements Clock {
  nowMs = 1_800_000_000_000;

  now(): number {
    return this.nowMs;
  }

  async sleep(ms: number): Promise<void> {
    this.nowMs += ms;
  }
}

describeWithEngine("two processes that share a bucket", (engine) => {
  let direct: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport: direct, tableName } = await connectToNewTable(engine().endpointUrl));
  });

  it("fail each other's writes much less with a tick than without, and none of them in vain", async () => {
    const without = await contend("without", 1);
    const withTick = await contend("with", LARGEST_TICK_MS);
    expect(without.failedShare).toBeGreaterThan(0.3);
    expect(withTick.failedShare).toBeLessThan(without.failedShare / 2);
    expect(withTick.contended).toBe(0);
  });

  async function contend(entityId: string, largestTickMs: number): Promise<{ readonly failedShare: number; readonly contended: number }> {
    const clock = new RequestClock();
    const transport = new HeldTransport(direct);
    transport.before = async () => void (clock.nowMs += 1);
    const processes = Array.from({ length: PROCESSES }, (_, seed) =>
      bucketProcess({ transport, tableName, clock, seed: seed + 1, config, largestTickMs, maxShards: 1 }),
    );
    const request = { entityId, charges: [{ resource: "r", amounts: { rpm: 1 } }], override: undefined };
    let contended = 0;
    const work = async ({ buckets }: BucketProcess): Promise<void> => {
      for (let round = 0; round < ACQUIRES; round += 1)
        await Promise.resolve(buckets.consume(request)).catch((error: unknown) => {
          if (!(error instanceof RateLimiterUnavailable)) throw error;
          contended += 1;
        });
    };
    await processes[0]!.buckets.consume(request);
    await Promise.all(processes.map(work));
    const [writes, failed] = (["writes", "failedConditions"] as const).map((name) =>
      processes.reduce((sum, { counts }) => sum + counts[name], 0),
    ) as [number, number];
    const [bucket] = await processes[0]!.buckets.ofEntity(entityId, "r");
    expect(bucket!.bucket.balances[2]).toBe((1 + PROCESSES * ACQUIRES - contended) * 1000);
    return { failedShare: failed / (writes + failed), contended };
  }
});
