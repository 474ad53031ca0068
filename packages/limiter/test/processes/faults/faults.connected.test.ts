import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fault } from "../../support/fault-proxy.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { startEngine, type StartedEngine } from "../../support/engine-process.ts";
import { mostPerGrant, perGrant, type Cost } from "./cost-per-grant.ts";
import {
  disturbed,
  faulty,
  shortLived,
  THROTTLES,
  type FaultPlan,
  type Ledger,
  type Phase,
} from "./scenarios.ts";

// Short variants of `npm run bench:faults`, with more faults, so that a busy machine sees some too.
// A write that was hit twice is let through, so nothing that is asserted here has an exception.
describeWithEngine("processes on one bucket while requests fail", () => {
  describe("10 % throttles", () => {
    const seconds = 1.5;
    let run: Awaited<ReturnType<typeof disturbed>>;
    useFreshEngine(async (engineUrl) => {
      run = await disturbed({ engineUrl, seed: 1, seconds, plan: buildPlan(0.1, THROTTLES) });
    });

    it("nothing is granted for free, and nothing stays charged", () => {
      expect(run.during.faults).toBeGreaterThan(0);
      expect(stuckAndMinted(run.ledger)).toEqual([0, 0]);
    });

    it("no call gives up", () => {
      expect([gaveUp(run.during), gaveUp(run.after)]).toEqual([0, 0]);
    });

    it.each<Cost>(["requests", "writeUnits", "readUnits"])(
      "a grant costs as many %s afterwards as before",
      (cost) => {
        expect(perGrant(run.after, cost)).toBeLessThanOrEqual(mostPerGrant(run.before, cost));
      },
    );
  });

  describe("10 % lost replies, lost requests and internal errors of children that share requests", () => {
    const kinds: readonly Fault[] = ["lost-reply", "lost-request", "internal", "late-internal"];
    const ofShared = [...kinds, "throttle", "partial", "half-done"] as const;
    let phase: Phase;
    let ledger: Ledger;
    useFreshEngine(async (engineUrl) => {
      const plan = { ...buildPlan(0.1, kinds), ofShared };
      const options = { engineUrl, seed: 2, seconds: 3, forChildren: true };
      ({ phase, ledger } = await faulty({ ...options, plan }));
    });

    it("nothing is granted for free, neither by the parent nor by its children", () => {
      const { faults, sharedFaults } = phase;
      expect([faults, sharedFaults].every((count) => count > 0)).toBe(true);
      const { storedOfChildren } = ledger;
      expect([mintedIn(ledger), mintedIn({ ...ledger, stored: storedOfChildren })]).toEqual([0, 0]);
    });

    it("every call learns its outcome", () => {
      expect(phase.unknown).toBe(0);
    });
  });

  describe("20 % lost replies of processes that make five calls each", () => {
    const [processes, calls] = [20, 5];
    let phase: Phase;
    let ledger: Ledger;
    useFreshEngine(async (engineUrl) => {
      const plan = buildPlan(0.2, ["lost-reply"]);
      ({ phase, ledger } = await shortLived({ engineUrl, seed: 3, processes, calls, plan }));
    });

    it("nothing is granted for free", () => {
      expect(phase.faults).toBeGreaterThan(0);
      expect(mintedIn(ledger)).toBe(0);
    });

    it("every call is granted, and charged once", () => {
      expect(phase.grants).toBe(processes * calls);
      expect(stuckAndMinted(ledger)).toEqual([0, 0]);
    });
  });
});

/** Runs once before the tests of a suite: an engine becomes slower with what it holds. */
function useFreshEngine(run: (engineUrl: string) => Promise<void>): void {
  let engine: StartedEngine | undefined;
  beforeAll(async () => {
    engine = await startEngine();
    await run(engine.endpointUrl);
  }, 120_000);
  afterAll(async () => engine?.stop());
}

function buildPlan(share: number, kinds: readonly Fault[]): FaultPlan {
  return { share, kinds, sparesLastAttempt: true };
}

function gaveUp({ contended, unavailable, unknown }: Phase): number {
  return contended + unavailable + unknown;
}

/** Tokens that stay charged though no caller got them, and tokens that were never charged. */
function stuckAndMinted({ stored, kept }: Ledger): readonly [number, number] {
  return [Math.max(0, stored - kept), Math.max(0, kept - stored)];
}

function mintedIn(ledger: Ledger): number {
  return stuckAndMinted(ledger)[1];
}
