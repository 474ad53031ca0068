/*
 * Several processes whose clocks and time zone data differ, on the buckets of an entity and perhaps
 * its parent. The network carries requests out in any order, loses them or their replies, and lets
 * some arrive late; processes die; configuration changes; items expire. Every write is judged by an
 * oracle that shares nothing with the library (oracle-windows.ts), and every refusal by the states
 * that the bucket had while it was decided.
 */
import { isDeepStrictEqual } from "node:util";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { bucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { Receipt } from "../../../src/repository/port.ts";
import type { Random } from "../../../src/repository/system-clock.ts";
import {
  markAmounts,
  markName,
  readNumber,
  WindowOracle,
  type MarkedCall,
  type WindowItem,
} from "../../oracle/oracle-windows.ts";
import {
  bucketProcess,
  NAMESPACE_ID,
  requestFor,
  type BucketProcess,
} from "../../support/bucket-process.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import { ProcessClock, SimulatedTime } from "../../support/simulated-time.ts";
import { keyOfStatement, listStatements, writtenKeys } from "../../support/written-items.ts";
import { NETWORK_ERRORS } from "../interleavings/gate.ts";
import { settle } from "../interleavings/schedule.ts";
import {
  CHANGES,
  Configuration,
  NAMES,
  PERIODS_MS,
  type Change,
  type Period,
} from "./configuration.ts";
import type { Coverage } from "./coverage.ts";
import { runWithShift } from "./other-calendars.ts";

const START_MS = 1_800_000_000_000;
const MOST_SKEW_MS = 2000;
const MOST_UNDER_WAY = 5;
const MOST_EVENTS = 20_000;
const NEVER_MS = 600_000;
const LAST_LINES = Number(process.env["LINES_SHOWN"] ?? 25);

interface Held {
  readonly client: Client;
  readonly operation: string;
  readonly input: object;
  readonly sentMs: number;
  readonly decidedMs: number;
  reply: { readonly output?: object; readonly error?: unknown } | undefined;
  readonly resolve: (output: object) => void;
  readonly reject: (error: unknown) => void;
}

/** A call, and what became of it. */
interface Call extends MarkedCall {
  readonly entityId: string;
  readonly client: Client;
  readonly clockMs: number;
  /** How many states each bucket had had when it began. */
  readonly states: ReadonlyMap<string, number>;
  outcome: "granted" | "refused" | "failed" | undefined;
  ended: "settled" | "given back" | undefined;
  isBusy: boolean;
  receipt: Receipt | undefined;
}

interface Client {
  readonly clock: ProcessClock;
  readonly shiftMs: number;
  readonly process: BucketProcess;
  held: Held[];
  underWay: number;
  /** Whether it has ever missed an answer. */
  hasFaults: boolean;
  isAlive: boolean;
}

interface Bucket {
  readonly key: AttributeMap;
  readonly text: string;
  readonly configuration: Configuration;
  readonly oracle: WindowOracle;
  item: WindowItem | undefined;
  readonly states: {
    readonly item: WindowItem | undefined;
    readonly capacities: Readonly<Record<string, number>>;
  }[];
}

/** Everything that happens in one seed. */
export class World {
  readonly #random: Random;
  readonly #time = new SimulatedTime(START_MS);
  readonly #seed: number;
  readonly #table: { readonly transport: DynamoTransport; readonly tableName: string };
  readonly #coverage: Coverage;
  readonly #period: Period;
  readonly #shiftMs: number;
  readonly #parentId: string | undefined;
  readonly #entityId: string;
  readonly #expires: boolean;
  readonly #cacheTtlMs: number;
  readonly #shareRequests: boolean;
  readonly #faultRate: number;
  readonly #spreadMs: number;
  readonly #changes: readonly Change[];
  readonly #buckets = new Map<string, Bucket>();
  readonly #calls: Call[] = [];
  readonly #decided = new Map<string, number>();
  readonly #trace: string[] = [];
  readonly #left: { calls: number; jumps: number; changes: number; crashes: number };
  #clients: Client[] = [];
  #late: Held[] = [];
  #opened = 0;
  #hasExpired = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    seed: number,
    table: { readonly transport: DynamoTransport; readonly tableName: string },
    coverage: Coverage,
  ) {
    const random = seededRandom(seed);
    this.#random = random;
    this.#seed = seed;
    this.#table = table;
    this.#coverage = coverage;
    this.#period = pick(random, ["minute", "hour", "day"] as const);
    this.#shiftMs = { minute: 0, hour: 20 * 60_000, day: 3_600_000 }[this.#period];
    if (random() < 0.4) this.#shiftMs = 0;
    this.#spreadMs = pick(random, [0, 200, MOST_SKEW_MS / 2]);
    this.#entityId = `e-${seed}`;
    this.#parentId = random() < 0.5 ? `p-${seed}` : undefined;
    this.#expires = random() < 0.5;
    this.#cacheTtlMs = pick(random, [0, 0, 1000, 60_000]);
    this.#shareRequests = random() < 0.6;
    this.#faultRate = pick(random, [0, 0.05, 0.2]);
    this.#changes = random() < 0.5 ? [] : CHANGES.filter(() => random() < 0.6);
    this.#left = {
      calls: between(random, 30, 90),
      jumps: 20,
      changes: this.#changes.length === 0 ? 0 : between(random, 4, 16),
      crashes: random() < 0.4 ? between(random, 1, 3) : 0,
    };
    for (const entityId of [this.#entityId, this.#parentId])
      if (entityId !== undefined) this.#addBucket(entityId);
    const count = between(random, 2, 8);
    for (let number = 0; number < count; number += 1) this.#startClient();
  }

  /** Lets it all happen; throws with the last of it when a promise is broken. */
  async play(): Promise<void> {
    try {
      for (let events = 0; ; events += 1) {
        if (events > MOST_EVENTS) throw new Error(`No end after ${MOST_EVENTS} events`);
        const possible = this.#listEvents().filter(([weight]) => weight > 0);
        if (possible.length === 0) break;
        let rest = this.#random() * possible.reduce((sum, [weight]) => sum + weight, 0);
        await possible.find(([weight]) => (rest -= weight) < 0)![1]();
        await settle();
        if (this.#failure !== undefined) throw this.#failure.error;
      }
      this.#compare();
    } catch (error) {
      const told = [...this.#trace.slice(-LAST_LINES), String(error)].join("\n");
      throw new Error(`Seed ${this.#seed} fails (again: SEED=${this.#seed} SEEDS=1):\n${told}`, {
        cause: error,
      });
    } finally {
      for (const client of this.#clients) client.isAlive = false;
      for (const { client, reject } of this.#listHeld()) {
        client.held = [];
        reject(GONE);
      }
    }
  }

  #listEvents(): readonly (readonly [weight: number, happen: () => Promise<void> | void])[] {
    const { calls, jumps, changes, crashes } = this.#left;
    const held = this.#listHeld();
    const idle = this.#clients.filter(({ underWay }) => underWay < MOST_UNDER_WAY);
    const open = this.#calls.filter(
      ({ receipt, isBusy, client }) => receipt !== undefined && !isBusy && client.isAlive,
    );
    const isBusy = held.length > 0 || calls > 0;
    const expired = [...this.#buckets.values()].filter((bucket) => this.#isExpired(bucket));
    return [
      [some(3, calls > 0 && idle.length > 0), () => this.#startCalls(pick(this.#random, idle))],
      [some(2, open.length > 0), () => this.#end(pick(this.#random, open))],
      [some(9, held.length > 0), () => this.#pass(pick(this.#random, held))],
      [some(0.5, this.#late.length > 0), () => this.#arriveLate()],
      [some(2, isBusy), () => this.#time.advance(this.#someMs())],
      [some(0.5, isBusy && jumps > 0), () => this.#jump()],
      [
        some(1, !isBusy && this.#time.isAnybodyAsleep),
        () => this.#time.advance(this.#time.untilFirstWakesMs()),
      ],
      [some(0.4, isBusy && changes > 0), () => this.#change()],
      [
        some(0.1, crashes > 0 && held.length > 0),
        () => this.#crash(pick(this.#random, held).client),
      ],
      [some(0.3, expired.length > 0), () => this.#expire(pick(this.#random, expired))],
    ];
  }

  #addBucket(entityId: string): void {
    const key = bucketKey(
      { namespaceId: NAMESPACE_ID, entityId, resource: "r", shard: 0 },
      undefined,
    );
    const oracle = new WindowOracle({
      calls: this.#calls,
      names: NAMES,
      shiftMs: this.#shiftMs,
      note: (event) => this.#coverage.count(event),
    });
    const configuration = new Configuration(this.#random, this.#period);
    const { marshalled, text } = key;
    const bucket = { key: marshalled, text, configuration, oracle, item: undefined, states: [] };
    this.#buckets.set(entityId, bucket);
    noteState(bucket);
  }

  #startClient(): void {
    const skewMs = Math.round((this.#random() * 2 - 1) * this.#spreadMs);
    const clock = new ProcessClock(this.#time, skewMs);
    const transport: DynamoTransport = {
      call: (operation, input) =>
        new Promise((resolve, reject) => {
          if (!client.isAlive) return reject(GONE);
          const sentMs = this.#time.nowMs;
          // A repeated request acts as of its first attempt.
          const text = JSON.stringify(input);
          const decidedMs = this.#decided.get(text) ?? sentMs;
          this.#decided.set(text, decidedMs);
          const reply = undefined;
          client.held.push({ client, operation, input, sentMs, decidedMs, reply, resolve, reject });
        }),
      close: () => {},
    };
    const level = this.#expires ? "_default_" : "r";
    const process = bucketProcess({
      transport,
      tableName: this.#table.tableName,
      clock,
      seed: this.#seed * 100 + (this.#opened += 1),
      config: (key) => {
        if (key.level === "system") return { limits: KNOWN };
        const isStored = key.level === "entity" && key.resource === level;
        const limits = isStored ? this.#buckets.get(key.entityId)?.configuration.limits : undefined;
        return { limits, inherit: false };
      },
      parents: this.#parentId === undefined ? {} : { [this.#entityId]: this.#parentId },
      cacheTtlMs: this.#cacheTtlMs,
      largestTickMs: pick(this.#random, [1, 100]),
      requestTimeoutMs: NEVER_MS,
      maxShards: 1,
      shareRequests: this.#shareRequests,
    });
    const client: Client = {
      clock,
      shiftMs: this.#random() < 0.5 ? this.#shiftMs : 0,
      process,
      held: [],
      underWay: 0,
      hasFaults: false,
      isAlive: true,
    };
    this.#clients.push(client);
  }

  #listHeld(): readonly Held[] {
    return this.#clients.flatMap(({ held }) => held);
  }

  #charged(entityId: string): readonly Bucket[] {
    const ids = entityId === this.#entityId ? [entityId, this.#parentId] : [entityId];
    return ids.flatMap((id) => (id === undefined ? [] : [this.#buckets.get(id)!]));
  }

  #startCalls(client: Client): void {
    for (let burst = between(this.#random, 1, 3); burst > 0 && this.#left.calls > 0; burst -= 1) {
      this.#left.calls -= 1;
      this.#start(client);
    }
  }

  #start(client: Client): void {
    const random = this.#random;
    const entityId = pick(random, [...this.#buckets.keys()]);
    const kind = random() < 0.1 ? "charge" : "lease";
    const id = this.#calls.length;
    const named = NAMES.filter(() => random() < 0.7);
    const amounts = Object.fromEntries(named.map((name) => [name, between(random, 1, 8)]));
    const call: Call = {
      id,
      kind,
      amounts,
      deltas: {},
      isUnsure: false,
      entityId,
      client,
      clockMs: client.clock.now(),
      states: new Map(this.#charged(entityId).map(({ text, states }) => [text, states.length])),
      outcome: undefined,
      ended: undefined,
      isBusy: false,
      receipt: undefined,
    };
    this.#calls.push(call);
    const marked = { ...amounts, r: between(random, 0, 3), [markName(id)]: markAmounts(id, kind) };
    const request = requestFor(entityId, marked);
    const { buckets } = client.process;
    this.#run(call, kind, async () => {
      if (kind === "charge") return buckets.charge(request);
      const outcome = await buckets.consume(request);
      call.outcome = outcome.granted ? "granted" : "refused";
      this.#coverage.count(outcome.granted ? "grant" : "refusal");
      if (outcome.granted) call.receipt = outcome.receipt;
      else this.#expectShort(call);
    });
  }

  #end(call: Call): void {
    const random = this.#random;
    const { id, amounts, client } = call;
    const receipt = call.receipt!;
    const { buckets } = client.process;
    if (random() < 0.4) {
      call.ended = "given back";
      return this.#run(call, "give back", async () => buckets.giveBack(receipt));
    }
    const isUp = random() < 0.4;
    call.ended = "settled";
    call.deltas = Object.fromEntries(
      Object.entries(amounts).map(([name, amount]) => [
        name,
        isUp ? between(random, 1, 5) : -between(random, 1, amount),
      ]),
    );
    const mark = { [markName(id)]: (isUp ? 1 : -1) * markAmounts(id, "settle") };
    const deltas = [{ resource: "r", amounts: { ...call.deltas, ...mark } }];
    this.#run(call, isUp ? "settle up" : "settle down", async () =>
      buckets.settle(receipt, deltas),
    );
  }

  #run(call: Call, what: string, work: () => Promise<unknown>): void {
    const { client } = call;
    client.underWay += 1;
    call.isBusy = true;
    if (call.ended !== undefined) call.receipt = undefined;
    this.#tell(client, `${what} ${this.#describe(call)}`);
    const close = (outcome: string): void => {
      client.underWay -= 1;
      call.isBusy = false;
      this.#tell(client, `${what} ${call.id}: ${outcome}`);
    };
    runWithShift(client.shiftMs, work).then(
      () => client.isAlive && close(call.outcome ?? "done"),
      (error: unknown) => {
        if (!client.isAlive) return;
        if (call.ended === undefined) call.outcome = "failed";
        close(String(error));
        if (!(error instanceof RateLimiterUnavailable)) this.#failure ??= { error };
      },
    );
  }

  /** What fits is granted: some state of some bucket, while it was decided, could not hold it. */
  #expectShort(call: Call): void {
    const [fromMs, toMs] = [call.clockMs, call.client.clock.now()];
    const isShort = this.#charged(call.entityId).some(({ text, states }) =>
      states.slice(call.states.get(text)! - 1).some(({ item, capacities }) =>
        NAMES.some((name) => {
          const amount = (call.amounts[name] ?? 0) * 1000;
          const configured = capacities[name]! * 1000;
          const read = (field: string): number => readNumber(item, `b_${name}_${field}`);
          if (item?.[`b_${name}_tk`] === undefined) return amount > configured;
          if (item[`b_${name}_kd`] === undefined) return true;
          const lowered = Math.min(0, configured - read("cp"));
          const isMaybeOpen = fromMs < read("we") || read("we") === 0;
          const isMaybeOver = toMs >= read("we");
          return (
            (isMaybeOpen && read("tk") + lowered < amount) ||
            (isMaybeOver && Math.min(read("cp"), configured) < amount)
          );
        }),
      ),
    );
    if (!isShort && this.#changes.length === 0)
      throw new Error(`A call that fits was refused: ${this.#describe(call)}`);
  }

  async #pass(held: Held): Promise<void> {
    const { client } = held;
    const isFault = this.#random() < this.#faultRate;
    if (held.reply === undefined) {
      const dice = this.#random();
      if (!isFault) return this.#apply(held);
      if (dice < 0.6) this.#late.push(held);
      return this.#lose(held, "request lost");
    }
    if (isFault) {
      if (this.#isOverSince(held.sentMs)) this.#coverage.count("unanswered write over an end");
      return this.#lose(held, "reply lost");
    }
    client.held = client.held.filter((other) => other !== held);
    if (held.reply.error === undefined) held.resolve(held.reply.output!);
    else held.reject(held.reply.error);
  }

  #lose(held: Held, what: string): void {
    const { client, operation } = held;
    client.held = client.held.filter((other) => other !== held);
    client.hasFaults = true;
    for (const call of this.#calls) if (call.client === client && call.isBusy) call.isUnsure = true;
    this.#tell(client, `${what}: ${operation}`);
    held.reject(NETWORK_ERRORS["connection reset"]());
  }

  async #arriveLate(): Promise<void> {
    const held = pick(this.#random, this.#late);
    this.#late = this.#late.filter((other) => other !== held);
    const isOver = this.#isOverSince(held.sentMs);
    const before = [...this.#buckets.values()].map(({ item }) => item);
    await this.#apply(held);
    const isLanded = [...this.#buckets.values()].some(({ item }, index) => item !== before[index]);
    if (isOver && isLanded) this.#coverage.count("late write over an end");
  }

  /** Whether a calendar had a boundary since. */
  #isOverSince(ms: number): boolean {
    const length = PERIODS_MS[this.#period];
    return Math.floor(ms / length) < Math.floor(this.#time.nowMs / length);
  }

  async #apply(held: Held): Promise<void> {
    const { operation, input, client } = held;
    const options = { signal: AbortSignal.timeout(60_000) };
    const { transport, tableName } = this.#table;
    let what = "applied";
    try {
      held.reply = { output: await transport.call(operation, input, options) };
    } catch (error) {
      held.reply = { error };
      what = (error as Error).name;
      if (what === "ConditionalCheckFailedException") this.#coverage.count("failed condition");
    }
    const keys = writtenKeys(operation, input).map(({ PK }) => PK.S);
    if (keys.length === 0) return;
    for (const [index, statement] of listStatements(input).entries()) {
      const { Responses } = (held.reply.output ?? {}) as {
        Responses?: { Error?: { Code: string } }[];
      };
      const code = Responses?.[index]?.Error?.Code;
      if (code !== undefined && code !== "ConditionalCheckFailed" && code !== "ValidationError")
        throw new Error(`The engine failed a statement: ${code}`);
      what += ` ${keyOfStatement(statement).PK.S} ${code ?? "applied"}`;
    }
    this.#tell(client, `${what}: ${operation} ${JSON.stringify(input)}`);
    for (const bucket of this.#buckets.values()) {
      if (!keys.includes(bucket.text)) continue;
      const read = { TableName: tableName, Key: bucket.key, ConsistentRead: true };
      const { Item } = (await transport.call("GetItem", read, options)) as { Item?: AttributeMap };
      if (!isDeepStrictEqual(Item, bucket.item)) this.#judge(bucket, Item!, held);
    }
  }

  #judge(bucket: Bucket, item: AttributeMap, held: Held): void {
    const before = bucket.item;
    bucket.item = item;
    noteState(bucket);
    const opened = this.#coverage.counts.get("opened")!;
    const skewsMs = this.#clients.map(({ clock }) => clock.now());
    const clocks = {
      decidedMs: held.decidedMs - this.#spreadMs,
      earliestMs: this.#time.nowMs - this.#spreadMs,
      latestMs: Math.max(this.#time.nowMs + this.#spreadMs, ...skewsMs),
    };
    // Time zone data that differ move the ends for their process alone.
    const landed = bucket.oracle.judge(before, item, clocks);
    this.#tell(held.client, `  ${landed}: ${JSON.stringify(pickWindows(item))}`);
    if (this.#coverage.counts.get("opened")! > opened) {
      if (held.operation === "BatchExecuteStatement") this.#coverage.count("opened by a statement");
      if (held.client.shiftMs > 0) this.#coverage.count("opened by other time zone data");
    } else if (this.#isOverSince(held.sentMs))
      this.#coverage.count("write of the last window landed in the next");
  }

  #change(): void {
    this.#left.changes -= 1;
    const bucket = pick(this.#random, [...this.#buckets.values()]);
    bucket.configuration.change(pick(this.#random, [...this.#changes, "capacity"]));
    noteState(bucket);
    const limits = JSON.stringify(bucket.configuration.limits);
    this.#trace.push(`limits of ${bucket.text} are now ${limits}`);
  }

  #crash(client: Client): void {
    this.#left.crashes -= 1;
    const hasLease = this.#calls.some(
      (call) => call.client === client && call.receipt !== undefined,
    );
    if (hasLease) this.#coverage.count("crash with a lease");
    this.#tell(client, "dies");
    client.isAlive = false;
    for (const held of client.held) {
      if (held.reply === undefined) this.#late.push(held);
      held.reject(GONE);
    }
    client.held = [];
    this.#time.forget(client.clock);
    this.#clients = this.#clients.filter((other) => other !== client);
    this.#startClient();
  }

  #isExpired({ item }: Bucket): boolean {
    const expiresMs = readNumber(item, "ttl") * 1000;
    return expiresMs > 0 && expiresMs <= this.#time.nowMs;
  }

  async #expire(bucket: Bucket): Promise<void> {
    const { transport, tableName } = this.#table;
    const input = { TableName: tableName, Key: bucket.key };
    await transport.call("DeleteItem", input, { signal: AbortSignal.timeout(60_000) });
    bucket.item = undefined;
    this.#hasExpired = true;
    bucket.oracle.forget();
    noteState(bucket);
    this.#coverage.count("expired");
    this.#trace.push(`${bucket.text} has expired`);
  }

  #someMs(): number {
    const dice = this.#random();
    if (dice < 0.6) return between(this.#random, 0, 20);
    return dice < 0.9 ? between(this.#random, 20, 500) : between(this.#random, 500, 5000);
  }

  /** To shortly before or after the next end, or two windows further. */
  #jump(): void {
    this.#left.jumps -= 1;
    const length = PERIODS_MS[this.#period];
    const shift = this.#random() < 0.5 ? this.#shiftMs : 0;
    const { nowMs } = this.#time;
    const end = (Math.floor((nowMs + shift) / length) + 1) * length - shift;
    const further = this.#random() < 0.15 ? 2 * length : 0;
    const ms = end + further + between(this.#random, -2200, 200) - nowMs;
    this.#time.advance(Math.max(0, ms));
    // What changes near an end, clocks that differ see in different windows.
    if (this.#left.changes > 0 && this.#random() < 0.5) this.#change();
  }

  /** What the answers said is what was stored. */
  #compare(): void {
    for (const call of this.#calls) {
      if (call.isBusy || call.outcome === undefined || !call.client.isAlive) continue;
      for (const { oracle } of this.#charged(call.entityId)) {
        const { takes, settlements } = oracle.landed.get(call.id) ?? { takes: 0, settlements: 0 };
        const isTaken = call.outcome === "granted" && call.ended !== "given back";
        // A take from an item that has expired is not given back to another one.
        if (this.#hasExpired) continue;
        const isSure = !call.client.hasFaults;
        // A take that another bucket refused is undone, and may stay if that gets no answer.
        const mayStay = !isSure && this.#charged(call.entityId).length > 1;
        const isWrong =
          takes < 0 ||
          (takes > 1 && !mayStay) ||
          (call.outcome === "granted" && call.ended === undefined && takes === 0) ||
          (isSure && takes !== (isTaken ? 1 : 0)) ||
          (isSure && settlements !== (call.ended === "settled" ? 1 : 0));
        if (isWrong)
          throw new Error(
            `Call ${call.id} was taken ${takes} and settled ${settlements} times: ${this.#describe(call)}`,
          );
      }
    }
  }

  #describe({ id, entityId, amounts, deltas, outcome, ended }: Call): string {
    return JSON.stringify({ id, entityId, amounts, deltas, outcome, ended });
  }

  #tell(client: Client, line: string): void {
    const number = this.#clients.indexOf(client);
    const skewMs = client.clock.now() - this.#time.nowMs;
    const at = this.#time.nowMs - START_MS;
    this.#trace.push(`${at}  process ${number} (${skewMs} ms, shift ${client.shiftMs}): ${line}`);
  }
}

/** Names that calls may state, and that no limit applies to: marks, and limits that left. */
const KNOWN = [...NAMES, ...Array.from({ length: 9 }, (_, number) => `f${number}`)].map((name) =>
  Limit.perMinute(name, 1),
);

function some(weight: number, isPossible: boolean): number {
  return isPossible ? weight : 0;
}

const GONE = Object.assign(new Error("This process is gone"), { name: "AccessDeniedException" });

function noteState({ item, states, configuration }: Bucket): void {
  states.push({ item, capacities: configuration.capacities });
}

function pickWindows(item: AttributeMap): object {
  return Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) =>
      /^b_[qs]_|^ttl$/.test(name) ? [[name, Object.values(value)[0]]] : [],
    ),
  );
}
