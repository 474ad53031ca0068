import { appendFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Limit, ValidationError, type Repository, type UsageQuery } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import type { ConsumeRequest, Receipt, ResourceAmounts } from "zae-limiter/backend";
import {
  Ledger,
  RateLimiterSession,
  verifyLedger,
  type LedgerReport,
} from "artillery-engine-zae-limiter";
import { breakRepository, hearMetrics, load, temporaryFolder } from "../../test/support/load.ts";

describe.each(["memory", "sqlite"] as const)("a run on %s", (store) => {
  it("passes if the limiter is correct, and comes close to the bound", async () => {
    const { folder, repository } = await load(store);
    const report = await verifyLedger(folder, repository);
    expect(report).toEqual<LedgerReport>({
      passed: true,
      buckets: 3,
      grants: expect.any(Number) as number,
      closest: expect.closeTo(1, 1) as number,
      problems: [],
      notes: [],
    });
    expect(report.grants).toBeGreaterThan(100);
  });

  it("is caught if it grants 5 % too much", async () => {
    const { folder } = await load(store, (repository) =>
      breakRepository(repository, {
        consume: (request: ConsumeRequest, receipt?: Receipt) =>
          repository.consume({ ...request, resources: request.resources.map(lower) }, receipt),
      }),
    );
    const { passed, problems } = await verifyLedger(folder);
    expect(passed).toBe(false);
    expect(problems.join()).toMatch(/tpm more were granted than the/);
  });

  it("is caught if it loses one settlement in a hundred", async () => {
    let settled = 0;
    const { folder, repository } = await load(store, (opened) =>
      breakRepository(opened, {
        settle: (receipt: Receipt, deltas: readonly ResourceAmounts[]) =>
          (settled += 1) % 100 === 0 ? undefined : opened.settle(receipt, deltas),
      }),
    );
    const { passed, problems } = await verifyLedger(folder, repository);
    expect(settled).toBeGreaterThan(100);
    expect(passed).toBe(false);
    expect(problems.join()).toMatch(/tpm were granted and settled, but the stored usage is/);
  });

  it("is caught if it decides by limits that are not stored", async () => {
    const { folder, repository } = await load(store);
    const other = [Limit.perMinute("rpm", 500), Limit.perMinute("tpm", 50_000)];
    await repository.setLimits("child", other, { resource: "gpt-4" });
    const { problems } = await verifyLedger(folder, repository);
    expect(problems).toEqual([expect.stringMatching(/^child .*rpm:600\/min.*rpm:500\/min/)]);
  });
});

describe("what a run does not prove", () => {
  it("is said: nothing, if it never came near a bound", async () => {
    const folder = temporaryFolder();
    const repository = new MemoryRepository({ namespace: "run" });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
    const ledger = new Ledger({ folder, repository, store: "memory" });
    const session = new RateLimiterSession({ repository, emitter: hearMetrics(), ledger });
    for (let call = 0; call < 50; call += 1)
      await session.acquire({ entityId: "key-1", resource: "api", consume: { rpm: 1 } });
    ledger.close();
    const { passed, closest, notes } = await verifyLedger(folder, repository);
    expect({ passed, closest }).toEqual({
      passed: true,
      closest: expect.closeTo(0.5, 1) as number,
    });
    expect(notes).toEqual([expect.stringContaining("proves little")]);
  });

  it("is said: usage, if there is no repository, another one, or an older namespace", async () => {
    const { folder, clock } = await load("sqlite");
    const getNotes = async (repository?: MemoryRepository): Promise<string> =>
      (await verifyLedger(folder, repository)).notes.join();
    expect(await getNotes()).toContain("there is no repository");
    expect(await getNotes(new MemoryRepository())).toContain("has no namespace run");
    const other = new MemoryRepository();
    const { folder: ofMemory } = await load("memory");
    expect((await verifyLedger(ofMemory, other)).notes.join()).toContain("memory of a worker");
    await clock.advance(-3_600_000);
    expect(await getNotes(new MemoryRepository({ clock, namespace: "run" }))).toContain("older");
  });

  it("is said: usage, if the store does not record it", async () => {
    const { folder, repository } = await load("sqlite", undefined, { recordUsage: false });
    const { passed, notes } = await verifyLedger(folder, repository);
    expect(passed).toBe(true);
    expect(notes).toEqual(["Usage was not checked: the store does not record it."]);
  });

  it("waits until usage is counted, but not forever", async () => {
    const { folder, repository, clock } = await load("memory");
    const startMs = clock.now();
    const countUntil = (countedUntil: number): Repository =>
      breakRepository(repository, {
        clock: { now: () => clock.now(), sleep: (ms: number) => clock.advance(ms) },
        getUsageSnapshots: async (query: UsageQuery) => {
          const page = await repository.getUsageSnapshots(query);
          const isCounted = clock.now() >= countedUntil;
          const at = new Date(isCounted ? clock.now() : startMs - 3_600_000);
          return { ...page, items: isCounted ? page.items : [], countedUntil: at };
        },
      });
    const slow = await verifyLedger(folder, countUntil(startMs + 5000));
    expect(slow).toMatchObject({ passed: true, notes: [] });
    expect(clock.now()).toBe(startMs + 5000);
    const never = await verifyLedger(folder, countUntil(Infinity), { waitUpToMs: 3000 });
    expect(never.passed).toBe(true);
    expect(never.notes).toEqual([expect.stringContaining("it was counted until")]);
    expect(clock.now()).toBe(startMs + 8000);
  });

  it("is said: lines that were cut off, and workers that were", async () => {
    const { folder, repository } = await load("memory");
    const [file] = readdirSync(folder);
    appendFileSync(join(folder, file!), 'null\n{"kind":"busy"}\n{"kind":"gra');
    const { passed, notes } = await verifyLedger(folder, repository);
    expect(passed).toBe(true);
    expect(notes).toEqual([
      "Lines that were cut off, and left out: 2.",
      `${file}: ended in the middle of calls.`,
      "Usage was not checked: a worker ended in the middle of calls.",
    ]);
  });

  it("is refused: a folder without ledgers, and a wait that is negative", async () => {
    await expect(verifyLedger(temporaryFolder())).rejects.toThrow(ValidationError);
    const wait = verifyLedger("x", undefined, { waitUpToMs: -1 });
    await expect(wait).rejects.toMatchObject({ field: "waitUpToMs" });
  });
});

function lower({ resource, amounts }: ResourceAmounts): ResourceAmounts {
  const lowered = Object.entries(amounts).map(([name, amount]) => [
    name,
    Math.floor(amount * 0.95) || amount,
  ]);
  return { resource, amounts: Object.fromEntries(lowered) as Record<string, number> };
}
