import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import {
  getNumber,
  getString,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const MINUTE_MS = 60_000;
const MINUTES = 4;
const LARGE = 100;
const OLD = [Limit.perMinute("rpm", LARGE), Limit.perMinute("images", 50)];
const NEW = [Limit.perMinute("rpm", 40), Limit.perMinute("tpm", 5000)];

describeWithEngine("processes with different defaults in code", (engine) => {
  const table = useProxiedTable(engine);

  it.each([1, 4])(
    "seldom rewrite a bucket of %i shards, grant no more than the larger, and settle in time",
    async (shards) => {
      let nowMs = 1_800_000_000_000;
      const clock = { now: () => nowMs, sleep: async () => {} };
      const random = seededRandom(shards);
      const open = async (defaults: readonly Limit[]) => {
        const repository = await table.open(undefined, { clock, configCacheTtlMs: MINUTE_MS });
        return { repository, limiter: new RateLimiter({ repository, defaults }) };
      };
      const [old, next] = [await open(OLD), await open(NEW)];
      const limits = async (): Promise<readonly string[]> => {
        const buckets = await next.repository.getBuckets("e", { resource: "r" });
        return [...new Set(buckets.map((each) => each.limitName))].toSorted();
      };
      const versions = async (): Promise<readonly string[]> =>
        (await table.bucketItems("e")).map(
          (item) => `${getString(item["PK"])} ${getNumber(item["sv"])}`,
        );
      const seen = new Set<string>();
      let granted = 0;
      const call = async (limiter: RateLimiter): Promise<void> => {
        const request = { entityId: "e", resource: "r", consume: { rpm: 3 } };
        const verdict = await limiter.tryAcquire(request);
        if (!verdict.granted) return;
        await verdict.lease.commit();
        granted += 3;
      };
      await call(old.limiter);
      await call(next.limiter);
      if (shards > 1) await next.repository.splitBucket!("e", "r", { shards });
      const first = (await versions()).length;
      for (const id of await versions()) seen.add(id);
      for (const endMs = nowMs + MINUTES * MINUTE_MS; nowMs < endMs; nowMs += 1000) {
        await call(random() < 0.5 ? old.limiter : next.limiter);
        for (const id of await versions()) seen.add(id);
      }
      expect(granted).toBeLessThanOrEqual(LARGE * (MINUTES + 1));
      expect(granted).toBeGreaterThan(NEW[0]!.capacity * (MINUTES - 1));
      const rewrites = seen.size - first;
      expect(rewrites).toBeGreaterThan(0);
      expect(rewrites).toBeLessThanOrEqual(2 * MINUTES * shards);
      expect(await limits()).toEqual(["images", "rpm", "tpm"]);

      for (const endMs = nowMs + MINUTE_MS + 5000; nowMs < endMs; nowMs += 1000)
        await call(next.limiter);
      const { available } = await next.limiter.check({ entityId: "e", resource: "r", consume: {} });
      expect(Object.keys(available).toSorted()).toEqual(["rpm", "tpm"]);
      await next.repository.mergeBucket!("e", "r", { shards: 1 });
      const items = await table.bucketItems("e");
      expect(items.map((item) => getString(item["po"]))).toEqual(items.map(() => "rpm,tpm"));
    },
  );
});
