import { RateLimiterUnavailable, type RateLimit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { LARGEST_TICK_MS } from "../../src/repository/dynamodb/write/tick.ts";
import { bucketProcess, requestFor, type BucketProcess } from "./bucket-process.ts";
import { ProcessClock, SimulatedTime } from "./simulated-time.ts";
import { writtenKeys } from "./written-items.ts";

/** How far the clocks of processes are off. */
export const LARGEST_SKEW_MS = 2;
const ROUND_TRIP_MS = 6;
const AFTER_REFUSAL_MS = 5;

/** The callers and their limit. */
export interface CrowdLoad {
  readonly processes: number;
  /** Of each process, at once. */
  readonly calls: number;
  readonly limit: RateLimit;
}

/** The options of a crowd. */
export interface CrowdOptions extends Omit<CrowdLoad, "processes"> {
  readonly tableName: string;
  /** One for each process; several may share one. */
  readonly transports: readonly DynamoTransport[];
  /** @default what the library has */
  readonly largestTickMs?: number;
  /** How many shards the bucket has from the start. @default 1 */
  readonly shards?: number;
  /** @default as many as it has from the start */
  readonly maxShards?: number;
  /** @default 0, which reads before every refusal */
  readonly refusalMemoryMs?: number;
}

/** What was sent, as AWS bills small items. */
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
export class SimulatedCrowd {
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

  constructor({ calls, limit, transports, shards = 1, ...options }: CrowdOptions) {
    this.#calls = calls;
    this.#shards = shards;
    this.#processes = transports.map((transport, index) =>
      bucketProcess({
        largestTickMs: LARGEST_TICK_MS,
        maxShards: shards,
        homeNumber: shards === 1 ? undefined : index,
        ...options,
        transport: this.#distant(transport),
        clock: new ProcessClock(this.#time, Math.round((this.#random() * 2 - 1) * LARGEST_SKEW_MS)),
        seed: index,
        config: (key) => ({ limits: key.level === "system" ? [limit] : undefined }),
        requestTimeoutMs: 600_000,
      }),
    );
  }

  /** Lets all processes call for a time; returns how long it took, by simulated time. */
  async run(durationMs: number): Promise<number> {
    if (this.#shards > 1) await this.#passTimeDuring(this.#split());
    const startMs = this.#time.nowMs;
    const endMs = startMs + durationMs;
    const callers = this.#processes.flatMap((process) =>
      Array.from({ length: this.#calls }, async () => this.#call(process, endMs)),
    );
    await this.#passTimeDuring(Promise.all(callers));
    return this.#time.nowMs - startMs;
  }

  /** What was sent for each grant. */
  perGrant(unit: keyof Bill): number {
    return this.#bill[unit] / this.grants;
  }

  get failedWritesPerGrant(): number {
    return this.#sum("failedConditions") / this.grants;
  }

  get failedShare(): number {
    return this.#sum("failedConditions") / (this.#sum("failedConditions") + this.#sum("writes"));
  }

  /** The tokens taken according to the table, over all shards. */
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
  const { RequestItems = {} } = input as {
    readonly RequestItems?: Readonly<Record<string, { readonly Keys: readonly unknown[] }>>;
  };
  bill.requests += 1;
  const unitsEach = operation === "TransactWriteItems" ? 2 : 1;
  bill.writeUnits += unitsEach * writtenKeys(operation, input).length;
  for (const { Keys } of Object.values(RequestItems)) bill.readUnits += Keys.length;
}
