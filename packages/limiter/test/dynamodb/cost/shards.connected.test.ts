import { Limit } from "zae-limiter";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ConfigKey } from "../../../src/core/policy.ts";
import { imageOf } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import { bucketKey, type BucketKey } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import type { Connection } from "../../../src/repository/dynamodb/table/connection.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { splitOf } from "../../../src/repository/dynamodb/shards/split.ts";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeRequest, Receipt } from "../../../src/repository/port.ts";
import { bucketProcess, type BucketProcess } from "../../support/bucket-process.ts";
import { connectToNewTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";
import { minus, type Fraction } from "../../oracle/fraction.ts";
import { bucketValue, readBucket } from "../../oracle/stored-bucket.ts";

const NAMESPACE_ID = "ns123456789";
const RESOURCE = "gpt-4";
const CAPACITY = 960;

/** Notes every request, in order, and throttles the writes to one item. */
class Recorder implements DynamoTransport {
  readonly #inner: DynamoTransport;
  operations: string[] = [];
  throttled: string | undefined;

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    this.operations.push(operation);
    const { Key } = input as { readonly Key?: { readonly PK: { readonly S: string } } };
    if (Key !== undefined && Key.PK.S === this.throttled)
      throw Object.assign(new Error("Too fast."), { name: "ThrottlingException" });
    return this.#inner.call(operation, input, options);
  }

  close(): void {
    this.#inner.close();
  }
}

