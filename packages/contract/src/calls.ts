import assert from "node:assert/strict";
import {
  type AcquireRequest,
  type Amounts,
  Limit,
  type Page,
  type RateLimiter,
  RateLimitExceeded,
  type Repository,
} from "zae-limiter";
import type { World } from "./world.ts";

/** The entity and the resource that most tests use. */
export const KEY = "key-1";
export const MODEL = "gpt-4";

/** 100 requests and 1000 tokens a minute: the limits that most tests use. */
export const RPM = Limit.perMinute("rpm", 100);
export const TPM = Limit.perMinute("tpm", 1000);

/** A request of the usual entity on the usual resource. */
export function call(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { entityId: KEY, resource: MODEL, consume, ...more };
}

/** Takes and commits. */
export async function take(
  { limiter }: Pick<World, "limiter">,
  consume: Amounts,
  more: Partial<AcquireRequest> = {},
): Promise<void> {
  const lease = await limiter.acquire(call(consume, more));
  await lease.commit();
}

/** Takes and commits if it fits. Returns whether it did. */
export async function fits(
  { limiter }: Pick<World, "limiter">,
  consume: Amounts,
  more: Partial<AcquireRequest> = {},
): Promise<boolean> {
  const verdict = await limiter.tryAcquire(call(consume, more));
  if (verdict.granted) await verdict.lease.commit();
  return verdict.granted;
}

/** Counts how many times in a row a call is granted, at most `most` times. */
export async function grants(
  world: Pick<World, "limiter">,
  consume: Amounts,
  most: number,
): Promise<number> {
  for (let count = 0; count < most; count += 1) if (!(await fits(world, consume))) return count;
  return most;
}

/** Makes a call that must be refused, and returns the refusal. */
export async function getRefusal(
  limiter: RateLimiter,
  request: AcquireRequest,
): Promise<RateLimitExceeded> {
  const verdict = await limiter.tryAcquire(request);
  if (verdict.granted)
    return assert.fail(`granted, but should be refused: ${JSON.stringify(request)}`);
  assert.ok(verdict.refusal instanceof RateLimitExceeded);
  return verdict.refusal;
}

/** Reads what the usual entity has left. */
export function readLeft(
  { limiter }: Pick<World, "limiter">,
  entityId = KEY,
  resource = MODEL,
): Promise<Record<string, number>> {
  return limiter.available(entityId, resource);
}

/** Makes a call that must fail with exactly this class of error, and returns the error. */
export async function failsWith<E extends Error>(
  kind: abstract new (...values: never[]) => E,
  run: () => unknown,
  message?: string,
): Promise<E> {
  try {
    await run();
  } catch (error) {
    if (error instanceof kind) return error;
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return assert.fail(`${message ?? "failed otherwise"}: expected ${kind.name}, got ${text}`);
  }
  return assert.fail(`${message ?? "did not fail"}: expected ${kind.name}`);
}

/** Every item of a list, page by page. */
export async function allPages<T>(
  read: (paging: { readonly limit: number; readonly cursor?: string }) => Promise<Page<T>>,
  limit: number,
): Promise<readonly T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1000; pages += 1) {
    const page: Page<T> = await read(cursor === undefined ? { limit } : { limit, cursor });
    assert.ok(page.items.length <= limit, `a page of at most ${limit} held ${page.items.length}`);
    items.push(...page.items);
    cursor = page.cursor;
    if (cursor === undefined) return items;
  }
  return assert.fail("the list has no end");
}

/**
 * Reads everything that a refused call could have left behind. Two footprints are equal if nothing
 * was written between them.
 */
export async function footprint(repository: Repository): Promise<unknown> {
  const audited = [KEY, "other", "$SYSTEM", `$RESOURCE:${MODEL}`];
  return {
    buckets: await Promise.all(
      [KEY, "other", "project"].map((entityId) => repository.getBuckets(entityId)),
    ),
    entities: (await repository.listEntities()).items,
    system: await repository.getSystemDefaults(),
    resources: await repository.listResourcesWithDefaults(),
    resourceLimits: await repository.getResourceDefaults(MODEL),
    entityLimits: [
      await repository.getLimits(KEY),
      await repository.getLimits(KEY, { resource: MODEL }),
    ],
    configured: await repository.listResourcesWithEntityConfigs(),
    usage: repository.capabilities.usageSnapshots
      ? (await repository.getUsageSnapshots({ entityId: KEY })).items
      : undefined,
    audit: await Promise.all(
      audited.map(async (id) => (await repository.getAuditEvents(id)).items),
    ),
    namespaces: (await repository.listNamespaces()).map(({ name }) => name),
    provisioner: await repository.getProvisionerState(),
  };
}
