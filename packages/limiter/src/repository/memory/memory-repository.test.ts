import { MemoryRepository } from "zae-limiter/memory";
import { repositoryContract } from "zae-limiter/testing";
import { describe, it } from "vitest";

repositoryContract("MemoryRepository", async (clock) => new MemoryRepository({ clock }), { describe, it });

repositoryContract(
  "MemoryRepository without a configuration cache",
  async (clock) => new MemoryRepository({ clock, configCacheTtlMs: 0 }),
  {
    describe,
    it,
  },
);
