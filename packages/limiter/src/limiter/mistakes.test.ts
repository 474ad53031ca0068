import { describe, expect, it } from "vitest";
import {
  Limit,
  RateLimiter,
  RateLimitExceeded,
  type AcquireRequest,
  type Lease,
  type RateLimiterOptions,
  type Repository,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { temporaryFile } from "../../test/support/temporary-file.ts";

const CALL = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };

async function exhaust(repository: Repository): Promise<RateLimiter> {
  await repository.setSystemDefaults([Limit.perDay("rpm", 1)]);
  const limiter = new RateLimiter({ repository });
  await limiter.acquire(CALL, () => {});
  return limiter;
}

function limiterWith(options: unknown): () => RateLimiter {
  return () => new RateLimiter(options as RateLimiterOptions);
}

describe("what is easily got wrong with a limiter", () => {
  it("a repository that was not awaited", () => {
    expect(limiterWith({ repository: SqliteRepository.open(":memory:") })).toThrow(
      "Invalid repository: is a Promise: await it, as in repository: await SqliteRepository.open(path)",
    );
  });

  it("a repository that is passed by itself", () => {
    for (const alone of [new MemoryRepository(), SqliteRepository.open(":memory:")])
      expect(limiterWith(alone)).toThrow(
        "Invalid repository: must be passed in an object: new RateLimiter({ repository })",
      );
  });

  it.each([undefined, null, {}, { repository: {} }, { repository: "sqlite:x.db" }])(
    "no repository: %j",
    (options) => {
      expect(limiterWith(options)).toThrow(
        "Invalid repository: must be a repository, such as new MemoryRepository()",
      );
    },
  );

  it("an unknown option, and one of the wrong type", () => {
    const repository = new MemoryRepository();
    expect(limiterWith({ repository, onUnavailible: "allow" })).toThrow(
      "Invalid onUnavailible: is not an option of RateLimiter; did you mean onUnavailable?",
    );
    expect(limiterWith({ repository, onSettlementFailed: "log" })).toThrow(/onSettlementFailed/);
  });
});

describe("what is easily got wrong with a call", () => {
  const limiter = new RateLimiter({ repository: new MemoryRepository() });
  const acquire = limiter.acquire.bind(limiter) as (...values: unknown[]) => Promise<Lease>;
  const PLACES = "Invalid request: must be one object { entityId, resource, consume }";

  it("arguments one by one, as in other languages", async () => {
    for (const values of [
      ["key-1", "gpt-4", { rpm: 1 }],
      ["key-1", "gpt-4"],
      ["key-1"],
      ["key-1", () => {}],
    ])
      await expect(acquire(...values)).rejects.toThrow(`${PLACES}, not arguments one by one`);
    await expect(limiter.tryAcquire("key-1" as never)).rejects.toThrow(PLACES);
    await expect(limiter.check("key-1" as never)).rejects.toThrow(PLACES);
    await expect(acquire(CALL, "gpt-4")).rejects.toThrow("Invalid work: must be a function");
  });

  it.each([
    [{ entity_id: "key-1", resource: "gpt-4", consume: {} }, "entity_id", "entityId"],
    [{ ...CALL, waitUpTo: 100 }, "waitUpTo", "waitUpToMs"],
    [{ ...CALL, timeoutSignal: undefined }, "timeoutSignal", undefined],
  ])("an unknown name: %j", async (request, wrong, meant) => {
    for (const attempt of [
      acquire(request),
      acquire(request, () => {}),
      limiter.tryAcquire(request as unknown as AcquireRequest),
      limiter.check(request as unknown as AcquireRequest),
    ])
      await expect(attempt).rejects.toThrow(
        `Invalid ${wrong}: is not an option of a call; ${meant === undefined ? "known are entityId, " : `did you mean ${meant}?`}`,
      );
  });

  it("limits that are not set", async () => {
    await expect(acquire(CALL)).rejects.toThrow(
      "Invalid limits: no limits are configured for key-1 on gpt-4; set some with setSystemDefaults, setResourceDefaults or setLimits, or pass defaults to the RateLimiter",
    );
  });
});

describe.each([
  ["memory", async () => new MemoryRepository()],
  ["SQLite", async () => SqliteRepository.open(temporaryFile())],
])("an uncaught refusal on %s", (_, open) => {
  it("says in which line it was thrown", async () => {
    await using repository = await open();
    const limiter = await exhaust(repository);
    const handlers = {
      async callback() {
        await limiter.acquire(CALL, () => {});
      },
      async bareLease() {
        await limiter.acquire(CALL);
      },
      async waiting() {
        await limiter.acquire({ ...CALL, waitUpToMs: 1 });
      },
      async takingMore() {
        await limiter.acquire({ ...CALL, entityId: "key-2" }, async (lease) => {
          await lease.consume({ rpm: 1 });
        });
      },
    };
    for (const [name, handle] of Object.entries(handlers)) {
      const error: unknown = await handle().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RateLimitExceeded);
      expect((error as Error).stack, name).toMatch(/\n\s+at .*mistakes\.test\.ts:\d+/);
    }
  });

  it("costs no stack trace as a value", async () => {
    await using repository = await open();
    const verdict = await (await exhaust(repository)).tryAcquire(CALL);
    expect(!verdict.granted && verdict.refusal.stack).not.toMatch(/\n\s+at /);
  });
});
