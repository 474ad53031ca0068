/*
 * One story, told again and again, with a split in each of its gaps: before each request, and
 * between each request and its reply. The process that splits has a clock of its own, and may die
 * on the way. Nothing else is under way and no shard is ever full, so the bucket must go on as if
 * it had never been split: the same calls are granted and refused, and all shards together hold
 * what one bucket would, to less than a millitoken for each.
 */
import { Limit } from "zae-limiter";
import type { Client, Lease } from "./client.ts";
import { fraction, isLess, minus, plus, shown } from "../../oracle/fraction.ts";
import type { HeldCall } from "./gate.ts";
import { reversed } from "./ledger.ts";
import { startEnd, startReshape, startTake } from "./operations.ts";
import { takeWhatIsLeft } from "./remaining-tokens.ts";
import type { SharedTable } from "./run.ts";
import { makeScenario, type Scenario } from "./scenario.ts";
import { apply, crash, deliver, fail, settled } from "./schedule.ts";
import type { Coverage } from "./coverage.ts";
import {
  charged,
  holdsAll,
  newBucket,
  unitsAt,
  type OracleBucket,
} from "../../oracle/oracle-bucket.ts";
import { bucketValue, capacityOf } from "../../oracle/stored-bucket.ts";
import { termsOf } from "../../oracle/terms.ts";
import { World } from "./world.ts";

/** What becomes of the process that splits, and of its transaction. */
export const SPLITTER_FATES = [
  "lives",
  "dies before",
  "dies after",
  "gets no reply",
  "sends twice",
] as const;
type SplitterFate = (typeof SPLITTER_FATES)[number];

/** Where, how and by whom the bucket is split. */
export interface GapSplit {
  /** Counted in requests and replies. */
  readonly gap: number;
  readonly fate: SplitterFate;
  readonly shards: number;
  readonly skewMs: number;
  /** Whether it is the parent's bucket. */
  readonly ofParent: boolean;
  /** Whether the reply that comes after it gets lost. */
  readonly losesReply: boolean;
}

const ENTITY = "hot-1";
const PARENT = "parent";

/** Rates whose remainders never end; capacities whose shares differ. */
const LIMITS = [
  Limit.custom({ name: "rpm", capacity: 101, refillAmount: 7, refillPeriodSeconds: 3 }),
  Limit.custom({ name: "tpm", capacity: 90, refillAmount: 1001, refillPeriodSeconds: 3600 }),
];

/** Tells the story with one split; returns how many gaps it had. */
export async function tellWithSplit(
  table: SharedTable,
  split: GapSplit,
  coverage: Coverage,
): Promise<number> {
  const world = new World({ ...table, scenario: scenarioOf(split), coverage });
  const teller = new Teller(world, split);
  try {
    await teller.tell();
    world.compareLedger();
    await takeWhatIsLeft(world);
    return teller.gaps;
  } catch (error) {
    throw new Error(
      `With a split ${JSON.stringify(split)}:\n${world.trace.slice(-40).join("\n")}\n${String(error)}`,
      { cause: error },
    );
  } finally {
    for (const client of world.clients) {
      client.isAlive = false;
      client.gate.shut();
    }
    await world.table.clear();
  }
}

function scenarioOf({ ofParent, gap, fate }: GapSplit): Scenario {
  return {
    ...makeScenario(1),
    // Another process each time, with another home.
    seed: 7 * gap + SPLITTER_FATES.indexOf(fate),
    skewsMs: [0],
    faultRate: 0,
    maxShards: 8,
    largestTickMs: 1,
    refusalMemoryMs: 0,
    cacheTtlMs: 60_000,
    expires: false,
    entityIds: [ENTITY],
    parentId: ofParent ? PARENT : undefined,
    limits: new Map([[ENTITY, LIMITS] as const, ...(ofParent ? [[PARENT, LIMITS] as const] : [])]),
  };
}

class Teller {
  gaps = 0;
  readonly #world: World;
  readonly #split: GapSplit;
  readonly #client: Client;
  /** What each bucket would be if it had never been split. */
  readonly #unsplit: Map<string, OracleBucket>;

  constructor(world: World, split: GapSplit) {
    this.#world = world;
    this.#split = split;
    this.#client = world.clients[0]!;
    const { nowMs } = world.time;
    const full = newBucket(LIMITS.map(termsOf), 1, nowMs);
    this.#unsplit = new Map(world.charged(ENTITY).map((entityId) => [entityId, full]));
  }

  /**
   * Acquires, settles more and less, gives back, is refused, waits, gathers, and goes into debt.
   */
  async tell(): Promise<void> {
    const whole = await this.#take({ rpm: 70, tpm: 60 });
    await this.#giveBack(whole!);
    // So much that every shard gives, and none is full until the end.
    const first = await this.#take({ rpm: 90, tpm: 80 });
    await this.#wait(7);
    const second = await this.#take({ rpm: 3, tpm: 0 });
    await this.#settle(first!, { rpm: 2, tpm: -9 });
    await this.#wait(1);
    await this.#giveBack(second!);
    const third = await this.#take({ rpm: 5, tpm: 11 });
    await this.#take({ rpm: 14, tpm: 1 });
    await this.#wait(110);
    await this.#settle(third!, { rpm: -5, tpm: 0 });
    const gathered = await this.#take({ rpm: 8, tpm: 7 });
    await this.#take({ rpm: 0, tpm: 2 });
    await this.#giveBack(gathered!);
    await this.#wait(13);
    const last = await this.#take({ rpm: 1, tpm: 1 });
    await this.#settle(last!, { rpm: 19, tpm: 40 });
  }

