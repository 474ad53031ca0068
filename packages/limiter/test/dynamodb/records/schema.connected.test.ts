import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { runAggregator } from "zae-limiter/aggregator";
import { parseBucketItem, parseKey, refill, retryAfter } from "zae-limiter/dynamodb/schema";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

describeWithEngine("a reader of the table", (engine) => {
  const table = useProxiedTable(engine);

  it("recognises every item, and decides as the limiter does", async () => {
    const clock = new ManualClock(Date.now());
    const repository = await table.open("app", { clock, stream: true });
    await repository.createEntity("team-1");
    await repository.createEntity("key:1@x", { parentId: "team-1", cascade: true });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 7, { burst: 20 })]);
    await repository.setLimits("key:1@x", [Limit.perMinute("rpm", 11)], { resource: "a/b:c" });
    await repository.putProvisionerState(await repository.getProvisionerState());
    const limiter = new RateLimiter({ repository });
    const call = { entityId: "key:1@x", resource: "a/b:c", consume: { rpm: 8 } };
    await limiter.acquire(call, () => clock.advance(12_345));
    const { endpointUrl } = engine();
    await runAggregator({ stack: repository.stackName, endpointUrl, once: true });

    const items = await table.items();
    const kinds = [
      "entity",
      "bucket",
      "limits",
      "usage",
      "audit",
      "namespace name",
      "namespace id",
    ];
    const single = ["provisioner", "provisioner state", "version", "heartbeat", "stream lease"];
    expect(new Set(items.map((item) => parseKey(item)?.kind))).toEqual(
      new Set([...kinds, ...single]),
    );

    const buckets = items.flatMap((item) => parseBucketItem(item) ?? []);
    const own = buckets.find(({ entityId }) => entityId === "key:1@x")!;
    expect(own).toMatchObject({ resource: "a/b:c", parentId: "team-1", shardCount: 1 });
    const [left] = refill(own, clock.now()).limits;
    expect(await limiter.available("key:1@x", "a/b:c")).toEqual({
      rpm: Math.floor(left!.tokensMilli / 1000),
    });
    const refused = await limiter.tryAcquire(call);
    const retryAfterMs = retryAfter(own, { amounts: call.consume, nowMs: clock.now() });
    expect(refused).toMatchObject({ refusal: { retryAfterSeconds: retryAfterMs / 1000 } });
  });
});
