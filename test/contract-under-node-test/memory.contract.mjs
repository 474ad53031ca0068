// Run by contract-under-node-test.test.ts with `node --test`: the contract needs no other test
// runner than the platform's own.
import { describe, it } from "node:test";
import { MemoryRepository } from "zae-limiter/memory";
import { repositoryContract } from "@zae-limiter/contract";

repositoryContract("MemoryRepository", async (clock) => new MemoryRepository({ clock }), {
  describe,
  it,
});
