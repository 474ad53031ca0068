import { Limit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { beforeAll, expect, it } from "vitest";
import { getAmount, type Amounts } from "../../../src/core/amounts.ts";
import { balanceMilli, type Bucket } from "../../../src/core/bucket/bucket.ts";
import type { ConfigKey } from "../../../src/core/bucket/policy.ts";
import { bucketProcess, requestFor } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { MemoryBuckets } from "../../../src/repository/memory/buckets.ts";
import { PolicyCache } from "../../../src/repository/policy-cache.ts";
import type { ConsumeOutcome, Receipt } from "../../../src/repository/port.ts";
import type { BucketStore } from "../../../src/repository/store.ts";
import type { Random } from "../../../src/repository/system-clock.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";

const SEEDS = seedsFromEnvironment({ usual: 4 });
const STEPS = 60;
const NAMES = ["rpm", "tpm", "rpd"];

/**
 * The same calls, one after another, by two processes on one table and by the memory backend: every
 * answer, every balance, and what is left after a grant are equal. The simulation compares more,
 * changing limits too, but looks at the table after every step, which keeps images fresh. Here a
 * process only knows what its own writes brought.
 */
describeWithEngine("processes that take turns", (engine) => {
  let transport: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport, tableName } = await connectToNewTable(engine().endpointUrl));
  });

  it(
    `processes that take turns answer as the memory backend does, by images that are often stale, over ${SEEDS.count} seeds`,
    { timeout: 120_000 },
    async () => {
      for (const seed of getEach(SEEDS)) await compare(seed);
    },
  );

  async function compare(seed: number): Promise<void> {
    const random = seededRandom(seed);
    const clock = new SleeplessClock(1_800_000_000_000);
    const [child, parent, resources] = [`child-${seed}`, `parent-${seed}`, ["gpt-4", "gpt-5"]];
    const policies = new Map<string, readonly Limit[]>([
      [child, someLimits(random)],
      [parent, someLimits(random)],
    ]);
    const config = (key: ConfigKey): { limits: readonly Limit[] | undefined } => ({
      limits:
        key.level === "entity" && key.resource === "_default_"
          ? policies.get(key.entityId)
          : undefined,
    });
    const process = (which: number): BucketStore =>
      bucketProcess({
        transport,
        tableName,
        clock,
        seed: seed * 10 + which,
        config,
        parents: { [child]: parent },
        cacheTtlMs: 0,
      }).buckets;
    const processes = [process(1), process(2)];
    const cache = new PolicyCache({
      read: (keys) => keys.map(config),
      clock,
      ttlMs: 0,
    });
    const memory = new MemoryBuckets({
      policies: cache,
      entities: {
        get: (id) =>
          id === child
            ? {
                id,
                name: id,
                parentId: parent,
                cascade: true,
                metadata: {},
                createdAt: new Date(0),
              }
            : undefined,
      },
      usage: undefined,
      nowMs: () => clock.now(),
      assertActive: () => {},
      forgetAbove: Infinity,
    });
    const leases: {
      readonly ours: Receipt;
      readonly by: BucketStore;
      readonly theirs: Receipt;
      readonly amounts: Amounts;
      readonly resource: string;
    }[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      await clock.advance(random() < 0.1 ? between(random, 0, 99_999) : between(random, 0, 699));
      const by = pick(random, processes);
      if (random() < 0.4 && leases.length > 0) {
        const lease = leases.splice(Math.floor(random() * leases.length), 1)[0]!;
        if (random() < 0.5) {
          await lease.by.giveBack(lease.ours);
          memory.giveBack(lease.theirs);
        } else {
          const amounts = Object.fromEntries(
            Object.keys(lease.amounts).map((name) => [
              name,
              between(random, 0, 39) - getAmount(lease.amounts, name),
            ]),
          );
          await lease.by.settle(lease.ours, [{ resource: lease.resource, amounts }]);
          memory.settle(lease.theirs, [{ resource: lease.resource, amounts }]);
        }
      } else {
        const names = policies.get(child)!.map(({ name }) => name);
        const amounts = Object.fromEntries(
          names.filter(() => random() < 0.7).map((name) => [name, between(random, 0, 7)]),
        );
        const resource = pick(random, resources);
        const request = requestFor(child, amounts, { resource });
        const ours = await by.consume(request);
        const theirs = memory.consume(request);
        expect(getAnswer(ours), `seed ${seed}, step ${step}`).toEqual(getAnswer(theirs));
        if (ours.granted && theirs.granted) {
          expect(await by.remembered(ours.receipt), `seed ${seed}, step ${step}`).toEqual(
            memory.remembered(theirs.receipt),
          );
          leases.push({ ours: ours.receipt, by, theirs: theirs.receipt, amounts, resource });
        }
      }
      for (const id of [child, parent]) {
        const stored = await by.ofEntity(id, undefined);
        expect(listBalances(stored, clock.now()), `seed ${seed}, step ${step}, ${id}`).toEqual(
          listBalances(memory.ofEntity(id, undefined), clock.now()),
        );
      }
    }
  }
});

function someLimits(random: Random): readonly Limit[] {
  const some = NAMES.filter(() => random() < 0.7);
  return (some.length === 0 ? ["rpm"] : some).map((name) =>
    Limit.custom({
      name,
      capacity: between(random, 1, 20),
      refillAmount: between(random, 1, 30),
      refillPeriodSeconds: pick(random, [1, 7, 60, 3600]),
    }),
  );
}

function getAnswer(outcome: ConsumeOutcome): unknown {
  return outcome.granted
    ? { granted: true, names: outcome.limitNames.map((names) => [...names].sort()) }
    : outcome;
}

function listBalances(
  stored: readonly { readonly resource: string; readonly bucket: Bucket }[],
  nowMs: number,
): unknown {
  return stored
    .flatMap(({ resource, bucket }) =>
      bucket.limits.map(({ limit, hidden }, index) => ({
        resource,
        name: limit.name,
        hidden,
        limit,
        balance: balanceMilli(bucket, index, nowMs),
      })),
    )
    .sort((left, right) =>
      `${left.resource}#${left.name}` < `${right.resource}#${right.name}` ? -1 : 1,
    );
}
