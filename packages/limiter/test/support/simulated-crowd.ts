import { RateLimiterUnavailable, type Limit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { LARGEST_TICK_MS } from "../../src/repository/dynamodb/write/tick.ts";
import { bucketProcess, requestFor, type BucketProcess } from "./bucket-process.ts";
import { ProcessClock, SimulatedTime } from "./simulated-time.ts";

/** How far the clocks of processes are off. */
export const LARGEST_SKEW_MS = 2;
const ROUND_TRIP_MS = 6;
const AFTER_REFUSAL_MS = 5;

/** Who asks for what. */
export interface CrowdLoad {
  readonly processes: number;
  /** Of each process, at once. */
  readonly calls: number;
  readonly limit: Limit;
}

/** What a crowd is made of. */
export interface CrowdOptions extends Omit<CrowdLoad, "processes"> {
  readonly tableName: string;
  /** One for each process; several may share one. */
  readonly transports: readonly DynamoTransport[];
  /** @default what the library has */
  readonly largestTickMs?: number;
  /** @default 1 */
  readonly maxShards?: number;
  /** @default 0, which reads before every refusal */
  readonly refusalMemoryMs?: number;
}

let crowds = 0;

/**
 * Processes on one bucket, each with calls that come again at once when granted; time is simulated,
 * the table is real.
 */
export class SimulatedCrowd {
  readonly #time = new SimulatedTime(1_800_000_000_000);
  readonly #random = seededRandom(7);
  readonly #processes: readonly BucketProcess[];
  readonly #calls: number;
  readonly #clock = new ProcessClock(this.#time, 0);
  readonly #entityId = `crowd-${(crowds += 1)}`;
  /** Requests that the table has not answered yet: no time passes until it has. */
  readonly #asked = new Set<Promise<unknown>>();
  grants = 0;
  refusals = 0;
  contended = 0;

  constructor({ calls, limit, transports, maxShards = 1, ...options }: CrowdOptions) {
    this.#calls = calls;
    this.#processes = transports.map((transport, index) =>
      bucketProcess({
        largestTickMs: LARGEST_TICK_MS,
        ...options,
        transport: this.#distant(transport),
        maxShards,
        clock: new ProcessClock(this.#time, Math.round((this.#random() * 2 - 1) * LARGEST_SKEW_MS)),
        seed: index,
        config: (key) => ({ limits: key.level === "system" ? [limit] : undefined }),
        requestTimeoutMs: 600_000,
      }),
    );
  }

  /** Lets everybody call for so long; returns how long it took, by simulated time. */
  async run(durationMs: number): Promise<number> {
    const startMs = this.#time.nowMs;
    const endMs = startMs + durationMs;
    const callers = this.#processes.flatMap((process) =>
      Array.from({ length: this.#calls }, async () => this.#call(process, endMs)),
    );
    await this.#passTimeDuring(Promise.all(callers));
    return this.#time.nowMs - startMs;
  }

  get failedWritesPerGrant(): number {
    return this.#sum("failedConditions") / this.grants;
  }

  get failedShare(): number {
    return this.#sum("failedConditions") / (this.#sum("failedConditions") + this.#sum("writes"));
  }

  /** What the table says was taken, over all shards. */
  async consumed(): Promise<number> {
    const shards = await this.#passTimeDuring(
      this.#processes[0]!.buckets.ofEntity(this.#entityId, "r"),
    );
    return shards.reduce((sum, { bucket }) => sum + bucket.balances[2]!, 0) / 1000;
  }

  async #call({ buckets }: BucketProcess, endMs: number): Promise<void> {
    await this.#clock.sleep(this.#random() * 10);
    while (this.#time.nowMs < endMs) {
      try {
        const { granted } = await buckets.consume(requestFor(this.#entityId, { rps: 1 }));
        if (granted) {
          this.grants += 1;
        } else {
          this.refusals += 1;
          await this.#clock.sleep(AFTER_REFUSAL_MS);
        }
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        this.contended += 1;
      }
    }
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
