/*
 * Calls that ride on one write must not notice each other. Each test gathers a batch behind a
 * write, holds the batch's own write, and makes life hard for one member or for all of them.
 */
import { setImmediate } from "node:timers/promises";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { buildPolicy, type ConfigKey } from "../../../src/core/bucket/policy.ts";
import { bucketKey, type BucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import { bucketPartitionPrefix } from "../../../src/repository/dynamodb/items/keys.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeRequest } from "../../../src/repository/port.ts";
import type { StoredConfig } from "../../../src/repository/store.ts";
import {
  bucketProcess,
  grant,
  NAMESPACE_ID,
  requestFor,
  type BucketProcess,
} from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { HeldTransport, type HeldCall } from "../../support/held-transport.ts";

const CAPACITY = 100;

describeWithEngine("a batch", (engine) => {
  let tableName: string;
  let direct: DynamoTransport;
  let transport: HeldTransport;
  let clock: ManualClock;
  let limits: readonly Limit[];
  let isReadable: boolean;
  let tests = 0;

  beforeAll(async () => {
    ({ transport: direct, tableName } = await connectToNewTable(engine().endpointUrl));
    transport = new HeldTransport(direct);
  });
  beforeEach(() => {
    clock = new ManualClock(1_800_000_000_000);
    limits = [perDay(CAPACITY)];
    isReadable = true;
    transport.before = async () => {};
    transport.after = async () => {};
    tests += 1;
  });

  const config = async (key: ConfigKey): Promise<StoredConfig> => {
    if (!isReadable) throw new RateLimiterUnavailable("The configuration cannot be read.");
    return { limits: key.level === "system" ? limits : undefined };
  };
  const open = (
    options: { readonly refusalMemoryMs?: number; readonly maxUnderWay?: number } = {},
  ): BucketProcess =>
    bucketProcess({ transport, tableName, clock, seed: tests * 2, config, ...options });
  /** Another process, whose calls are never held. */
  const openOther = (): BucketProcess =>
    bucketProcess({ transport: direct, tableName, clock, seed: tests * 2 + 1, config });
  const call = (tpm: number, override?: ConsumeRequest["override"]): ConsumeRequest =>
    requestFor(`e-${tests}`, { tpm }, { override });
  const stored = async (): Promise<{ consumed: number; capacity: number }> => {
    const [found] = await openOther().buckets.ofEntity(`e-${tests}`, "r");
    const { limits: held, balances } = found!.bucket;
    return { consumed: balances[2]! / 1000, capacity: held[0]!.limit.capacity };
  };
  const forget = (process: BucketProcess): void =>
    process.known.forget(bucketPartitionPrefix(NAMESPACE_ID, `e-${tests}`));
  const shard0 = (): BucketKey =>
    bucketKey(
      { namespaceId: NAMESPACE_ID, entityId: `e-${tests}`, resource: "r", shard: 0 },
      undefined,
    );
  const deleteBucket = async (): Promise<void> => {
    await direct.call(
      "DeleteItem",
      { TableName: tableName, Key: shard0().marshalled },
      { signal: AbortSignal.timeout(5000) },
    );
  };
  /** Gathers what the work starts into one batch, whose write is held. */
  const gather = async <Started>(
    process: BucketProcess,
    work: () => Started,
  ): Promise<HeldCall & { readonly started: Started }> => {
    const before = transport.hold("UpdateItem");
    const first = grant(process, call(1));
    await before.arrived;
    const started = work();
    await settle();
    const held = transport.hold("UpdateItem");
    before.release();
    await Promise.all([first, held.arrived]);
    return { started, ...held };
  };

  /** Waits for work that pauses by the clock. */
  const paused = async <T>(work: Promise<T>): Promise<T> => {
    const done = work.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([done, setImmediate(false)]))) await clock.advance(1);
    return work;
  };

  it("a batch under changed limits never writes the old ones over them", async () => {
    const process = open();
    await grant(process, call(1));
    const { started, release } = await gather(process, async () =>
      Promise.allSettled([process.buckets.consume(call(20))]),
    );
    // It has the old limits already, and goes with the next batch.
    const later = Promise.allSettled([process.buckets.consume(call(30))]);
    await settle();
    limits = [perDay(2 * CAPACITY)];
    await grant(openOther(), call(5));
    isReadable = false;
    release();
    expect([...(await started), ...(await later)].map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
    ]);
    isReadable = true;
    expect(await stored()).toEqual({ consumed: 2 + 5, capacity: 2 * CAPACITY });
  });

  it("a batch knows the bucket that it created, forgotten meanwhile or not", async () => {
    const process = open();
    const { arrived, release } = transport.hold("PutItem");
    const taking = grant(process, call(20));
    await arrived;
    forget(process);
    release();
    await process.buckets.giveBack(await taking);
    expect(await stored()).toMatchObject({ consumed: 0 });
  });

  it("a batch whose bucket was forgotten is decided anew when its condition fails", async () => {
    const process = open();
    const lease = await grant(process, call(10));
    const { started, release } = await gather(process, () =>
      Promise.all([process.buckets.giveBack(lease), grant(process, call(20))]),
    );
    forget(process);
    limits = [perDay(2 * CAPACITY)];
    await grant(openOther(), call(5));
    release();
    await started;
    expect(await stored()).toEqual({ consumed: 1 + 20 + 5, capacity: 2 * CAPACITY });
  });

  it("a batch goes to the bucket that replaced a deleted one, and the tokens taken from that are gone", async () => {
    const process = open();
    const lease = await grant(process, call(10));
    const { started, release } = await gather(process, () =>
      Promise.all([
        process.buckets.giveBack(lease),
        grant(process, call(20)),
        grant(process, call(30)),
      ]),
    );
    await deleteBucket();
    forget(process);
    release();
    await started;
    expect(await stored()).toMatchObject({ consumed: 50 });
  });

  it("a batch whose bucket was forgotten refuses no call from what was known before", async () => {
    const process = open({ refusalMemoryMs: 1000 });
    await grant(process, call(80));
    const { started, release } = await gather(process, () => grant(process, call(2)));
    await deleteBucket();
    forget(process);
    const large = grant(process, call(60));
    release();
    await Promise.all([started, large]);
    expect(await stored()).toMatchObject({ consumed: 62 });
  });

  it("a batch gathers a bounded number of acquires and charges, and every end of a lease", async () => {
    const process = open({ maxUnderWay: 3 });
    const lease = await grant(process, call(10));
    const { started, release } = await gather(process, () =>
      Promise.allSettled([
        process.buckets.consume(call(20)),
        process.buckets.charge(call(30)),
        ...["consume", "charge"].map(async (name) =>
          process.buckets[name as "consume" | "charge"](call(40)),
        ),
        process.buckets.giveBack(lease),
      ]),
    );
    release();
    const outcomes = await started;
    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    const { reason } = outcomes[3] as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(RateLimiterUnavailable);
    expect(String(reason)).toContain("overloaded: 3 calls are waiting");
    await grant(process, call(40));
    expect(await stored()).toMatchObject({ consumed: 1 + 20 + 30 + 40 });
  });

  it("what was given back before a long outage is not given back twice", async () => {
    const process = open();
    const lease = await grant(process, call(10));
    transport.after = async () => {
      transport.before = async () => Promise.reject(connectionReset());
      throw connectionReset();
    };
    await expect(paused(process.buckets.giveBack(lease))).rejects.toThrow(RateLimiterUnavailable);
    for (let outage = 1; outage <= 100; outage += 1)
      await expect(paused(grant(process, call(1)))).rejects.toThrow(RateLimiterUnavailable);
    transport.before = async () => {};
    transport.after = async () => {};
    await process.buckets.giveBack(lease);
    await grant(process, call(20));
    expect(await stored()).toMatchObject({ consumed: 20 });
  });

  it("a batch decides each call by its own limits, where some bring their own", async () => {
    const process = open();
    await grant(process, call(1));
    const own = buildPolicy([perDay(40)], "override");
    const { started, release } = await gather(process, () =>
      Promise.all(
        [call(10), call(30, own), call(20), call(60, own)].map((request) =>
          process.buckets.consume(request),
        ),
      ),
    );
    release();
    // 98 are left before it: 10 are taken, the rest is cut to the 40 of the override, 30 are taken,
    // and 10 do not hold 20.
    expect((await started).map((outcome) => outcome.granted)).toEqual([true, true, false, false]);
    expect(await stored()).toMatchObject({ consumed: 2 + 10 + 30 });
  });
});

function connectionReset(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
}

function perDay(capacity: number): Limit {
  return Limit.custom({ name: "tpm", capacity, refillAmount: 1, refillPeriodSeconds: 86_400 });
}

/** Lets everything run that needs no network. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
}
