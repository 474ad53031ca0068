import { ValidationError, type Repository } from "zae-limiter";
import { ENTITIES, RESOURCES } from "./fixtures.ts";
import type { Client } from "./client.ts";
import { endLease } from "./lease-actions.ts";
import { milliAt, type LimitBalance, type OracleBucket } from "../oracle/oracle-bucket.ts";
import { BrokenPromise } from "../oracle/oracle.ts";
import { exactTerms, floorDivide } from "../oracle/terms.ts";
import type { World } from "./world.ts";

type ShardStates = Awaited<ReturnType<Repository["getBuckets"]>>;

interface SplitBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly shards: number;
}

/**
 * The end of a history, where the backend has shards: every bucket is split, and half of the leases
 * that are still open go back to the shards that now own what they had taken from. Then every
 * bucket gets half its shards, the other leases go back, and at last every bucket is whole. No time
 * passes, so all shards together must hold what the bucket held. (Later a shard may be full, and
 * earn nothing, while others are not; what must hold then is for `test/dynamodb/interleavings` to
 * judge.)
 */
export async function splitAndMergeAll(world: World, client: Client): Promise<void> {
  if (client.repository.splitBucket === undefined) return;
  const split = await splitAll(world, client);
  const compare = (): Promise<void> => compareShards(world, client, split);
  await endLeases(world, { left: Math.floor(world.leases.length / 2), compare });
  for (const { shards, ...bucket } of split) await merge(world, client, bucket, shards / 2);
  await compare();
  await endLeases(world, { left: 0, compare });
  for (const bucket of split) {
    await merge(world, client, bucket, 1);
    await compare();
  }
}

async function splitAll(world: World, client: Client): Promise<readonly SplitBucket[]> {
  const { repository } = client;
  const split: SplitBucket[] = [];
  let shards = 2;
  for (const entityId of ENTITIES)
    for (const resource of RESOURCES) {
      if (world.oracle.bucket(entityId, resource) === undefined) continue;
      shards = shards === 8 ? 2 : 2 * shards;
      if (!(await isSplit(repository.splitBucket!(entityId, resource, { shards })))) continue;
      split.push({ entityId, resource, shards });
      world.say(() => `the bucket of ${entityId} on ${resource} is split into ${shards}`);
      world.count("bucket split");
      await compareShards(world, client, split);
    }
  return split;
}

async function merge(
  world: World,
  client: Client,
  { entityId, resource }: Pick<SplitBucket, "entityId" | "resource">,
  shards: number,
): Promise<void> {
  const count = await client.repository.mergeBucket!(entityId, resource, { shards });
  world.say(() => `the bucket of ${entityId} on ${resource} is merged into ${count}`);
  world.count("bucket merged");
  if (count > shards)
    throw new BrokenPromise(`${entityId} on ${resource} was merged into ${count} shards`);
}

/** Gives leases back until this many are left. */
async function endLeases(
  world: World,
  { left, compare }: { readonly left: number; readonly compare: () => Promise<void> },
): Promise<void> {
  while (world.leases.length > left) {
    await endLease(world, { kind: "end", lease: 0, how: "rollback", faults: [] });
    await compare();
  }
}

/** A bucket whose shares would be too small cannot be split. */
async function isSplit(splitting: Promise<number>): Promise<boolean> {
  try {
    await splitting;
    return true;
  } catch (error) {
    if (error instanceof ValidationError) return false;
    throw error;
  }
}

async function compareShards(
  { oracle }: World,
  client: Client,
  split: readonly SplitBucket[],
): Promise<void> {
  const nowMs = client.now();
  for (const entityId of ENTITIES) {
    const states = await client.repository.getBuckets(entityId);
    for (const resource of RESOURCES) {
      const bucket = oracle.bucket(entityId, resource);
      if (bucket === undefined) continue;
      const most = split.find((each) => each.entityId === entityId && each.resource === resource);
      const wrong = wrongTogether(
        states.filter((state) => state.resource === resource),
        bucket,
        { nowMs, mostShards: most?.shards ?? 1 },
      );
      if (wrong !== undefined) throw new BrokenPromise(`${entityId} on ${resource}: ${wrong}`);
    }
  }
}

function wrongTogether(
  states: ShardStates,
  { balances, stampMs, countedMilli }: OracleBucket,
  options: { readonly nowMs: number; readonly mostShards: number },
): string | undefined {
  for (const balance of balances.filter(({ hidden }) => !hidden)) {
    const { name } = balance.terms;
    const shards = states.filter(({ limitName }) => limitName === name);
    const consumedMilli = balance.consumedMilli + (countedMilli?.get(name) ?? 0n);
    const wrong = wrongLimit(shards, {
      balance: { ...balance, consumedMilli },
      stampMs,
      ...options,
    });
    if (wrong !== undefined) return `${name} ${wrong} in ${shards.length} shards`;
  }
  return undefined;
}

function wrongLimit(
  shards: ShardStates,
  {
    balance,
    stampMs,
    nowMs,
    mostShards,
  }: {
    readonly balance: LimitBalance;
    readonly stampMs: number;
    readonly nowMs: number;
    readonly mostShards: number;
  },
): string | undefined {
  const capacity = shards.reduce((sum, { capacityMilli }) => sum + capacityMilli, 0);
  if (capacity !== Number(balance.terms.capacityMilli)) return `has a capacity of ${capacity}`;
  const consumed = shards.reduce((sum, { totalConsumedMilli }) => sum + totalConsumedMilli, 0);
  if (consumed !== Number(balance.consumedMilli))
    return `counts ${consumed} millitokens consumed, and must count ${balance.consumedMilli}`;
  if (balance.terms.window !== undefined) return wrongWindows(shards, balance, nowMs);
  const held = shards.reduce((sum, shard) => sum + heldMilli(shard, nowMs), 0n);
  const expected = milliAt(balance, stampMs, nowMs);
  // Each split and each merge loses a fraction of a millitoken, and remainders are not shown.
  const isRight = held <= expected + 1n && held + 2n * BigInt(mostShards) >= expected;
  return isRight ? undefined : `holds ${held} millitokens, and must hold ${expected}`;
}

/** Each shard shows whole tokens, rounded down. */
function wrongWindows(
  shards: ShardStates,
  balance: LimitBalance,
  nowMs: number,
): string | undefined {
  const held = BigInt(shards.reduce((sum, { available }) => sum + available, 0));
  const expected = floorDivide(milliAt(balance, nowMs, nowMs), 1000n);
  const isRight = held <= expected && held + BigInt(shards.length) > expected;
  return isRight ? undefined : `holds ${held} tokens, and must hold ${expected}`;
}

function heldMilli(shard: ShardStates[number], nowMs: number): bigint {
  const terms = exactTerms({
    name: shard.limitName,
    capacityMilli: BigInt(shard.capacityMilli),
    amount: BigInt(shard.refillAmountMilli),
    period: BigInt(shard.refillPeriodMs),
  });
  const units = BigInt(shard.tokensMilli) * terms.period;
  return milliAt({ terms, units }, shard.lastRefillMs, nowMs);
}
