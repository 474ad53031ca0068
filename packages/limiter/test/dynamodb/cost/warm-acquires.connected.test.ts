import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import type { Amounts } from "../../../src/core/amounts.ts";
import type { ConfigKey } from "../../../src/core/policy.ts";
import { bucketProcess, type BucketProcess } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { RoundTrips } from "../../support/round-trips.ts";
import type { ConsumeRequest, Receipt } from "../../../src/repository/port.ts";

const PARENT = "parent-0123456789abc";
const RESOURCE = "gpt-4o-mini1";

interface Cost {
  readonly requests: number;
  readonly roundTrips: number;
  readonly writeUnits: number;
  readonly indexUnits: number;
  readonly readUnits: number;
}

describeWithEngine("what a bucket's writes cost", (engine) => {
  let trips: RoundTrips;
  let tableName: string;
  const clock = new ManualClock();

  beforeAll(async () => {
    const table = await connectToNewTable(engine().endpointUrl);
    tableName = table.tableName;
    trips = new RoundTrips(table.transport);
  });

  const open = (limits: readonly Limit[], seed = 1): BucketProcess =>
    bucketProcess({
      transport: trips,
      tableName,
      clock,
      seed,
      config: (key: ConfigKey) => ({ limits: key.level === "system" ? limits : undefined }),
      parents: { "child-0123456789abcd": PARENT, "child-of-cold-parent": PARENT },
    });

  async function costOf(process: BucketProcess, work: () => Promise<unknown>): Promise<Cost> {
    process.transport.reset();
    trips.count = 0;
    await work();
    const { requests, write, read, failedConditions } = process.transport.counts();
    // AWS bills failed conditions; the engines' replies do not tell.
    return {
      requests,
      roundTrips: trips.count,
      writeUnits: write.table + failedConditions,
      indexUnits: sum(write.indexes),
      readUnits: read.table,
    };
  }

  for (const count of [1, 2, 3, 4, 5, 6]) {
    it(`a warm acquire is one request and one write unit, refill included, with ${count} limits`, async () => {
      const names = ["rpmx", "tpmx", "rpdx", "tpdx", "ipmx", "opmx"].slice(0, count);
      const process = open(names.map((name) => Limit.perMinute(name, 1_000_000)));
      const request = call(
        `entity-${count}-0123456789a`,
        Object.fromEntries(names.map((name) => [name, 1000])),
      );
      await granted(process, request);
      for (const pauseMs of [0, 7, 13, 100_000]) {
        await clock.advance(pauseMs);
        const cost = await costOf(process, () => granted(process, request));
        expect(cost).toEqual({
          requests: 1,
          roundTrips: 1,
          writeUnits: 1,
          indexUnits: 0,
          readUnits: 0,
        });
      }
    });
  }

  it("a warm cascade is two requests in one round trip, and two write units, with six limits", async () => {
    const names = ["rpmx", "tpmx", "rpdx", "tpdx", "ipmx", "opmx"];
    const process = open(names.map((name) => Limit.perMinute(name, 1_000_000)));
    const request = call(
      "child-0123456789abcd",
      Object.fromEntries(names.map((name) => [name, 1000])),
    );
    await granted(process, request);
    await clock.advance(7);
    const cost = await costOf(process, () => granted(process, request));
    expect(cost).toEqual({
      requests: 2,
      roundTrips: 1,
      writeUnits: 2,
      indexUnits: 0,
      readUnits: 0,
    });
  });

  it("a settlement costs one more write, and nothing without a difference", async () => {
    const process = open([Limit.perMinute("tpm", 1000)]);
    const receipt = await granted(process, call("settled", { tpm: 10 }));
    expect(
      await costOf(process, async () =>
        process.buckets.settle(receipt, [{ resource: RESOURCE, amounts: { tpm: 25 } }]),
      ),
    ).toMatchObject({ requests: 1, writeUnits: 1, readUnits: 0 });
    const second = await granted(process, call("settled", { tpm: 10 }));
    expect(await costOf(process, async () => process.buckets.settle(second, []))).toMatchObject({
      requests: 0,
    });
  });

  it("the first acquire of an entity that this process has never seen takes two round trips", async () => {
    const process = open([Limit.perMinute("rpm", 1000)]);
    expect(
      await costOf(process, () => granted(process, call("never-seen", { rpm: 1 }))),
    ).toMatchObject({ requests: 2, roundTrips: 2 });
  });

  it("the first acquire of a known entity on a new bucket takes one round trip", async () => {
    const process = open([Limit.perMinute("rpm", 1000)]);
    await process.policies.resolve("known", RESOURCE);
    await granted(process, {
      entityId: "known",
      charges: [{ resource: "other", amounts: { rpm: 1 } }],
      override: undefined,
    });
    expect(await costOf(process, () => granted(process, call("known", { rpm: 1 })))).toMatchObject({
      requests: 1,
      roundTrips: 1,
    });
  });

  it("a warm refusal is at most one request, and writes nothing", async () => {
    const process = open([Limit.perMinute("rpm", 5)]);
    await granted(process, call("exhausted", { rpm: 5 }));
    const cost = await costOf(process, async () =>
      expect(await process.buckets.consume(call("exhausted", { rpm: 1 }))).toMatchObject({
        granted: false,
      }),
    );
    expect(cost).toMatchObject({ requests: 1, writeUnits: 0 });
  });

  it("what is available is one round trip, the known parent's bucket included", async () => {
    const process = open([Limit.perMinute("rpm", 1000)]);
    await granted(process, call("child-0123456789abcd", { rpm: 1 }));
    await clock.advance(5);
    expect(
      await costOf(process, async () => process.buckets.read(call("child-0123456789abcd", {}))),
    ).toMatchObject({
      requests: 1,
      roundTrips: 1,
      writeUnits: 0,
    });
  });
});

function call(entityId: string, amounts: Amounts): ConsumeRequest {
  return { entityId, charges: [{ resource: RESOURCE, amounts }], override: undefined };
}

async function granted(process: BucketProcess, request: ConsumeRequest): Promise<Receipt> {
  const outcome = await process.buckets.consume(request);
  if (!outcome.granted) throw new Error("refused");
  return outcome.receipt;
}

function sum(units: Readonly<Record<string, number>>): number {
  return Object.values(units).reduce((total, value) => total + value, 0);
}
