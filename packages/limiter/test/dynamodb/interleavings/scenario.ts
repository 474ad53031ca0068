import { Limit, type QuotaLimit, type RateLimit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import type { Random } from "../../../src/repository/system-clock.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import type { Proposals } from "../../support/seeded/shrink.ts";
import type { NETWORK_ERRORS } from "./gate.ts";

/** How a request or its reply gets lost. */
export type Fault = keyof typeof NETWORK_ERRORS | "reply lost";

/** What else may become of a request that several writes share. */
export type BatchFault = "statements fail" | "reply in part";

/** A limit of a scenario. */
export type ScenarioLimit = RateLimit | QuotaLimit;

/** The name of limits that are quotas; the time moves to the ends of their windows then. */
export const QUOTA = "quota";

/** Who takes part, and what may happen to them. The order of events is the schedule's. */
export interface Scenario {
  readonly seed: number;
  /** How far the clock of each process is off. */
  readonly skewsMs: readonly number[];
  readonly clockSteps: number;
  readonly operations: number;
  readonly faultRate: number;
  readonly faults: readonly Fault[];
  readonly crashes: number;
  readonly configChanges: number;
  readonly splits: number;
  readonly merges: number;
  /** How often a merge is late: its sender gets no reply, and it may arrive any time. */
  readonly lateMerges: number;
  readonly maxShards: number;
  readonly largestTickMs: number;
  readonly refusalMemoryMs: number;
  readonly cacheTtlMs: number;
  /** Whether buckets expire some day: those of limits that are not an entity's own. */
  readonly expires: boolean;
  readonly entityIds: readonly string[];
  readonly parentId: string | undefined;
  /** Whether the parent makes calls of its own. */
  readonly callsParent: boolean;
  readonly limits: ReadonlyMap<string, readonly ScenarioLimit[]>;
  /** How often a call asks for as much as there can be. */
  readonly largeCalls: number;
  /**
   * How often a process that holds a lease does something with it rather than asking for another.
   */
  readonly leaseCalls: number;
  /** How often a call charges what already happened. */
  readonly charges: number;
  /** Whether buckets are merged in the end, while some calls go on. */
  readonly endsMerged: boolean;
  /** Whether writes of different buckets share requests, and what may become of these. */
  readonly sharesRequests: boolean;
  readonly batchFaults: readonly BatchFault[];
  /** Whether a limit is a quota, by the minute. */
  readonly hasQuota: boolean;
}

const FAULTS: readonly Fault[] = [
  "connection reset",
  "time-out",
  "connection refused",
  "throttled",
  "conflict",
  "reply lost",
];

const BATCH_FAULTS: readonly BatchFault[] = ["statements fail", "reply in part"];

/** Makes a scenario from its seed. */
export function makeScenario(seed: number): Scenario {
  const random = seededRandom(seed);
  // Not every other seed: these take the transports in turn.
  const sharesRequests = Math.floor(seed / 2) % 2 === 0;
  // A lone bucket shares nothing but what goes back to its shards.
  const parentId = random() < (sharesRequests ? 0.8 : 0.4) ? "parent" : undefined;
  const entityIds = Array.from(
    { length: parentId === undefined ? 1 : between(random, 1, 3) },
    (_, index) => `hot-${index + 1}`,
  );
  // Some seeds only, as with charges below.
  const hasQuota = seed % 3 === 2;
  const names = [...(random() < 0.5 ? ["rpm"] : ["rpm", "tpm"]), ...(hasQuota ? [QUOTA] : [])];
  const spreadMs = pick(random, [0, 0, 500, 3000]);
  const scenario = {
    seed,
    hasQuota,
    skewsMs: Array.from({ length: between(random, 2, 4) }, () =>
      Math.round((random() * 2 - 1) * spreadMs),
    ),
    clockSteps: random() < 0.2 ? between(random, 1, 2) : 0,
    operations: between(random, 12, 50),
    faultRate: pick(random, [0, 0.03, 0.1, 0.25, 0.5]),
    faults: FAULTS.filter(() => random() < 0.7),
    crashes: random() < 0.4 ? between(random, 1, 3) : 0,
    configChanges: random() < 0.3 ? between(random, 1, 6) : 0,
    splits: random() < 0.7 ? between(random, 1, 5) : 0,
    maxShards: pick(random, [1, 2, 4, 8]),
    largestTickMs: random() < 0.5 ? 1 : 100,
    refusalMemoryMs: random() < 0.5 ? 0 : 1000,
    cacheTtlMs: pick(random, [0, 1000, 60_000]),
    expires: random() < 0.3,
    entityIds,
    parentId,
    limits: new Map(
      [...entityIds, ...(parentId === undefined ? [] : [parentId])].map((id) => [
        id,
        someLimits(random, names),
      ]),
    ),
    largeCalls: pick(random, [0, 0.05, 0.3]),
    leaseCalls: pick(random, [0.3, 0.6]),
    endsMerged: random() < 0.5,
  };
  const reshapes =
    random() < 0.6
      ? {
          splits: Math.max(scenario.splits, 2),
          maxShards: Math.max(scenario.maxShards, 2),
          merges: between(random, 1, 8),
          lateMerges: pick(random, [0, 0.5]),
        }
      : { merges: 0, lateMerges: 0 };
  const callsParent = parentId !== undefined && random() < 0.5;
  const batchFaults = BATCH_FAULTS.filter(() => random() < 0.7);
  // Some seeds only: the others stay the histories that mutations are found by.
  const charges = seed % 5 === 1 ? 0.3 : 0;
  return { ...scenario, ...reshapes, callsParent, sharesRequests, batchFaults, charges };
}

/**
 * Limits of the given names with other numbers; the first is a fast one, the second earns next to
 * nothing.
 */
export function someLimits(random: Random, names: readonly string[]): readonly ScenarioLimit[] {
  return names.map((name, index) => {
    if (name === QUOTA)
      return Limit.quota(name, between(random, 8, 60), { cron: "* * * * *", zone: "UTC" });
    return Limit.custom({
      name,
      capacity: between(random, 3, 40),
      refillAmount: index === 0 ? between(random, 1, 200) : pick(random, [1, 7, 1001]),
      refillPeriodSeconds:
        index === 0 ? pick(random, [1, 1, 3, 60]) : pick(random, [60, 3600, 86_400]),
    });
  });
}

/** Simpler scenarios of the same seed, one change after another, to find what a failure needs. */
export function* simplerScenarios(scenario: Scenario): Proposals<Scenario> {
  for (let simplest = scenario, isSimpler = true; isSimpler;) {
    isSimpler = false;
    for (const simpler of simplerThan(simplest)) {
      if (!(yield simpler)) continue;
      simplest = simpler;
      isSimpler = true;
      break;
    }
  }
}

function simplerThan(scenario: Scenario): readonly Scenario[] {
  const { skewsMs, operations, faults } = scenario;
  const simpler: readonly (Partial<Scenario> | undefined)[] = [
    operations > 2 ? { operations: Math.ceil(operations / 2) } : undefined,
    operations > 1 ? { operations: operations - 1 } : undefined,
    scenario.crashes > 0 ? { crashes: 0 } : undefined,
    scenario.configChanges > 0 ? { configChanges: 0 } : undefined,
    scenario.splits > 0 ? { splits: scenario.splits - 1 } : undefined,
    scenario.merges > 0 ? { merges: scenario.merges - 1 } : undefined,
    scenario.lateMerges > 0 ? { lateMerges: 0 } : undefined,
    scenario.endsMerged ? { endsMerged: false } : undefined,
    scenario.maxShards > 1 ? { maxShards: scenario.maxShards / 2 } : undefined,
    scenario.clockSteps > 0 ? { clockSteps: 0 } : undefined,
    scenario.faultRate > 0 ? { faultRate: 0 } : undefined,
    ...faults.map((fault) => ({ faults: faults.filter((other) => other !== fault) })),
    skewsMs.some((skewMs) => skewMs !== 0) ? { skewsMs: skewsMs.map(() => 0) } : undefined,
    skewsMs.length > 1 ? { skewsMs: skewsMs.slice(1) } : undefined,
    scenario.callsParent ? { callsParent: false } : undefined,
    scenario.sharesRequests ? { sharesRequests: false } : undefined,
    ...scenario.batchFaults.map((fault) => ({
      batchFaults: scenario.batchFaults.filter((other) => other !== fault),
    })),
    scenario.parentId === undefined ? undefined : { parentId: undefined, callsParent: false },
    scenario.largestTickMs > 1 ? { largestTickMs: 1 } : undefined,
    scenario.expires ? { expires: false } : undefined,
    scenario.largeCalls > 0 ? { largeCalls: 0 } : undefined,
    // The time does not move to the ends of windows then.
    scenario.hasQuota ? { hasQuota: false } : undefined,
  ];
  return simpler.flatMap((change) => (change === undefined ? [] : [{ ...scenario, ...change }]));
}
