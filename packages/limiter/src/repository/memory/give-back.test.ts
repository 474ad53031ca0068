import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

it("takes a request off the count only where it was counted, even if the parent changed meanwhile", async () => {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  await repository.createEntity("old");
  await repository.createEntity("new");
  await repository.createEntity("child", { parentId: "old", cascade: true });
  const lease = await new RateLimiter({ repository }).acquire({
    entityId: "child",
    resource: "r",
    consume: { rpm: 1 },
  });
  await repository.deleteEntity("child");
  await repository.createEntity("child", { parentId: "new", cascade: true });
  await lease.consume({ rpm: 2 });
  await lease.rollback();
  const requests = async (entityId: string): Promise<number> =>
    (await repository.getUsageSummary({ entityId })).requests;
  expect(await requests("old")).toBe(0);
  expect(await requests("new")).toBe(0);
});
