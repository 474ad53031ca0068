import { Limit, RateLimiterUnavailable, ValidationError, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { expect, it } from "vitest";

const rpm = [Limit.perMinute("rpm", 10)];

it("lets every operation without a fault through, and passes the name of each to `next`", async () => {
  const names: string[] = [];
  const faulty = faultyRepository(
    new MemoryRepository(),
    (operation) => void names.push(operation),
  );
  await faulty.setSystemDefaults(rpm);
  expect((await faulty.getSystemDefaults()).limits).toEqual(rpm);
  expect(await faulty.ping()).toBe(true);
  expect(names).toEqual(["setSystemDefaults", "getSystemDefaults", "ping"]);
});

it("error-before means that nothing was done, error-after that it was done", async () => {
  for (const [fault, stored] of [
    ["error-before", []],
    ["error-after", rpm],
  ] as const) {
    const inner = new MemoryRepository();
    const faulty = faultyRepository(inner, failing("setSystemDefaults", fault));
    await expect(faulty.setSystemDefaults(rpm)).rejects.toBeInstanceOf(RateLimiterUnavailable);
    expect((await inner.getSystemDefaults()).limits).toEqual(stored);
  }
});

it("a delay passes on the repository's own clock, before the operation", async () => {
  const clock = new ManualClock();
  const inner = new MemoryRepository({ clock });
  const faulty = faultyRepository(inner, failing("setSystemDefaults", { delayMs: 500 }));
  const setting = faulty.setSystemDefaults(rpm);
  await clock.advance(499);
  expect((await inner.getSystemDefaults()).limits).toEqual([]);
  await clock.advance(1);
  await setting;
  expect((await inner.getSystemDefaults()).limits).toEqual(rpm);
});

it("an operation's own error is not replaced by a lost response", async () => {
  const faulty = faultyRepository(new MemoryRepository(), () => "error-after");
  await expect(faulty.setSystemDefaults([])).rejects.toBeInstanceOf(ValidationError);
});

it("local methods and properties cannot fail", () => {
  const faulty = faultyRepository(new MemoryRepository(), () => "error-before");
  expect(faulty.getCacheStats().size).toBe(0);
  expect(faulty.getStatistics().writes).toBe(0);
  expect(faulty.namespaceName).toBe("default");
  expect(faulty.capabilities.auditLogging).toBe(true);
});

it("a repository scoped from a faulty one is faulty too", async () => {
  const inner = new MemoryRepository();
  await inner.registerNamespace("tenant");
  const tenant: Repository = await faultyRepository(
    inner,
    failing("setSystemDefaults", "error-before"),
  ).namespace("tenant");
  await expect(tenant.setSystemDefaults(rpm)).rejects.toBeInstanceOf(RateLimiterUnavailable);
});

function failing(name: string, fault: Fault): (operation: string) => Fault | undefined {
  return (operation) => (operation === name ? fault : undefined);
}
