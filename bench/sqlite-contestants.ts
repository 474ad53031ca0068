import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiterSQLite, RateLimiterUnion } from "rate-limiter-flexible";
import { Limit, RateLimiter, type Amounts } from "zae-limiter";
import { SqliteRepository, type SqliteDatabase } from "zae-limiter/sqlite";

/** Does operations, this many at a time. */
export type Run = (operations: number, concurrency: number) => Promise<void>;

/** A contestant that has a file open. */
export interface Opened {
  readonly run: Run;
  readonly close: () => Promise<void>;
}

/** So large that no call is ever refused; still exact for both sides. */
const NEVER_REACHED = 1_000_000_000;

/** Keys that take turns: more than one, so that both sides find their rows. */
const KEYS = Array.from({ length: 100 }, (_, index) => `customer-${index}`);

/**
 * Every contestant by the name that the tables use. All have the same driver, WAL and `synchronous
 * = NORMAL`.
 */
export const CONTESTANTS: Readonly<Record<string, (path: string) => Promise<Opened>>> = {
  "zae-limiter, one limit": (path) => ours(path, { rpm: 1 }),
  "zae-limiter, two limits": (path) => ours(path, { rpm: 1, tpm: 1 }),
  "rate-limiter-flexible, one limit": (path) => peer(path, ["rpm"]),
  "rate-limiter-flexible, union of two": (path) => peer(path, ["rpm", "tpm"]),
};

/** A path in a folder of its own, and how to remove it. */
export function temporaryFile(): { readonly path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bench-"));
  return {
    path: join(folder, "bench.db"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function ours(path: string, amounts: Amounts): Promise<Opened> {
  const database = await openDatabase(path);
  const repository = await SqliteRepository.open(path, { database });
  await repository.setSystemDefaults(
    Object.keys(amounts).map((name) => Limit.perMinute(name, NEVER_REACHED)),
  );
  const limiter = new RateLimiter({ repository });
  const run = concurrently(async (entityId) => {
    const lease = await limiter.acquire({ entityId, resource: "gpt-4", consume: amounts });
    await lease.commit();
  });
  const close = async (): Promise<void> => {
    await repository.close();
    database.close();
  };
  return { run, close };
}

async function peer(path: string, names: readonly string[]): Promise<Opened> {
  const database = await openDatabase(path);
  // It has no retry of its own: without this, a second process would only cause errors.
  database.exec("PRAGMA busy_timeout = 5000");
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = NORMAL");
  const limiters = await Promise.all(names.map((name) => peerLimiter(database, name)));
  const limiter = limiters.length === 1 ? limiters[0]! : new RateLimiterUnion(...limiters);
  return {
    run: concurrently(async (key) => void (await limiter.consume(key, 1))),
    close: async () => void database.close(),
  };
}

function peerLimiter(database: SqliteDatabase, name: string): Promise<RateLimiterSQLite> {
  return new Promise((resolve, reject) => {
    const limiter: RateLimiterSQLite = new RateLimiterSQLite(
      {
        storeClient: asBetterSqlite(database),
        storeType: "better-sqlite3",
        tableName: `limiter_${name}`,
        keyPrefix: name,
        points: NEVER_REACHED,
        duration: 60,
      },
      (error?: unknown) => (error ? reject(error) : resolve(limiter)),
    );
  });
}

/** What the peer asks of better-sqlite3; libsql has it, node:sqlite lacks `transaction`. */
function asBetterSqlite(database: SqliteDatabase): object {
  if ("transaction" in database) return database;
  const transaction =
    <T>(work: () => T) =>
    (): T => {
      database.exec("BEGIN");
      try {
        const answer = work();
        database.exec("COMMIT");
        return answer;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    };
  return { prepare: (sql: string) => database.prepare(sql), transaction };
}

async function openDatabase(path: string): Promise<SqliteDatabase> {
  const builtIn = process.getBuiltinModule("node:sqlite") as
    | { DatabaseSync: new (path: string) => SqliteDatabase }
    | undefined;
  if (builtIn !== undefined) return new builtIn.DatabaseSync(path);
  const name = "libsql";
  const { default: Database } = (await import(name)) as {
    default: new (path: string) => SqliteDatabase;
  };
  return new Database(path);
}

function concurrently(once: (key: string) => Promise<void>): Run {
  let next = 0;
  return async (operations, concurrency) => {
    let left = operations;
    const client = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        next = (next + 1) % KEYS.length;
        await once(KEYS[next]!);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, client));
  };
}