describeWithEngine("what shards cost, and what they are worth", (engine) => {
  const clock = new SleeplessClock();
  let inner: DynamoTransport;
  let connection: Connection;
  let tableName: string;
  let entities = 0;

  beforeAll(async () => {
    ({
      transport: inner,
      tableName,
      connection,
    } = await connectToNewTable(engine().endpointUrl, { transport: "lean", clock }));
  });
  afterAll(() => inner.close());

  interface Opened extends BucketProcess {
    readonly recorder: Recorder;
    /** The requests of a piece of work, in order. */
    requestsOf(work: () => Promise<unknown>): Promise<readonly string[]>;
  }

  const open = (
    homeNumber: number,
    { maxShards = 32, limits = [Limit.perMinute("rpm", CAPACITY)] } = {},
  ): Opened => {
    const recorder = new Recorder(inner);
    const config = ({ level }: ConfigKey): { limits: readonly Limit[] | undefined } => ({
      limits: level === "system" ? limits : undefined,
    });
    const process = bucketProcess({
      transport: recorder,
      tableName,
      clock,
      seed: 100 + homeNumber,
      config,
      maxShards,
      homeNumber,
    });
    const requestsOf = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
      recorder.operations = [];
      await work();
      return recorder.operations;
    };
    return { ...process, recorder, requestsOf };
  };

  /** A bucket with so many shards, and the process that made them. */
  const split = async (
    shards: number,
  ): Promise<{ readonly entityId: string; readonly maker: Opened }> => {
    const entityId = newEntity();
    const maker = open(0);
    await granted(maker, call(entityId, 0));
    await maker.buckets.split(entityId, RESOURCE, shards);
    return { entityId, maker };
  };

  const newEntity = (): string => `key-${(entities += 1)}`;

  const items = async (entityId: string, count: number): Promise<readonly AttributeMap[]> => {
    const replies = await Promise.all(
      Array.from({ length: count }, async (_, shard) =>
        connection.call<{ readonly Item?: AttributeMap }>("GetItem", {
          Key: marshalItem(keyOf(entityId, shard).primary),
        }),
      ),
    );
    return replies.flatMap(({ Item }) => (Item === undefined ? [] : [Item]));
  };

  /** Splits one shard alone, as pressure does with shard 0. */
  const splitOnly = async (entityId: string, shard: number): Promise<void> => {
    const item = (await items(entityId, 64)).find((each) => imageOf(each).shard === shard)!;
    const outcome = await connection.transact(
      splitOf({ key: keyOf(entityId, shard), image: imageOf(item), nowMs: clock.now() }),
    );
    expect(outcome).toEqual({ applied: true });
  };

  it("one write for a warm call, whichever shard is home", async () => {
    const { entityId } = await split(32);
    for (const homeNumber of [0, 1, 13, 31, 32, 77]) {
      const process = open(homeNumber);
      await granted(process, call(entityId, 1));
      for (const pauseMs of [0, 50, 700]) {
        await clock.advance(pauseMs);
        expect(await process.requestsOf(() => granted(process, call(entityId, 1)))).toEqual([
          "UpdateItem",
        ]);
      }
      const image = (await items(entityId, 32))[homeNumber % 32]!;
      expect(Number((image["gr"] as { readonly N: string }).N)).toBeGreaterThanOrEqual(4);
    }
  });

  it("three round trips for the first call of a process, two more when its home is not there yet", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const [settled, settler] = [open(2), open(3)];
    expect(await settled.requestsOf(() => granted(settled, call(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.requestsOf(() => granted(settler, call(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "TransactWriteItems",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.requestsOf(() => granted(settler, call(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect((await items(entityId, 4)).map((item) => imageOf(item).divisor)).toEqual([4, 4, 4, 4]);
  });

  it("one split of a home, however many calls come home together", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3);
    await process.buckets.read(call(entityId, 0));
    const requests = await process.requestsOf(() =>
      Promise.all(Array.from({ length: 64 }, () => granted(process, call(entityId, 1)))),
    );
    expect(requests.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
    expect(requests.length).toBeLessThanOrEqual(6);
    expect(process.counts.splits).toBe(1);
  });

  it("one write also for a process that may not split its home off, and so has none", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3, { maxShards: 2 });
    await granted(process, call(entityId, 1));
    expect(await process.requestsOf(() => granted(process, call(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect(process.counts.splits).toBe(0);
  });

  it("one write where home is known to be empty, and one more where others have emptied it", async () => {
    const { entityId } = await split(2);
    const [one, other] = [open(1), open(1)];
    for (const process of [one, other]) await granted(process, call(entityId, 1));
    await granted(one, call(entityId, CAPACITY / 2 - 2));
    expect(await one.requestsOf(() => granted(one, call(entityId, 1)))).toEqual(["UpdateItem"]);
    expect(await other.requestsOf(() => granted(other, call(entityId, 1)))).toEqual([
      "UpdateItem",
      "UpdateItem",
    ]);
    expect((await items(entityId, 2)).map((item) => imageOf(item).bucket.balances[0])).toEqual([
      478_000, 0,
    ]);
  });

  it("two writes and a read at most before a refusal, however many shards others have emptied", async () => {
    const { entityId, maker } = await split(32);
    const process = open(5);
    await granted(process, call(entityId, 1));
    await granted(maker, call(entityId, CAPACITY - 1));
    const refused = async (): Promise<void> =>
      expect(await process.buckets.consume(call(entityId, 1))).toMatchObject({ granted: false });
    expect(await process.requestsOf(refused)).toEqual(["UpdateItem", "UpdateItem", "BatchGetItem"]);
    expect(await process.requestsOf(refused)).toEqual(["BatchGetItem"]);
  });

  it("a read and a transaction for a call that no shard holds alone", async () => {
    const { entityId } = await split(8);
    const process = open(3);
    await granted(process, call(entityId, 1));
    expect(await process.requestsOf(() => granted(process, call(entityId, CAPACITY / 2)))).toEqual([
      "BatchGetItem",
      "TransactWriteItems",
    ]);
    expect(await process.buckets.read(call(entityId, 0))).toMatchObject([
      { available: CAPACITY / 2 - 1 },
    ]);
  });

  it("no more tries of a shard that is throttled, for the rest of the call", async () => {
    const { entityId } = await split(2);
    const [process, other] = [open(0), open(1)];
    await granted(process, call(entityId, 0));
    const receipt = await granted(other, call(entityId, CAPACITY / 2));
    await process.buckets.read(call(entityId, 0));
    await other.buckets.giveBack(receipt);
    // Home is throttled, and the other shard was empty when this process last saw it.
    process.recorder.throttled = keyOf(entityId, 0).text;
    const tries = Array.from({ length: 3 }, () => "UpdateItem");
    expect(await process.requestsOf(() => granted(process, call(entityId, 1)))).toEqual([
      ...tries,
      "BatchGetItem",
      "UpdateItem",
    ]);
  });

  it("are worth the whole: idle shards fill up together, and no further, however long nobody comes [W-04, W-05]", async () => {
    const { entityId, maker } = await split(8);
    await granted(maker, call(entityId, CAPACITY));
    await clock.advance(15_000);
    expect(await maker.buckets.read(call(entityId, 0))).toMatchObject([
      { available: CAPACITY / 4 },
    ]);
    await clock.advance(30 * 24 * 3_600_000);
    for (const item of await items(entityId, 8)) expect(item).not.toHaveProperty("ttl");
    const lone = open(6);
    for (let taken = 0; taken < CAPACITY; taken += 1) await granted(lone, call(entityId, 1));
    expect(await lone.buckets.consume(call(entityId, 1))).toMatchObject({ granted: false });
  });

  it("get back what was taken before they were split, each its part [W-12]", async () => {
    const entityId = newEntity();
    const process = open(0);
    const receipt = await granted(process, call(entityId, 700));
    await process.buckets.split(entityId, RESOURCE, 8);
    const before = bucketValue(readBucket(await items(entityId, 8)), "rpm", clock.now());
    await process.buckets.giveBack(receipt);
    const after = bucketValue(readBucket(await items(entityId, 8)), "rpm", clock.now());
    expect(after.top - before.top).toBe(700_000n * after.over);
    expect(after.over).toBe(before.over);
    expect((await items(entityId, 8)).map((item) => imageOf(item).bucket.balances[0])).toEqual(
      Array.from({ length: 8 }, () => 120_000),
    );
  });

  it.each([2, 8, 32])(
    "earn back a debt exactly as an unsplit bucket would, with %i shards",
    async (shards) => {
      const limits = [
        Limit.perMinute("rpm", CAPACITY),
        { name: "tpm", capacity: 1000, refillAmount: 700, refillPeriodSeconds: 13 },
      ];
      const process = open(1, { limits });
      const [whole, divided] = [newEntity(), newEntity()];
      for (const entityId of [whole, divided]) {
        const receipt = await granted(process, call(entityId, 1, { tpm: 1 }));
        await process.buckets.settle(receipt, [
          { resource: RESOURCE, amounts: { rpm: 2000, tpm: 5000 } },
        ]);
      }
      await clock.advance(777);
      await process.buckets.split(divided, RESOURCE, shards);
      const missing = async (): Promise<readonly Fraction[]> =>
        Promise.all(
          ["rpm", "tpm"].map(async (name) => {
            const [one, many] = await Promise.all([items(whole, 1), items(divided, shards)]);
            const value = (found: readonly AttributeMap[]): Fraction =>
              bucketValue(readBucket(found), name, clock.now());
            return minus(value(one), value(many));
          }),
        );
      for (const pauseMs of [0, 1, 998, 20_000, 37_224, 20_000, 3, 60_000]) {
        await clock.advance(pauseMs);
        for (const { top, over } of await missing()) {
          expect(top).toBeGreaterThanOrEqual(0n);
          expect(top).toBeLessThanOrEqual(over * BigInt(shards));
        }
        const [one, many] = await Promise.all(
          [whole, divided].map(async (entityId) =>
            process.buckets.consume(call(entityId, 1, { tpm: 1 })),
          ),
        );
        expect(many!.granted).toBe(one!.granted);
        for (const [outcome, entityId] of [
          [one!, whole],
          [many!, divided],
        ] as const)
          if (outcome.granted) await process.buckets.giveBack(outcome.receipt);
          else
            expect(
              outcome.statuses.every(
                ({ available, entityId: owner }) => available < 1 && owner === entityId,
              ),
            ).toBe(true);
      }
    },
  );

  it.each([
    [8, 100, "one shard holds"],
    [8, 500, "several shards hold"],
    [2, 2000, "is a debt of both"],
    [32, 2000, "is a debt of all"],
  ])(
    "pay a settlement as an unsplit bucket would, with %i shards: %i more, which %s",
    async (shards, more) => {
      const [settling, warm, cold] = [open(1), open(2), open(3)];
      const [whole, divided] = [newEntity(), newEntity()];
      for (const entityId of [whole, divided]) await granted(settling, call(entityId, 0));
      await settling.buckets.split(divided, RESOURCE, shards);
      for (const entityId of [whole, divided]) {
        await granted(warm, call(entityId, 0));
        await settling.buckets.settle(await granted(settling, call(entityId, 1)), [
          { resource: RESOURCE, amounts: { rpm: more } },
        ]);
      }
      const stored = (await items(divided, shards)).map(
        (item) => imageOf(item).bucket.balances[0]!,
      );
      expect(stored.reduce((sum, milli) => sum + milli, 0)).toBe((CAPACITY - 1 - more) * 1000);
      expect(stored.every((milli) => (more < CAPACITY ? milli >= 0 : milli < 0))).toBe(true);
      for (const process of [warm, cold, settling])
        for (const pauseMs of [0, 30_000]) {
          await clock.advance(pauseMs);
          for (const amount of [0, 1]) {
            const [one, many] = await Promise.all(
              [whole, divided].map(async (entityId) =>
                process.buckets.consume(call(entityId, amount)),
              ),
            );
            expect(many!.granted).toBe(one!.granted);
            for (const outcome of [one!, many!])
              if (outcome.granted) await process.buckets.giveBack(outcome.receipt);
            if (one!.granted || many!.granted) continue;
            const { available, retryAfterSeconds } = one!.statuses[0]!;
            // Each shard holds whole millitokens only, so that they may be short of a few, which
            // are earned in two milliseconds.
            expect(many!.statuses).toMatchObject([{ available }]);
            expect(Math.abs(many!.statuses[0]!.retryAfterSeconds - retryAfterSeconds)).toBeLessThan(
              0.0025,
            );
          }
        }
    },
  );

  it("hold back what one of them is known to owe", async () => {
    const { entityId, maker } = await split(4);
    const [one, other] = [open(0), open(2)];
    for (const process of [one, other]) await granted(process, call(entityId, 0));
    // A debt that lies in one shard, as others may have left it: 3 × 240 are in the other shards.
    await connection.call("UpdateItem", {
      Key: marshalItem(keyOf(entityId, 1).primary),
      UpdateExpression: "SET b_rpm_tk = :owed",
      ExpressionAttributeValues: { ":owed": { N: "-600000" } },
    });
    for (const process of [one, other]) {
      expect(await process.buckets.read(call(entityId, 0))).toMatchObject([{ available: 120 }]);
      expect(await process.buckets.consume(call(entityId, 121))).toMatchObject({
        granted: false,
        statuses: [{ available: 120 }],
      });
    }
    await granted(one, call(entityId, 100));
    expect(await one.buckets.consume(call(entityId, 21))).toMatchObject({ granted: false });
    await granted(maker, call(entityId, 20));
  });
});

function keyOf(entityId: string, shard: number): BucketKey {
  return bucketKey({ namespaceId: NAMESPACE_ID, entityId, resource: RESOURCE, shard }, undefined);
}

function call(
  entityId: string,
  rpm: number,
  further: Readonly<Record<string, number>> = {},
): ConsumeRequest {
  return {
    entityId,
    charges: [{ resource: RESOURCE, amounts: { rpm, ...further } }],
    override: undefined,
  };
}

async function granted({ buckets }: BucketProcess, request: ConsumeRequest): Promise<Receipt> {
  const outcome = await buckets.consume(request);
  if (!outcome.granted) throw new Error("refused");
  return outcome.receipt;
}
