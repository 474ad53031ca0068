import { statSync } from "node:fs";
import { Limit, RateLimiter, RateLimiterUnavailable, ValidationError } from "zae-limiter";
import {
  SqliteRepository,
  type SqliteDatabase,
  type SqliteOptions,
  type SqliteStatement,
} from "zae-limiter/sqlite";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { expect, it } from "vitest";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../../test/support/temporary-file.ts";

const CALL = {
  entityId: "key-1",
  resource: "gpt-4",
  consume: { rpm: 1 },
  limits: [Limit.perMinute("rpm", 1_000_000)],
};

async function open(path: string, options?: SqliteOptions): Promise<SqliteRepository> {
  return closeLater(await SqliteRepository.open(path, options));
}

it("decides concurrent calls in one transaction, in order of arrival", async () => {
  const repository = await open(temporaryFile(), { clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  const request = { ...CALL, limits: [Limit.perMinute("rpm", 10)] };
  const before = repository.getStatistics();
  const verdicts = await Promise.all(
    [6, 5, 4].map((rpm) => limiter.tryAcquire({ ...request, consume: { rpm } })),
  );
  expect(verdicts.map(({ granted }) => granted)).toEqual([true, false, true]);
  const after = repository.getStatistics();
  expect(after.batches - before.batches).toBe(1);
  expect(after.batchedOperations - before.batchedOperations).toBe(3);
  expect(after.writes - before.writes).toBe(1);
});

it("runs at most one transaction in a turn of the event loop, and bounds its size", async () => {
  const repository = await open(temporaryFile());
  const limiter = new RateLimiter({ repository });
  const { batches } = repository.getStatistics();
  const calls = Array.from({ length: 600 }, () => limiter.acquire(CALL));
  const perTurn: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(repository.getStatistics().batches - batches);
  }
  await Promise.all(calls);
  expect(perTurn).toEqual([1, 2, 3, 3]);
});

it("charges the parent even if a settlement of the same entity came first in the transaction", async () => {
  const repository = await open(temporaryFile(), { clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
  await repository.createEntity("project");
  await repository.createEntity("key-1", { parentId: "project", cascade: true });
  const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
  const lease = await limiter.acquire(request);
  lease.settle({ rpm: 5 });
  await Promise.all([lease.commit(), limiter.acquire(request)]);
  expect(await repository.getBuckets("project")).toMatchObject([{ totalConsumedMilli: 6000 }]);
});

it("does not let a member's bad input affect others in the transaction", async () => {
  const repository = await open(temporaryFile(), { clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  const { batches } = repository.getStatistics();
  const outcomes = await Promise.allSettled([
    limiter.acquire(CALL),
    limiter.acquire({ entityId: "stranger", resource: "gpt-4", consume: { rpm: 1 } }),
    limiter.acquire({ ...CALL, consume: { unknown: 1 } }),
    limiter.acquire(CALL),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
  ]);
  expect(outcomes[1]).toMatchObject({ reason: expect.any(ValidationError) });
  expect(repository.getStatistics().batches - batches).toBe(1);
  expect(await repository.getBuckets("key-1")).toMatchObject([{ totalConsumedMilli: 2000 }]);
});

it("isolates a member that breaks the transaction, and loses nothing of the other members", async () => {
  const path = temporaryFile();
  const repository = await open(path, { clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  await limiter.acquire({ ...CALL, entityId: "broken" });
  const other = await otherConnection(path);
  other.exec("UPDATE buckets SET balances = 'no json' WHERE entity_id = 'broken'");
  const outcomes = await Promise.allSettled([
    limiter.acquire(CALL),
    limiter.acquire({ ...CALL, entityId: "broken" }),
    limiter.acquire(CALL),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await repository.getBuckets("key-1")).toMatchObject([{ totalConsumedMilli: 2000 }]);
});

it("waits for the lock without blocking the event loop, and continues when it is released", async () => {
  const path = temporaryFile();
  const repository = await open(path, { random: seededRandom(1) });
  const other = await otherConnection(path);
  other.exec("BEGIN IMMEDIATE");
  const acquired = new RateLimiter({ repository }).acquire(CALL);
  for (let turn = 0; turn < 50 || repository.getStatistics().retries < 3; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  other.exec("COMMIT");
  await acquired;
  expect(repository.getStatistics().retries).toBeGreaterThanOrEqual(3);
});

it("is unavailable if the lock is held past the deadline, and has charged nothing", async () => {
  const path = temporaryFile();
  const repository = await open(path, { lockTimeoutMs: 20, clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  const lease = await limiter.acquire(CALL);
  const other = await otherConnection(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(limiter.acquire(CALL)).rejects.toThrow(RateLimiterUnavailable);
  await expect(repository.createEntity("e")).rejects.toThrow(/lockTimeoutMs/);
  expect((await limiter.acquire({ ...CALL, onUnavailable: "allow" })).degraded).toBe(true);
  const committing = lease.rollback();
  await expect(committing).rejects.toThrow(RateLimiterUnavailable);
  expect(await limiter.available("key-1", "gpt-4", CALL)).toEqual({ rpm: 999_999 });
  other.exec("COMMIT");
  await limiter.acquire(CALL);
  expect(await limiter.available("key-1", "gpt-4", CALL)).toEqual({ rpm: 999_998 });
});

it("writes a settlement once when its first attempt met a locked file", async () => {
  const path = temporaryFile();
  const repository = await open(path, { lockTimeoutMs: 10, clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const outcome = await repository.consume({
    entityId: "e",
    resources: [{ resource: "r", amounts: { rpm: 4 } }],
    override: undefined,
  });
  if (!outcome.granted) throw new Error("it should fit");
  const other = await otherConnection(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(
    repository.settle(outcome.receipt, [{ resource: "r", amounts: { rpm: 3 } }]),
  ).rejects.toThrow(RateLimiterUnavailable);
  other.exec("ROLLBACK");
  await repository.settle(outcome.receipt, [{ resource: "r", amounts: { rpm: 3 } }]);
  await repository.settle(outcome.receipt, [{ resource: "r", amounts: { rpm: 3 } }]);
  expect(await repository.getBuckets("e")).toMatchObject([{ tokensMilli: 3000 }]);
});

it("retries a transaction whose commit met a locked file, and counts its members once", async () => {
  const path = temporaryFile();
  const database = await otherConnection(path);
  let busyCommits = 2;
  const repository = await open(path, {
    clock: new ManualClock(),
    database: intercepted(database, (sql) => {
      if (sql === "COMMIT" && busyCommits > 0 && (busyCommits -= 1) >= 0)
        throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
    }),
  });
  busyCommits = 2;
  await new RateLimiter({ repository }).acquire(CALL);
  expect(busyCommits).toBe(0);
  expect(await repository.getBuckets("key-1")).toMatchObject([{ totalConsumedMilli: 1000 }]);
});

it("writes a change and its audit event together, or neither", async () => {
  const path = temporaryFile();
  const database = await otherConnection(path);
  let isAuditBroken = false;
  const repository = await open(path, {
    clock: new ManualClock(),
    database: {
      exec: (sql) => database.exec(sql),
      close: () => database.close(),
      prepare: (sql) => {
        const statement = database.prepare(sql);
        if (!sql.includes("INSERT INTO audit")) return statement;
        const run: SqliteStatement["run"] = (...values) => {
          if (isAuditBroken)
            throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" });
          return statement.run(...values);
        };
        return {
          run,
          get: (...values) => statement.get(...values),
          all: (...values) => statement.all(...values),
        };
      },
    },
  });
  const namespaceId = await repository.registerNamespace("kept");
  isAuditBroken = true;
  for (const change of [
    () => repository.createEntity("e"),
    () => repository.setSystemDefaults([Limit.perMinute("rpm", 1)]),
    () => repository.registerNamespace("new"),
    () => repository.deleteNamespace("kept"),
  ])
    await expect(change()).rejects.toThrow(RateLimiterUnavailable);
  isAuditBroken = false;
  expect(await repository.getEntity("e")).toBeUndefined();
  expect((await repository.getSystemDefaults()).limits).toEqual([]);
  expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(["default", "kept"]);
  await repository.deleteNamespace("kept");
  await repository.purgeNamespace(namespaceId);
  const { items } = await repository.getAuditEvents("$SYSTEM");
  expect(items.map(({ action }) => action)).toEqual([
    "namespace_purged",
    "namespace_deleted",
    "namespace_registered",
  ]);
});

it("refuses more calls than its queue may hold", async () => {
  const path = temporaryFile();
  const repository = await open(path, { lockTimeoutMs: 50 });
  const limiter = new RateLimiter({ repository });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10_001 }, () => limiter.acquire(CALL)),
  );
  const rejected = outcomes.filter((outcome) => outcome.status === "rejected");
  expect(rejected).toMatchObject([{ reason: expect.any(RateLimiterUnavailable) }]);
});

it("finishes calls that started before it closes, and rejects calls afterwards", async () => {
  const path = temporaryFile();
  const repository = await SqliteRepository.open(path, { clock: new ManualClock() });
  const limiter = new RateLimiter({ repository });
  const begun = limiter.acquire(CALL);
  await repository.close();
  await begun;
  await expect(limiter.acquire(CALL)).rejects.toThrow(/closed/);
  await expect(repository.getEntity("e")).rejects.toThrow(/closed/);
  expect(await repository.ping()).toBe(false);
  await repository.close();
  const again = await open(path, { clock: new ManualClock() });
  expect(await again.getBuckets("key-1")).toMatchObject([{ totalConsumedMilli: 1000 }]);
});

it("leaves a connection open that was passed in", async () => {
  const path = temporaryFile();
  const database = await otherConnection(path);
  const repository = await SqliteRepository.open(path, { database });
  await repository.close();
  expect(database.prepare("SELECT 1 AS one").get()).toMatchObject({ one: 1 });
});

it("flushes each transaction to disk only if a power failure must lose nothing", async () => {
  for (const [durability, level] of [
    ["power", 2],
    ["process", 1],
  ] as const) {
    const path = temporaryFile();
    const database = await otherConnection(path);
    await open(path, { database, durability });
    expect(database.prepare("PRAGMA synchronous").get()).toMatchObject({ synchronous: level });
    expect(database.prepare("PRAGMA busy_timeout").get()).toMatchObject({ timeout: 0 });
    expect(database.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" });
  }
});

it("keeps the WAL bounded under writes and reads without a pause", async () => {
  const path = temporaryFile();
  const repository = await open(path);
  const limiter = new RateLimiter({ repository });
  let largest = 0;
  for (let call = 0; call < 3000; call += 1) {
    await limiter.acquire({ ...CALL, entityId: `key-${call % 100}` });
    await Promise.all([limiter.available("key-1", "gpt-4", CALL), repository.getEntity("key-1")]);
    largest = Math.max(largest, statSync(`${path}-wal`).size);
  }
  // A checkpoint follows 1000 pages (4 MB); the transaction that is running then may exceed it.
  expect(largest).toBeGreaterThan(1024 * 1024);
  expect(largest).toBeLessThan(6 * 1024 * 1024);
}, 30_000);

/** A database that passes each text to a callback before it runs, and fails if that throws. */
function intercepted(database: SqliteDatabase, before: (sql: string) => void): SqliteDatabase {
  return {
    exec: (sql) => (before(sql), database.exec(sql)),
    prepare: (sql): SqliteStatement => database.prepare(sql),
    close: () => database.close(),
  };
}
