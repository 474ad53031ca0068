import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  IncompatibleSchemaError,
  InfrastructureNotFoundError,
  Limit,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import { SqliteRepository, type SqliteOptions } from "zae-limiter/sqlite";
import { expect, it } from "vitest";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../test/support/temporary-file.ts";

const CALL = {
  entityId: "key-1",
  resource: "gpt-4",
  consume: { rpm: 1 },
  limits: [Limit.perMinute("rpm", 1_000_000)],
};

async function open(path: string, options?: SqliteOptions): Promise<SqliteRepository> {
  return closeLater(await SqliteRepository.open(path, options));
}

it.each(["This is a letter, not a database. ".repeat(200), "short", "1"])(
  "refuses a file that is not a database, and leaves it as it is",
  async (text) => {
    const path = temporaryFile();
    writeFileSync(path, text);
    await expect(SqliteRepository.open(path)).rejects.toThrow(ValidationError);
    await expect(SqliteRepository.open(path)).rejects.toThrow(/not a SQLite database/);
    expect(readFileSync(path, "utf8")).toBe(text);
  },
);

it("refuses the database of another application, and creates nothing in it", async () => {
  const path = temporaryFile();
  const other = await otherConnection(path);
  other.exec("CREATE TABLE letters (text TEXT)");
  await expect(SqliteRepository.open(path)).rejects.toThrow(/another application/);
  expect(other.prepare("SELECT name FROM sqlite_schema").all()).toMatchObject([
    { name: "letters" },
  ]);
  expect(other.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "delete" });
});

it("refuses a newer schema, and says what to do", async () => {
  const path = temporaryFile();
  await (await SqliteRepository.open(path)).close();
  const other = await otherConnection(path);
  other.exec("PRAGMA user_version = 99");
  const opening = SqliteRepository.open(path);
  await expect(opening).rejects.toThrow(IncompatibleSchemaError);
  await expect(opening).rejects.toMatchObject({
    schemaVersion: "99",
    message: expect.stringContaining("Update zae-limiter"),
  });
});

it("names the missing folder", async () => {
  const path = join(dirname(temporaryFile()), "no", "such", "limits.db");
  await expect(SqliteRepository.open(path)).rejects.toThrow(InfrastructureNotFoundError);
  await expect(SqliteRepository.open(path)).rejects.toThrow(/no\/such/);
  expect(existsSync(dirname(path))).toBe(false);
});

it("refuses a folder and other things that are not the path of a file", async () => {
  const path = temporaryFile();
  mkdirSync(path);
  await expect(SqliteRepository.open(path)).rejects.toThrow(ValidationError);
  for (const value of ["", undefined, 7, "a\0b", join(dirname(path), "x".repeat(300))])
    await expect(SqliteRepository.open(value as string)).rejects.toMatchObject({ field: "path" });
});

it("refuses invalid options", async () => {
  const path = temporaryFile();
  await expect(SqliteRepository.open(path, { lockTimeoutMs: -1 })).rejects.toMatchObject({
    field: "lockTimeoutMs",
  });
  await expect(SqliteRepository.open(path, { lockTimeoutMs: Number.NaN })).rejects.toMatchObject({
    field: "lockTimeoutMs",
  });
  await expect(
    SqliteRepository.open(path, { durability: "eternal" as "power" }),
  ).rejects.toMatchObject({ field: "durability" });
  await expect(SqliteRepository.open(path, { namespace: "#" })).rejects.toMatchObject({
    field: "namespace",
  });
  await expect(
    SqliteRepository.open(path, { recordUsage: "false" as unknown as boolean }),
  ).rejects.toMatchObject({ field: "recordUsage" });
  expect(existsSync(path)).toBe(false);
});

it("denies a write to a read-only connection, even if unavailability is allowed, and recovers afterwards", async () => {
  const path = temporaryFile();
  const database = await otherConnection(path);
  const repository = await open(path, { database });
  const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
  await limiter.acquire(CALL);
  database.exec("PRAGMA query_only = 1");
  await expect(limiter.acquire(CALL)).rejects.toThrow(PermissionDenied);
  expect(await limiter.available("key-1", "gpt-4", CALL)).toMatchObject({
    rpm: expect.any(Number),
  });
  database.exec("PRAGMA query_only = 0");
  await limiter.acquire(CALL);
  expect(await repository.getBuckets("key-1")).toMatchObject([{ totalConsumedMilli: 2000 }]);
});

it("is unavailable when the disk is full, keeps what was committed, and recovers when there is room", async () => {
  const path = temporaryFile();
  const database = await otherConnection(path);
  const repository = await open(path, { database });
  const limiter = new RateLimiter({ repository });
  const pages = (database.prepare("PRAGMA page_count").get() as { page_count: number }).page_count;
  database.exec(`PRAGMA max_page_count = ${pages + 10}`);
  let granted = 0;
  const filling = async (): Promise<void> => {
    for (; granted < 10_000; granted += 1)
      await limiter.acquire({ ...CALL, entityId: `key-${"x".repeat(200)}-${granted}` });
  };
  await expect(filling()).rejects.toThrow(RateLimiterUnavailable);
  await expect(filling()).rejects.toThrow(/full/);
  expect(granted).toBeGreaterThan(0);
  expect(
    (
      await limiter.acquire({
        ...CALL,
        entityId: `key-${"x".repeat(200)}-${granted}`,
        onUnavailable: "allow",
      })
    ).degraded,
  ).toBe(true);
  const capacity = await repository.getResourceCapacity("gpt-4", "rpm");
  expect(capacity.entities).toHaveLength(granted);
  database.exec("PRAGMA max_page_count = 100000");
  await limiter.acquire(CALL);
  expect(database.prepare("PRAGMA integrity_check").get()).toMatchObject({ integrity_check: "ok" });
});

it("reports that the file was deleted or replaced, instead of writing to the lost file", async () => {
  const path = temporaryFile();
  const repository = await open(path);
  const limiter = new RateLimiter({ repository });
  await limiter.acquire(CALL);
  renameSync(path, `${path}.away`);
  const { granted } = await untilItFails(() => limiter.acquire(CALL), InfrastructureNotFoundError);
  await expect(limiter.available("key-1", "gpt-4", CALL)).rejects.toThrow(/deleted or replaced/);
  await expect(repository.getEntity("key-1")).rejects.toThrow(/deleted or replaced/);
  writeFileSync(path, "");
  await expect(limiter.acquire(CALL)).rejects.toThrow(/deleted or replaced/);
  rmSync(path);
  renameSync(`${path}.away`, path);
  await limiter.acquire(CALL);
  expect(await repository.getBuckets("key-1")).toMatchObject([
    { totalConsumedMilli: (granted + 2) * 1000 },
  ]);
});

/** The path is checked every few milliseconds; far fewer calls than these fit in between. */
const MOST_CALLS = 10_000;

async function untilItFails(
  call: () => Promise<unknown>,
  expected: new (...values: never[]) => Error,
): Promise<{ granted: number }> {
  for (let granted = 0; granted < MOST_CALLS; granted += 1) {
    const error = await call().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) continue;
    expect(error).toBeInstanceOf(expected);
    return { granted };
  }
  throw new Error("it never failed");
}
