/*
 * Random histories of buckets as the stream shows them, and a ledger of what was consumed. The
 * ledger shares nothing with the aggregator: it is written where something is consumed, by the text
 * of the time.
 */
import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { between, pick } from "./seeded/random-choice.ts";
import { buildRecord } from "./usage-process.ts";

type Random = () => number;

/** The counters of snapshots, by `{PK} {SK}`. */
export type Ledger = Map<string, Map<string, number>>;

/** A history of several buckets: their records in the order of writing, and what was consumed. */
export interface BucketStream {
  readonly records: readonly StreamRecord[];
  readonly ledger: Ledger;
}

/** What is stored of one shard. */
interface Shard {
  readonly totals: Record<string, number>;
  divisor: number;
  version: number;
  splitAt: number | undefined;
  creation: string;
}

const LIMITS = ["rpm", "tpm", "ttl"];
const START_MS = Date.UTC(2026, 0, 30, 21, 30);

/** The deepest that buckets are split here. */
const MAX_DIVISOR = 8;

/** A history of this many writes, the same for the same random numbers. */
export function bucketStream(random: Random, writes: number): BucketStream {
  const world = new World(random);
  const buckets = [
    new RandomBucket(world, { namespaceId: "n1", entityId: "a", resource: "r/1" }),
    new RandomBucket(world, { namespaceId: "n1", entityId: "a", resource: "r2" }),
    new RandomBucket(world, { namespaceId: "n1", entityId: "b", resource: "r/1" }),
    new RandomBucket(world, { namespaceId: "n2", entityId: "a", resource: "r/1" }),
  ];
  while (world.records.length < writes) {
    world.passTime();
    // Half of all writes are on one hot bucket.
    (random() < 0.5 ? buckets[0]! : pick(random, buckets)).step();
  }
  return world;
}

interface Place {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/** Time, the stream and the ledger. */
class World implements BucketStream {
  readonly records: StreamRecord[] = [];
  readonly ledger: Ledger = new Map();
  readonly random: Random;
  #nowMs = START_MS;
  #last = 0;

  constructor(random: Random) {
    this.random = random;
  }

  passTime(): void {
    const step = this.random();
    if (step < 0.5) this.#nowMs += between(this.random, 0, 2_000);
    else if (step < 0.95) this.#nowMs += between(this.random, 0, 600_000);
    else this.#nowMs += between(this.random, 0, 20 * 86_400_000);
  }

  next(): number {
    this.#last += 1;
    return this.#last;
  }

  write(before: AttributeMap | undefined, after: AttributeMap | undefined): void {
    const atMs = this.#seconds() * 1000;
    this.records.push(buildRecord({ before, after, atMs, number: this.next() * 7 }));
  }

  /** Notes what the write of this moment consumed, in each window. */
  note({ namespaceId, entityId, resource }: Place, counters: Record<string, number>): void {
    const time = new Date(this.#seconds() * 1000).toISOString();
    const starts = {
      hourly: `${time.slice(0, 13)}:00:00Z`,
      daily: `${time.slice(0, 10)}T00:00:00Z`,
      monthly: `${time.slice(0, 7)}-01T00:00:00Z`,
    };
    for (const [window, start] of Object.entries(starts)) {
      const key = `${namespaceId}/ENTITY#${entityId} #USAGE#${window}#${start}#${resource}`;
      for (const [counter, amount] of Object.entries(counters)) {
        if (amount === 0) continue;
        const snapshot = this.ledger.get(key) ?? new Map<string, number>();
        snapshot.set(counter, (snapshot.get(counter) ?? 0) + amount);
        this.ledger.set(key, snapshot);
      }
    }
  }

  #seconds(): number {
    return Math.floor(this.#nowMs / 1000);
  }
}

/** A bucket to which anything may happen that happens to buckets. */
class RandomBucket {
  readonly #world: World;
  readonly #random: Random;
  readonly #place: Place;
  readonly #shards = new Map<number, Shard>();

  constructor(world: World, place: Place) {
    this.#world = world;
    this.#random = world.random;
    this.#place = place;
  }

