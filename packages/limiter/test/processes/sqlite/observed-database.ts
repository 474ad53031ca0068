import type { SqliteDatabase, SqliteStatement } from "zae-limiter/sqlite";

/** Called for each call to the driver. */
export interface Observer {
  before?(sql: string): void;
  after?(sql: string): void;
  failed?(sql: string, error: unknown, tookMs: number): void;
}

/** Opens a file with the driver that the repository would choose, and reports every call. */
export async function observedDatabase(path: string, observer: Observer): Promise<SqliteDatabase> {
  const database = await openDatabase(path);
  const observed = <T>(sql: string, call: () => T): T => {
    observer.before?.(sql);
    const startedMs = performance.now();
    try {
      const answer = call();
      observer.after?.(sql);
      return answer;
    } catch (error) {
      observer.failed?.(sql, error, performance.now() - startedMs);
      throw error;
    }
  };
  return {
    exec: (sql) => observed(sql, () => database.exec(sql)),
    prepare: (sql): SqliteStatement => {
      const statement = database.prepare(sql);
      return {
        run: (...values) => observed(sql, () => statement.run(...values)),
        get: (...values) => observed(sql, () => statement.get(...values)),
        all: (...values) => observed(sql, () => statement.all(...values)),
      };
    },
    close: () => database.close(),
  };
}

/** Whether the driver says that another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && /database is locked/.test(error.message);
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
