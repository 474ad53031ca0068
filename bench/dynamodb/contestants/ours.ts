import { Limit, RateLimiter, type RepositoryStatistics } from "zae-limiter";
import { DynamoRepository, type DynamoClient, type DynamoTransport } from "zae-limiter/dynamodb";
import type { BillMeter } from "../bill.ts";
import { NEVER_REACHED, operate, type Case } from "../cases.ts";
import type { Contestant, ContestantId } from "./contestant.ts";

/** What ours is measured with. */
export interface OursOptions {
  readonly id: ContestantId;
  readonly name: string;
  readonly stack: string;
  readonly meter: BillMeter;
  /** Whether writes of different buckets may share a request. */
  readonly shareRequests: boolean;
  readonly connection: { readonly client: DynamoClient } | { readonly transport: DynamoTransport };
}

/** As long as the original remembers what refuses, so that both ask the table equally often. */
const REFUSAL_MEMORY_MS = 1000;

/** Where sharing requests could make a difference: all writes of the others are of one bucket. */
const SHARING_MATTERS: ReadonlySet<Case["id"]> = new Set([
  "sequential",
  "many",
  "children",
  "cascade",
  "alone",
]);

const RESOURCE = "gpt-4";
const UNREACHABLE = [Limit.perMinute("rpm", NEVER_REACHED), Limit.perMinute("tpm", NEVER_REACHED)];
const EXHAUSTED = [Limit.perDay("rpm", 1), Limit.perMinute("tpm", NEVER_REACHED)];

/** Ours on one transport: an operation acquires and commits two limits. */
export async function ours({
  id,
  name,
  stack,
  meter,
  shareRequests,
  connection,
}: OursOptions): Promise<Contestant> {
  const repository = await DynamoRepository.open("bench", {
    ...connection,
    stack,
    provisioning: "table",
    stream: false,
    refusalMemoryMs: REFUSAL_MEMORY_MS,
    shareRequests,
  });
  await repository.setSystemDefaults(UNREACHABLE);
  const limiter = new RateLimiter({ repository });
  const call = async (entityId: string): Promise<void> => {
    const lease = await limiter.acquire({
      entityId,
      resource: RESOURCE,
      consume: { rpm: 1, tpm: 1 },
    });
    await lease.commit();
  };
  const beRefused = async (entityId: string): Promise<void> => {
    const verdict = await limiter.tryAcquire({
      entityId,
      resource: RESOURCE,
      consume: { rpm: 1, tpm: 1 },
    });
    if (verdict.granted) throw new Error("Ours granted what should be refused");
  };
  const prepare = async ({ entityIds, parentId, exhausted }: Case): Promise<void> => {
    if (parentId !== undefined) {
      await repository.createEntity(parentId);
      for (const entityId of entityIds)
        await repository.createEntity(entityId, { parentId, cascade: true });
    }
    if (exhausted)
      for (const entityId of entityIds)
        await repository.setLimits(entityId, EXHAUSTED, { resource: RESOURCE });
  };
  return {
    id,
    name,
    enter: async (race) => {
      if (!shareRequests && !SHARING_MATTERS.has(race.id)) return undefined;
      await prepare(race);
      await operate(race, call)(race.entityIds.length);
      const run = operate(race, race.exhausted ? beRefused : call);
      return {
        run,
        bill: async (operations) => {
          const before = repository.getStatistics();
          const bill = await meter.measure(async () => run(operations));
          return { ...bill, statistics: difference(repository.getStatistics(), before) };
        },
      };
    },
    close: async () => repository.close(),
  };
}

function difference(
  after: RepositoryStatistics,
  before: RepositoryStatistics,
): RepositoryStatistics {
  const counts = Object.entries(after).map(([name, count]) => [
    name,
    count - before[name as keyof RepositoryStatistics],
  ]);
  return Object.fromEntries(counts) as RepositoryStatistics;
}
