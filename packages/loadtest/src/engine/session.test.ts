import { describe, expect, it } from "vitest";
import { Limit, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository } from "zae-limiter/testing";
import { Ledger, RateLimiterSession, verifyLedger } from "artillery-engine-zae-limiter";
import { hearMetrics, temporaryFolder, type HeardEmitter } from "../../test/support/load.ts";
import { buildMetricNames, CALL_KINDS, LAG_METRIC, MANAGEMENT_CALLS, toKind } from "./metrics.ts";

const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };

async function openSession(
  alter: (repository: Repository) => Repository = (repository) => repository,
): Promise<{ readonly session: RateLimiterSession; readonly heard: HeardEmitter }> {
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perHour("rpm", 2), Limit.perHour("tpm", 1000)]);
  const heard = hearMetrics();
  const session = new RateLimiterSession({ repository: alter(repository), emitter: heard });
  return { session, heard };
}

describe("a session", () => {
  it("counts and times every call, overall and by name", async () => {
    const { session, heard } = await openSession();
    expect(await session.acquire({ ...call, name: "gpt-4.1", settle: { tpm: 50 } }, () => 7)).toBe(
      7,
    );
    await session.acquire(call);
    expect(await session.available("key-1", "gpt-4")).toMatchObject({ tpm: 850 });
    await session.manage("setLimits", "key-2", [Limit.perMinute("rpm", 5)]);
    await session.manage("ensureEntity", "key-2");
    const counters = heard.events.filter(([event]) => event === "counter").map(([, name]) => name);
    // The second call cost what it took, so nothing had to be written.
    expect(counters.join(" ")).toBe(
      "zae.acquire.count zae.acquire_of.gpt-4_1.count " +
        "zae.commit.count zae.commit_of.gpt-4_1.count " +
        "zae.acquire.count zae.available.count zae.set_limits.count zae.create_entity.count",
    );
    const timed = heard.events.filter(([event]) => event === "histogram");
    expect(timed.map(([, name]) => String(name).replace(".us", ".count"))).toEqual(counters);
    expect(timed.every(([, , us]) => Number.isInteger(us) && Number(us) >= 0)).toBe(true);
  });

  it("reports a refusal as an outcome and not as a failure", async () => {
    const { session, heard } = await openSession();
    await session.acquire(call, async (lease) => {
      expect(await lease.consume({ tpm: 5000 })).toBe(false);
      expect(await lease.consume({ tpm: 100 })).toBe(true);
    });
    await session.acquire(call);
    expect(await session.acquire(call, () => "done")).toBeUndefined();
    expect(heard.count("zae.rate_limited.count")).toBe(2);
    expect(heard.count("zae.acquire.count")).toBe(3);
    expect(heard.events.filter(([event]) => event === "error")).toEqual([]);
  });

  it("reports an error once under its code, and throws it", async () => {
    const { session, heard } = await openSession((repository) =>
      faultyRepository(repository, (name) => (name === "consume" ? "error-before" : undefined)),
    );
    const error = await session.acquire(call).catch((thrown: unknown) => thrown);
    session.reportError(error);
    expect(heard.events).toEqual([["error", "ERR_LIMITER_UNAVAILABLE"]]);
    session.reportError(new TypeError("no code"));
    expect(heard.events[1]).toEqual(["error", "TypeError"]);
  });

  it("refuses a management call that it does not know", async () => {
    const { session, heard } = await openSession();
    await expect(session.manage("setLimit" as "setLimits", "key-1", [])).rejects.toThrow(
      "did you mean setLimits?",
    );
    expect(heard.events).toEqual([]);
  });

  it("gives everything back if the work fails or wants it, and abandons if it wants that", async () => {
    const { session, heard } = await openSession();
    const left = (): Promise<Record<string, number>> => session.available("key-1", "gpt-4");
    const failed = session.acquire(call, () => Promise.reject(new Error("lost")));
    await expect(failed).rejects.toThrow("lost");
    await session.acquire(call, (lease) => lease.giveBack());
    expect(await left()).toEqual({ rpm: 2, tpm: 1000 });
    expect(heard.count("zae.rollback.count")).toBe(2);
    await session.acquire({ ...call, settle: { tpm: 5 } }, (lease) => lease.abandon());
    expect(await left()).toEqual({ rpm: 1, tpm: 900 });
  });

  it("notes later takes, other resources and unknown outcomes in its ledger", async () => {
    const folder = temporaryFolder();
    const inner = new MemoryRepository({ namespace: "run" });
    await inner.setSystemDefaults([Limit.perHour("rpm", 10), Limit.perHour("tpm", 1000)]);
    let fails = false;
    const repository = faultyRepository(inner, (name) =>
      fails && name === "settle" ? "error-after" : undefined,
    );
    const ledger = new Ledger({ folder, repository, store: "memory" });
    const session = new RateLimiterSession({ repository, emitter: hearMetrics(), ledger });
    await session.acquire({ ...call, also: { search: { rpm: 2 } } }, async (lease) => {
      await lease.consume({ tpm: 700 });
      lease.resourceLease("search").settle({ rpm: 1 });
      lease.adjust({ tpm: -50 });
    });
    await session.acquire(call, (lease) => lease.abandon());
    ledger.flush();
    expect(await verifyLedger(folder, inner)).toMatchObject({ grants: 4, problems: [], notes: [] });
    fails = true;
    const failing = session.acquire({ ...call, entityId: "key-2", settle: { tpm: 1 } });
    await expect(failing).rejects.toThrow();
    ledger.close();
    const { passed, notes } = await verifyLedger(folder, inner);
    expect(passed).toBe(true);
    expect(notes).toEqual([expect.stringMatching(/unknown outcome.*: 1/)]);
  });
});

describe("names of metrics", () => {
  const kinds = [...CALL_KINDS, ...MANAGEMENT_CALLS.map((name) => toKind(name))];
  const users = [undefined, "gpt-4", "gpt-4.1", "gpt-4-mini", "a b"];
  const names = kinds.flatMap((kind) => users.flatMap((user) => buildMetricNames(kind, user)));

  // Conditions of Artillery's `ensure` replace names by text.
  it("are never the beginning of each other", () => {
    const all = [...new Set([...names, LAG_METRIC])];
    const begins = (name: string): boolean =>
      all.some((other) => other !== name && other.startsWith(name));
    const broken = all.filter(begins);
    expect(broken).toEqual([]);
    expect(all.length).toBeGreaterThan(100);
  });
});
