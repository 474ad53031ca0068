import { existsSync } from "node:fs";
import { relative } from "node:path";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { SqliteRepository, type SqliteOptions } from "zae-limiter/sqlite";
import { faultyRepository, ManualClock, seededRandom } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { openDatabase } from "./database/driver.ts";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../test/support/temporary-file.ts";

const CALL = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };

async function open(path: string, options?: SqliteOptions): Promise<SqliteRepository> {
  return closeLater(await SqliteRepository.open(path, options));
}

it("keeps balances, limits, entities, usage and audit events when it is opened again", async () => {
  const path = temporaryFile();
  const clock = new ManualClock();
  const first = await open(path, { clock });
  await first.setSystemDefaults(
    [Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000, { burst: 1500 })],
    { onUnavailable: "allow" },
  );
  await first.createEntity("project", { name: "A project", metadata: { team: "blue" } });
  await first.createEntity("key-1", { parentId: "project", cascade: true });
  await new RateLimiter({ repository: first }).acquire(CALL, (lease) =>
    lease.settle({ tpm: 1700 }),
  );
  await first.close();

  const second = await open(path, { clock });
  expect(await new RateLimiter({ repository: second }).available("key-1", "gpt-4")).toEqual({
    rpm: 9,
    tpm: -200,
  });
  expect(await second.getSystemDefaults()).toMatchObject({
    onUnavailable: "allow",
    limits: [{ name: "rpm" }, { capacity: 1500 }],
  });
  expect(await second.getEntity("project")).toMatchObject({
    name: "A project",
    metadata: { team: "blue" },
    parentId: undefined,
  });
  const usage = await second.getUsageSummary({ entityId: "project", window: "monthly" });
  expect(usage).toMatchObject({ requests: 1, total: { rpm: 1, tpm: 1700 } });
  expect((await second.getAuditEvents("key-1")).items).toMatchObject([
    { action: "entity_created" },
  ]);
});

it("lists the changes of two repositories within one millisecond in the order in which they were made", async () => {
  const path = temporaryFile();
  const clock = new ManualClock();
  const repositories = [
    await open(path, { clock, random: seededRandom(1) }),
    await open(path, { clock, random: seededRandom(2) }),
  ];
  const names = Array.from({ length: 20 }, (_, index) => `limit-${index}`);
  for (const [index, name] of names.entries())
    await repositories[index % 2]!.setLimits("key-1", [Limit.perMinute(name, 1)]);
  const { items } = await repositories[0]!.getAuditEvents("key-1");
  expect(items.map(({ details }) => details)).toMatchObject(
    names.toReversed().map((name) => ({ limits: [{ name }] })),
  );
});

it("decides with limits that another process has just changed, and keeps its cache after its own changes", async () => {
  const path = temporaryFile();
  const clock = new ManualClock();
  const ours = await open(path, { clock });
  const theirs = await open(path, { clock });
  await ours.setSystemDefaults([Limit.perMinute("rpm", 100)]);
  const limiter = new RateLimiter({ repository: ours });
  await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
  await theirs.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  expect((await limiter.tryAcquire({ ...CALL, consume: { rpm: 11 } })).granted).toBe(false);
  expect((await limiter.tryAcquire({ ...CALL, consume: { rpm: 10 } })).granted).toBe(true);

  const { misses } = ours.getCacheStats();
  await ours.setLimits("key-2", [Limit.perMinute("rpm", 1)]);
  await limiter.tryAcquire({ ...CALL, consume: { rpm: 1 } });
  expect(ours.getCacheStats().misses).toBe(misses);
});

it("notices at once that another process has deleted the namespace", async () => {
  const path = temporaryFile();
  const tenant = await open(path, { namespace: "tenant" });
  const admin = await open(path);
  await tenant.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository: tenant, onUnavailable: "allow" });
  await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
  await admin.deleteNamespace("tenant");
  await expect(limiter.acquire({ ...CALL, consume: { rpm: 1 } })).rejects.toMatchObject({
    code: "ERR_LIMITER_NAMESPACE_NOT_FOUND",
  });
  await expect(limiter.available("key-1", "gpt-4")).rejects.toMatchObject({
    code: "ERR_LIMITER_NAMESPACE_NOT_FOUND",
  });
});

it("records no usage if it is switched off, and reports that", async () => {
  const repository = await open(temporaryFile(), { recordUsage: false });
  expect(repository.capabilities.usageSnapshots).toBe(false);
  await expect(repository.getUsageSummary({ entityId: "key-1" })).rejects.toMatchObject({
    code: "ERR_LIMITER_USAGE_NOT_RECORDED",
  });
});

