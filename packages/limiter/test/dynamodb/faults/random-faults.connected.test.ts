import { expect, it } from "vitest";
import { RateLimiter, RateLimiterUnavailable, type Lease } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import type { Random } from "../../../src/repository/system-clock.ts";
import { FAST_CLOCK } from "../../support/fast-clock.ts";
import type { Fault, ProxiedRequest } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { STATEMENT_FAULTS } from "../../support/statement-faults.ts";
import { describeWithTransports, ONE_TRANSPORT_AN_ENGINE } from "../../support/transports.ts";
import { REQUEST_TIMEOUT_MS, SLOW_LIMIT, WRITE_FAULTS } from "../../support/write-path-faults.ts";
import { writtenKeys } from "../../support/written-items.ts";

/** One that is denied would end the sharing. */
const OF_STATEMENTS = STATEMENT_FAULTS.filter((fault) => fault !== "denied");
const OF_BATCHES = ["lost-request", "lost-reply", "internal", "partial", "half-done"] as const;
const SUFFERED = [
  "batch",
  ...OF_BATCHES.map((fault) => `batch: ${fault}` as const),
  ...OF_STATEMENTS.map((fault) => `statement: ${fault}` as const),
] as const;
type Suffered = (typeof SUFFERED)[number];

const PARENT = "parent";
const CHILDREN = ["a", "b", "c"];
const ROUNDS = 8;

const ENOUGH_SEEDS = 4;
const SEEDS = seedsFromEnvironment({ usual: ENOUGH_SEEDS });

describeWithTransports(
  "random faults on the write path",
  (engine, transport) => {
    const table = useProxiedTable(engine, transport);
    const coverage = new CoverageCounts<Suffered>(SUFFERED);

    // Every other seed shares requests.
    it.each(getEach(SEEDS))(
      "what is charged adds up to what was acknowledged (seed %i)",
      { timeout: 60_000 },
      async (seed) => {
        const patient = await table.open();
        await patient.setSystemDefaults([SLOW_LIMIT]);
        await patient.createEntity(PARENT);
        for (const id of CHILDREN)
          await patient.createEntity(id, { parentId: PARENT, cascade: true });
        const limiters = await Promise.all(
          [1, 2].map(async () => {
            const options = {
              requestTimeoutMs: REQUEST_TIMEOUT_MS,
              shareRequests: seed % 2 === 1,
              clock: FAST_CLOCK,
            };
            return new RateLimiter({ repository: await table.open("app", options) });
          }),
        );
        const random = seededRandom(seed);
        const ledger = new Ledger();
        // Creations do not share requests.
        await Promise.all(CHILDREN.map((child) => work(limiters[0]!, { child, random, ledger })));
        table.proxy.decide = listFaults(random, coverage);
        for (let round = 1; round <= ROUNDS; round += 1)
          await Promise.all(
            limiters.flatMap((limiter) =>
              CHILDREN.map((child) => work(limiter, { child, random, ledger })),
            ),
          );
        table.proxy.decide = () => undefined;
        for (const entityId of [...CHILDREN, PARENT]) {
          const total = await table.consumed(patient, entityId);
          const { least, most } = ledger.range(entityId);
          expect(total, entityId).toBeGreaterThanOrEqual(least);
          expect(total, entityId).toBeLessThanOrEqual(most);
        }
      },
    );

    it.skipIf(SEEDS.count < ENOUGH_SEEDS)("batches of statements have suffered everything", () => {
      expect(coverage.missing).toEqual([]);
    });
  },
  ONE_TRANSPORT_AN_ENGINE,
);

/** What callers know to be charged, and what may be. */
class Ledger {
  readonly #known = new Map<string, number>();
  readonly #unknown = new Map<string, number>();

  add(child: string, known: number, unknown: number): void {
    for (const entityId of [child, PARENT]) {
      this.#known.set(entityId, (this.#known.get(entityId) ?? 0) + known);
      this.#unknown.set(entityId, (this.#unknown.get(entityId) ?? 0) + unknown);
    }
  }

  range(entityId: string): { readonly least: number; readonly most: number } {
    const least = this.#known.get(entityId) ?? 0;
    return { least, most: least + (this.#unknown.get(entityId) ?? 0) };
  }
}

/** One call and the end of its lease, or a charge. */
async function work(
  limiter: RateLimiter,
  {
    child,
    random,
    ledger,
  }: { readonly child: string; readonly random: Random; readonly ledger: Ledger },
): Promise<void> {
  const tpm = between(random, 10, 99);
  if (tpm % 4 === 3) {
    const request = { entityId: child, resource: "r", amounts: { tpm } };
    const isCharged = await limiter.charge(request).then(() => true, unlessUnavailable);
    return isCharged === true ? ledger.add(child, tpm, 0) : ledger.add(child, 0, tpm);
  }
  const lease = await limiter
    .acquire({ entityId: child, resource: "r", consume: { tpm } })
    .catch(unlessUnavailable);
  if (lease === undefined) return ledger.add(child, 0, tpm);
  const how = tpm % 3;
  const net = how === 0 ? 0 : tpm + how;
  const isEnded = await end(lease, net).then(() => true, unlessUnavailable);
  if (isEnded === true) ledger.add(child, net, 0);
  else ledger.add(child, Math.min(net, tpm), Math.abs(tpm - net));
}

async function end(lease: Lease, tpm: number): Promise<void> {
  if (tpm === 0) return lease.rollback();
  lease.settle({ tpm });
  return lease.commit();
}

/** Hits one lone request in four, and every other batch by all kinds in turn. */
function listFaults(
  random: Random,
  coverage: CoverageCounts<Suffered>,
): (request: ProxiedRequest) => Fault | undefined {
  return ({ operation, input }) => {
    if (operation !== "BatchExecuteStatement")
      return random() < 0.25 ? pick(random, WRITE_FAULTS) : undefined;
    coverage.count("batch");
    if (random() < 0.5) return undefined;
    // What has been suffered least comes next.
    const next = SUFFERED.slice(1).toSorted(
      (left, right) => coverage.counts.get(left)! - coverage.counts.get(right)!,
    )[0]!;
    coverage.count(next);
    const whole = OF_BATCHES.find((fault) => next === `batch: ${fault}`);
    if (whole !== undefined) return whole;
    const fault = OF_STATEMENTS.find((each) => next === `statement: ${each}`)!;
    const hit = pick(random, writtenKeys(operation, input)).PK.S;
    return {
      statements: ({ PK }) => (PK.S === hit || random() < 0.3 ? fault : undefined),
    };
  };
}

function unlessUnavailable(error: unknown): undefined {
  if (!(error instanceof RateLimiterUnavailable)) throw error;
  return undefined;
}
