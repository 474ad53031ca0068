import { afterAll, beforeAll, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import type { ConfigKey } from "../../../src/core/bucket/policy.ts";
import type { ConsumeRequest, Receipt } from "../../../src/repository/port.ts";
import type { StoredConfig } from "../../../src/repository/store.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { bucketProcess, requestFor } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { between } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { describeWithTransports } from "../../support/transports.ts";

const SEEDS = seedsFromEnvironment({ usual: 8 });
const STEPS = 80;
const MOST_SKEW_MS = 3000;
const limit = Limit.custom({ name: "tps", capacity: 20, refillAmount: 7, refillPeriodSeconds: 1 });

/**
 * Three processes whose clocks differ, drift apart and step back: the simulation's exact oracle
 * needs one clock, this bound does not.
 */
describeWithTransports("processes whose clocks differ", (engine, name) => {
  let transport: DynamoTransport;
  let tableName: string;

  beforeAll(async () => {
    ({ transport, tableName } = await connectToNewTable(engine().endpointUrl, { transport: name }));
  });
  afterAll(() => transport.close());

  it(`processes get at most the capacity and what the latest clock earned, over ${SEEDS.count} seeds [W-50]`, async () => {
    let refusals = 0;
    for (const seed of getEach(SEEDS)) refusals += await run(seed);
    expect(refusals).toBeGreaterThan(0);
  }, 120_000);

  it("a process whose clock was set back asks the table again before it refuses", async () => {
    const clock = new ManualClock(1_800_000_000_000);
    const [one, other] = [1, 2].map(
      (seed) => bucketProcess({ transport, tableName, clock, seed, config }).buckets,
    );
    const taken = await other!.consume(toCall(limit.capacity));
    expect((await one!.consume(toCall(1))).granted).toBe(false);
    if (taken.granted) await other!.giveBack(taken.receipt);
    clock.set(clock.now() - 60_000);
    expect((await one!.consume(toCall(1))).granted).toBe(true);
  });

  async function run(seed: number): Promise<number> {
    const random = seededRandom(seed);
    const whole = (most: number): number => between(random, 0, most);
    const processes = [1, 2, 3].map((which) => {
      const clock = new ManualClock(1_800_000_000_000 + whole(MOST_SKEW_MS));
      return {
        clock,
        buckets: bucketProcess({ transport, tableName, clock, seed: seed * 10 + which, config })
          .buckets,
      };
    });
    const leases: {
      readonly receipt: Receipt;
      readonly tps: number;
      readonly by: (typeof processes)[number];
    }[] = [];
    let createdMs: number | undefined;
    let latestMs = 0;
    let net = 0;
    let refusals = 0;
    for (let step = 0; step < STEPS; step += 1) {
      const by = processes[whole(2)]!;
      by.clock.set(by.clock.now() + (random() < 0.15 ? -whole(MOST_SKEW_MS) : whole(400)));
      latestMs = Math.max(latestMs, ...processes.map(({ clock }) => clock.now()));
      const ending = random() < 0.25 ? leases.pop() : undefined;
      if (ending !== undefined) {
        await ending.by.buckets.giveBack(ending.receipt);
        net -= ending.tps;
        continue;
      }
      const tps = whole(8);
      const outcome = await by.buckets.consume(requestFor(`e-${seed}`, { tps }));
      if (!outcome.granted) {
        refusals += 1;
        continue;
      }
      createdMs ??= by.clock.now();
      leases.push({ receipt: outcome.receipt, tps, by });
      net += tps;
      const earned =
        (limit.refillAmount * Math.max(0, latestMs - createdMs)) /
        (limit.refillPeriodSeconds * 1000);
      expect(net, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(limit.capacity + earned);
    }
    const [stored] = await processes[0]!.buckets.ofEntity(`e-${seed}`, "r");
    expect(stored!.bucket.balances[2]).toBe(net * 1000);
    return refusals;
  }
});

function toCall(tps: number): ConsumeRequest {
  return requestFor("set-back", { tps });
}

function config(key: ConfigKey): StoredConfig {
  return { limits: key.level === "system" ? [limit] : undefined };
}