it("ends a receipt once, however often and however concurrently that is tried", async () => {
  const repository = await open(temporaryFile(), { clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const outcome = await repository.consume({
    entityId: "e",
    resources: [{ resource: "r", amounts: { rpm: 4 } }],
    override: undefined,
  });
  if (!outcome.granted) throw new Error("it should fit");
  await Promise.all([repository.giveBack(outcome.receipt), repository.giveBack(outcome.receipt)]);
  await repository.giveBack(outcome.receipt);
  expect(await repository.getBuckets("e")).toMatchObject([
    { tokensMilli: 10_000, totalConsumedMilli: 0 },
  ]);
});

it("sums usage into windows across hours, and counts late changes in their own hour", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 31, 22, 30));
  const repository = await open(temporaryFile(), { clock });
  const limiter = new RateLimiter({ repository });
  const take = (rpm: number): Promise<unknown> =>
    limiter.acquire(
      { ...CALL, consume: { rpm }, limits: [Limit.perMinute("rpm", 1000)] },
      () => {},
    );
  await take(1);
  await clock.advance(3_600_000);
  await take(2);
  await clock.advance(3_600_000);
  await take(4);
  clock.set(Date.UTC(2026, 0, 31, 22, 45));
  await take(8);
  const totals = async (window: "hourly" | "daily" | "monthly"): Promise<unknown> =>
    (await repository.getUsageSnapshots({ resource: "gpt-4", window })).items.map(
      ({ windowStart, counters, requests }) => [windowStart.toISOString(), counters, requests],
    );
  expect(await totals("hourly")).toEqual([
    ["2026-01-31T22:00:00.000Z", { rpm: 9 }, 2],
    ["2026-01-31T23:00:00.000Z", { rpm: 2 }, 1],
    ["2026-02-01T00:00:00.000Z", { rpm: 4 }, 1],
  ]);
  expect(await totals("daily")).toEqual([
    ["2026-01-31T00:00:00.000Z", { rpm: 11 }, 3],
    ["2026-02-01T00:00:00.000Z", { rpm: 4 }, 1],
  ]);
  expect(await totals("monthly")).toEqual([
    ["2026-01-01T00:00:00.000Z", { rpm: 11 }, 3],
    ["2026-02-01T00:00:00.000Z", { rpm: 4 }, 1],
  ]);
});

it("hides expired usage and audit events, and removes their rows with later writes", async () => {
  const path = temporaryFile();
  const clock = new ManualClock();
  const repository = await open(path, { clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)], {
    auditRetentionDays: 1,
    usageRetentionDays: 1,
  });
  const limiter = new RateLimiter({ repository });
  for (const entityId of ["a", "b", "c", "d"]) {
    await repository.createEntity(entityId);
    await limiter.acquire({ entityId, resource: "r", consume: { rpm: 1 } }, () => {});
    await clock.advance(3_600_000);
    await limiter.acquire({ entityId, resource: "r", consume: { rpm: 1 } }, () => {});
  }
  await clock.advance(60 * 86_400_000);
  expect((await repository.getAuditEvents("a")).items).toEqual([]);
  expect((await repository.getUsageSnapshots({ resource: "r", window: "monthly" })).items).toEqual(
    [],
  );
  await repository.createEntity("e");
  await repository.createEntity("f");
  await limiter.acquire({ entityId: "a", resource: "r", consume: { rpm: 1 } }, () => {});
  await limiter.acquire({ entityId: "b", resource: "r", consume: { rpm: 1 } }, () => {});
  const other = await otherConnection(path);
  expect(
    other.prepare("SELECT COUNT(*) AS old FROM audit WHERE action = 'entity_created'").get(),
  ).toMatchObject({ old: 2 });
  expect(other.prepare("SELECT COUNT(*) AS old FROM usage").get()).toMatchObject({ old: 0 });
});

it("purges a namespace in steps that can be stopped and resumed, and leaves the others alone", async () => {
  const path = temporaryFile();
  const admin = await open(path, { clock: new ManualClock() });
  const namespaceId = await admin.registerNamespace("tenant");
  const tenant = await admin.namespace("tenant");
  await tenant.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository: tenant });
  await Promise.all(
    Array.from({ length: 450 }, (_, index) =>
      limiter.acquire({ entityId: `e${index}`, resource: "r", consume: { rpm: 1 } }),
    ),
  );
  await admin.setSystemDefaults([Limit.perMinute("rpm", 1)]);
  await admin.deleteNamespace("tenant");
  const stop = new AbortController();
  const stopped = admin.purgeNamespace(namespaceId, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error("enough")),
  });
  await expect(stopped).rejects.toThrow("enough");
  expect(await admin.listOrphanNamespaces()).toMatchObject([{ status: "purging", namespaceId }]);
  const progress: number[] = [];
  await admin.purgeNamespace(namespaceId, { onProgress: (deleted) => progress.push(deleted) });
  expect(progress.at(-1)).toBe(250 + 1 + 1);
  expect(await admin.listOrphanNamespaces()).toEqual([]);
  expect(await admin.getSystemDefaults()).toMatchObject({ limits: [{ name: "rpm", capacity: 1 }] });
});

