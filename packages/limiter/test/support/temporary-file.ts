import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SqliteDatabase } from "zae-limiter/sqlite";

/** A path for a database in a folder of its own, which is removed after the test. */
export function temporaryFile(name = "limits.db"): string {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

/** Closes something after the test, before its folder goes. */
export function closeLater<T extends { close(): unknown }>(opened: T): T {
  onTestFinished(async () => void (await opened.close()));
  return opened;
}

/**
 * A second connection to a file, such as another process has: with the driver that the repository
 * would choose.
 */
export async function otherConnection(path: string): Promise<SqliteDatabase> {
  const { openDatabase } = await import("../../src/repository/sqlite/database/driver.ts");
  const database = closeLater(openDatabase(path).database);
  database.exec("PRAGMA busy_timeout = 0");
  return database;
}
