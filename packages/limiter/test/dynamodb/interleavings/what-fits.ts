/*
 * Liveness: what fits is granted. Several processes take from the same buckets, which do not exist
 * at first, with or without parents, from one resource or two; some buckets are split and some
 * limits changed meanwhile. Requests are carried out and answered in any order, and the statements
 * of a batch one by one, but none is on its way for longer than the latency of its seed. Callers
 * give nothing back and nothing is earned, so the balances of calls that count only fall. Whatever
 * was refused must therefore not fit in the end: if it did, the same calls one after another, with
 * this one last, would all have been granted.
 */
import { Limit, RateLimiterUnavailable, ValidationError, type RateLimit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { getStoredMilli } from "../../../src/core/bucket/bucket.ts";
import { bucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeRequest } from "../../../src/repository/port.ts";
import type { Random } from "../../../src/repository/system-clock.ts";
import { bucketProcess, NAMESPACE_ID, type BucketProcess } from "../../support/bucket-process.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { ProcessClock, SimulatedTime } from "../../support/simulated-time.ts";
import { settle } from "./schedule.ts";

/** The longest that a request takes to arrive, and its reply to come back; one for each seed. */
const LATENCIES_MS = [1, 3, 10, 30];

/** Calls that one process has under way at most. */
const MOST_UNDER_WAY = 8;

/** What became of the calls of one seed. */
export interface Played {
  readonly granted: number;
  readonly refused: number;
  /** Takes that were given back because another bucket refused. */
  readonly undone: number;
  readonly contended: number;
  readonly longestMs: number;
}

/** Lets processes call; throws when a call was refused that fitted. */
export async function playCalls(
  seed: number,
  table: { readonly transport: DynamoTransport; readonly tableName: string },
): Promise<Played> {
  const world = new World(seed, table);
  try {
    await world.play();
    return await world.check();
  } catch (error) {
    throw new Error(`Seed ${seed} fails (again: SEED=${seed} SEEDS=1): ${String(error)}`, {
      cause: error,
    });
  }
}

interface Call {
  readonly request: ConsumeRequest;
  readonly beganMs: number;
  endedMs: number;
  outcome: "granted" | "refused" | "contended" | undefined;
}

interface Caller {
  readonly process: BucketProcess;
  readonly underWay: Set<Call>;
}

class World {
  readonly #random: Random;
  readonly #time = new SimulatedTime(1_800_000_000_000);
  readonly #network: Network;
  readonly #table: { readonly transport: DynamoTransport; readonly tableName: string };
  readonly #seed: number;
  readonly #entityIds: readonly string[];
  readonly #parentId: string | undefined;
  readonly #resources: readonly string[];
  readonly #limits = new Map<string, readonly RateLimit[]>();
  readonly #processes: readonly Caller[];
  readonly #calls: Call[] = [];
  #left: { calls: number; splits: number; changes: number };
  /** Whether all calls begin at the same time. */
  readonly #isBurst: boolean;
  /** Whether limits that change become lower; otherwise higher. */
  readonly #isLowered: boolean;
  #failure: unknown;

  constructor(
    seed: number,
    table: { readonly transport: DynamoTransport; readonly tableName: string },
  ) {
    const random = seededRandom(seed);
    this.#random = random;
    this.#table = table;
    this.#seed = seed;
    this.#network = new Network(table.transport, this.#time, random);
    this.#parentId = random() < 0.7 ? `parent-${seed}` : undefined;
    this.#entityIds = Array.from({ length: between(random, 1, 3) }, (_, n) => `e-${seed}-${n}`);
    this.#resources = random() < 0.4 ? ["a", "b"] : ["a"];
    for (const id of [...this.#entityIds, this.#parentId])
      if (id !== undefined) this.#setLimit(id, between(random, 3, 25));
    this.#isBurst = random() < 0.5;
    this.#isLowered = random() < 0.5;
    const isReshaped = random() < 0.3;
    this.#left = {
      calls: between(random, 10, 120),
      splits: isReshaped ? between(random, 1, 3) : 0,
      changes: random() < 0.3 ? between(random, 1, 3) : 0,
    };
    const shareRequests = random() < 0.6;
    const refusalMemoryMs = pick(random, [0, 1000]);
    this.#processes = Array.from({ length: between(random, 1, 5) }, (_, number) => ({
      process: this.#open(number, { transport: this.#network, shareRequests, refusalMemoryMs }),
      underWay: new Set<Call>(),
    }));
  }

  /** One thing after another, until every call has ended. */
  async play(): Promise<void> {
    for (;;) {
      await settle();
      if (this.#failure !== undefined) throw this.#failure;
      const idle = this.#processes.filter(({ underWay }) => underWay.size < MOST_UNDER_WAY);
      const isDone = this.#left.calls === 0 && idle.length === this.#processes.length;
      if (isDone && this.#processes.every(({ underWay }) => underWay.size === 0)) return;
      if (this.#isBurst && this.#left.calls > 0) {
        this.#start(pick(this.#random, this.#processes));
        continue;
      }
      const events = [
        ...(this.#left.calls > 0 && idle.length > 0
          ? [() => this.#start(pick(this.#random, idle))]
          : []),
        ...(this.#network.isBusy
          ? Array.from({ length: 4 }, () => () => this.#network.pass())
          : []),
        ...(this.#left.splits > 0 ? [() => this.#split()] : []),
        ...(this.#left.changes > 0 ? [() => this.#changeSome()] : []),
        ...(this.#network.spareMs > 0 ? [() => this.#wait()] : []),
      ];
      await pick(this.#random, events)();
    }
  }

  /** What was refused does not fit now, when all others are decided. */
  async check(): Promise<Played> {
    const process = this.#open(99, { transport: this.#table.transport });
    const left = new Map<string, number>();
    let undone = 0;
    for (const entityId of this.#limits.keys())
      for (const resource of this.#resources) {
        const name = { namespaceId: NAMESPACE_ID, entityId, resource, shard: 0 };
        const { shards } = await process.known.readAll(bucketKey(name, undefined));
        for (const { image } of shards) {
          undone += image.undone ?? 0;
          const milli = getStoredMilli(image.bucket, 0);
          const key = `${entityId}/${resource}`;
          left.set(key, (left.get(key) ?? 0) + milli);
        }
      }
    for (const { request, outcome } of this.#calls) {
      if (outcome !== "refused") continue;
      const isShort = this.#charged(request.entityId).some((entityId) =>
        request.resources.some(
          ({ resource, amounts }) =>
            Math.min(
              left.get(`${entityId}/${resource}`) ?? Infinity,
              this.#capacityMilli(entityId),
            ) <
            amounts["n"]! * 1000,
        ),
      );
      if (!isShort)
        throw new Error(
          `refused although it fits: ${JSON.stringify(request)} of ${JSON.stringify([...left])}`,
        );
    }
    const count = (wanted: Call["outcome"]): number =>
      this.#calls.filter(({ outcome }) => outcome === wanted).length;
    return {
      granted: count("granted"),
      refused: count("refused"),
      contended: count("contended"),
      undone,
      longestMs: Math.max(...this.#calls.map(({ beganMs, endedMs }) => endedMs - beganMs)),
    };
  }

  #open(
    number: number,
    options: Pick<Parameters<typeof bucketProcess>[0], "transport"> &
      Partial<Parameters<typeof bucketProcess>[0]>,
  ): BucketProcess {
    return bucketProcess({
      tableName: this.#table.tableName,
      clock: new ProcessClock(this.#time, 0),
      seed: this.#seed * 100 + number,
      config: (key) => ({
        limits:
          key.level === "entity" && key.resource === "_default_"
            ? this.#limits.get(key.entityId)
            : undefined,
      }),
      parents: Object.fromEntries(
        this.#parentId === undefined ? [] : this.#entityIds.map((id) => [id, this.#parentId!]),
      ),
      cacheTtlMs: 0,
      requestTimeoutMs: 600_000,
      ...options,
    });
  }

  #capacityMilli(entityId: string): number {
    return this.#limits.get(entityId)![0]!.capacity * 1000;
  }

  #charged(entityId: string): readonly string[] {
    return this.#parentId === undefined ? [entityId] : [entityId, this.#parentId];
  }

  #start({ process, underWay }: Caller): void {
    this.#left.calls -= 1;
    const random = this.#random;
    const resources = this.#resources.toSorted(() => random() - 0.5);
    const named = resources.slice(0, between(random, 1, resources.length));
    const request = {
      entityId: pick(random, this.#entityIds),
      resources: named.map((resource) => ({
        resource,
        amounts: { n: random() < 0.5 ? 1 : between(random, 1, 6) },
      })),
      override: undefined,
    };
    const call: Call = { request, beganMs: this.#time.nowMs, endedMs: 0, outcome: undefined };
    this.#calls.push(call);
    underWay.add(call);
    const end = (outcome: Call["outcome"]): void => {
      call.outcome = outcome;
      call.endedMs = this.#time.nowMs;
      underWay.delete(call);
    };
    Promise.resolve()
      .then(() => process.buckets.consume(request))
      .then(
        ({ granted }) => end(granted ? "granted" : "refused"),
        (error: unknown) => {
          if (!(error instanceof RateLimiterUnavailable)) this.#failure = error;
          end("contended");
        },
      );
  }

  #split(): void {
    this.#left.splits -= 1;
    const { process } = pick(this.#random, this.#processes);
    const entityId = pick(this.#random, [...this.#limits.keys()]);
    process.buckets
      .split(entityId, pick(this.#random, this.#resources), pick(this.#random, [2, 4]))
      .catch((error: unknown) => {
        const isExpected =
          error instanceof ValidationError || error instanceof RateLimiterUnavailable;
        if (!isExpected) this.#failure = error;
      });
  }

  /** Only up or only down: what was refused under a limit must not fit under a later one. */
  #changeSome(): void {
    this.#left.changes -= 1;
    const entityId = pick(this.#random, [...this.#limits.keys()]);
    const { capacity } = this.#limits.get(entityId)![0]!;
    const [least, most] = this.#isLowered ? [3, capacity] : [capacity, 25];
    this.#setLimit(entityId, between(this.#random, least, most));
  }

  #setLimit(entityId: string, capacity: number): void {
    this.#limits.set(entityId, [
      Limit.custom({ name: "n", capacity, refillAmount: 1, refillPeriodSeconds: 86_400 }),
    ]);
  }

  #wait(): void {
    const { spareMs } = this.#network;
    const ms = Number.isFinite(spareMs) ? between(this.#random, 1, spareMs) : 1;
    const isIdle = !this.#network.isBusy && this.#left.calls === 0;
    this.#time.advance(isIdle ? Math.max(1, this.#time.untilFirstWakesMs()) : ms);
  }
}

interface Held {
  readonly operation: string;
  readonly input: { readonly Statements?: readonly object[] };
  /** Statements that were not carried out yet, by their place. */
  readonly open: Set<number>;
  readonly responses: object[];
  /** By when it must have arrived; from then on, by when its reply must have. */
  untilMs: number;
  /** Delivers the reply; undefined before it was carried out. */
  deliver: (() => void) | undefined;
  readonly resolve: (output: object) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests in any order, each within its time. */
class Network implements DynamoTransport {
  #held: Held[] = [];
  readonly #engine: DynamoTransport;
  readonly #time: SimulatedTime;
  readonly #random: Random;
  readonly #latencyMs: number;

  constructor(engine: DynamoTransport, time: SimulatedTime, random: Random) {
    this.#latencyMs = pick(random, LATENCIES_MS);
    this.#engine = engine;
    this.#time = time;
    this.#random = random;
  }

  get isBusy(): boolean {
    return this.#held.length > 0;
  }

  /** How long until some request or reply is late. */
  get spareMs(): number {
    return Math.min(...this.#held.map(({ untilMs }) => untilMs)) - this.#time.nowMs;
  }

  call(operation: string, input: Held["input"]): Promise<object> {
    return new Promise((resolve, reject) => {
      const open = new Set((input.Statements ?? []).keys());
      const untilMs = this.#time.nowMs + this.#latencyMs;
      const rest = { open, responses: [], deliver: undefined, resolve, reject };
      this.#held.push({ operation, input, untilMs, ...rest });
    });
  }

  close(): void {}

  /** Carries some request out, or a part of it, or delivers its reply. */
  async pass(): Promise<void> {
    const late = this.#held.filter(({ untilMs }) => untilMs <= this.#time.nowMs);
    const held = pick(this.#random, late.length > 0 ? late : this.#held);
    if (held.deliver !== undefined) {
      this.#held.splice(this.#held.indexOf(held), 1);
      return held.deliver();
    }
    const { operation, input, open, responses } = held;
    const some = [...open].filter(() => this.#random() < 0.6);
    const places = some.length > 0 ? some : [...open];
    const part =
      open.size === 0
        ? input
        : { ...input, Statements: places.map((place) => input.Statements![place]) };
    try {
      const output = (await this.#engine.call(operation, part, {
        signal: AbortSignal.timeout(60_000),
      })) as { readonly Responses?: readonly object[] };
      for (const [index, place] of places.entries()) {
        responses[place] = output.Responses![index]!;
        open.delete(place);
      }
      if (open.size > 0) return;
      const whole = responses.length > 0 ? { ...output, Responses: responses } : output;
      held.deliver = () => held.resolve(whole);
    } catch (error) {
      held.deliver = () => held.reject(error);
    }
    held.untilMs = this.#time.nowMs + this.#latencyMs;
  }
}
