import { beforeAll, expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { Connection } from "../../src/repository/dynamodb/connection.ts";
import { sdkTransport } from "../../src/repository/dynamodb/sdk-transport.ts";
import { createTable } from "../../src/repository/dynamodb/table.ts";
import { LARGEST_TICK_MS } from "../../src/repository/dynamodb/tick.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { systemClock, systemRandom } from "../../src/repository/system-clock.ts";
import { ProcessClock, SimulatedTime } from "../hot-keys/simulated-time.ts";
import { bucketProcess, type BucketProcess } from "./bucket-process.ts";
import { describeWithEngine, freshTableName } from "./engine.ts";

const PROCESSES = 8;
const CALLS = 4;
const RUN_MS = 1000;
const LARGEST_SKEW_MS = 2;
const ROUND_TRIP_MS = 6;
const AFTER_REFUSAL_MS = 5;

describeWithEngine("eight processes that ask for more than their bucket gives", (engine) => {
  let transport: DynamoTransport;
  const tableName = freshTableName();

  beforeAll(async () => {
    ({ transport } = await sdkTransport({ region: "eu-west-1", endpointUrl: engine().endpointUrl }));
    const options = { transport, tableName, clock: systemClock, random: systemRandom, requestTimeoutMs: 5000, maxAttempts: 3 };
    await createTable(new Connection(options), { stream: false });
  });

  it.each([
    [200, 0.75],
    [1000, 1],
  ])("get what it gives or are refused, and the tick keeps them from disturbing each other: %i a second", async (rate, share) => {
    const [ticking, exact] = [LARGEST_TICK_MS, 1].map((largestTickMs) => new Crowd({ transport, tableName, rate, largestTickMs }));
    for (const crowd of [ticking!, exact!]) {
      const givenMs = await crowd.run();
      expect(crowd.grants).toBeLessThanOrEqual(rate / 4 + (rate * (givenMs + LARGEST_SKEW_MS)) / 1000);
    }
    expect(ticking!.contended).toBe(0);
    expect(ticking!.grants).toBeGreaterThan(rate);
    expect(ticking!.failedWritesPerGrant()).toBeLessThan(share * exact!.failedWritesPerGrant());
  });
});

let crowds = 0;

/** Processes on one bucket, each with calls that come again at once when granted; time is simulated, the table is real. */
class Crowd {
  readonly #time = new SimulatedTime(1_800_000_000_000);
  readonly #random = seededRandom(7);
  readonly #processes: readonly BucketProcess[];
  readonly #clock = new ProcessClock(this.#time, 0);
  readonly #entityId = `crowd-${(crowds += 1)}`;
  /** Requests that the table has not answered yet: no time passes until it has. */
  readonly #asked = new Set<Promise<unknown>>();
  grants = 0;
  contended = 0;

  constructor(options: {
    readonly transport: DynamoTransport;
    readonly tableName: string;
    readonly rate: number;
    readonly largestTickMs: number;
  }) {
    const limits = [Limit.perSecond("rps", options.rate, { burst: options.rate / 4 })];
    this.#processes = Array.from({ length: PROCESSES }, (_, index) =>
      bucketProcess({
        ...options,
        transport: this.#distant(options.transport),
        clock: new ProcessClock(this.#time, Math.round((this.#random() * 2 - 1) * LARGEST_SKEW_MS)),
        seed: index,
        config: (key) => ({ limits: key.level === "system" ? limits : undefined }),
        maxShards: 1,
        requestTimeoutMs: 600_000,
      }),
    );
  }

  /** Answers how long it took, by simulated time. */
  async run(): Promise<number> {
    const startMs = this.#time.nowMs;
    const endMs = startMs + RUN_MS;
    const callers = this.#processes.flatMap((process) => Array.from({ length: CALLS }, async () => this.#call(process, endMs)));
    const over = Promise.all(callers).then(() => true);
    while (!(await Promise.race([over, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]))) {
      if (this.#asked.size > 0) await Promise.allSettled(this.#asked);
      else if (this.#time.isAnybodyAsleep) this.#time.advance(this.#time.untilFirstWakesMs());
    }
    return this.#time.nowMs - startMs;
  }

  failedWritesPerGrant(): number {
    return this.#processes.reduce((sum, { counts }) => sum + counts.failedConditions, 0) / this.grants;
  }

  async #call({ buckets }: BucketProcess, endMs: number): Promise<void> {
    await this.#clock.sleep(this.#random() * 10);
    while (this.#time.nowMs < endMs) {
      try {
        const request = { entityId: this.#entityId, charges: [{ resource: "r", amounts: { rps: 1 } }], override: undefined };
        const { granted } = await buckets.consume(request);
        if (granted) this.grants += 1;
        else await this.#clock.sleep(AFTER_REFUSAL_MS);
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        this.contended += 1;
      }
    }
  }

  #distant(table: DynamoTransport): DynamoTransport {
    const halfWay = async (): Promise<void> => this.#clock.sleep(ROUND_TRIP_MS * (0.25 + 0.5 * this.#random()));
    return {
      close: () => {},
      call: async (operation, input, options) => {
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
