import type { DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { RESOURCE, type Client } from "./client.ts";
import { floor } from "./fraction.ts";
import type { EngineReply } from "./gate.ts";
import { capacityOf, debtOf, limitNames, shardValue, type StoredBucket } from "./stored-bucket.ts";
import type { World } from "./world.ts";

/** Steps of time until debts are earned back: each is twice as long as the one before, so this is a hundred years. */
const MOST_STEPS = 42;

/** Promise 6: a lone client with a good clock finds every token that is left, wherever it is, and not one more. */
export async function takeWhatIsLeft(world: World): Promise<void> {
  for (const entityId of world.table.entityIds) {
    waitForDebts(world, entityId);
    const bucket = world.table.history(entityId).now;
    if (!isUnderItsConfiguration(world, entityId, bucket)) continue;
    const amounts = Object.fromEntries(limitNames(bucket).map((name) => [name, wholeTokens(bucket, name, world.time.nowMs)]));
    world.tell(`a lone client takes ${JSON.stringify(amounts)} of ${entityId}`);
    const client = world.startClient(0, directly(world));
    if (!(await isGranted(client, entityId, amounts)))
      throw new Error(`${entityId} holds ${JSON.stringify(amounts)}, but does not grant it`);
    for (const name of limitNames(bucket))
      if (await isGranted(client, entityId, { [name]: 1 })) throw new Error(`${entityId} grants ${name} that it does not hold`);
  }
}

function waitForDebts({ time, table }: World, entityId: string): void {
  const bucket = table.history(entityId).now;
  time.advance(Math.max(0, ...[...bucket.values()].map(({ stampMs }) => stampMs - time.nowMs)));
  const isInDebt = (): boolean => limitNames(bucket).some((name) => debtOf(bucket, name, time.nowMs).top > 0n);
  for (let step = 0; step < MOST_STEPS && isInDebt(); step += 1) time.advance(2 ** step);
}

function isUnderItsConfiguration({ limits }: World, entityId: string, bucket: StoredBucket): boolean {
  return limits.get(entityId)!.every(({ name, capacity }) => capacityOf(bucket, name) === BigInt(capacity) * 1000n);
}

/** Each shard can give whole millitokens only. */
function wholeTokens(bucket: StoredBucket, name: string, nowMs: number): number {
  const milli = [...bucket.values()].reduce((total, shard) => total + floor(shardValue(shard, name, nowMs)), 0n);
  return Number(milli / 1000n);
}

async function isGranted({ process }: Client, entityId: string, amounts: Record<string, number>): Promise<boolean> {
  const request = { entityId, charges: [{ resource: RESOURCE, amounts }], override: undefined };
  return (await process.buckets.consume(request)).granted;
}

/** A network that nothing happens on. The writes are watched like all others. */
function directly(world: World): DynamoTransport {
  const surroundings = { process: 0, mayCharge: false, mayGive: new Map(), operations: [], splits: 0 };
  return {
    async call(operation, input) {
      const decided = { decidedAtMs: world.time.nowMs, decidedAtTrueMs: world.time.nowMs, surroundings };
      const unheld = { reply: undefined, firstHalf: undefined, splitsAtReply: 0, resolve: () => {}, reject: () => {} };
      const reply: EngineReply = await world.table.apply({ operation, input, ...decided, ...unheld });
      if (!reply.ok) throw reply.error;
      return reply.output;
    },
    close: () => {},
  };
}
