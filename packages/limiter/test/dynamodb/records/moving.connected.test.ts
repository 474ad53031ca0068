import { expect, it } from "vitest";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { applyLimits, exportLimits, buildManifest, readManifest } from "zae-limiter/manifest";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { closeLater, temporaryFile } from "../../support/temporary-file.ts";

describeWithEngine("moving from one store to another", (engine) => {
  const table = useProxiedTable(engine);

  it("brings everything from SQLite to DynamoDB and on to memory, and balances start full", async () => {
    const sqlite = closeLater(await SqliteRepository.open(temporaryFile()));
    await fill(sqlite);
    const dynamo = await table.open("default");
    const memory = new MemoryRepository();
    const exported = await exportLimits(sqlite);
    expect(Object.keys(exported.entities)).toHaveLength(22);
    for (const [from, to] of [[sqlite, dynamo] as const, [dynamo, memory] as const]) {
      await applyLimits(to, await manifestFrom(from));
      expect(await exportLimits(to)).toEqual(exported);
    }
    for (const to of [dynamo, memory])
      expect(await new RateLimiter({ repository: to }).available("key-1", "gpt-4")).toEqual({
        rpm: 20,
      });
  });
});

async function manifestFrom(repository: Repository) {
  const content = buildManifest("default", await exportLimits(repository));
  return readManifest([{ file: "export", content, findPosition: () => undefined }]);
}

async function fill(repository: Repository): Promise<void> {
  const rpm = [Limit.perMinute("rpm", 20)];
  await repository.setSystemDefaults([Limit.parse("tpm:1/5min:7")], {
    onUnavailable: "allow",
    auditRetentionDays: 7,
  });
  await repository.setResourceDefaults("gpt-4", rpm);
  await repository.createEntity("org", { name: "The org", metadata: { plan: "gold" } });
  for (let index = 0; index < 20; index += 1)
    await repository.createEntity(`key-${index}`, { parentId: "org", cascade: index % 2 === 0 });
  await repository.setLimits("guest", rpm, { inherit: true });
  await repository.setLimits("key-2", rpm, { resource: "a/b:c" });
  await new RateLimiter({ repository }).acquire(
    { entityId: "key-1", resource: "gpt-4", consume: { rpm: 5 } },
    () => undefined,
  );
}