it("stores hidden limits, and totals beyond the safe range", async () => {
  const path = temporaryFile();
  const clock = new ManualClock();
  const first = new RateLimiter({ repository: await open(path, { clock }) });
  const most = Math.floor(Number.MAX_SAFE_INTEGER / 1000);
  const wide = [Limit.perDay("tpd", most), Limit.perDay("rpd", 7)];
  for (let day = 0; day < 3; day += 1) {
    await first.acquire(
      { entityId: "e", resource: "r", consume: { tpd: most, rpd: 3 }, limits: wide },
      () => {},
    );
    await clock.advance(86_400_000);
  }
  await first.acquire(
    { entityId: "e", resource: "r", consume: { rpd: 3 }, limits: [Limit.perDay("rpd", 7)] },
    () => {},
  );
  const repository = await open(path, { clock });
  expect(await repository.getBuckets("e")).toMatchObject([{ limitName: "rpd", tokensMilli: 4000 }]);
  const second = new RateLimiter({ repository });
  expect(await second.available("e", "r", { limits: wide })).toEqual({ tpd: most, rpd: 4 });
});

it("opens relative and absolute URLs, and lists the known schemes for an unknown one", async () => {
  const path = temporaryFile();
  closeLater(await openRepository(`sqlite:${path}`));
  expect(existsSync(path)).toBe(true);
  const beside = temporaryFile("other.db");
  closeLater(await openRepository(`sqlite:${relative(process.cwd(), beside)}`));
  expect(existsSync(beside)).toBe(true);
  const slashed = temporaryFile("third.db");
  closeLater(await openRepository(`sqlite://${slashed}`));
  expect(existsSync(slashed)).toBe(true);
  for (const nameless of ["sqlite:", "sqlite: ", "sqlite:\n"])
    await expect(openRepository(nameless)).rejects.toMatchObject({
      code: "ERR_LIMITER_VALIDATION",
      field: "url",
    });
  await expect(openRepository("sqlite://host/limits.db")).rejects.toMatchObject({
    code: "ERR_LIMITER_VALIDATION",
    field: "url",
  });
  await expect(openRepository("mysql://me:secret@host/limits")).rejects.toThrow(
    "Invalid url: must begin with one of memory:, sqlite:, dynamodb: (got 'mysql://***@host/limits')",
  );
});

it("is opened, not constructed", () => {
  const Constructed = SqliteRepository as unknown as new (path: string) => unknown;
  expect(() => new Constructed("limits.db")).toThrow(
    "Invalid call: new SqliteRepository(…) opens nothing; use await SqliteRepository.open(path)",
  );
});

it("refuses an unknown option, suggests the nearest, and creates no file", async () => {
  const path = temporaryFile();
  await expect(open(path, { lockTimeout: 100 } as SqliteOptions)).rejects.toThrow(
    "Invalid lockTimeout: is not an option of SqliteRepository.open; did you mean lockTimeoutMs?",
  );
  await expect(openRepository(`sqlite:${path}`, { namspace: "a" } as never)).rejects.toThrow(
    "did you mean namespace?",
  );
  expect(existsSync(path)).toBe(false);
});

it("knows the stored onUnavailable when a scope passes the same value again", async () => {
  const path = temporaryFile();
  const first = await open(path);
  await first.registerNamespace("tenant-a");
  await first.namespace("tenant-a", { onUnavailable: "allow" });
  const scoped = await (await open(path)).namespace("tenant-a", { onUnavailable: "allow" });
  const limiter = new RateLimiter({ repository: faultyRepository(scoped, () => "error-before") });
  expect((await limiter.acquire(CALL)).degraded).toBe(true);
});

it("works in memory, for tests of applications", async () => {
  const repository = await open(":memory:");
  await repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
  const limiter = new RateLimiter({ repository });
  await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } });
  await expect(
    limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } }),
  ).rejects.toThrow(RateLimitExceeded);
});

it("says what opened the file, and the version of its schema", async () => {
  const repository = await open(temporaryFile());
  expect(repository.driver).toMatch(/^(node:sqlite|better-sqlite3|libsql)$/);
  expect(repository.schemaVersion).toBeGreaterThan(0);
  const { database } = openDatabase(":memory:");
  expect((await open(":memory:", { database })).driver).toBe("options.database");
  closeLater(database);
});
