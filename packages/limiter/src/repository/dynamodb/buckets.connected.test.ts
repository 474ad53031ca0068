import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import type { ConfigKey } from "../../core/policy.ts";
import { bucketProcess, type BucketProcess } from "../../../test/dynamodb/bucket-process.ts";
import { describeWithEngine, freshTableName } from "../../../test/dynamodb/engine.ts";
import { Connection } from "./connection.ts";
import { sdkTransport } from "./sdk-transport.ts";
import { createTable } from "./table.ts";
import type { DynamoTransport } from "./transport.ts";

describeWithEngine("a bucket's write path", (engine) => {
  let transport: DynamoTransport;
  const tableName = freshTableName();
  const clock = new ManualClock();

  beforeAll(async () => {
    ({ transport } = await sdkTransport({ region: "eu-west-1", endpointUrl: engine().endpointUrl }));
    const connection = new Connection({
      transport,
      tableName,
      clock: systemLike(),
      random: Math.random,
      requestTimeoutMs: 5000,
      maxAttempts: 3,
    });
    await createTable(connection, { stream: false });
  });

  const system = (limits: readonly Limit[]) => (key: ConfigKey) => ({ limits: key.level === "system" ? limits : undefined });
  const open = (limits: readonly Limit[], seed = 1): BucketProcess =>
    bucketProcess({ transport, tableName, clock, seed, config: system(limits) });

  for (const count of [1, 2, 3, 4, 5, 6]) {
    it(`costs one request and one write unit, refill included, with ${count} limits`, async () => {
      const names = ["rpm", "tpm", "rpdx", "tpdx", "ipmx", "opmx"].slice(0, count);
      const process = open(names.map((name) => Limit.perMinute(name, 1_000_000)));
      const request = {
        entityId: `entity-${count}-0123456789`,
        charges: [{ resource: "gpt-4o-mini1", amounts: Object.fromEntries(names.map((name) => [name, 1000])) }],
        override: undefined,
      };
      await process.buckets.consume(request);
      for (const pauseMs of [0, 7, 13, 100_000]) {
        await clock.advance(pauseMs);
        process.transport.reset();
        expect(await process.buckets.consume(request)).toMatchObject({ granted: true });
        const { requests, write, read } = process.transport.counts();
        expect({ requests, write, read: read.table }).toEqual({ requests: 1, write: { table: 1, indexes: {} }, read: 0 });
      }
    });
  }
});

function systemLike(): { now(): number; sleep(ms: number): Promise<void> } {
  return { now: () => Date.now(), sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
}
