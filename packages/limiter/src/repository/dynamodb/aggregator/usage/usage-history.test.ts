import { describe, expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import {
  bucketStream,
  type BucketStream,
  type Ledger,
} from "../../../../../test/support/bucket-stream.ts";
import { ScriptedTable } from "../../../../../test/support/scripted-table.ts";
import { between } from "../../../../../test/support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../../../../test/support/seeded/seeds.ts";
import {
  UnreliableTable,
  type LateRequests,
  type Unreliability,
} from "../../../../../test/support/unreliable-table.ts";
import { usageProcess } from "../../../../../test/support/usage-process.ts";
import { getKey } from "../../table/batch.ts";
import { getNumber } from "../../transport/attribute-values.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";
import type { UsageCounter } from "./usage-counter.ts";

const SEEDS = seedsFromEnvironment({ usual: 10 });

const ROUGH: Unreliability = { throttled: 0.2, unanswered: 0.15, late: 0.1, untold: 0.3 };

/** A seed takes a tenth of a second, and much longer on a busy machine. */
const TIMEOUT_MS = 30_000 + 3_000 * SEEDS.count;

describe(`over ${SEEDS.count} random histories of buckets`, { timeout: TIMEOUT_MS }, () => {
  it("each change counts once, whatever is delivered again, cut, lost, late or killed", async () => {
    for (const seed of getEach(SEEDS)) {
      const { stream, delivery } = scenario(seed, ROUGH);
      await Promise.all([delivery.consumer(0.2).run(), delivery.consumer(0.2).run()]);
      await delivery.arriveLate();
      expect(delivery.snapshots(), `SEED=${seed} SEEDS=1`).toEqual(stream.ledger);
    }
  });
});

function scenario(
  seed: number,
  rates: Unreliability,
): { readonly stream: BucketStream; readonly delivery: Delivery } {
  const random = seededRandom(seed);
  const stream = bucketStream(random, 150);
  return { stream, delivery: new Delivery(stream.records, random, rates) };
}

/** A table, and the shards of its stream. */
class Delivery {
  readonly #table = new ScriptedTable();
  readonly #late: LateRequests = [];
  readonly #random: () => number;
  readonly #rates: Unreliability;
  readonly #shards: readonly (readonly StreamRecord[])[];

  constructor(records: readonly StreamRecord[], random: () => number, rates: Unreliability) {
    this.#random = random;
    this.#rates = rates;
    // All records of an item are in one shard.
    this.#shards = [0, 1].map((rest) =>
      records.filter((record) => keyOfRecord(record).PK.length % 2 === rest),
    );
  }

  consumer(misfortune: number): Consumer {
    return new Consumer({
      shards: this.#shards,
      random: this.#random,
      misfortune,
      start: () => this.#process(misfortune),
    });
  }

  /** All that was lost arrives now. */
  async arriveLate(): Promise<void> {
    for (const arrive of this.#late) await arrive();
  }

  /** What the snapshots say. */
  snapshots(): Ledger {
    const snapshots: Ledger = new Map();
    for (const item of this.#table.items.values()) {
      const { PK, SK } = getKey(item);
      if (!SK.startsWith("#USAGE#")) continue;
      const counters = Object.entries(item)
        .filter(([name]) => /^([uc]_|(cascaded_)?requests$)/.test(name))
        .map(([name, value]) => [name, getNumber(value)!] as const);
      snapshots.set(`${PK} ${SK}`, new Map(counters));
    }
    return snapshots;
  }

  /** A new process, which may die after any of its requests. */
  #process(misfortune: number): Process {
    const isDoomed = this.#random() < misfortune;
    const transport = new UnreliableTable({
      table: this.#table,
      random: this.#random,
      rates: this.#rates,
      late: this.#late,
      left: isDoomed ? between(this.#random, 1, 60) : Infinity,
    });
    const { counter } = usageProcess({ transport, random: this.#random });
    return { transport, counter };
  }
}

interface Process {
  readonly transport: UnreliableTable;
  readonly counter: UsageCounter;
}

/** Delivers every shard of the stream, in order, until all of it is acknowledged. */
class Consumer {
  readonly #shards: readonly (readonly StreamRecord[])[];
  readonly #random: () => number;
  readonly #misfortune: number;
  readonly #start: () => Process;
  #process: Process;

  constructor(options: {
    readonly shards: readonly (readonly StreamRecord[])[];
    readonly random: () => number;
    readonly misfortune: number;
    readonly start: () => Process;
  }) {
    this.#shards = options.shards;
    this.#random = options.random;
    this.#misfortune = options.misfortune;
    this.#start = options.start;
    this.#process = options.start();
  }

  async run(): Promise<void> {
    const checkpoints = this.#shards.map(() => 0);
    for (;;) {
      const open = checkpoints.filter((at, shard) => at < this.#shards[shard]!.length);
      if (open.length === 0) return;
      const shard = between(this.#random, 0, checkpoints.length - 1);
      checkpoints[shard] = await this.#deliver(this.#shards[shard]!, checkpoints[shard]!);
    }
  }

  /** Delivers a batch; returns where the next one begins. */
  async #deliver(records: readonly StreamRecord[], start: number): Promise<number> {
    const end = Math.min(records.length, start + between(this.#random, 1, 30));
    const batch = records.slice(start, end);
    const { counter, transport } = this.#process;
    const { failures } = await counter.count(batch);
    if (transport.isDead) {
      this.#process = this.#start();
      return start;
    }
    // An acknowledgement is lost now and then, also one of long ago.
    if (this.#random() < this.#misfortune / 4) return between(this.#random, 0, start);
    if (failures.length === 0) return end;
    const failed = new Set(failures.map(({ sequenceNumber }) => sequenceNumber));
    const isFailed = ({ sequenceNumber }: StreamRecord): boolean => failed.has(sequenceNumber);
    // From the first failure on, or the failures alone, until they succeed.
    if (this.#random() < 0.5) return start + batch.findIndex(isFailed);
    for (let rest = batch.filter(isFailed); rest.length > 0;) {
      const half = rest.slice(0, Math.ceil(rest.length / 2));
      const outcome = await this.#process.counter.count(half);
      if (this.#process.transport.isDead) this.#process = this.#start();
      else if (outcome.failures.length === 0) rest = rest.slice(half.length);
    }
    return end;
  }
}
