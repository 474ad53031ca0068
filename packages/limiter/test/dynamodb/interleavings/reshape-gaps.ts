/*
 * One story, told again and again, with a split or a merge in each of its gaps: before each
 * request, and between each request and its reply. A bucket that is merged was split after the
 * first call of the story. The process that splits or merges has a clock of its own, and may die on
 * the way. Nothing else is under way and no shard is ever full, so the bucket must go on as if it
 * had always been whole: the same calls are granted and refused, and all shards together hold what
 * one bucket would, to less than a millitoken for each.
 */
import { Limit } from "zae-limiter";
import type { Client, Lease } from "./client.ts";
import { fraction, isLess, minus, plus, show } from "../../oracle/fraction.ts";
import type { HeldCall } from "./gate.ts";
import { reversed } from "./ledger.ts";
import { expectNoOrphans } from "./calm-end.ts";
import { startEnd, startReshape, startTake, type Reshape } from "./operations.ts";
import { takeWhatIsLeft } from "./remaining-tokens.ts";
import type { SharedTable } from "./run.ts";
import { makeScenario, type Scenario } from "./scenario.ts";
import { apply, crash, deliver, fail, settle } from "./schedule.ts";
import type { Coverage } from "./coverage.ts";
import {
  readCharged,
  holdsAll,
  newBucket,
  unitsAt,
  type OracleBucket,
} from "../../oracle/oracle-bucket.ts";
import { bucketValue, getCapacity } from "../../oracle/stored-bucket.ts";
import { toTerms } from "../../oracle/terms.ts";
import { World } from "./world.ts";

/** What becomes of the process that splits or merges, and of one of its transactions. */
export const FATES = [
  "lives",
  "dies before",
  "dies after",
  "gets no reply",
  "sends twice",
  "is late",
] as const;
type Fate = (typeof FATES)[number];

/** What happens to a bucket: it is split; it was split and is merged; or it is split once more. */
export const RESHAPES = ["split", "merge", "merge and split"] as const;
type ReshapeKind = (typeof RESHAPES)[number];

