import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeOutcome } from "../../../src/repository/port.ts";
import { RESOURCE, type Client } from "./client.ts";
import { floor, fraction, isLess } from "../../oracle/fraction.ts";
import { requestFor } from "../../support/bucket-process.ts";
import type { EngineReply } from "./gate.ts";
import {
  getCapacity,
  getDebt,
  isQuota,
  limitNames,
  getRate,
  shardValue,
  type StoredBucket,
} from "../../oracle/stored-bucket.ts";
import { fewestMs } from "../../oracle/oracle-bucket.ts";
import { computeShare } from "../../oracle/terms.ts";
import { requestText } from "./story.ts";
import { writtenKeys } from "../../support/written-items.ts";
import type { World } from "./world.ts";

/**
 * Steps of time until debts are earned back: each is twice as long as the one before, so this is a
 * hundred years.
 */
const MOST_STEPS = 42;

/**
 * Promise 6: a lone client with a good clock finds every token that is left, wherever it is, and
 * not one more. Then the library reports exactly when the bucket is full again, and it is: no shard
 * starves.
 */
export async function takeWhatIsLeft(world: World): Promise<void> {
  for (const entityId of world.table.entityIds) {
    waitForDebts(world, entityId);
    if (!isUnderItsConfiguration(world, entityId, world.table.history(entityId).now)) continue;
    const client = world.startClient(0, directly(world));
    // It comes home first, which may split a shard: each of more shards keeps a fraction of a
    // millitoken to itself.
    await ask(client, entityId, {});
    const bucket = world.table.history(entityId).now;
    const amounts = Object.fromEntries(
      limitNames(bucket).map((name) => [name, wholeTokens(bucket, name, world.time.nowMs)]),
    );
    world.tell(`a lone client takes ${JSON.stringify(amounts)} of ${entityId}`);
    if (!(await ask(client, entityId, amounts)).granted)
      throw new Error(`${entityId} holds ${JSON.stringify(amounts)}, but does not grant it`);
    for (const name of limitNames(bucket))
      if ((await ask(client, entityId, { [name]: 1 })).granted)
        throw new Error(`${entityId} grants ${name} that it does not hold`);
    for (const name of limitNames(bucket)) await waitUntilFull(world, client, { entityId, name });
  }
}

/** Promise 3, over all shards: the waiting time is exact, to the millisecond. */
async function waitUntilFull(
  world: World,
  client: Client,
  { entityId, name }: { readonly entityId: string; readonly name: string },
): Promise<void> {
  const { time } = world;
  const bucket = world.table.history(entityId).now;
  const capacity = getCapacity(bucket, name);
  const amounts = { [name]: Number(capacity / 1000n) };
  const expectedMs = waitMs(bucket, name, time.nowMs);
  const outcome = await ask(client, entityId, amounts);
  const told = outcome.granted
    ? 0
    : outcome.statuses.find(({ limitName }) => limitName === name)!.retryAfterSeconds * 1000;
  world.tell(`a lone client waits ${told} ms for ${JSON.stringify(amounts)} of ${entityId}`);
  if (Math.round(told) !== expectedMs)
    throw new Error(`${entityId} is full of ${name} in ${expectedMs} ms, not in ${told} ms`);
  const { top, over } = getRate(bucket, name);
  const isSlow = (): boolean =>
    isLess(fraction(11n * capacity * over, 10n * top), fraction(BigInt(expectedMs)));
  if (!isQuota(bucket, name) && isSlow())
    throw new Error(`A shard of ${entityId} starves: it needs ${expectedMs} ms for its ${name}`);
  if (expectedMs === 0) return;
  time.advance(expectedMs - 1);
  if ((await ask(client, entityId, amounts)).granted)
    throw new Error(`${entityId} grants ${name} a millisecond before it said`);
  time.advance(1);
  if (!(await ask(client, entityId, amounts)).granted)
    throw new Error(`${entityId} does not grant ${name} when it said`);
}

/** How long until every shard is full. */
function waitMs(bucket: StoredBucket, name: string, nowMs: number): number {
  const capacity = getCapacity(bucket, name);
  const ms = fewestMs((afterMs) => wholeMilli(bucket, name, nowMs + Number(afterMs)) >= capacity);
  return Number(ms);
}

/**
 * What one shard owes is held back on the others, or not, whichever shard a call happens to ask
 * first.
 */
function waitForDebts({ time, table }: World, entityId: string): void {
  const bucket = table.history(entityId).now;
  time.advance(Math.max(0, ...[...bucket.values()].map(({ stampMs }) => stampMs - time.nowMs)));
  const isInDebt = (): boolean =>
    limitNames(bucket).some((name) => getDebt(bucket, name, time.nowMs).top > 0n);
  for (let step = 0; step < MOST_STEPS && isInDebt(); step += 1) time.advance(2 ** step);
}

function isUnderItsConfiguration(
  { limits }: World,
  entityId: string,
  bucket: StoredBucket,
): boolean {
  return limits
    .get(entityId)!
    .every(({ name, capacity }) =>
      [...bucket].every(
        ([number, shard]) =>
          shard.limits.get(name)?.terms.capacityMilli ===
          computeShare(BigInt(capacity) * 1000n, number, shard.divisor),
      ),
    );
}

function wholeTokens(bucket: StoredBucket, name: string, nowMs: number): number {
  return Number(wholeMilli(bucket, name, nowMs) / 1000n);
}

/** Each shard can give whole millitokens only. */
function wholeMilli(bucket: StoredBucket, name: string, nowMs: number): bigint {
  return [...bucket.values()].reduce(
    (total, shard) => total + floor(shardValue(shard, name, nowMs)),
    0n,
  );
}

async function ask(
  { process }: Client,
  entityId: string,
  amounts: Record<string, number>,
): Promise<ConsumeOutcome> {
  return process.buckets.consume(requestFor(entityId, amounts, { resource: RESOURCE }));
}

/** A network that nothing happens on. The writes are watched like all others. */
export function directly(world: World): DynamoTransport {
  const surroundings = {
    process: 0,
    mayCharge: false,
    mayGive: new Map(),
    operations: [],
    owed: [],
    reshapes: world.reshapes,
  };
  return {
    async call(operation, input) {
      const decided = {
        decidedAtMs: world.time.nowMs,
        decidedAtTrueMs: world.time.nowMs,
        surroundings,
      };
      const unheld = {
        faultOf: undefined,
        reply: undefined,
        firstHalf: undefined,
        reshapesAtReply: surroundings.reshapes,
        resolve: () => {},
        reject: () => {},
      };
      const reply: EngineReply = await world.table.apply({
        operation,
        input,
        ...decided,
        decisions: writtenKeys(operation, input).map(() => decided),
        ...unheld,
      });
      world.tell(
        `request of the lone client: ${reply.ok ? "applied" : (reply.error as Error).name}: ${requestText({ operation, input })}`,
      );
      if (!reply.ok) throw reply.error;
      return reply.output;
    },
    close: () => {},
  };
}
