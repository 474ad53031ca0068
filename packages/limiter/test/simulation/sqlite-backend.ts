import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteRepository } from "zae-limiter/sqlite";
import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";

/** Real files. Each client has a connection of its own, as a process has; a run's file goes when the last of them is closed. */
export function sqliteBackend(): Backend {
  let folder = "";
  let opened = 0;
  return {
    name: "SQLite",
    separate: true,
    open: async (clock) => {
      if (opened === 0) folder = mkdtempSync(join(tmpdir(), "zae-limiter-simulation-"));
      opened += 1;
      const repository = await SqliteRepository.open(join(folder, "limits.db"), { clock, random: seededRandom(opened) });
      const close = repository.close.bind(repository);
      repository.close = async () => {
        await close();
        opened -= 1;
        if (opened === 0) rmSync(folder, { recursive: true, force: true });
      };
      return repository;
    },
  };
}