  async #take(amounts: Record<string, number>): Promise<Lease | undefined> {
    const held = this.#client.leases.length;
    const { nowMs } = this.#world.time;
    const fits = [...this.#unsplit.values()].every((bucket) => holdsAll(bucket, amounts, nowMs));
    await this.#driven(() => startTake(this.#world, this.#client, { entityId: ENTITY, amounts }));
    const lease = this.#client.leases[held];
    if ((lease !== undefined) !== fits)
      throw new Error(`${JSON.stringify(amounts)} was ${fits ? "refused" : "granted"}`);
    if (fits) this.#charge(amounts);
    return lease;
  }

  async #settle(lease: Lease, amounts: Record<string, number>): Promise<void> {
    await this.#driven(() =>
      startEnd(this.#world, this.#client, lease, "settle", new Map(Object.entries(amounts))),
    );
    this.#charge(amounts);
  }

  async #giveBack(lease: Lease): Promise<void> {
    const given = reversed(lease.taken);
    await this.#driven(() => startEnd(this.#world, this.#client, lease, "give back", given));
    this.#charge(Object.fromEntries(given));
  }

  async #wait(ms: number): Promise<void> {
    this.#world.time.advance(ms);
    this.#compare();
  }

  #charge(amounts: Record<string, number>): void {
    for (const [entityId, bucket] of this.#unsplit)
      this.#unsplit.set(entityId, charged(bucket, amounts, this.#world.time.nowMs));
    this.#compare();
  }

  /** All shards together hold what one bucket would. */
  #compare(): void {
    const { time, table } = this.#world;
    for (const [entityId, { balances, stampMs }] of this.#unsplit) {
      const bucket = table.history(entityId).now;
      for (const balance of balances) {
        const { name, period } = balance.terms;
        const held = bucketValue(bucket, name, time.nowMs);
        const expected = fraction(unitsAt(balance, stampMs, time.nowMs), period);
        const most = fraction(BigInt(bucket.size));
        if (isLess(held, plus(expected, fraction(1n))) && isLess(minus(expected, most), held))
          continue;
        throw new Error(
          `${entityId} holds ${shown(held)} millitokens of ${name} in ${bucket.size} shards, not ${shown(expected)}`,
        );
      }
    }
  }

  /** Lets a call of the story pass, request by request, and the split where it belongs. */
  async #driven(start: () => void): Promise<void> {
    start();
    await settled();
    while (this.#client.underWay.size > 0) {
      this.#world.throwIfFailed();
      const isHere = this.gaps === this.#split.gap;
      if (isHere) await this.#doSplit();
      this.gaps += 1;
      const call = this.#client.gate.held[0];
      if (isHere && this.#split.losesReply && call?.reply?.ok === true)
        await lose(this.#world, this.#client, call);
      else await passOne(this.#world, this.#client);
    }
    this.#world.throwIfFailed();
  }

  async #doSplit(): Promise<void> {
    const { fate, shards, skewMs, ofParent } = this.#split;
    const world = this.#world;
    const entityId = ofParent ? PARENT : ENTITY;
    // What is full by a clock that is ahead is divided as what is full by then, so others find it
    // full only then.
    const bucket = world.table.history(entityId).now;
    const isFull = LIMITS.some(
      ({ name }) =>
        !isLess(
          bucketValue(bucket, name, world.time.nowMs + skewMs),
          fraction(capacityOf(bucket, name)),
        ),
    );
    const splitter = world.startClient(isFull ? 0 : skewMs);
    startReshape(world, splitter, { kind: "split", entityId, shards });
    await settled();
    // Of several splits, one in the middle: what comes before it stays.
    let left = shards === 2 ? 1 : 2;
    while (splitter.isAlive && splitter.underWay.size > 0) {
      const call = splitter.gate.held[0]!;
      const isFated =
        call.operation === "TransactWriteItems" && call.reply === undefined && (left -= 1) === 0;
      if (isFated) await meet(world, { splitter, call, fate });
      else await passOne(world, splitter);
      world.throwIfFailed();
    }
  }
}

/** A request is carried out, or its reply delivered. */
async function passOne(world: World, client: Client): Promise<void> {
  const call = client.gate.held[0];
  if (call === undefined) world.time.advance(world.time.untilFirstWakesMs());
  else if (call.reply === undefined)
    await apply(world, call, `request of process ${client.number}`);
  else deliver(world, client, call);
  await settled();
}

/** A reply is lost. After a time-out the next attempt follows at once. */
async function lose(world: World, client: Client, call: HeldCall): Promise<void> {
  fail(world, client, call, "time-out");
  await settled();
}

async function meet(
  world: World,
  {
    splitter,
    call,
    fate,
  }: { readonly splitter: Client; readonly call: HeldCall; readonly fate: SplitterFate },
): Promise<void> {
  if (fate !== "dies before" && fate !== "sends twice") await apply(world, call, "split");
  if (fate === "dies before" || fate === "dies after") crash(world, splitter);
  if (fate === "gets no reply" || fate === "sends twice") fail(world, splitter, call, "time-out");
  await settled();
  if (fate !== "sends twice") return;
  // The second attempt, under the same token, then the first after all.
  await apply(world, splitter.gate.held[0]!, "split once more");
  await apply(world, call, "late split");
}
