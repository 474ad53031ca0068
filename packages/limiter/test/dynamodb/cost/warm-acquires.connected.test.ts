import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import { getStoredMilli } from "../../../src/core/bucket/bucket.ts";
import { buildDefaults, type ConfigKey } from "../../../src/core/bucket/policy.ts";
import type { Receipt } from "../../../src/repository/port.ts";
import {
  bucketProcess,
  grant,
  requestFor,
  type BucketProcess,
} from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { RoundTrips } from "../../support/round-trips.ts";

const PARENT = "parent";
const rpm = Limit.perMinute("rpm", 60);
const tpm = Limit.perMinute("tpm", 6000);
const RESOURCE = "gpt-4o-mini1";

interface Cost {
  readonly requests: number;
  readonly roundTrips: number;
  readonly writeUnits: number;
  readonly indexUnits: number;
  readonly readUnits: number;
}

describeWithEngine("what a warm acquire costs", (engine) => {
  let trips: RoundTrips;
  let tableName: string;
  const clock = new ManualClock();

  beforeAll(async () => {
    const table = await connectToNewTable(engine().endpointUrl);
    tableName = table.tableName;
    trips = new RoundTrips(table.transport);
  });

  async function computeCost(process: BucketProcess, work: () => Promise<unknown>): Promise<Cost> {
    process.transport.reset();
    trips.count = 0;
    await work();
    const { requests, write, read, failedConditions } = process.transport.counts();
    // AWS bills failed conditions; the engines' replies do not say.
    return {
      requests,
      roundTrips: trips.count,
      writeUnits: write.table + failedConditions,
      indexUnits: sum(write.indexes),
      readUnits: read.table,
    };
  }

  for (const [what, inherit, defaults] of [
    ["whose policy comes from two levels", true, undefined],
    ["with a name that is not limited", false, undefined],
    ["with defaults in code", true, buildDefaults([tpm])],
  ] as const) {
    it(`a warm acquire ${what} is one request and one write unit, and so is its end`, async () => {
      const process = bucketProcess({
        transport: trips,
        tableName,
        clock,
        seed: 3,
        config: ({ level }: ConfigKey) => {
          if (level === "system")
            return { limits: defaults === undefined ? [rpm, tpm] : undefined };
          return level === "entity" ? { limits: [rpm], inherit } : { limits: undefined };
        },
      });
      const id = `entity-${inherit}-${defaults === undefined ? "0123456789a" : "constructor"}`;
      const wanted = requestFor(id, { rpm: 1, tpm: 10 }, { resource: RESOURCE });
      const request = { ...wanted, defaults };
      const settled = [{ resource: RESOURCE, amounts: { tpm: 5 } }];
      await process.buckets.settle(await grant(process, request), settled);
      const once = { requests: 1, roundTrips: 1, writeUnits: 1, indexUnits: 0, readUnits: 0 };
      for (const pauseMs of [0, 7, 13, 100_000]) {
        await clock.advance(pauseMs);
        let receipt: Receipt | undefined;
        const taken = await computeCost(process, async () => {
          receipt = await grant(process, request);
        });
        expect(taken).toEqual(once);
        expect(
          await computeCost(process, async () => process.buckets.settle(receipt!, settled)),
        ).toEqual(once);
      }
      const [stored] = await process.buckets.ofEntity(id, RESOURCE);
      const names = stored!.bucket.limits.map(({ limit }) => limit.name);
      expect(names).toEqual(inherit ? ["rpm", "tpm"] : ["rpm"]);
    });
  }

  it("a parent that lacks a limit of its child is one write more in the same request, and no read [W-43]", async () => {
    const process = bucketProcess({
      transport: trips,
      tableName,
      clock,
      seed: 2,
      config: (key: ConfigKey) => {
        if (key.level !== "entity" || key.resource !== RESOURCE) return { limits: undefined };
        return { limits: key.entityId === PARENT ? [tpm] : [rpm, tpm] };
      },
      parents: { child: PARENT },
    });
    const request = requestFor("child", { rpm: 1, tpm: 10 }, { resource: RESOURCE });
    await grant(process, request);
    const cost = await computeCost(process, () => grant(process, request));
    expect(cost).toEqual({
      requests: 1,
      roundTrips: 1,
      writeUnits: 2,
      indexUnits: 0,
      readUnits: 0,
    });
    const stored = await Promise.all(
      ["child", PARENT].map(async (id) => process.buckets.ofEntity(id, RESOURCE)),
    );
    expect(
      stored.map(([found]) =>
        found!.bucket.limits.map(({ limit }, index) => [
          limit.name,
          getStoredMilli(found!.bucket, index),
        ]),
      ),
    ).toEqual([
      [
        ["rpm", 58_000],
        ["tpm", 5_980_000],
      ],
      [["tpm", 5_980_000]],
    ]);
  });
});

function sum(units: Readonly<Record<string, number>>): number {
  return Object.values(units).reduce((total, value) => total + value, 0);
}
