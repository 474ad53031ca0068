import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/** Real files. Each client has a connection of its own, as a process has. */
export const sqliteBackend: Backend = {
  name: "SQLite",
  separate: true,
  begin: () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-simulation-"));
    let opened = 0;
    return {
      open: (clock) =>
        SqliteRepository.open(join(folder, "limits.db"), { clock, random: seededRandom((opened += 1)), configCacheTtlMs: 0 }),
      end: () => rmSync(folder, { recursive: true, force: true }),
    };
  },
};