/** Where, how and by whom the bucket is split or merged. */
export interface GapReshape {
  /** Counted in requests and replies. */
  readonly gap: number;
  readonly kind: ReshapeKind;
  readonly fate: Fate;
  /** How many shards it has after the split, or before the merge. */
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

/** Tells the story with one of them; returns how many gaps it had. */
export async function tellWith(
  table: SharedTable,
  reshape: GapReshape,
  coverage: Coverage,
): Promise<number> {
  const world = new World({ ...table, scenario: buildScenario(reshape), coverage });
  const teller = new Teller(world, reshape);
  try {
    await teller.tell();
    world.compareLedger();
    await expectNoOrphans(world);
    await takeWhatIsLeft(world);
    return teller.gaps;
  } catch (error) {
    throw new Error(
      `With ${JSON.stringify(reshape)}:\n${world.trace.slice(-40).join("\n")}\n${String(error)}`,
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

function buildScenario({ ofParent, gap, fate }: GapReshape): Scenario {
  return {
    ...makeScenario(1),
    // Another process each time, with another home.
    seed: 7 * gap + FATES.indexOf(fate),
    skewsMs: [0],
    faultRate: 0,
    maxShards: 8,
    largestTickMs: 1,
    refusalMemoryMs: 0,
    cacheTtlMs: 60_000,
    expires: false,
    // Not every other gap: these take requests and replies in turn.
    sharesRequests: !Number.isFinite(gap) || Math.floor(gap / 2) % 2 === 0,
    entityIds: [ENTITY],
    parentId: ofParent ? PARENT : undefined,
    limits: new Map([[ENTITY, LIMITS] as const, ...(ofParent ? [[PARENT, LIMITS] as const] : [])]),
  };
}

class Teller {
  gaps = 0;
  readonly #world: World;
  readonly #reshape: GapReshape;
  readonly #client: Client;
  /** What each bucket would be if it had always been whole. */
  readonly #unsplit: Map<string, OracleBucket>;
  /** Transactions until the one that meets its fate. */
  #untilFate = 0;
  #late: HeldCall | undefined;

  constructor(world: World, reshape: GapReshape) {
    this.#world = world;
    this.#reshape = reshape;
    this.#client = world.clients[0]!;
    const { nowMs } = world.time;
    const full = newBucket(LIMITS.map(toTerms), 1, nowMs);
    this.#unsplit = new Map(world.charged(ENTITY).map((entityId) => [entityId, full]));
  }

  /**
   * Acquires, settles more and less, gives back, is refused, waits, gathers, and goes into debt.
   */
  async tell(): Promise<void> {
    const whole = await this.#take({ rpm: 70, tpm: 60 });
    const { kind } = this.#reshape;
    if (kind === "merge") await this.#splitBefore();
    await this.#giveBack(whole!);
    // Not before: a merge and a split spread what the first parts of a give-back have filled over
    // all shards, and two parts that seek room elsewhere may find the same.
    if (kind === "merge and split") await this.#splitBefore();
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
    const start = (): void => startTake(this.#world, this.#client, { entityId: ENTITY, amounts });
    const { gaps } = this;
    await this.#driven(start);
    if (this.#client.leases[held] === undefined && fits && this.#isTornSince(gaps))
      await this.#driven(start);
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
      this.#unsplit.set(entityId, readCharged(bucket, amounts, this.#world.time.nowMs));
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
          `${entityId} holds ${show(held)} millitokens of ${name} in ${bucket.size} shards, not ${show(expected)}`,
        );
      }
    }
  }

  /** Lets a call of the story pass, request by request, and the split or merge where it belongs. */
  async #driven(start: () => void): Promise<void> {
    start();
    await settle();
    while (this.#client.underWay.size > 0) {
      this.#world.throwIfFailed();
      const isHere = this.gaps === this.#reshape.gap;
      if (isHere) await this.#doReshape();
      if (this.gaps === this.#reshape.gap + this.#reshape.shards) await this.#arrive();
      this.gaps += 1;
      const call = this.#client.gate.held[0];
      if (isHere && this.#reshape.losesReply && call?.reply?.ok === true)
        await lose(this.#world, this.#client, call);
      else await passOne(this.#world, this.#client);
    }
    this.#world.throwIfFailed();
  }

  /**
   * Shards that are merged and split again during a call look as they did before, but hold
   * something else: a call that has seen some of them before and some after may be refused, and
   * fits when it is tried again.
   */
  #isTornSince(gaps: number): boolean {
    const { kind, gap } = this.#reshape;
    return kind === "merge and split" && gap >= gaps && gap < this.gaps;
  }

  /** By another process, to which nothing happens. */
  async #splitBefore(): Promise<void> {
    const world = this.#world;
    const splitter = world.startClient(0);
    startReshape(world, splitter, { kind: "split", ...this.#target });
    await settle();
    while (splitter.underWay.size > 0) await passOne(world, splitter);
    this.#compare();
  }

  get #target(): { readonly entityId: string; readonly shards: number } {
    const { ofParent, shards } = this.#reshape;
    return { entityId: ofParent ? PARENT : ENTITY, shards };
  }

  async #doReshape(): Promise<void> {
    const { kind, shards } = this.#reshape;
    const world = this.#world;
    const { entityId } = this.#target;
    if (kind !== "split" && world.table.history(entityId).now.size <= 1) return;
    const client = world.startClient(this.#skewMs());
    // Of several transactions, one in the middle: what comes before it stays.
    this.#untilFate = shards === 2 ? 1 : 2;
    if (kind !== "split") await this.#drive(client, { kind: "merge", entityId, shards: 1 });
    if (kind !== "merge" && client.isAlive)
      await this.#drive(client, { kind: "split", ...this.#target });
    this.#followStamps();
  }

  async #drive(client: Client, reshape: Reshape): Promise<void> {
    const world = this.#world;
    startReshape(world, client, reshape);
    await settle();
    while (client.isAlive && client.underWay.size > 0) {
      const call = client.gate.held[0]!;
      const isFated =
        call?.operation === "TransactWriteItems" &&
        call.reply === undefined &&
        (this.#untilFate -= 1) === 0;
      if (!isFated) await passOne(world, client);
      else if (this.#reshape.fate === "is late") {
        this.#late = call;
        crash(world, client);
      } else await meet(world, { client, call, fate: this.#reshape.fate });
      world.throwIfFailed();
    }
  }

  /** What was sent long ago by a process that is gone arrives, and is carried out or not. */
  async #arrive(): Promise<void> {
    if (this.#late === undefined) return;
    await apply(this.#world, this.#late, "late transaction");
    this.#late = undefined;
    this.#world.throwIfFailed();
    this.#followStamps();
  }

  /**
   * What is full by a clock that is ahead is divided as what is full by then, so others find it
   * full only then. A merge by such a clock credits everything up to then; of several merges only
   * some may be carried out.
   */
  #skewMs(): number {
    const { kind, shards, skewMs } = this.#reshape;
    const { table, time } = this.#world;
    const bucket = table.history(this.#target.entityId).now;
    const isFull = [...bucket].some((shard) =>
      LIMITS.some(
        ({ name }) =>
          !isLess(
            bucketValue(new Map([shard]), name, time.nowMs + skewMs),
            fraction(getCapacity(new Map([shard]), name)),
          ),
      ),
    );
    return isFull || (kind !== "split" && shards > 2 && skewMs > 0) ? 0 : skewMs;
  }

  /** A bucket that was merged by a clock that is ahead earns nothing until then; so a whole one. */
  #followStamps(): void {
    const { entityId } = this.#target;
    const { table, time } = this.#world;
    const shards = [...table.history(entityId).now.values()];
    if (shards.length === 0) return;
    const stampMs = Math.min(...shards.map((shard) => shard.stampMs));
    if (stampMs > time.nowMs)
      this.#unsplit.set(entityId, readCharged(this.#unsplit.get(entityId)!, {}, stampMs));
  }
}

/** A request is carried out, or its reply delivered. */
async function passOne(world: World, client: Client): Promise<void> {
  const call = client.gate.held[0];
  if (call === undefined) world.time.advance(world.time.untilFirstWakesMs());
  else if (call.reply === undefined)
    await apply(world, call, `request of process ${client.number}`);
  else deliver(world, client, call);
  await settle();
}

/** A reply is lost. After a time-out the next attempt follows at once. */
async function lose(world: World, client: Client, call: HeldCall): Promise<void> {
  fail(world, client, call, "time-out");
  await settle();
}

async function meet(
  world: World,
  { client, call, fate }: { readonly client: Client; readonly call: HeldCall; readonly fate: Fate },
): Promise<void> {
  if (fate !== "dies before" && fate !== "sends twice") await apply(world, call, "transaction");
  if (fate === "dies before" || fate === "dies after") crash(world, client);
  if (fate === "gets no reply" || fate === "sends twice") fail(world, client, call, "time-out");
  await settle();
  if (fate !== "sends twice") return;
  // The second attempt, under the same token, then the first after all.
  await apply(world, client.gate.held[0]!, "transaction once more");
  await apply(world, call, "late transaction");
}
