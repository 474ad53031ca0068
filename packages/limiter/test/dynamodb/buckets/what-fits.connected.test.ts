import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimiterUnavailable, type Repository } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";

/** How often each shape is tried, with buckets that do not exist yet: `ROUNDS=50` for more. */
const ROUNDS = Number(process.env["ROUNDS"] ?? 3);

/** Calls of several processes, all at once, on buckets that none of them has met. */
interface Shape {
  readonly clients: number;
  readonly calls: number;
  /** What one bucket of the calling entity holds, and one of its parent, if it has one. */
  readonly child: number;
  readonly parent?: number;
  /** The resources of the calls, which take turns. */
  readonly resources?: readonly (readonly string[])[];
}

const BOTH = [
  ["a", "b"],
  ["b", "a"],
];

const SHAPES: readonly Shape[] = [
  { clients: 2, calls: 40, child: 10 },
  { clients: 2, calls: 40, child: 10, parent: 10 },
  { clients: 4, calls: 200, child: 60, parent: 60 },
  { clients: 4, calls: 400, child: 100, parent: 150 },
  { clients: 4, calls: 200, child: 60, resources: BOTH },
  { clients: 4, calls: 200, child: 60, parent: 40, resources: BOTH },
];

describeWithEngine("several processes that meet new buckets at once", (engine) => {
  const timeout = 40_000 * ROUNDS;

  it.each([true, false])(
    "what fits is granted (shared requests: %s)",
    { timeout },
    async (shareRequests) => {
      const options = { endpointUrl: engine().endpointUrl, stack: freshTableName(), shareRequests };
      const open = (provisioning: "table" | "never"): Promise<Repository> =>
        DynamoRepository.open("app", { ...options, provisioning, stream: false });
      const first = await open("table");
      for (let round = 1; round <= ROUNDS; round += 1)
        for (const [index, shape] of SHAPES.entries()) {
          const entityId = `child-${round}-${index}`;
          await provide(first, entityId, shape);
          const repositories = await Promise.all(
            Array.from({ length: shape.clients }, () => open("never")),
          );
          const limiters = repositories.map((repository) => new RateLimiter({ repository }));
          const outcome = await callAll(limiters, entityId, shape);
          for (const repository of repositories) await repository.close();
          const possible = Math.min(shape.child, shape.parent ?? Infinity);
          expect({ round, shape, ...outcome }).toMatchObject({ granted: possible, unavailable: 0 });
        }
      await first.close();
    },
  );
});

async function provide(repository: Repository, entityId: string, shape: Shape): Promise<void> {
  const { child, parent } = shape;
  const parentId = `parent-of-${entityId}`;
  if (parent !== undefined) {
    await repository.createEntity(parentId);
    await repository.setLimits(parentId, [Limit.custom({ ...SLOW, capacity: parent })]);
    await repository.createEntity(entityId, { parentId, cascade: true });
  }
  await repository.setLimits(entityId, [Limit.custom({ ...SLOW, capacity: child })]);
}

const SLOW = { name: "n", capacity: 1, refillAmount: 1, refillPeriodSeconds: 86_400 };

async function callAll(
  limiters: readonly RateLimiter[],
  entityId: string,
  { calls, resources = [["a"]] }: Shape,
): Promise<{ readonly granted: number; readonly unavailable: number; readonly longestMs: number }> {
  let [granted, unavailable, longestMs] = [0, 0, 0];
  const call = async (number: number): Promise<void> => {
    const limiter = limiters[number % limiters.length]!;
    const names = resources[Math.floor(number / limiters.length) % resources.length]!;
    const [resource = "a", ...others] = names;
    const consume = { n: 1 };
    const also = Object.fromEntries(others.map((name) => [name, consume]));
    const startMs = performance.now();
    try {
      const verdict = await limiter.tryAcquire({ entityId, resource, consume, also });
      if (verdict.granted) granted += 1;
      if (verdict.granted) await verdict.lease.commit();
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      unavailable += 1;
    }
    longestMs = Math.max(longestMs, performance.now() - startMs);
  };
  await Promise.all(Array.from({ length: calls }, (_, number) => call(number)));
  return { granted, unavailable, longestMs: Math.round(longestMs) };
}
