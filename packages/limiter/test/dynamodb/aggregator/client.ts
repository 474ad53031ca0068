import {
  RateLimiter,
  RateLimiterUnavailable,
  RateLimitExceeded,
  ValidationError,
  type Random,
} from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { between, pick } from "../../support/seeded/random-choice.ts";
import type { CoverageCounts } from "../../support/seeded/coverage-counts.ts";
import { listNames, RESOURCES, type EntityModel } from "./entities.ts";
import { HeldLease, type LeaseWorld } from "./held-lease.ts";
import type { Tokens } from "./ledger.ts";

/** What a history must have met, over many seeds. */
export const SITUATIONS = [
  "grant",
  "refusal",
  "two resources",
  "cascade",
  "more taken",
  "settled up",
  "settled down",
  "rolled back",
  "split",
  "merge",
  "lease ends after its bucket was deleted",
  "bucket deleted by time to live",
  "entity deleted and created again",
  "deletion that got stuck half-way",
  "limits changed",
  "began or ceased to cascade",
  "stream shard split",
] as const;

/** Something that happens in a history. */
export type Situation = (typeof SITUATIONS)[number];

/** What the actions of clients share. */
export interface ClientWorld extends LeaseWorld {
  readonly random: Random;
  readonly entities: readonly EntityModel[];
  readonly coverage: CoverageCounts<Situation>;
  /** Leases that are idle at the moment. */
  readonly leases: HeldLease[];
  /** Buckets that were split, as entity and resource. */
  readonly split: Set<string>;
}

/** The most shards that a test splits a bucket into. */
const MOST_SHARDS = 8;

/** A process with a cache of its own. */
export class Client {
  readonly repository: DynamoRepository;
  readonly #limiter: RateLimiter;

  constructor(repository: DynamoRepository) {
    this.repository = repository;
    this.#limiter = new RateLimiter({ repository });
  }

  /**
   * Chooses what to do next. What it will be is fixed when this returns; it happens when the
   * function is called, at the same time as what others do.
   */
  next(world: ClientWorld): () => Promise<void> {
    const { random, leases } = world;
    const chance = random();
    if (chance < 0.1) return this.#reshape(world);
    if (chance < 0.45 && leases.length > 0) {
      const [held] = leases.splice(Math.floor(random() * leases.length), 1);
      if (held!.mayTakeMore && random() < 0.3) return this.#takeMore(world, held!);
      return this.end(world, held!);
    }
    return this.#acquire(world);
  }

  /** Ends a lease. */
  end(world: ClientWorld, held: HeldLease): () => Promise<void> {
    const { random, coverage } = world;
    const { lease } = held;
    const isLate = held.hasLostABucket;
    const chance = random();
    const totals = chance < 0.25 ? undefined : chosenTotals(world, held);
    return async () => {
      if (isLate) coverage.count("lease ends after its bucket was deleted");
      if (totals === undefined) {
        await lease.rollback();
        coverage.count("rolled back");
        return held.rolledBack();
      }
      for (const [resource, tokens] of Object.entries(totals))
        lease.resourceLease(resource).settle(tokens);
      await lease.commit();
      countSettlement(world, held, totals);
      held.settled(totals);
    };
  }

  #acquire(world: ClientWorld): () => Promise<void> {
    const { random, coverage, leases } = world;
    const entity = pick(random, world.entities);
    const resource = chosenResource(random);
    const other = RESOURCES.find((each) => each !== resource)!;
    const consume = chosenTokens(random, entity);
    const also = random() < 0.15 ? { [other]: chosenTokens(random, entity) } : {};
    return async () => {
      const request = { entityId: entity.id, resource, consume, also };
      const result = await tolerant(() => this.#limiter.tryAcquire(request));
      if (result === undefined) return;
      if (!result.granted) return coverage.count("refusal");
      coverage.count("grant");
      if (Object.keys(also).length > 0) coverage.count("two resources");
      if (entity.cascades) coverage.count("cascade");
      leases.push(new HeldLease(world, result.lease, entity, { [resource]: consume, ...also }));
    };
  }

  #takeMore(world: ClientWorld, held: HeldLease): () => Promise<void> {
    const tokens = chosenTokens(world.random, held.entity);
    return async () => {
      try {
        const taken = await tolerant(async () => {
          await held.lease.consume(tokens);
          return true;
        });
        if (taken === undefined) return;
        held.tookMore(tokens);
        world.coverage.count("more taken");
      } catch (error) {
        if (!(error instanceof RateLimitExceeded)) throw error;
      } finally {
        world.leases.push(held);
      }
    };
  }

  /** Splits a bucket, or merges one that was split. */
  #reshape({ random, entities, coverage, split }: ClientWorld): () => Promise<void> {
    const merged = split.size > 0 && random() < 0.5 ? pick(random, [...split]) : undefined;
    const name = merged ?? `${pick(random, entities).id} ${chosenResource(random)}`;
    const [entityId, resource] = name.split(" ") as [string, string];
    const shards = pick(random, merged === undefined ? [2, 4, MOST_SHARDS] : [1, 1, 2]);
    split.delete(name);
    const { repository } = this;
    return async () => {
      if ((await repository.getBuckets(entityId, { resource })).length === 0) return;
      try {
        if (merged === undefined) await repository.splitBucket!(entityId, resource, { shards });
        else await repository.mergeBucket!(entityId, resource, { shards });
        coverage.count(merged === undefined ? "split" : "merge");
        if (shards > 1) split.add(name);
      } catch (error) {
        // Its shares would be too small; or others write to the bucket all the time.
        if (!(error instanceof ValidationError || error instanceof RateLimiterUnavailable))
          throw error;
      }
    };
  }
}

/** A call that had no answer in time took nothing; undefined then. */
async function tolerant<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RateLimiterUnavailable) return undefined;
    throw error;
  }
}

/** Most calls are on the first one: then something happens to its buckets between two changes. */
function chosenResource(random: Random): string {
  return random() < 0.75 ? RESOURCES[0]! : RESOURCES[1]!;
}

function chosenTokens(random: Random, entity: EntityModel): Tokens {
  const names = listNames(entity).filter(() => random() < 0.7);
  const chosen = names.length === 0 ? listNames(entity).slice(0, 1) : names;
  const isLarge = random() < 0.1;
  return Object.fromEntries(
    chosen.map((name) => [name, between(random, 1, isLarge ? 90 : name === "tpm" ? 40 : 3)]),
  );
}

function chosenTotals(
  { random }: ClientWorld,
  { entity, resources }: HeldLease,
): Readonly<Record<string, Tokens>> {
  const settled = resources.filter(() => random() < 0.7);
  return Object.fromEntries(
    settled.map((resource) => [
      resource,
      Object.fromEntries(
        listNames(entity)
          .filter(() => random() < 0.6)
          .map((name) => [name, between(random, 0, name === "tpm" ? 60 : 4)]),
      ),
    ]),
  );
}

function countSettlement(
  { coverage }: ClientWorld,
  held: HeldLease,
  totals: Readonly<Record<string, Tokens>>,
): void {
  for (const [resource, tokens] of Object.entries(totals))
    for (const [name, total] of Object.entries(tokens)) {
      const taken = held.taken(resource)[name] ?? 0;
      if (total > taken) coverage.count("settled up");
      if (total < taken) coverage.count("settled down");
    }
}
