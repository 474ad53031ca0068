import { Limit, RateLimiter, ValidationError } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { repositoryContract } from "@zae-limiter/contract";
import { seededRandom } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";

const rpm = [Limit.perMinute("rpm", 10)];

it("records the principal of the repository if a call names none", async () => {
  const repository = new MemoryRepository({ principal: "deploy-bot" });
  await repository.setLimits("key-1", rpm);
  await repository.setLimits("key-1", rpm, { principal: "ada" });
  const { items } = await repository.getAuditEvents("key-1");
  expect(items.map(({ principal }) => principal)).toEqual(["ada", "deploy-bot"]);
});

it("records no usage if it is switched off, and reports that", async () => {
  const repository = new MemoryRepository({ recordUsage: false });
  await repository.setSystemDefaults(rpm);
  await new RateLimiter({ repository }).acquire(
    { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } },
    () => {},
  );
  expect(repository.capabilities.usageSnapshots).toBe(false);
  await expect(repository.getUsageSummary({ entityId: "key-1" })).rejects.toMatchObject({
    code: "ERR_LIMITER_USAGE_NOT_RECORDED",
  });
  expect(() => new MemoryRepository({ recordUsage: "false" as unknown as boolean })).toThrow(
    ValidationError,
  );
});

repositoryContract(
  "MemoryRepository that records no usage",
  async (clock) => new MemoryRepository({ clock, recordUsage: false }),
  { describe, it },
);

it("opens the given namespace, with a random id", () => {
  expect(open(1).namespaceName).toBe("tenant-a");
  expect(open(1).namespaceId).toBe(open(1).namespaceId);
  expect(open(1).namespaceId).not.toBe(open(2).namespaceId);
  expect(open(3).namespaceId).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{10}$/);
});

it("refuses an unknown option, and suggests the nearest", () => {
  expect(() => new MemoryRepository({ recordsUsage: false } as never)).toThrow(
    "Invalid recordsUsage: is not an option of MemoryRepository; did you mean recordUsage?",
  );
  expect(() => new MemoryRepository("tenant-a" as never)).toThrow(
    "Invalid options: must be an object of options of MemoryRepository (got 'tenant-a')",
  );
});

it("refuses invalid options", () => {
  expect(() => new MemoryRepository({ namespace: "a#b" })).toThrow(ValidationError);
  expect(() => new MemoryRepository({ configCacheTtlMs: -1 })).toThrow(ValidationError);
  expect(() => new MemoryRepository({ principal: "two words" })).toThrow(ValidationError);
});

function open(seed: number): MemoryRepository {
  return new MemoryRepository({ namespace: "tenant-a", random: seededRandom(seed) });
}