  step(): void {
    if (this.#shards.get(0) === undefined) return this.#create();
    const chance = this.#random();
    if (chance < 0.6) return this.#consume(false);
    if (chance < 0.7) return this.#consume(true);
    if (chance < 0.8) return this.#split();
    if (chance < 0.87) return this.#merge();
    if (chance < 0.93) return this.#drop();
    if (chance < 0.95) return this.#write(this.#live(), () => {});
    if (chance < 0.97 && this.#shards.get(0)!.splitAt === undefined) return this.#create();
    this.#delete();
  }

  /** Creates the bucket where there is none, or in place of one that was never split. */
  #create(): void {
    const before = this.#shards.has(0) ? this.#item(0) : undefined;
    const creation = `w.${this.#world.next()}`;
    const shard: Shard = {
      totals: { b_wcu_tc: 1, gr: 0 },
      divisor: 1,
      version: this.#world.next(),
      splitAt: undefined,
      creation,
    };
    this.#shards.set(0, shard);
    this.#take(shard, false);
    this.#world.write(before, this.#item(0));
  }

  /** Takes or gives back, on any shard; a rewrite of the policy does so too. */
  #consume(isRewrite: boolean): void {
    this.#write(this.#live(), (shard) => {
      this.#take(shard, this.#random() < 0.3);
      if (isRewrite) shard.version = this.#world.next();
    });
  }

  #take({ totals }: Shard, isGiveBack: boolean): void {
    const counters: Record<string, number> = {};
    const sign = isGiveBack ? -1 : 1;
    const isCascaded = this.#random() < 0.2;
    const grow = (total: string, counter: string, amount: number): void => {
      totals[total] = (totals[total] ?? 0) + sign * amount;
      counters[counter] = (counters[counter] ?? 0) + sign * amount;
    };
    for (const name of LIMITS) {
      if (this.#random() < 0.3) continue;
      const amount = between(this.#random, 0, 3) * pick(this.#random, [1, 1000]);
      grow(`b_${name}_tc`, `u_${name}`, amount);
      if (isCascaded) grow(`b_${name}_cc`, `c_${name}`, amount);
    }
    const requests = between(this.#random, 0, 4);
    grow("gr", "requests", requests);
    if (isCascaded) grow("gc", "cascaded_requests", requests);
    this.#world.note(this.#place, counters);
  }

  #split(): void {
    const number = this.#live();
    const shard = this.#shards.get(number)!;
    if (shard.divisor >= MAX_DIVISOR) return;
    const half = number + shard.divisor;
    const left = this.#shards.has(half) ? this.#item(half) : undefined;
    const version = this.#world.next();
    const divisor = shard.divisor * 2;
    this.#write(number, () => Object.assign(shard, { divisor, version, splitAt: version }));
    const { creation } = shard;
    const totals = { b_wcu_tc: 2, gr: 0, b_rpm_tc: 0 };
    this.#shards.set(half, { totals, divisor, version, splitAt: version, creation });
    this.#world.write(left, this.#item(half));
  }

  #merge(): void {
    const number = this.#live();
    const shard = this.#shards.get(number)!;
    const half = number + shard.divisor / 2;
    const gone = this.#shards.get(half);
    if (number >= shard.divisor / 2 || gone?.divisor !== shard.divisor) return;
    this.#write(number, () => {
      for (const [total, amount] of Object.entries(gone.totals))
        shard.totals[total] = (shard.totals[total] ?? 0) + amount;
      const version = this.#world.next();
      Object.assign(shard, { divisor: shard.divisor / 2, version, splitAt: version });
    });
    this.#world.write(this.#item(half), undefined);
    this.#shards.delete(half);
  }

  /** A limit leaves the bucket, in a write that takes of others. */
  #drop(): void {
    const name = pick(this.#random, LIMITS);
    this.#write(this.#live(), ({ totals }) => {
      delete totals[`b_${name}_tc`];
      delete totals[`b_${name}_cc`];
      totals["gr"] = (totals["gr"] ?? 0) + 1;
      this.#world.note(this.#place, { requests: 1 });
    });
  }

  /** Deletes all shards, or only the first one, which orphans the others. */
  #delete(): void {
    const isWhole = this.#random() < 0.5;
    for (const number of isWhole ? [...this.#shards.keys()] : [0]) {
      this.#world.write(this.#item(number), undefined);
      this.#shards.delete(number);
    }
  }

  #write(number: number, change: (shard: Shard) => void): void {
    const before = this.#item(number);
    const shard = this.#shards.get(number)!;
    shard.totals["b_wcu_tc"] = (shard.totals["b_wcu_tc"] ?? 0) + 1;
    change(shard);
    this.#world.write(before, this.#item(number));
  }

  /** One of the shards that belong to the bucket. */
  #live(): number {
    const { creation } = this.#shards.get(0)!;
    const live = [...this.#shards].filter(([, shard]) => shard.creation === creation);
    return pick(this.#random, live)[0];
  }

  #item(number: number): AttributeMap {
    const { namespaceId, entityId, resource } = this.#place;
    const { totals, divisor, version, splitAt, creation } = this.#shards.get(number)!;
    return marshalItem({
      PK: `${namespaceId}/BUCKET#${entityId}#${resource}#${number}`,
      SK: "#STATE",
      rf: START_MS,
      ...totals,
      shard_count: divisor,
      sv: version,
      sd: splitAt,
      cr: creation,
    });
  }
}
