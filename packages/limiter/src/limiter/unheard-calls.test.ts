import { channel, tracingChannel } from "node:diagnostics_channel";
import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { CHANNELS, type ChargeMessage } from "zae-limiter/diagnostics";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HeardMessages, observedRepository } from "../../test/support/heard-messages.ts";

const CALL = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };

let repository: MemoryRepository;
let limiter: RateLimiter;
let heard: HeardMessages;

beforeEach(async () => {
  repository = new MemoryRepository({ namespace: "tenant" });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  limiter = new RateLimiter({ repository });
  heard = new HeardMessages();
});

afterEach(() => {
  heard.stop();
  expect(tracingChannel(CHANNELS.acquire).hasSubscribers).toBe(false);
  expect(channel(CHANNELS.charge).hasSubscribers).toBe(false);
});

it("a charge is published when it was recorded", async () => {
  const charges = heard.on<ChargeMessage>(CHANNELS.charge);
  const charge = { entityId: "key-1", resource: "gpt-4", amounts: { tpm: 5_000 } };
  const away = new RateLimiter({ repository: faultyRepository(repository, () => "error-before") });
  await expect(away.charge(charge)).rejects.toThrow(RateLimiterUnavailable);
  expect(charges).toEqual([]);
  await limiter.charge({ ...charge, also: { search: { rpm: 2 } } });
  expect(charges).toEqual([{ namespace: "tenant", ...charge, also: { search: { rpm: 2 } } }]);
});

describe("without subscribers", () => {
  it("no message is made", async () => {
    const { on, reads } = watch();
    await everything(on);
    expect(reads()).toBe(0);
    heard.ends();
    await everything(on);
    // Four acquires; charges have no subscriber.
    expect(reads()).toBe(4);
    heard.stop();
    await everything(on);
    expect(reads()).toBe(4);
  });

  it("a subscriber of any event of the tracing channel is enough to publish", async () => {
    for (const event of ["start", "end", "asyncStart", "asyncEnd"]) {
      const messages = heard.acquires(event);
      await limiter.acquire(CALL, () => {});
      expect(messages).toHaveLength(1);
      heard.stop();
    }
  });

  it("nothing is published where there is no diagnostics_channel", async () => {
    const messages = heard.acquires();
    vi.resetModules();
    vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined);
    try {
      const fresh = await import("./rate-limiter.ts");
      await new fresh.RateLimiter({ repository }).acquire(CALL, () => {});
    } finally {
      vi.restoreAllMocks();
      vi.resetModules();
    }
    expect(messages).toEqual([]);
  });
});

/** One call of each kind that could be published. */
async function everything(on: RateLimiter): Promise<void> {
  await on.acquire(CALL, (lease) => lease.settle({ tpm: 40 }));
  await on.acquire(CALL, (lease) => lease.consume({ tpm: 1 }));
  await on.tryAcquire({ ...CALL, consume: { tpm: 1001 } });
  await (await on.acquire({ ...CALL, waitUpToMs: 10 })).rollback();
  await on.charge({ entityId: "key-1", resource: "gpt-4", amounts: { tpm: 1 } });
}

/** A call needs the namespace's name only to make a message. */
function watch(): { readonly on: RateLimiter; readonly reads: () => number } {
  let reads = 0;
  const on = new RateLimiter({
    repository: observedRepository(repository, (property) => {
      if (property === "namespaceName") reads += 1;
    }),
  });
  return { on, reads: () => reads };
}
