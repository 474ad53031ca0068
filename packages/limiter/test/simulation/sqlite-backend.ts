import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/** A real file for each run, on which each client has a connection of its own, as a process has. */
export const sqliteBackend: Backend = {
  name: "SQLite",
  separate: true,
  begin: () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-simulation-"));
    let opened = 0;
    return {
      // The cache stays on: what another connection changes has to be seen by the next call all the
      // same.
      open: (clock) =>
        SqliteRepository.open(join(folder, "limits.db"), {
          clock,
          random: seededRandom((opened += 1)),
        }),
      end: () => rmSync(folder, { recursive: true, force: true }),
    };
  },
};
