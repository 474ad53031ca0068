import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { call } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { FAST_CLOCK } from "../../support/fast-clock.ts";
import type { Fault, FaultProxy, ProxiedRequest } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import {
  isStatementFault,
  STATEMENT_FAULTS,
  type StatementFault,
} from "../../support/statement-faults.ts";
import { SkippingClock } from "../../support/scripted-table.ts";
import { NOW_MS } from "../../support/shard-images.ts";

/** One of three attempts always gets through. */
const MOST_HITS = 2;

const CHILDREN = ["a", "b", "c", "d", "e", "f"];

/** Earns next to nothing, also by a fast clock. */
const ONCE = Limit.custom({
  name: "rps",
  capacity: 120,
  refillAmount: 1,
  refillPeriodSeconds: 86_400,
});

/** What became of calls. */
interface Outcomes {
  granted: number;
  refused: number;
  readonly failed: string[];
}

describeWithEngine("the outcome of a call", (engine) => {
  const table = useProxiedTable(engine);

  it.each<Fault>(["lost-reply", "lost-request", "internal"])(
    "is known to callers who want more than there is, though one write in ten suffers %s",
    async (fault) => {
      const outcomes = newOutcomes();
      // However slow the machine is, they want more than that: 960.
      const limits = [Limit.perSecond("rps", 10, { burst: 400 })];
      const options = { maxShards: 1, requestTimeoutMs: 2000, refusalMemoryMs: 20 };
      const first = await table.open("app", options);
      await first.setSystemDefaults(limits);
      const others = [await table.open("app", options), await table.open("app", options)];
      const hits = hitting(table.proxy, fault);
      await Promise.all(
        [first, ...others].flatMap((repository) => {
          const limiter = new RateLimiter({ repository });
          return Array.from({ length: 8 }, async () => callAgain(limiter, 40, outcomes));
        }),
      );
      expect(outcomes.failed).toEqual([]);
      expect([hits.count, outcomes.granted, outcomes.refused].every((count) => count > 0)).toBe(
        true,
      );
      expect(await table.consumed(first)).toBe(outcomes.granted);
    },
    60_000,
  );

  it("is known to callers who want more than their parent has, though shared requests fail in every way", async () => {
    const outcomes = newOutcomes();
    const repository = await table.open("app", { clock: FAST_CLOCK, refusalMemoryMs: 20 });
    await repository.setSystemDefaults([Limit.perDay("rps", 1000)]);
    await repository.createEntity("parent");
    await repository.setLimits("parent", [ONCE]);
    for (const child of CHILDREN)
      await repository.createEntity(child, { parentId: "parent", cascade: true });
    const hits = hitting(table.proxy, "lost-reply", [
      "lost-reply",
      "lost-request",
      "partial",
      "half-done",
      ...STATEMENT_FAULTS.filter((fault) => fault !== "denied"),
    ]);
    const limiter = new RateLimiter({ repository });
    await Promise.all(CHILDREN.map((child) => callAgain(limiter, 24, outcomes, child)));
    expect({ ...outcomes, everyFault: hits.ofShared >= 11 }).toEqual({
      granted: 120,
      refused: 24,
      failed: [],
      everyFault: true,
    });
    expect(await table.consumed(repository, "parent")).toBe(120);
    const consumed = await Promise.all(CHILDREN.map((child) => table.consumed(repository, child)));
    expect(consumed.reduce((sum, each) => sum + each, 0)).toBe(120);
  }, 60_000);

  it("is known to processes that end after five calls, four at a time", async () => {
    const outcomes = newOutcomes();
    const first = await table.open("app", { maxShards: 1, clock: new SkippingClock(NOW_MS) });
    await first.setSystemDefaults([Limit.perDay("rps", 1000)]);
    const hits = hitting(table.proxy, "lost-reply");
    let started = 0;
    const live = Array.from({ length: 4 }, async () => {
      while (started < 40) {
        // One starts every second by its clock, however fast the machine is.
        const clock = new SkippingClock(NOW_MS + 1000 * started++);
        const repository = await table.open("app", { maxShards: 1, clock });
        await callAgain(new RateLimiter({ repository }), 5, outcomes);
      }
    });
    await Promise.all(live);
    expect(hits.count).toBeGreaterThan(0);
    expect(outcomes).toEqual({ granted: 200, refused: 0, failed: [] });
    expect(await table.consumed(first)).toBe(200);
  }, 60_000);
});

function newOutcomes(): Outcomes {
  return { granted: 0, refused: 0, failed: [] };
}

/** What a shared request suffers: as a whole, or each of its statements. */
type BatchFault = "lost-reply" | "lost-request" | "partial" | "half-done" | StatementFault;

/**
 * Hits one write of a bucket in ten, no write more than twice: a shared request is sent once, and
 * its writes alone afterwards. Every second shared request is hit, by each fault in turn.
 */
function hitting(
  proxy: FaultProxy,
  fault: Fault,
  ofBatches: readonly BatchFault[] = [],
): { readonly count: number; readonly ofShared: number } {
  const random = seededRandom(11);
  const hits = { count: 0, ofShared: 0 };
  const mostHits = ofBatches.length > 0 ? MOST_HITS - 1 : MOST_HITS;
  const byInput = new Map<string, number>();
  proxy.decide = ({ operation, input }: ProxiedRequest) => {
    if (operation === "BatchExecuteStatement") {
      if (random() < 0.5) return undefined;
      const next = ofBatches[hits.ofShared++ % ofBatches.length]!;
      return isStatementFault(next) ? { statements: () => next } : next;
    }
    if (operation !== "UpdateItem" && operation !== "PutItem") return undefined;
    const text = JSON.stringify(input);
    const before = byInput.get(text) ?? 0;
    if (before === mostHits || random() >= 0.1) return undefined;
    byInput.set(text, before + 1);
    hits.count += 1;
    return fault;
  };
  return hits;
}

async function callAgain(
  limiter: RateLimiter,
  times: number,
  outcomes: Outcomes,
  entityId?: string,
): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    try {
      await (await limiter.acquire(call({ rps: 1 }, entityId))).commit();
      outcomes.granted += 1;
    } catch (error) {
      if (!(error instanceof RateLimitExceeded)) outcomes.failed.push(String(error));
      else outcomes.refused += 1;
      await sleep(5);
    }
  }
}
