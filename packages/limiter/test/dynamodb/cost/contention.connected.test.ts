import { beforeAll, expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { LARGEST_TICK_MS } from "../../../src/repository/dynamodb/write/tick.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { ProcessClock, SimulatedTime } from "../../support/simulated-time.ts";
import { bucketProcess, requestFor, type BucketProcess } from "../../support/bucket-process.ts";
import { connectToNewTable, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";

const RUN_MS = 1000;
const LARGEST_SKEW_MS = 2;
const ROUND_TRIP_MS = 6;
const AFTER_REFUSAL_MS = 5;

describeWithEngine("processes on one bucket", (engine) => {
  let table: ConnectedTable;

  beforeAll(async () => {
    table = await connectToNewTable(engine().endpointUrl);
  });

  /** The same crowd, with the tick and without. */
  async function withAndWithoutTick(load: Load): Promise<readonly [Crowd, Crowd]> {
    const [ticking, exact] = [LARGEST_TICK_MS, 1].map(
      (largestTickMs) => new Crowd({ ...table, ...load, largestTickMs }),
    ) as [Crowd, Crowd];
    for (const crowd of [ticking, exact]) {
      const givenMs = await crowd.run();
      const { capacity, refillAmount } = load.limit;
      expect(crowd.grants).toBeLessThanOrEqual(
        capacity + (refillAmount * (givenMs + LARGEST_SKEW_MS)) / 1000,
      );
      expect(await crowd.consumed()).toBe(crowd.grants);
    }
    expect(ticking.contended).toBe(0);
    return [ticking, exact];
  }

  it.each([
    [200, 0.75],
    [1000, 1],
  ])(
    "processes get what a bucket gives or are refused, however much more they ask for: %i a second",
    async (rate, share) => {
      const limit = Limit.perSecond("rps", rate, { burst: rate / 4 });
      const [ticking, exact] = await withAndWithoutTick({ processes: 8, calls: 4, limit });
      expect(ticking.grants).toBeGreaterThan(rate);
      expect(ticking.failedWritesPerGrant).toBeLessThan(share * exact.failedWritesPerGrant);
    },
  );

  it.each([2, 8])(
    "processes fail each other's writes much less with a tick than without: %i of them",
    async (processes) => {
      // Earns more than is taken, so it is full again with every new millisecond, and every write
      // by a newer time must refill it.
      const limit = Limit.perSecond("rps", 2000, { burst: 1000 });
      const [ticking, exact] = await withAndWithoutTick({ processes, calls: 1, limit });
      expect(exact.failedShare).toBeGreaterThan(0.3);
      expect(ticking.failedShare).toBeLessThan(exact.failedShare / 2);
    },
  );

  it("an exhausted bucket with shards refuses, and costs about as much for each grant as a whole one", async () => {
    const limit = Limit.perSecond("rps", 200, { burst: 50 });
    const load = { processes: 3, calls: 16, limit, refusalMemoryMs: 1000 };
    const [whole, sharded] = [1, 4].map(
      (shards) => new Crowd({ ...table, ...load, shards, largestTickMs: LARGEST_TICK_MS }),
    ) as [Crowd, Crowd];
    for (const crowd of [whole, sharded]) {
      await crowd.run();
      expect(crowd.contended).toBe(0);
      expect(crowd.grants).toBeGreaterThan(200);
      expect(crowd.refusals).toBeGreaterThan(crowd.grants);
      expect(await crowd.consumed()).toBe(crowd.grants);
    }
    // Tokens that come to four shards make smaller batches; all else costs hardly more.
    expect(sharded.perGrant("requests")).toBeLessThan(2.5 * whole.perGrant("requests"));
    expect(sharded.perGrant("writeUnits")).toBeLessThan(2.5 * whole.perGrant("writeUnits"));
    expect(sharded.perGrant("readUnits")).toBeLessThan(3);
  });
});

/** Who asks for what. */
interface Load {
  readonly processes: number;
  /** Of each process, at once. */
  readonly calls: number;
  readonly limit: Limit;
  /** @default 1 */
  readonly shards?: number;
  /** @default 0 */
  readonly refusalMemoryMs?: number;
}

interface CrowdOptions extends Load, Pick<ConnectedTable, "transport" | "tableName"> {
  readonly largestTickMs: number;
}

interface Bill {
  requests: number;
  writeUnits: number;
  readUnits: number;
}

let crowds = 0;

/**
 * Processes on one bucket, each with calls that come again at once when granted; time is simulated,
 * the table is real.
 */
class Crowd {
  readonly #time = new SimulatedTime(1_800_000_000_000);
  readonly #random = seededRandom(7);
  readonly #processes: readonly BucketProcess[];
  readonly #calls: number;
  readonly #clock = new ProcessClock(this.#time, 0);
  readonly #entityId = `crowd-${(crowds += 1)}`;
  /** Requests that the table has not answered yet: no time passes until it has. */
  readonly #asked = new Set<Promise<unknown>>();
  readonly #bill: Bill = { requests: 0, writeUnits: 0, readUnits: 0 };
  readonly #shards: number;
  grants = 0;
  refusals = 0;
  contended = 0;

  constructor(options: CrowdOptions) {
    const { transport, tableName, processes, calls, limit, largestTickMs, shards = 1 } = options;
    this.#calls = calls;
    this.#shards = shards;
    this.#processes = Array.from({ length: processes }, (_, index) =>
      bucketProcess({
        transport: this.#distant(transport),
        tableName,
        largestTickMs,
        clock: new ProcessClock(this.#time, Math.round((this.#random() * 2 - 1) * LARGEST_SKEW_MS)),
        seed: index,
        config: (key) => ({ limits: key.level === "system" ? [limit] : undefined }),
        maxShards: shards,
        homeNumber: shards === 1 ? undefined : index,
        refusalMemoryMs: options.refusalMemoryMs ?? 0,
        requestTimeoutMs: 600_000,
      }),
    );
  }

  /** Returns how long it took, by simulated time. */
  async run(): Promise<number> {
    if (this.#shards > 1) await this.#passTimeDuring(this.#split());
    const startMs = this.#time.nowMs;
    const endMs = startMs + RUN_MS;
    const callers = this.#processes.flatMap((process) =>
      Array.from({ length: this.#calls }, async () => this.#call(process, endMs)),
    );
    await this.#passTimeDuring(Promise.all(callers));
    return this.#time.nowMs - startMs;
  }

  /** What was sent for each grant, as AWS bills small items. */
  perGrant(unit: keyof Bill): number {
    return this.#bill[unit] / this.grants;
  }

  get failedWritesPerGrant(): number {
    return this.#sum("failedConditions") / this.grants;
  }

  get failedShare(): number {
    return this.#sum("failedConditions") / (this.#sum("failedConditions") + this.#sum("writes"));
  }

  /** What the table says was taken. */
  async consumed(): Promise<number> {
    const buckets = await this.#passTimeDuring(
      this.#processes[0]!.buckets.ofEntity(this.#entityId, "r"),
    );
    return buckets.reduce((sum, { bucket }) => sum + bucket.balances[2]!, 0) / 1000;
  }

  async #call({ buckets }: BucketProcess, endMs: number): Promise<void> {
    await this.#clock.sleep(this.#random() * 10);
    while (this.#time.nowMs < endMs) {
      try {
        const { granted } = await buckets.consume(requestFor(this.#entityId, { rps: 1 }));
        if (granted) this.grants += 1;
        else {
          this.refusals += 1;
          await this.#clock.sleep(AFTER_REFUSAL_MS);
        }
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        this.contended += 1;
      }
    }
  }

  async #split(): Promise<void> {
    const { buckets } = this.#processes[0]!;
    await buckets.consume(requestFor(this.#entityId, { rps: 0 }));
    await buckets.split(this.#entityId, "r", this.#shards);
  }

  async #passTimeDuring<T>(work: Promise<T>): Promise<T> {
    const over = work.then(() => true);
    while (
      !(await Promise.race([
        over,
        new Promise<false>((resolve) => setImmediate(() => resolve(false))),
      ]))
    ) {
      if (this.#asked.size > 0) await Promise.allSettled(this.#asked);
      else if (this.#time.isAnybodyAsleep) this.#time.advance(this.#time.untilFirstWakesMs());
    }
    return work;
  }

  #sum(count: "writes" | "failedConditions"): number {
    return this.#processes.reduce((sum, { counts }) => sum + counts[count], 0);
  }

  #distant(table: DynamoTransport): DynamoTransport {
    const halfWay = async (): Promise<void> =>
      this.#clock.sleep(ROUND_TRIP_MS * (0.25 + 0.5 * this.#random()));
    return {
      close: () => {},
      call: async (operation, input, options) => {
        addTo(this.#bill, operation, input);
        await halfWay();
        const answer = table.call(operation, input, options);
        this.#asked.add(answer);
        await Promise.allSettled([answer]);
        this.#asked.delete(answer);
        await halfWay();
        return answer;
      },
    };
  }
}

/** Adds a request as AWS bills it: failed conditions too, and writes of a transaction twice. */
function addTo(bill: Bill, operation: string, input: object): void {
  const { TransactItems = [], RequestItems = {} } = input as {
    readonly TransactItems?: readonly unknown[];
    readonly RequestItems?: Readonly<Record<string, { readonly Keys: readonly unknown[] }>>;
  };
  bill.requests += 1;
  if (operation === "UpdateItem" || operation === "PutItem") bill.writeUnits += 1;
  bill.writeUnits += 2 * TransactItems.length;
  for (const { Keys } of Object.values(RequestItems)) bill.readUnits += Keys.length;
}
