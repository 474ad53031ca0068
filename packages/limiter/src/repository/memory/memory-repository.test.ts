import { MemoryRepository } from "zae-limiter/memory";
import { repositoryContract } from "@zae-limiter/contract";
import type { Repository } from "zae-limiter";
import { describe, it } from "vitest";

const runner = { describe, it };

repositoryContract("MemoryRepository", async (clock) => new MemoryRepository({ clock }), runner);

repositoryContract(
  "MemoryRepository without a configuration cache",
  async (clock) => new MemoryRepository({ clock, configCacheTtlMs: 0 }),
  runner,
);

// The contract must be fair to backends that need I/O. This one returns the same results, but each
// takes two turns of the event loop.
repositoryContract(
  "MemoryRepository at a distance",
  async (clock) => distant(new MemoryRepository({ clock })),
  runner,
);

const LOCAL: ReadonlySet<PropertyKey> = new Set(["getCacheStats", "getStatistics", "knowsLimit"]);

function distant(repository: Repository): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      if (LOCAL.has(property))
        return (...values: unknown[]): unknown => Reflect.apply(member, target, values);
      return async (...values: unknown[]): Promise<unknown> => {
        await turn();
        const answer: unknown = await Reflect.apply(member, target, values);
        await turn();
        return property === "namespace" ? distant(answer as Repository) : answer;
      };
    },
  });
}

/** Two turns of the event loop: longer than any chain of promises, shorter than any network. */
async function turn(): Promise<void> {
  for (let count = 0; count < 2; count += 1) await new Promise((resolve) => setImmediate(resolve));
}
