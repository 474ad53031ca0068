import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigKey } from "../../../src/core/bucket/policy.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeRequest } from "../../../src/repository/port.ts";
import type { StoredBucket } from "../../../src/repository/store.ts";
import { bucketProcess, requestFor, type BucketProcess } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { RoundTrips } from "../../support/round-trips.ts";
import { ThrottledItems } from "../../support/throttled-items.ts";

/** Turns of the event loop after which a process that got an answer has sent its next request. */
const TURNS = 3;

/** Seconds of simulated time are thousands of writes, on a machine that may be busy. */
const TIMEOUT_MS = 180_000;

const RESOURCE = "gpt-4";

/** Earns less than a token while a test lasts, so that what is left can be counted. */
const PLENTY: Limit = {
  name: "tokens",
  capacity: 40_000,
  refillAmount: 1,
  refillPeriodSeconds: 3600,
};

/** A steady load on one bucket, of processes that each send their share of it. */
interface Load {
  readonly processes: number;
  readonly perSecond: number;
  readonly seconds: number;
  readonly amount?: number;
  readonly limit?: Limit;
  readonly maxShards?: number;
  readonly tableUnitsPerSecond?: number;
}

describeWithEngine("a bucket under load", (engine) => {
  let tableName: string;
  let inner: DynamoTransport;
  let entities = 0;

  beforeAll(async () => {
    ({ transport: inner, tableName } = await connectToNewTable(engine().endpointUrl, {
      transport: "lean",
    }));
  });
  afterAll(() => inner.close());

  /** A load, and what comes of it. */
  class Stage {
    readonly #load: Load;
    readonly #clock = new ManualClock();
    readonly #entityId = `key-${(entities += 1)}`;
    readonly #processes: readonly BucketProcess[];
    readonly transport: ThrottledItems;
    readonly #trips: RoundTrips;
    granted = 0;
    unavailable = 0;
    /** Writes that were turned away, second by second. */
    readonly throttled: number[] = [];

    constructor(load: Load) {
      this.#load = load;
      this.transport = new ThrottledItems(inner, this.#clock, load);
      this.#trips = new RoundTrips(this.transport);
      this.#processes = Array.from({ length: load.processes }, (_, index) => this.open(index + 1));
    }

    get splits(): number {
      return this.#processes.reduce((sum, { counts }) => sum + counts.splits, 0);
    }

    open(seed: number): BucketProcess {
      const { limit = PLENTY, maxShards = 32 } = this.#load;
      return bucketProcess({
        transport: this.#trips,
        tableName,
        clock: this.#clock,
        seed,
        config: ({ level }: ConfigKey) => ({ limits: level === "system" ? [limit] : undefined }),
        maxShards,
        largestTickMs: 100,
        requestTimeoutMs: 10_000,
        cacheTtlMs: 24 * 3_600_000,
      });
    }

    request(amount: number): ConsumeRequest {
      const { name } = this.#load.limit ?? PLENTY;
      return requestFor(this.#entityId, { [name]: amount }, { resource: RESOURCE });
    }

    async run(): Promise<void> {
      const { processes, perSecond, seconds } = this.#load;
      const pauseMs = (processes * 1000) / perSecond;
      const underWay = new Set<Promise<void>>();
      const startMs = this.#clock.now();
      let throttledBefore = 0;
      while (this.#clock.now() < startMs + seconds * 1000) {
        for (const process of this.#processes) {
          const call: Promise<void> = this.#call(process).finally(() => underWay.delete(call));
          underWay.add(call);
        }
        await this.#quiet();
        await this.#clock.advance(pauseMs);
        if ((this.#clock.now() - startMs) % 1000 !== 0) continue;
        this.throttled.push(this.transport.throttled - throttledBefore);
        throttledBefore = this.transport.throttled;
      }
      while (underWay.size > 0) {
        await this.#quiet();
        await this.#clock.advance(1);
      }
    }

    /** The bucket's shards, in order. */
    async shards(): Promise<readonly StoredBucket[]> {
      return this.#processes[0]!.buckets.ofEntity(this.#entityId, RESOURCE);
    }

    /** What a separate client can take, asking for less and less. */
    async takenByLoneClient(): Promise<number> {
      const { buckets } = this.open(999);
      let taken = 0;
      for (const amount of [10_000, 1000, 100, 10, 1])
        while ((await buckets.consume(this.request(amount))).granted) taken += amount;
      return taken;
    }

    async #call({ buckets }: BucketProcess): Promise<void> {
      try {
        if ((await buckets.consume(this.request(this.#load.amount ?? 1))).granted)
          this.granted += 1;
      } catch (error) {
        if ((error as Error).name !== "RateLimiterUnavailable") throw error;
        this.unavailable += 1;
      }
    }

    /** Waits until nothing is under way, and no process continues before the clock moves. */
    async #quiet(): Promise<void> {
      for (let turn = 0; turn < TURNS; turn += 1) {
        while (!this.#trips.isIdle) await new Promise((resolve) => setImmediate(resolve));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  const load = async (options: Load): Promise<Stage> => {
    const stage = new Stage(options);
    await stage.run();
    return stage;
  };
  const shardCount = async (stage: Stage): Promise<number> => (await stage.shards())[0]!.shardCount;

  it(
    "3000 writes a second settle at 8 shards or fewer, and a lone client finds all tokens that are left",
    async () => {
      const stage = await load({ processes: 60, perSecond: 3000, seconds: 5 });
      // 3000 writes need 4 shards, at 750 a second each; failed conditions and homes that are not
      // spread evenly may make one of them hot.
      expect([4, 8]).toContain(await shardCount(stage));
      expect(stage.throttled[0]).toBeGreaterThan(0);
      // Its rate shows after a second, and it is doubled every two seconds.
      expect(stage.throttled.slice(4)).toEqual([0]);
      // A call that no shard served was not charged. They are few, and all before the
      // bucket had its shards.
      expect(stage.unavailable).toBeLessThan(stage.granted / 20);
      expect(stage.granted + stage.unavailable).toBe(15_000);
      expect(stage.granted + (await stage.takenByLoneClient())).toBe(PLENTY.capacity);
      // No shard was left behind with tokens that no process takes.
      for (const { bucket } of await stage.shards()) expect(bucket.balances[0]).toBeLessThan(1000);
    },
    TIMEOUT_MS,
  );

  it(
    "the rate of its writes splits a bucket before it is throttled, once",
    async () => {
      const stage = await load({ processes: 45, perSecond: 900, seconds: 3 });
      expect(stage.transport.throttled).toBe(0);
      expect(stage.unavailable).toBe(0);
      expect([
        stage.splits,
        (await stage.shards()).map(({ shardCount: divisor }) => divisor),
      ]).toEqual([1, [2, 2]]);
      expect(stage.granted + (await stage.takenByLoneClient())).toBe(PLENTY.capacity);
    },
    TIMEOUT_MS,
  );

  it.each([
    ["where splitting is turned off", { maxShards: 1 }],
    [
      "whose halves would hold less than a token",
      { limit: Limit.perMinute("tokens", 1), amount: 0 },
    ],
  ])(
    "a bucket stays one, %s",
    async (_, options) => {
      const stage = await load({ processes: 45, perSecond: 900, seconds: 1.5, ...options });
      expect([stage.splits, await shardCount(stage)]).toEqual([0, 1]);
      expect(stage.granted).toBe(1350);
    },
    TIMEOUT_MS,
  );

  it(
    "a table that has too little throughput for all splits no bucket",
    async () => {
      const stage = await load({
        processes: 6,
        perSecond: 300,
        seconds: 5,
        tableUnitsPerSecond: 100,
      });
      expect(stage.transport.throttled).toBeGreaterThan(500);
      expect([stage.splits, await shardCount(stage)]).toEqual([0, 1]);
    },
    TIMEOUT_MS,
  );
});
